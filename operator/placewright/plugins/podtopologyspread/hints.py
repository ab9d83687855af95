"""Queueing hints of PodTopologySpread: which changes may satisfy the constraints of a rejected pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from placewright.api.objects import Node
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.selectors import EVERYTHING, Selector, SelectorError
from placewright.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from placewright.cluster.selectorindex import places_met, places_of
from placewright.framework.events import EventKeys, EventResource, QueueingHint
from placewright.plugins.podtopologyspread.args import HARD
from placewright.plugins.podtopologyspread.constraints import Constraint, compile_own
from placewright.plugins.podtopologyspread.defaultselectors import owner_of

SelectingObject = Service | ReplicationController | ReplicaSet | StatefulSet
#: Kinds whose selectors decide which pods default constraints count.
SELECTING: Final = (
    EventResource.SERVICE, EventResource.REPLICATION_CONTROLLER, EventResource.REPLICA_SET, EventResource.STATEFUL_SET
)  # fmt: skip


def involved(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    """Return whether the changed pod is the rejected pod, or stands (or is nominated to stand) among its peers."""
    return _among_peers(pod, old) and _among_peers(pod, new)


def after_pod_change(constraints: Sequence[Constraint], pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """Queue if a matching pod came or went, a pod began or ceased to match, or the pod's tolerations changed."""
    if isinstance(old, PodInfo) and isinstance(new, PodInfo):
        return QueueingHint.when(_own_tolerations_matter(constraints, pod, old, new) or _match_changed(constraints, old, new))
    changed = old if new is None else new
    return QueueingHint.when(changed is not None and any(c.matches(changed.labels) for c in constraints))


def after_node_change(constraints: Sequence[Constraint], old: Node | None, new: Node | None) -> QueueingHint:
    """Queue if the node joined or left the domains, moved between them, or changed its taints."""
    before = isinstance(old, Node) and _has_all(constraints, old)
    after = isinstance(new, Node) and _has_all(constraints, new)
    if isinstance(old, Node) and isinstance(new, Node):
        return QueueingHint.when(before != after or (after and _differ(constraints, old, new)))
    return QueueingHint.when(before or after)


def after_selector_change(pod: PodInfo, old: SelectingObject | None, new: SelectingObject | None) -> QueueingHint:
    """Queue a pod with default constraints if the object is its owner, or a Service that selects or selected it."""
    known = [each for each in (old, new) if each is not None and each.metadata.namespace == pod.namespace]
    if pod.pod.spec.topology_spread_constraints or not known:
        return QueueingHint.SKIP
    return QueueingHint.when(any(_selects(each, pod) for each in known))


def _selects(item: SelectingObject, pod: PodInfo) -> bool:
    if type(item) is Service:
        wanted = item.spec.selector or {}
        return bool(wanted) and wanted.items() <= pod.labels.items()
    owner = owner_of(pod)
    return owner is not None and (owner.kind, owner.name) == (type(item).__name__, item.metadata.name)


def keys_of_pod(pod: PodInfo) -> Iterator[Hashable]:
    """Yield keys of a waiting pod: pods that its constraints count, and itself."""
    yield pod.uid
    for selector in _selectors(pod):
        yield from places_of((pod.namespace,), selector)


def keys_of_pod_change(old: PodInfo | None, new: PodInfo | None) -> Iterator[Hashable]:
    """Yield keys of waiting pods whose constraints may count the changed pod, before or after, and of the pod itself."""
    for pod in (old, new):
        if isinstance(pod, PodInfo):
            yield pod.uid
            yield from places_met(pod.namespace, pod.labels.items())


#: Keys by which events of pods find the waiting pods that they concern.
POD_KEYS: Final = EventKeys(keys_of_pod, keys_of_pod_change)


def _selectors(pod: PodInfo) -> Iterator[Selector]:
    own = pod.pod.spec.topology_spread_constraints
    try:
        compiled = compile_own(own, HARD, pod) if own else None
    except SelectorError:
        compiled = None
    if compiled is None:  # default constraints count the selections of Services and owners, which change
        yield EVERYTHING
        return
    yield from (constraint.selector for constraint in compiled if constraint.selector is not None)


def _among_peers(pod: PodInfo, changed: PodInfo | None) -> bool:
    """Return whether a changed pod is the pod itself or a placed pod of its namespace; True for None, too."""
    if not isinstance(changed, PodInfo) or changed.uid == pod.uid:
        return True
    return changed.namespace == pod.namespace and bool(changed.node_name or changed.nominated_node)


def _own_tolerations_matter(constraints: Sequence[Constraint], pod: PodInfo, old: PodInfo, new: PodInfo) -> bool:
    if new.uid != pod.uid or (old.pod.spec.tolerations or ()) == (new.pod.spec.tolerations or ()):
        return False
    return any(c.honor_taints for c in constraints)


def _match_changed(constraints: Sequence[Constraint], old: PodInfo, new: PodInfo) -> bool:
    if old.terminating != new.terminating:  # terminating pods are not counted
        return any(c.matches(old.labels) for c in constraints)
    return old.labels != new.labels and any(c.matches(old.labels) != c.matches(new.labels) for c in constraints)


def _labels(node: Node) -> dict[str, str]:
    return dict(node.metadata.labels or NO_LABELS)


def _has_all(constraints: Sequence[Constraint], node: Node) -> bool:
    labels = _labels(node)
    return all(c.key in labels for c in constraints)


def _differ(constraints: Sequence[Constraint], old: Node, new: Node) -> bool:
    one, other = _labels(old), _labels(new)
    moved = any(one.get(c.key) != other.get(c.key) for c in constraints)
    return moved or (old.spec.taints or ()) != (new.spec.taints or ())
