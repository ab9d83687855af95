"""ServiceAffinity: the pods of a Service on nodes with the same values of some labels. Implements PreFilter, Filter, Score.

kube-scheduler shipped it up to 1.22. Which values, the pod's node selector says or, where it says nothing, the node of the first pod like
it: the first in the order in which kube-scheduler lists nodes. Pods like it are those of its namespace that have all of its labels. The
arguments are those of KubeSchedulerConfiguration v1beta1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import Node
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.selectors import selector_from_pairs
from placewright.api.workloads import Service
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObjects
from placewright.cluster.podselections import PodSelection
from placewright.framework.assignedpods import in_its_namespace
from placewright.framework.constraints import not_empty
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.filters import ConstantReasonFilter
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    Handle,
    IntColumn,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    Rows,
    ScorePlugin,
)
from placewright.framework.memory import Memory, NodeMemory
from placewright.framework.status import SKIP, unschedulable
from placewright.framework.topology import MISSING, counts_by_row, domains
from placewright_legacy_plugins.zonewalk import zone_walk

Label = Annotated[str, not_empty("the key of a node label")]


class ServiceAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Keys of node labels: those whose values a Service's pods share, and those over whose values they are spread."""

    affinity_labels: tuple[Label, ...] = ()
    anti_affinity_labels_preference: tuple[Label, ...] = ()


_MAX_LOOKS: Final = 4096


class PodServices:
    """The Services of pods, by look; forgotten when a Service changes."""

    def __init__(self) -> None:
        self._objects: ClusterObjects | None = None
        self._version = -1
        self._seen: list[Service] = []
        self._by_namespace: dict[str, list[Service]] = {}
        self._known = Memory(_MAX_LOOKS)

    def of(self, pod: PodInfo, objects: ClusterObjects) -> tuple[Service, ...]:
        """Those that select this pod, by name; kube-scheduler has them in no order."""
        if objects.version != self._version or objects is not self._objects:
            self._look_again(objects)
        if pod.namespace not in self._by_namespace:
            return ()
        return self._known.recall((pod.namespace, pod.pairwise_key.labels), lambda: self._select(pod))

    def _look_again(self, objects: ClusterObjects) -> None:
        self._objects, self._version = objects, objects.version
        before, self._seen = self._seen, [*objects.services.values()]
        if before == self._seen:  # something else changed
            return
        self._known.forget()
        self._by_namespace = {}
        for service in sorted(self._seen, key=lambda service: service.metadata.name):
            self._by_namespace.setdefault(service.metadata.namespace, []).append(service)

    def _select(self, pod: PodInfo) -> tuple[Service, ...]:
        return tuple(service for service in self._by_namespace[pod.namespace] if selects(service, pod))


def selects(service: Service, pod: PodInfo) -> bool:
    """Return whether the Service is in the pod's namespace and selects its labels. Without a selector it selects none."""
    wanted = service.spec.selector
    same_namespace = service.metadata.namespace == pod.namespace
    return same_namespace and bool(wanted) and (wanted or {}).items() <= pod.labels.items()


