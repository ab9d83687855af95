"""Whose terms meet whom: what an incoming pod's terms select, and which existing pods' terms mean the incoming pod.

Both are worked out once per look of pod and kept until the affinities in the cluster, or the namespaces, change. What comes out are
selections to be counted; the counting itself happens in every cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from placewright.api.pods import PodInfo
from placewright.api.workloads import Namespace
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObjects
from placewright.cluster.pairwisecounts import AffinityCarrier, PairwiseCounts, PodSelection
from placewright.plugins.interpodaffinity.terms import (
    NO_TERMS,
    PodTerms,
    Term,
    compile_leniently,
    compile_strictly,
    selection,
)
from placewright.plugins.shared.memory import Memory

_MAX_LOOKS: Final = 4096


class Pull(NamedTuple):
    """Pods that raise (or, below 0, lower) the score of their domain by `weight` each."""

    key: str
    weight: int
    pods: PodSelection


class Ban(NamedTuple):
    """Pods that keep the incoming pod out of their domain."""

    key: str
    pods: PodSelection


@dataclass(frozen=True, slots=True)
class OwnTerms:
    """What an incoming pod's terms ask for.

    Attributes:
        keys: the labels of the required affinity terms.
        wanted: pods that all required affinity terms mean; None when there can be none.
        wants_itself: whether the pod itself is such a pod.
        bans, pulls: from required anti-affinity, and from all preferred terms.
        prefers: whether there are preferred terms at all, whatever they select.
    """

    keys: tuple[str, ...] = ()
    wanted: PodSelection | None = None
    wants_itself: bool = False
    bans: tuple[Ban, ...] = ()
    pulls: tuple[Pull, ...] = ()
    requires: bool = False
    prefers: bool = False


@dataclass(frozen=True, slots=True)
class FacingTerms:
    """What existing pods' terms hold for an incoming pod."""

    bans: tuple[Ban, ...] = ()
    pulls: tuple[Pull, ...] = ()


NO_OWN_TERMS: Final = OwnTerms()
NONE_FACING: Final = FacingTerms()


class Matcher:
    """Works out `OwnTerms` and `FacingTerms`, and remembers."""

    def __init__(self, hard_weight: int) -> None:
        self._hard_weight = hard_weight
        self._own = Memory(_MAX_LOOKS)
        self._facing = Memory(_MAX_LOOKS)
        self._alike = Memory(_MAX_LOOKS)
        self._mentioned: frozenset[str] = frozenset()
        self._carried: dict[AffinityCarrier, PodTerms] = {}
        self._groups: PairwiseCounts | None = None
        self._namespaces: list[Namespace] = []
        self._carriers_version = self._objects_version = -1

    def own(self, pod: PodInfo, cluster: Cluster) -> OwnTerms:
        """The pod's own terms; raise `TermsError` when they do not parse."""
        if not pod.pairwise_key.affinity:
            return NO_OWN_TERMS
        self._refresh(cluster)
        return self._own.recall(pod.pairwise_key, lambda: _own_terms(pod, cluster.objects.namespaces))

    def facing(self, pod: PodInfo, cluster: Cluster) -> FacingTerms:
        """Terms of existing pods that mean this pod."""
        if not cluster.pairwise_counts.carriers:
            return NONE_FACING
        self._refresh(cluster)
        look = (pod.pairwise_key.namespace, pod.pairwise_key.labels)
        return self._facing.recall(look, lambda: self._face_alike(pod, cluster))

    def _face_alike(self, pod: PodInfo, cluster: Cluster) -> FacingTerms:
        """Pods that differ only in labels that no term mentions, such as the members of a StatefulSet, face the same."""
        mentioned = frozenset([pair for pair in pod.pairwise_key.labels if pair[0] in self._mentioned])
        return self._alike.recall((pod.namespace, mentioned), lambda: self._face(pod, cluster))

    def _refresh(self, cluster: Cluster) -> None:
        groups = cluster.pairwise_counts
        if groups is not self._groups or self._namespaces_changed(cluster.objects):
            self._own.forget()
        elif groups.carriers_version == self._carriers_version:
            return
        self._facing.forget()
        self._alike.forget()
        self._carried = {c: self._carried.get(c) or _carried_terms(c, groups) for c in groups.carriers}
        self._mentioned = frozenset(key for terms in self._carried.values() for key in _label_keys(terms))
        self._groups = groups
        self._carriers_version = groups.carriers_version

    def _namespaces_changed(self, objects: ClusterObjects) -> bool:
        if objects.version == self._objects_version:
            return False
        self._objects_version = objects.version
        before, self._namespaces = self._namespaces, list(objects.namespaces.values())
        return before != self._namespaces

    def _face(self, pod: PodInfo, cluster: Cluster) -> FacingTerms:
        namespace, labels = pod.namespace, pod.labels
        namespace_labels = cluster.objects.namespace_labels(namespace)
        banning: dict[str, set[AffinityCarrier]] = {}
        pulling: dict[str, dict[AffinityCarrier, int]] = {}
        for carrier, terms in self._carried.items():
            for term in terms.anti_affinity:
                if term.matches(namespace, labels, namespace_labels):
                    banning.setdefault(term.key, set()).add(carrier)
            for weight, term in self._scoring(terms):
                if term.matches(namespace, labels, namespace_labels):
                    weights = pulling.setdefault(term.key, {})
                    weights[carrier] = weights.get(carrier, 0) + weight
        bans = tuple(Ban(key, _pods_of(carriers)) for key, carriers in banning.items())
        return FacingTerms(bans, tuple(pull for key, weights in pulling.items() for pull in _pulls(key, weights)))

    def _scoring(self, terms: PodTerms) -> Iterable[tuple[int, Term]]:
        """Preferred terms, and required affinity at the profile's weight for it."""
        if not self._hard_weight:
            return terms.preferred
        return (*terms.preferred, *((self._hard_weight, term) for term in terms.affinity))


