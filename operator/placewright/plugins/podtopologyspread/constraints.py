"""Spread constraints, compiled: what to count, where, and how uneven it may be."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from placewright.api.objects import KubeObject, OwnerReference, TopologySpreadConstraint
from placewright.api.pods import PodInfo
from placewright.api.selectors import Selector, SelectorError, compile_label_selector, selector_from_pairs
from placewright.api.workloads import SelectingWorkload, Service
from placewright.cluster.objects import ClusterObjects
from placewright.cluster.podselections import PodSelection

_HONOR: Final = "Honor"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, for one pod.

    Attributes:
        key: the node label whose values are the domains.
        counted: the pods to count; None when the selector picks none.
        counts_itself: 1 when the pod would count in its own domain, else 0.
        honor_affinity, honor_taints: whether nodes that the pod's node affinity excludes, or its tolerations, are left out of the count.
    """

    key: str
    max_skew: int
    min_domains: int
    counted: PodSelection | None
    counts_itself: int
    selector: Selector | None
    honor_affinity: bool
    honor_taints: bool

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True when the constraint's selector (None: it picks nothing) matches these labels."""
        return self.selector is not None and self.selector.matches(labels)


def labels_looked_at(constraints: Iterable[TopologySpreadConstraint]) -> frozenset[str]:
    """The keys of pod labels that these constraints read; pods that differ in others alone have the same compiled constraints."""
    keys: set[str] = set()
    for constraint in constraints:
        keys.update(constraint.match_label_keys or ())
        if constraint.label_selector is not None:
            keys.update(constraint.label_selector.match_labels or ())
            keys.update(expression.key for expression in constraint.label_selector.match_expressions or ())
    return frozenset(keys)


def compile_own(constraints: Iterable[TopologySpreadConstraint], action: str, pod: PodInfo) -> tuple[Constraint, ...]:
    """The pod's own constraints with this `whenUnsatisfiable`; raise `SelectorError` on a selector that does not parse."""
    return tuple(_compile(c, _selector(c, pod.labels), pod) for c in constraints if c.when_unsatisfiable == action)


def compile_default(
    constraints: Iterable[TopologySpreadConstraint], action: str, pod: PodInfo, selector: Selector
) -> tuple[Constraint, ...]:
    """Default constraints with this `whenUnsatisfiable`; all use the one selector that follows from Services and owner."""
    if selector.empty:
        return ()
    return tuple(_compile(c, selector, pod) for c in constraints if c.when_unsatisfiable == action)


def _selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector | None:
    """`labelSelector` and, for those of `matchLabelKeys` that the pod has, its own values. None picks nothing."""
    written = None if constraint.label_selector is None else compile_label_selector(constraint.label_selector)
    own = {key: labels[key] for key in constraint.match_label_keys or () if key in labels}
    if not own:
        return written
    return Selector((*selector_from_pairs(own).expressions, *(written.expressions if written else ())))


def _compile(constraint: TopologySpreadConstraint, selector: Selector | None, pod: PodInfo) -> Constraint:
    # kube-scheduler counts nothing for an empty selector, although it takes it to match the pod itself.
    counts = selector is not None and not selector.empty
    return Constraint(
        key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        counted=PodSelection(frozenset((pod.namespace,)), selector, terminating=False) if counts and selector else None,
        counts_itself=int(selector is not None and selector.matches(pod.labels)),
        selector=selector,
        honor_affinity=constraint.node_affinity_policy in (None, _HONOR),
        honor_taints=constraint.node_taints_policy == _HONOR,
    )


_NOTHING: Final = Selector(())


def owner_of(pod: PodInfo) -> OwnerReference | None:
    """The pod's controller, or None."""
    for owner in pod.pod.metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


class DefaultSelectors:
    """Default selectors by pod look, forgotten when a Service or workload changes."""

    def __init__(self) -> None:
        self._objects: ClusterObjects | None = None
        self._version = -1
        self._seen: list[list[KubeObject]] = []
        self._services: dict[str, list[Mapping[str, str]]] = {}
        self._known: dict[Hashable, Selector] = {}

    def of(self, pod: PodInfo, objects: ClusterObjects) -> Selector:
        """The selector for this pod; an empty one when nothing selects or owns it."""
        if objects.version != self._version or objects is not self._objects:
            self._look_again(objects)
        owner = owner_of(pod) if pod.pod.metadata.owner_references else None
        if owner is None and not self._services.get(pod.namespace):
            return _NOTHING
        key = (pod.pairwise_key.namespace, pod.pairwise_key.labels, owner and (owner.kind, owner.name, owner.api_version))
        selector = self._known.get(key)
        if selector is None:
            selector = self._known[key] = self._select(pod, owner, objects)
        return selector

    def _look_again(self, objects: ClusterObjects) -> None:
        self._objects, self._version = objects, objects.version
        before = self._seen
        self._seen = [
            [*objects.services.values()],
            [*objects.replication_controllers.values()],
            [*objects.replica_sets.values()],
            [*objects.stateful_sets.values()],
        ]
        if before == self._seen:  # something else changed
            return
        self._known.clear()
        self._services = {}
        for service in objects.services.values():
            if service.spec.selector:
                self._services.setdefault(service.metadata.namespace, []).append(service.spec.selector)

    def _select(self, pod: PodInfo, owner: OwnerReference | None, objects: ClusterObjects) -> Selector:
        pairs: dict[str, str] = {}
        for wanted in self._services.get(pod.namespace, ()):
            if all(pod.labels.get(key) == value for key, value in wanted.items()):
                pairs.update(wanted)
        selected = selector_from_pairs(pairs)
        if owner is None:
            return selected
        return Selector((*selected.expressions, *_owner_selector(owner, pod.namespace, objects).expressions))


def _owner_selector(owner: OwnerReference, namespace: str, objects: ClusterObjects) -> Selector:
    name = f"{namespace}/{owner.name}"
    match (owner.api_version, owner.kind):
        case ("v1", "ReplicationController"):
            controller: Service | None = objects.replication_controllers.get(name)
            return selector_from_pairs((controller.spec.selector if controller else None) or {})
        case ("apps/v1", "ReplicaSet"):
            return _workload_selector(objects.replica_sets.get(name))
        case ("apps/v1", "StatefulSet"):
            return _workload_selector(objects.stateful_sets.get(name))
    return _NOTHING


def _workload_selector(workload: SelectingWorkload | None) -> Selector:
    if workload is None or workload.spec.selector is None:
        return _NOTHING
    try:
        return compile_label_selector(workload.spec.selector)
    except SelectorError:  # kube-scheduler too goes on without a selector that does not parse
        return _NOTHING
