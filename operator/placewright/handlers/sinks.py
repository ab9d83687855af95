"""Which collections are reflected, and where their news goes: from the network's side to the scheduler's intake."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from placewright.api.objects import (
    Namespace,
    Node,
    NodeName,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError
from placewright.cluster.objects import ClusterObject
from placewright.kube.discovery import ServedResources, Wanted
from placewright.kube.reflector import Sink, Source
from placewright.scheduler.intake import Intake

_logger = logging.getLogger(__name__)

ASSIGNED_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_SPREADING: Final = "pods of one service or workload are not spread by default"
_OTHERS: Final = (
    (Wanted("", "namespaces", ("v1",), "namespace selectors of pod affinity match nothing"), Namespace),
    (Wanted("", "services", ("v1",), _SPREADING), Service),
    (Wanted("", "replicationcontrollers", ("v1",), _SPREADING), ReplicationController),
    (Wanted("apps", "replicasets", ("v1",), _SPREADING), ReplicaSet),
    (Wanted("apps", "statefulsets", ("v1",), _SPREADING), StatefulSet),
    (Wanted("policy", "poddisruptionbudgets", ("v1", "v1beta1"), "preemption sees no disruption budgets"), PodDisruptionBudget),
)

C = TypeVar("C", bound=ClusterObject)


def readable_pod(pod: Pod) -> PodInfo | None:
    """The pod with what follows from its spec, or None, with a log line, when a quantity in it cannot be read."""
    try:
        return PodInfo(pod)
    except QuantityError as problem:
        _logger.warning("pod %s/%s is ignored: resources: %s", pod.metadata.namespace, pod.metadata.name, problem)
        return None


class AssignedPodSink:
    """News of pods on nodes."""

    def __init__(self, intake: Intake, listed: Callable[[], None]) -> None:
        """`listed`: called after every list; what broke this watch may have broken Kopf's, which does not say so."""
        self._intake = intake
        self._listed = listed

    def changed(self, old: Pod | None, new: Pod) -> None:
        """Appeared or changed."""
        if (pod := readable_pod(new)) is not None:
            self._intake.assigned_pod(pod)

    def deleted(self, old: Pod) -> None:
        """Gone or finished."""
        self._intake.assigned_pod_gone(old.metadata.uid)

    def synced(self) -> None:
        """The columns are right after every event; others may want to look."""
        self._listed()


class NodeSink:
    """News of nodes."""

    def __init__(self, intake: Intake) -> None:
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

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    def changed(self, old: C | None, new: C) -> None:
        """Appeared or changed."""
        self._intake.cluster_object(new)

    def deleted(self, old: C) -> None:
        """Gone."""
        self._intake.cluster_object_gone(old)

    def synced(self) -> None:
        """Nothing to do."""


def sources_and_sinks(
    served: ServedResources, intake: Intake, pods_listed: Callable[[], None]
) -> Iterator[tuple[Source[Any], Sink[Any]]]:
    """What to reflect on this API server; what it does not serve is left out and said once."""
    yield Source("/api/v1/nodes", Node), NodeSink(intake)
    yield Source("/api/v1/pods", Pod, field_selector=ASSIGNED_PODS), AssignedPodSink(intake, pods_listed)
    for wanted, kind in _OTHERS:
        path = served.find(wanted)
        if path is not None:
            yield Source(path, kind), ClusterObjectSink(intake)
