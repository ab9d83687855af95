"""Queueing hints of DomainLimit: which changes could give a rejected pod's domains room."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from placewright.api.objects import Node
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.cluster.selectorindex import places_met, places_of
from placewright.framework.events import EventKeys, QueueingHint
from placewright.plugins.domainlimit.limits import Limit, PodLimits


def after_pod_change(limits: Sequence[Limit], old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """Judge news of a pod: it helps where the pod counted in a domain and is gone, or counts no more.

    Args:
        limits: the rejected pod's required ones.
        old: the pod before; a pod that had no node took no room.
        new: the pod now; None: it is gone.

    Returns:
        QUEUE where a limit counted `old` and does not count `new`.
    """
    stood = isinstance(old, PodInfo) and bool(old.node_name or old.nominated_node)
    return _hint(stood and any(limit.counts(old) and not limit.counts(new) for limit in limits))


def after_node_change(limits: Sequence[Limit], old: Node | None, new: Node | None) -> QueueingHint:
    """Judge news of a node: it helps where the node came with all labels, went with its pods, or moved to another domain with them.

    Args:
        limits: the rejected pod's required ones.
        old: the node before; None: it came.
        new: the node now; None: it is gone.

    Returns:
        QUEUE where a domain of a limit may have gained room.
    """
    before, after = _labels(old), _labels(new)
    if before is None:
        return _hint(after is not None and bool(limits) and all(limit.key in after for limit in limits))
    if after is None:
        return _hint(any(limit.key in before for limit in limits))
    return _hint(any(before.get(limit.key) != after.get(limit.key) for limit in limits))


def pod_keys(limits_of: Callable[[PodInfo], PodLimits]) -> EventKeys[PodInfo]:
    """Return keys by which news of a pod finds the waiting pods whose limits count it.

    Args:
        limits_of: tells a waiting pod's limits.
    """

    def of_pod(pod: PodInfo) -> Iterator[Hashable]:
        for limit in limits_of(pod).required:
            yield from places_of(limit.pods.namespaces, limit.pods.selector)

    return EventKeys(of_pod, _met)


def _met(old: PodInfo | None, _new: PodInfo | None) -> list[Hashable]:
    # A pod helps by counting no more, so only its labels before the event matter.
    return [*places_met(old.namespace, old.labels.items())] if isinstance(old, PodInfo) else []


def _own(pod: PodInfo | None) -> list[Hashable]:
    return [pod.uid] if isinstance(pod, PodInfo) else []


def _told_of(old: PodInfo | None, new: PodInfo | None) -> list[Hashable]:
    return _own(new) or _own(old)


#: News of a pod concerns the pod itself.
ITSELF: EventKeys[PodInfo] = EventKeys(_own, _told_of)


def _labels(node: Node | None) -> Mapping[str, str] | None:
    """The labels of a node; None where there is no node."""
    return (node.metadata.labels or NO_LABELS) if isinstance(node, Node) else None


def _hint(worth_it: bool) -> QueueingHint:
    return QueueingHint.QUEUE if worth_it else QueueingHint.SKIP
