"""The reflectors of nodes and pods, and the sinks that pass objects of all reflectors on to the scheduler's event handlers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError
from placewright.cluster.objects import ClusterObject
from placewright.framework.sources import AnySource
from placewright.kube.client import ApiClient
from placewright.kube.discovery import Wanted
from placewright.kube.optionalterms import OptionalTerms
from placewright.kube.reflectedkinds import REFLECTED, Reflected
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright.kube.sink import Sink
from placewright.scheduler.eventhandlers import ClusterEventHandlers

_logger = logging.getLogger(__name__)

C = TypeVar("C", bound=ClusterObject)

PODS_PATH: Final = "/api/v1/pods"
NODES_PATH: Final = "/api/v1/nodes"
ASSIGNED_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
#: The field selector of the pods that Kopf watches.
UNSCHEDULED_PODS: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


def reflected_core(client: ApiClient, event_handlers: ClusterEventHandlers, pods_listed: Callable[[], None]) -> Reflectors:
    """Make the reflectors of nodes and of pods on nodes, which every API server serves. `Discovery` adds those of other kinds.

    Args:
        client: lists and watches.
        event_handlers: takes the objects.
        pods_listed: called after each list of pods.

    Returns:
        Reflectors that have not been started.
    """
    nodes: Reflector[Any] = Reflector(client, Source(NODES_PATH, Node), NodeSink(event_handlers))
    pods = Source(PODS_PATH, Pod, field_selector=ASSIGNED_PODS)
    return Reflectors([nodes, Reflector(client, pods, AssignedPodSink(event_handlers, pods_listed))])


def reflected_rows(sources: Iterable[tuple[AnySource, str]]) -> tuple[Reflected, ...]:
    """Return what is reflected where the API server serves it: the scheduler's own table, and what plugins declare.

    Args:
        sources: each with the name of the plugin that declares it, as `Registry.sources` has them.
    """
    return (*REFLECTED, *(_row(source, plugin) for source, plugin in sources if source.follower is None))


def _row(source: AnySource, plugin: str) -> Reflected:
    labels = source.selector.query
    terms = OptionalTerms(plugin, source.poll_seconds, source.stale_after_seconds, source.most_bytes, labels, source.field_selector)
    return Reflected(Wanted(source.group, source.resource, source.versions, plugin), source.kind, optional=terms)


def sink_of(row: Reflected, event_handlers: ClusterEventHandlers) -> Sink[Any]:
    """Make the sink for a kind: a polled collection causes one event a list, any other one event an object.

    Args:
        row: the kind.
        event_handlers: takes the objects.

    Returns:
        A sink for its reflector.
    """
    polled = row.optional is not None and row.optional.poll_seconds is not None
    return PolledObjectSink(event_handlers, row.kind) if polled else ClusterObjectSink(event_handlers)


def readable_pod(pod: Pod, like: PodInfo | None = None) -> PodInfo | None:
    """Make a `PodInfo` of a pod.

    Args:
        pod: as the API server shows it.
        like: the same pod as it was known, whose computed parts are reused where its spec is unchanged.

    Returns:
        None, after a warning, when a quantity in the pod cannot be read.
    """
    try:
        return PodInfo(pod, like)
    except QuantityError as problem:
        _logger.warning("pod %s/%s is ignored: resources: %s", pod.metadata.namespace, pod.metadata.name, problem)
        return None


class AssignedPodSink:
    """Passes pods on nodes to the scheduler."""

    def __init__(self, event_handlers: ClusterEventHandlers, listed: Callable[[], None]) -> None:
        """Pass on to the event handlers.

        Args:
            event_handlers: takes the pods.
            listed: called after each list. The failure that broke this watch may have broken Kopf's, and Kopf does not say so.
        """
        self._event_handlers = event_handlers
        self._listed = listed

    def changed(self, old: Pod | None, new: Pod) -> None:
        """Take an object that appeared or changed.

        Args:
            old: the object as it was known; None for a new one.
            new: the object now.
        """
        if (pod := readable_pod(new, self._event_handlers.known_on_node(new.metadata.uid))) is not None:
            self._event_handlers.assigned_pod(pod)

    def deleted(self, old: Pod) -> None:
        """Take a pod that was deleted or has finished."""
        self._event_handlers.assigned_pod_gone(old.metadata.uid)

    def synced(self) -> None:
        """Call `listed`. The columns themselves are right after every event."""
        self._listed()


class NodeSink:
    """Passes nodes to the scheduler."""

    def __init__(self, event_handlers: ClusterEventHandlers) -> None:
        self._event_handlers = event_handlers

    def changed(self, old: Node | None, new: Node) -> None:
        """Take an object that appeared or changed.

        Args:
            old: the object as it was known; None for a new one.
            new: the object now.
        """
        self._event_handlers.node(new)

    def deleted(self, old: Node) -> None:
        """Take an object that was deleted."""
        self._event_handlers.node_gone(NodeName(old.metadata.name))

    def synced(self) -> None:
        """Do nothing: the columns are right after every event."""


class ClusterObjectSink(Generic[C]):
    """Passes objects of all other kinds to the scheduler."""

    def __init__(self, event_handlers: ClusterEventHandlers) -> None:
        self._event_handlers = event_handlers

    def changed(self, old: C | None, new: C) -> None:
        """Take an object that appeared or changed.

        Args:
            old: the object as it was known; None for a new one.
            new: the object now.
        """
        self._event_handlers.cluster_object(new)

    def deleted(self, old: C) -> None:
        """Take an object that was deleted."""
        self._event_handlers.cluster_object_gone(old)

    def synced(self) -> None:
        """Do nothing: the columns are right after every event."""


class PolledObjectSink(Generic[C]):
    """Passes on a collection that is polled: each list may change every object, and is one event for waiting pods."""

    def __init__(self, event_handlers: ClusterEventHandlers, kind: type[C]) -> None:
        self._event_handlers = event_handlers
        self._kind = kind
        self._changed = False

    def changed(self, old: C | None, new: C) -> None:
        """Put an object into its table.

        Args:
            old: the object as it was known; None for a new one.
            new: the object now.
        """
        self._event_handlers.source_object(new)
        self._changed = True

    def deleted(self, old: C) -> None:
        """Take the object out of its table: it is gone, or too old."""
        self._event_handlers.source_object_gone(old)
        self._changed = True

    def synced(self) -> None:
        """Tell waiting pods of the list, if it changed an object."""
        if self._changed:
            self._changed = False
            self._event_handlers.source_listed(self._kind)