def _own_terms(pod: PodInfo, namespaces: Mapping[str, Namespace]) -> OwnTerms:
    affinity = pod.pod.spec.affinity
    terms = compile_strictly(affinity, pod.namespace) if affinity else NO_TERMS
    bans = ((t.key, selection((t,), namespaces)) for t in terms.anti_affinity)
    pulls = ((t.key, weight, selection((t,), namespaces)) for weight, t in terms.preferred)
    wanted = selection(terms.affinity, namespaces) if terms.affinity else None
    return OwnTerms(
        keys=tuple(t.key for t in terms.affinity),
        wanted=wanted,
        wants_itself=wanted is not None and wanted.selects(pod.pairwise_key, pod.labels),
        bans=tuple(Ban(key, pods) for key, pods in bans if pods is not None),
        pulls=tuple(Pull(key, weight, pods) for key, weight, pods in pulls if pods is not None),
        requires=bool(terms.affinity or terms.anti_affinity),
        prefers=bool(terms.preferred),
    )


def _carried_terms(carrier: AffinityCarrier, groups: PairwiseCounts) -> PodTerms:
    return compile_leniently(groups.affinity(carrier), carrier.namespace)


def _label_keys(terms: PodTerms) -> Iterator[str]:
    """The pod labels that these terms look at."""
    for term in (*terms.affinity, *terms.anti_affinity, *(term for _, term in terms.preferred)):
        if term.selector is not None:
            yield from (expression.key for expression in term.selector.expressions)


def _pods_of(carriers: Iterable[AffinityCarrier]) -> PodSelection:
    """All pods of these carriers, as one selection: they are then counted in one place, however many they are."""
    chosen = frozenset(carriers)
    return PodSelection(frozenset(c.namespace for c in chosen), carriers=chosen)


def _pulls(key: str, weights: Mapping[AffinityCarrier, int]) -> Iterable[Pull]:
    by_weight: dict[int, list[AffinityCarrier]] = {}
    for carrier, weight in weights.items():
        by_weight.setdefault(weight, []).append(carrier)
    return (Pull(key, weight, _pods_of(carriers)) for weight, carriers in by_weight.items())
