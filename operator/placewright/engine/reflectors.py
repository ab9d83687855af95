"""What is reflected of this API server, and where its news goes: from the network's side to the scheduler's intake."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError
from placewright.cluster.objects import ClusterObject
from placewright.kube.client import ApiClient
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright.scheduler.eventhandlers import ClusterEventHandlers

_logger = logging.getLogger(__name__)

C = TypeVar("C", bound=ClusterObject)

PODS_PATH: Final = "/api/v1/pods"
NODES_PATH: Final = "/api/v1/nodes"
ASSIGNED_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
#: Those that Kopf watches.
UNSCHEDULED_PODS: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


def reflected_core(client: ApiClient, intake: ClusterEventHandlers, pods_listed: Callable[[], None]) -> Reflectors:
    """What every API server serves: nodes, and pods on them. What else this one serves, `Discovery` adds."""
    nodes: Reflector[Any] = Reflector(client, Source(NODES_PATH, Node), NodeSink(intake))
    pods = Source(PODS_PATH, Pod, field_selector=ASSIGNED_PODS)
    return Reflectors([nodes, Reflector(client, pods, AssignedPodSink(intake, pods_listed))])


def readable_pod(pod: Pod, like: PodInfo | None = None) -> PodInfo | None:
    """The pod with what follows from its spec, or None, with a log line, when a quantity in it cannot be read. `like`: as it was known."""
    try:
        return PodInfo(pod, like)
    except QuantityError as problem:
        _logger.warning("pod %s/%s is ignored: resources: %s", pod.metadata.namespace, pod.metadata.name, problem)
        return None


class AssignedPodSink:
    """News of pods on nodes."""

    def __init__(self, intake: ClusterEventHandlers, listed: Callable[[], None]) -> None:
        """`listed`: called after every list; what broke this watch may have broken Kopf's, which does not say so."""
        self._intake = intake
        self._listed = listed

    def changed(self, old: Pod | None, new: Pod) -> None:
        """Appeared or changed."""
        if (pod := readable_pod(new, self._intake.known_on_node(new.metadata.uid))) is not None:
            self._intake.assigned_pod(pod)

    def deleted(self, old: Pod) -> None:
        """Gone or finished."""
        self._intake.assigned_pod_gone(old.metadata.uid)

    def synced(self) -> None:
        """The columns are right after every event; others may want to look."""
        self._listed()


class NodeSink:
    """News of nodes."""

    def __init__(self, intake: ClusterEventHandlers) -> None:
        self._intake = intake

    def changed(self, old: Node | None, new: Node) -> None:
        """Appeared or changed."""
        self._intake.node(new)

    def deleted(self, old: Node) -> None:
        """Gone."""
        self._intake.node_gone(NodeName(old.metadata.name))

    def synced(self) -> None:
        """Nothing to do."""


class ClusterObjectSink(Generic[C]):
    """News of everything else that placement reads."""

    def __init__(self, intake: ClusterEventHandlers) -> None:
        self._intake = intake

    def changed(self, old: C | None, new: C) -> None:
        """Appeared or changed."""
        self._intake.cluster_object(new)

    def deleted(self, old: C) -> None:
        """Gone."""
        self._intake.cluster_object_gone(old)

    def synced(self) -> None:
        """Nothing to do."""