NAME: Final = "ServiceAffinity"
REASON: Final = "node(s) didn't match service affinity"
#: Stands for a value that no node has.
_NO_CODE: Final = -1


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The labels, with their values, that a node must have."""

    labels: Mapping[str, str]


class ServiceAffinity(PreFilterPlugin[ServiceAffinityArgs], ConstantReasonFilter, ScorePlugin):
    """Keeps the pods of a Service together by some labels, and apart by others."""

    name = NAME
    reads = Reads.CLUSTER
    rejection = unschedulable(REASON)

    def __init__(self, args: ServiceAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._together = args.affinity_labels
        self._apart = args.anti_affinity_labels_preference
        self._services = PodServices()
        self._memory = NodeMemory()

    # --- together ------------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Work out which values the labels must have; skip pods for which that is open."""
        labels = self._own(pod)
        if len(labels) < len(self._together) and self._services.of(pod, cluster.objects):
            labels = self._of_the_first(pod, cluster) | labels
        if not labels:
            return PreFilterResult(SKIP)
        state.write(NAME, _Wanted(labels))
        return PreFilterResult()

    def _own(self, pod: PodInfo) -> dict[str, str]:
        """Return the affinity labels in the pod's node selector."""
        selector = pod.pod.spec.node_selector or NO_LABELS
        return {key: selector[key] for key in self._together if key in selector}

    def _of_the_first(self, pod: PodInfo, cluster: Cluster) -> dict[str, str]:
        """Return the affinity labels of the first node with a pod like this one. Without such a pod, return none."""
        like_it = PodSelection(frozenset((pod.namespace,)), selector_from_pairs(pod.labels))
        rows = np.flatnonzero(counts_by_row(cluster, like_it))
        if len(rows) == 0:
            return {}
        first = int(rows[np.argmin(zone_walk(self._memory, cluster)[rows])])
        labels = cluster.node(first).metadata.labels or NO_LABELS
        return {key: labels[key] for key in self._together if key in labels}

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Pass nodes that have the wanted labels with their values."""
        passes = np.ones(len(rows), np.bool_)
        for key, value in state.read(NAME, _Wanted).labels.items():
            column = cluster.label(key)
            code = column.code(value)
            passes &= column.codes(rows) == (_NO_CODE if code is None else code)
        return passes

    # --- apart ---------------------------------------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """How few of the Service's pods share the node's value of each label, 0 without the label; the average over the labels.

        The rows are the feasible ones: for lack of a fingerprint this is asked for no others. Raw scores are normalised already, for that
        takes the labels of all feasible nodes.
        """
        points = np.zeros(len(rows), np.float64)
        if not self._apart:
            return points.astype(np.int64)
        counts = self._counts(pod, cluster, rows)
        total = int(counts.sum())
        for key in self._apart:
            place = domains(self._memory, cluster, key)
            codes = place.codes[rows]
            shared = np.bincount(codes, weights=counts, minlength=place.distinct)
            by_code = MAX_NODE_SCORE * ((total - shared) / total) if total else np.full(place.distinct, float(MAX_NODE_SCORE))
            by_code[MISSING] = 0
            points += by_code[codes] / len(self._apart)
        return points.astype(np.int64)

    def _counts(self, pod: PodInfo, cluster: Cluster, rows: Rows) -> NDArray[np.int32]:
        """Pods of the pod's Service that are not on their way out. Of several Services the first by name counts."""
        services = self._services.of(pod, cluster.objects)
        if not services:
            return np.zeros(len(rows), np.int32)
        selector = selector_from_pairs(services[0].spec.selector or {})
        return counts_by_row(cluster, PodSelection(frozenset((pod.namespace,)), selector, terminating=False))[rows]

    # --- events --------------------------------------------------------------------------------------------------------------

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Nodes that change in the labels, pods like the rejected one, its Services; nothing when no label holds pods together."""
        if not self._together:
            return ()
        changes = Action.ADD | Action.DELETE
        return (
            event_with_hint(EventResource.NODE, changes | Action.UPDATE_NODE_LABEL, self._node_changed),
            event_with_hint(EventResource.POD, changes | Action.UPDATE_POD_LABEL, _pod_changed, in_its_namespace),
            event_with_hint(EventResource.SERVICE, Action.ALL, _service_changed),
        )

    def _node_changed(self, _pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        """One that came or went may be the first pod's, so what it is labelled with does not matter."""
        if isinstance(old, Node) and isinstance(new, Node):
            before, after = (node.metadata.labels or NO_LABELS for node in (old, new))
            return _hint(any(before.get(key) != after.get(key) for key in self._together))
        return QueueingHint.QUEUE


def _pod_changed(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """Queue the pod if it changed, or if a pod on a node began or ceased to be like it."""
    if isinstance(new, PodInfo) and new.uid == pod.uid:
        return QueueingHint.QUEUE
    return _hint(_counts(old, pod) != _counts(new, pod))


def _counts(other: Any, pod: PodInfo) -> bool:
    """Return whether `other` is on a node, and is like the pod."""
    on_a_node = isinstance(other, PodInfo) and bool(other.node_name)
    return on_a_node and other.namespace == pod.namespace and pod.labels.items() <= other.labels.items()


def _service_changed(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """Queue the pod if the Service selected it before, or selects it now."""
    return _hint(any(isinstance(each, Service) and selects(each, pod) for each in (old, new)))


def _hint(worth_it: bool) -> QueueingHint:
    return QueueingHint.QUEUE if worth_it else QueueingHint.SKIP
