"""The reflectors of nodes and pods, and the sinks that pass objects on to the scheduler's event handlers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from placewright.api.objects import Node, NodeName, ObjectMeta, Pod
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError
from placewright.cluster.objects import ClusterObject
from placewright.framework.sources import AnySource
from placewright.kube.client import ApiClient
from placewright.kube.discovery import Wanted
from placewright.kube.errors import NOT_FOUND, ApiError
from placewright.kube.optionalterms import OptionalTerms
from placewright.kube.reflectedkinds import REFLECTED, Reflected
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright.kube.sink import Sink
from placewright.scheduler.eventhandlers import ClusterEventHandlers

_logger = logging.getLogger(__name__)

C = TypeVar("C", bound=ClusterObject)
T = TypeVar("T")

PODS_PATH: Final = "/api/v1/pods"
NODES_PATH: Final = "/api/v1/nodes"
ASSIGNED_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
#: The field selector of the pods that Kopf watches.
UNSCHEDULED_PODS: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


def _ignore(*_told: object) -> None:
    pass


@dataclass(frozen=True)
class CallingSink(Generic[T]):
    """Calls a function for each change that a reflector tells. Implements `Sink`.

    Attributes:
        changed: takes the object as it was known (None for a new one), and the object now.
        deleted: takes an object that was deleted.
        synced: called after each list.
    """

    changed: Callable[[T | None, T], None] = _ignore
    deleted: Callable[[T], None] = _ignore
    synced: Callable[[], None] = _ignore


def reflected_core(client: ApiClient, event_handlers: ClusterEventHandlers, pods_listed: Callable[[], None]) -> Reflectors:
    """Make the reflectors of nodes and of pods on nodes, which every API server serves. `Discovery` adds those of other kinds.

    Args:
        client: lists and watches.
        event_handlers: takes the objects.
        pods_listed: called after each list of pods. The failure that broke this watch may have broken Kopf's, and Kopf does not say so.

    Returns:
        Reflectors that have not been started.
    """

    def pod_changed(_old: Pod | None, new: Pod) -> None:
        if (pod := readable_pod(new, event_handlers.known_on_node(new.metadata.uid))) is not None:
            event_handlers.assigned_pod(pod)

    nodes = CallingSink[Node](
        lambda _old, new: event_handlers.node(new), lambda old: event_handlers.node_gone(NodeName(old.metadata.name))
    )  # fmt: skip
    pods = CallingSink[Pod](pod_changed, lambda old: event_handlers.assigned_pod_gone(old.metadata.uid), pods_listed)
    on_nodes = Source(PODS_PATH, Pod, field_selector=ASSIGNED_PODS)
    return Reflectors([Reflector(client, Source(NODES_PATH, Node), nodes), Reflector(client, on_nodes, pods)])


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
    if row.optional is not None and row.optional.poll_seconds is not None:
        return PolledObjectSink(event_handlers, row.kind)
    return CallingSink[Any](lambda _old, new: event_handlers.cluster_object(new), event_handlers.cluster_object_gone)


def readable_pod(pod: Pod, like: PodInfo | None = None) -> PodInfo | None:
    """Make a `PodInfo` of a pod.

    Args:
        pod: the pod, as the API server shows it.
        like: the same pod as it was known, whose computed parts are reused where its spec is unchanged.

    Returns:
        None, after a warning, when a quantity in the pod cannot be read.
    """
    try:
        return PodInfo(pod, like)
    except QuantityError as problem:
        _logger.warning("pod %s/%s is ignored: resources: %s", pod.metadata.namespace, pod.metadata.name, problem)
        return None


def pod_path(named: PodInfo | ObjectMeta) -> str:
    """Return the path of a pod on the API server."""
    return f"/api/v1/namespaces/{named.namespace}/pods/{named.name}"


async def read_if_there(client: ApiClient, path: str, kind: type[T]) -> T | None:
    """Read an object.

    Args:
        client: reads it.
        path: path of the object.
        kind: struct that it is decoded into.

    Returns:
        None if the API server has no such object.

    Raises:
        RequestError: the API server did not answer.
    """
    try:
        return await client.get_as(path, kind)
    except ApiError as problem:
        if problem.status == NOT_FOUND:
            return None
        raise


async def read_pod(client: ApiClient, pod: PodInfo) -> PodInfo | None:
    """Read a pod as the API server has it now. An unreadable pod keeps its last good state, on the node that the API server shows.

    Args:
        client: reads it.
        pod: the pod as it is known.

    Returns:
        None if the pod is gone, even if another pod has its name.

    Raises:
        RequestError: the API server did not answer.
    """
    found = await read_if_there(client, pod_path(pod), Pod)
    if found is None or found.metadata.uid != pod.uid:
        return None
    return readable_pod(found) or pod.on(NodeName(found.spec.node_name))


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
