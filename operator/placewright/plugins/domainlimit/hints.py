"""Queueing hints of DomainLimit: which changes may give room to the domains of a rejected pod."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from placewright.api.objects import Node
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.cluster.selectorindex import places_met, places_of
from placewright.framework.events import EventKeys, QueueingHint
from placewright.plugins.domainlimit.limits import Limit, PodLimits


def after_pod_change(limits: Sequence[Limit], old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """Queue the pod if a limit counted `old`, which had a node or a nomination, and does not count `new`."""
    stood = isinstance(old, PodInfo) and bool(old.node_name or old.nominated_node)
    return QueueingHint.when(stood and any(limit.counts(old) and not limit.counts(new) for limit in limits))


def after_node_change(limits: Sequence[Limit], old: Node | None, new: Node | None) -> QueueingHint:
    """Queue the pod if a node came with all labels, was deleted, or changed its domain of a limit."""
    before, after = _labels(old), _labels(new)
    if before is None:
        return QueueingHint.when(after is not None and bool(limits) and all(limit.key in after for limit in limits))
    if after is None:
        return QueueingHint.when(any(limit.key in before for limit in limits))
    return QueueingHint.when(any(before.get(limit.key) != after.get(limit.key) for limit in limits))


def pod_keys(limits_of: Callable[[PodInfo], PodLimits]) -> EventKeys[PodInfo]:
    """Return keys by which an event of a pod finds the waiting pods whose limits count it."""

    def of_pod(pod: PodInfo) -> Iterator[Hashable]:
        for limit in limits_of(pod).required:
            yield from places_of(limit.pods.namespaces, limit.pods.selector)

    return EventKeys(of_pod, _met)


def _met(old: PodInfo | None, _new: PodInfo | None) -> list[Hashable]:
    # Only the labels before the event matter, because a pod helps by no longer counting.
    return [*places_met(old.namespace, old.labels.items())] if isinstance(old, PodInfo) else []


def _own(pod: PodInfo | None) -> list[Hashable]:
    return [pod.uid] if isinstance(pod, PodInfo) else []


def _told_of(old: PodInfo | None, new: PodInfo | None) -> list[Hashable]:
    return _own(new) or _own(old)


#: Keys of events that concern the waiting pod itself.
ITSELF: EventKeys[PodInfo] = EventKeys(_own, _told_of)


def _labels(node: Node | None) -> Mapping[str, str] | None:
    """Return the labels of a node; None if there is no node."""
    return (node.metadata.labels or NO_LABELS) if isinstance(node, Node) else None
