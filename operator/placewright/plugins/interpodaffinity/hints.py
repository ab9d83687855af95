"""Queueing hints of InterPodAffinity: which changes could turn a rejection around."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from placewright.api.objects import Node
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.cluster.objects import ClusterObjects
from placewright.cluster.podselections import PodSelection
from placewright.framework.assignedpods import wanted_nearby
from placewright.framework.events import QueueingHint
from placewright.plugins.interpodaffinity.matchers import FacingTerms, OwnTerms
from placewright.plugins.interpodaffinity.terms import Term


def after_pod_change(
    own: OwnTerms, aversions: Callable[[PodInfo], Iterable[Term]], pod: PodInfo, old: Any, new: Any, objects: ClusterObjects
) -> QueueingHint:
    """A wanted pod came, an unwanted one went, or the rejected pod itself got other labels.

    `aversions` knows another pod's required anti-affinity.
    """
    if isinstance(new, PodInfo) and new.uid == pod.uid:
        return _hint(True)
    if any(isinstance(other, PodInfo) and not (other.node_name or other.nominated_node) for other in (old, new)):
        return QueueingHint.SKIP
    if isinstance(old, PodInfo) and isinstance(new, PodInfo):
        return _hint((_wanted(own, new) and not _wanted(own, old)) or _unwanted(own, old, new))
    if isinstance(new, PodInfo):
        return _hint(_wanted(own, new))
    return _hint(_unwanted(own, old, None) or _bans(aversions(old), pod, objects))


def may_concern(pod: PodInfo, old: Any, new: Any) -> bool:
    """Whether a pod that came to a node or changed there may be wanted by the rejected one, or barred by it no longer.

    For the latter kube-scheduler lets pods wait for its timeout.
    """
    return wanted_nearby(pod, old, new) or (isinstance(old, PodInfo) and old.labels != new.labels and _keeps_away(pod))


def _keeps_away(pod: PodInfo) -> bool:
    affinity = pod.pod.spec.affinity
    aversion = affinity.pod_anti_affinity if affinity else None
    return aversion is not None and bool(aversion.required_during_scheduling_ignored_during_execution)


def after_node_change(own: OwnTerms, facing: FacingTerms, old: Any, new: Any) -> QueueingHint:
    """A node came into reach: it is new, has the labels that affinity needs, or is no longer where anti-affinity forbids."""
    if not isinstance(new, Node):
        return QueueingHint.SKIP
    barring = {ban.key for ban in (*own.bans, *facing.bans)}
    labels = _labels(new)
    if not isinstance(old, Node):
        return _hint(bool(barring) or not own.keys or any(key in labels for key in own.keys))
    before = _labels(old)
    gained = any(key in labels and labels[key] != before.get(key) for key in own.keys)
    return _hint(gained or any(key in before and labels.get(key) != before[key] for key in barring))


def _hint(worth_it: bool) -> QueueingHint:
    return QueueingHint.QUEUE if worth_it else QueueingHint.SKIP


def _picks(pods: PodSelection | None, pod: PodInfo) -> bool:
    return pods is not None and pods.selects(pod.pairwise_key, pod.labels)


def _wanted(own: OwnTerms, pod: PodInfo) -> bool:
    return _picks(own.wanted, pod)


def _unwanted(own: OwnTerms, before: PodInfo, after: PodInfo | None) -> bool:
    """True when the pod was barred by a term, and is gone or barred no more."""
    return any(_picks(ban.pods, before) and not (after is not None and _picks(ban.pods, after)) for ban in own.bans)


def _bans(aversions: Iterable[Term], pod: PodInfo, objects: ClusterObjects) -> bool:
    """True when another pod's own required anti-affinity means this pod."""
    return any(term.matches(pod.namespace, pod.labels, objects.namespace_labels(pod.namespace)) for term in aversions)


def _labels(node: Node) -> Mapping[str, str]:
    return node.metadata.labels or NO_LABELS
