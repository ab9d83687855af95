"""Queueing hints of InterPodAffinity: which changes may help a rejected pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Final

from placewright.api.objects import Node, NodeName
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.workloads import Namespace
from placewright.cluster.affinityterms import Term, TermsError, terms_of
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.cluster.selectorindex import Place, places_met, places_of
from placewright.framework.assignedpods import wanted_nearby
from placewright.framework.events import EventKeys, QueueingHint
from placewright.plugins.interpodaffinity.matchers import NO_OWN_TERMS, Matcher, OwnTerms


class AffinityHints:
    """The hints that look at a rejected pod's terms and at the terms of other pods."""

    def __init__(self, matcher: Matcher, cluster: Cluster) -> None:
        self._matcher = matcher
        self._cluster = cluster

    def after_pod_change(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        """Queue if a wanted pod came, an unwanted one went, or the rejected pod itself got other labels.

        A wanted pod that goes may help, too. If it was the last one, a pod that selects itself may be the first anywhere.
        kube-scheduler lets such pods wait for its timeout.
        """
        if isinstance(new, PodInfo) and new.uid == pod.uid:
            return QueueingHint.QUEUE
        if any(isinstance(other, PodInfo) and not (other.node_name or other.nominated_node) for other in (old, new)):
            return QueueingHint.SKIP
        own = self._own(pod)
        if isinstance(new, PodInfo) and _wanted(own, new) and not (isinstance(old, PodInfo) and _wanted(own, old)):
            return QueueingHint.QUEUE
        return QueueingHint.when(isinstance(old, PodInfo) and self._leaves(old, new if isinstance(new, PodInfo) else None, pod, own))

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """Queue if a node came into reach: it is new, gained a label of affinity, or left a domain that anti-affinity forbids.

        Also queue if its wanted pods left their domain, so that the rejected pod may be the first. Pods of a deleted node no longer count,
        although they are not deleted yet.
        """
        own = self._own(pod)
        if isinstance(old, Node) and new is None:
            left = self._cluster.pods_on(NodeName(old.metadata.name))
            return QueueingHint.when(any(self._leaves(each, None, pod, own) for each in left))
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        barring = {ban.key for ban in (*own.bans, *self._matcher.facing(pod, self._cluster).bans)}
        labels = _labels(new)
        if not isinstance(old, Node):
            return QueueingHint.when(bool(barring) or not own.keys or any(key in labels for key in own.keys))
        before = _labels(old)
        gained = any(key in labels and labels[key] != before.get(key) for key in own.keys)
        lost = own.wants_itself and any(key in before and key not in labels for key in own.keys)
        return QueueingHint.when(gained or lost or any(key in before and labels.get(key) != before[key] for key in barring))

    def _own(self, pod: PodInfo) -> OwnTerms:
        try:
            return self._matcher.own(pod, self._cluster)
        except TermsError:  # only a change of the pod itself can help
            return NO_OWN_TERMS

    def _leaves(self, before: PodInfo, after: PodInfo | None, pod: PodInfo, own: OwnTerms) -> bool:
        """Return whether the pod was in the way and is gone, or no longer is; or was wanted, so that the rejected pod may be the first."""
        if any(_picks(ban.pods, before) and not (after is not None and _picks(ban.pods, after)) for ban in own.bans):
            return True
        if own.wants_itself and _wanted(own, before) and not (after is not None and _wanted(own, after)):
            return True
        labels = self._cluster.objects.namespace_labels(pod.namespace)
        return after is None and any(term.matches(pod.namespace, pod.labels, labels) for term in terms_of(before).terms.anti_affinity)


def may_concern(pod: PodInfo, old: PodInfo | None, new: PodInfo) -> bool:
    """Return whether the change of a placed pod may help: it is wanted, no longer wanted, or no longer barred.

    In the latter two cases kube-scheduler lets pods wait for its timeout.
    """
    if wanted_nearby(pod, old, new):
        return True
    return (
        isinstance(old, PodInfo) and old.labels != new.labels and (bool(terms_of(pod).terms.anti_affinity) or wanted_nearby(pod, None, old))
    )


def keys_of_pod(pod: PodInfo) -> Iterator[Hashable]:
    """Yield keys of a waiting pod: places that its required terms select, places that others' terms may select it by, and itself."""
    yield pod.uid
    yield from (("is meant", place) for term in _required(pod) for place in _places(term))
    yield from (("means", place) for place in places_met(pod.namespace, pod.labels.items()))


def keys_of_pod_change(old: PodInfo | None, new: PodInfo | None) -> Iterator[Hashable]:
    """Yield keys of waiting pods that a change concerns: pods whose terms may select it, pods that its anti-affinity barred, and itself."""
    for pod in (old, new):
        if isinstance(pod, PodInfo):
            yield pod.uid
            yield from (("is meant", place) for place in places_met(pod.namespace, pod.labels.items()))
    if isinstance(old, PodInfo) and not isinstance(new, PodInfo):
        yield from (("means", place) for term in terms_of(old).terms.anti_affinity for place in _places(term))


#: Keys by which events of pods find the waiting pods that they concern.
POD_KEYS: Final = EventKeys(keys_of_pod, keys_of_pod_change)


def _places(term: Term) -> list[Place]:
    if term.selector is None:
        return []
    return places_of(None if term.namespace_selector is not None else term.namespaces, term.selector)


def after_namespace_change(pod: PodInfo, old: Namespace | None, new: Namespace | None) -> QueueingHint:
    """Queue if the changed namespace is the pod's own, or the pod selects namespaces by labels."""
    known = [each for each in (old, new) if isinstance(each, Namespace)]
    if not known or _namespace_labels(old) == _namespace_labels(new):
        return QueueingHint.SKIP
    return QueueingHint.when(known[0].metadata.name == pod.namespace or any(term.namespace_selector is not None for term in _required(pod)))


def _namespace_labels(namespace: Namespace | None) -> Mapping[str, str]:
    return (namespace.metadata.labels if isinstance(namespace, Namespace) else None) or NO_LABELS


def _required(pod: PodInfo) -> tuple[Term, ...]:
    terms = terms_of(pod).terms
    return terms.affinity + terms.anti_affinity


def _picks(pods: PodSelection | None, pod: PodInfo) -> bool:
    return pods is not None and pods.selects(pod.pairwise_key, pod.labels)


def _wanted(own: OwnTerms, pod: PodInfo) -> bool:
    return _picks(own.wanted, pod)


def _labels(node: Node) -> Mapping[str, str]:
    return node.metadata.labels or NO_LABELS
