"""Matches of terms: the pods that an incoming pod's terms select, and the existing pods' terms that mean the incoming pod.

Both are worked out once per look of pod and kept: a pod's own terms until namespaces change, what it faces until a term comes or goes that
its labels come past. The results are selections to be counted; the counting itself happens in every cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import bytes_of
from placewright.api.objects import Affinity
from placewright.api.pods import PairwiseKey, PodInfo
from placewright.api.workloads import Namespace
from placewright.cluster.affinityterms import (
    NO_TERMS,
    CompiledTerms,
    PodTerms,
    compile_terms,
    selection,
)
from placewright.cluster.carriedterms import CarriedTerm, CarriedTerms
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObjects
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from placewright.framework.memory import Memory

#: Each of some 1.5 KB at most places; Deployments and their revisions, not members of StatefulSets, which look alike here.
_MAX_LOOKS: Final = 16_384
#: Up to so many weights over one label are counted by themselves.
_FEW_WEIGHTS: Final = 4


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
    """The demand of an incoming pod's terms.

    Attributes:
        keys: the labels of the required affinity terms.
        wanted: pods that all required affinity terms mean; None when there can be none.
        wants_itself: whether the pod itself is such a pod.
        bans, pulls: from required anti-affinity, and from all preferred terms.
        prefers: whether there are preferred terms at all, also ones that select no pod.
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
    """The effect of existing pods' terms on an incoming pod."""

    bans: tuple[Ban, ...] = ()
    pulls: tuple[Pull, ...] = ()


NO_OWN_TERMS: Final = OwnTerms()
NONE_FACING: Final = FacingTerms()


class _BothWays(NamedTuple):
    """The own terms of pods with the same affinity: terms that do not mean these pods themselves, and terms that do."""

    others: OwnTerms
    likes: OwnTerms


class _Kept:
    """The terms that some labels meet, and a stamp that tells whether they still hold.

    Attributes:
        labels: in the order in which the stamps were taken.
        version: the latest one of all terms for which this is known to hold.
    """

    __slots__ = ("facing", "labels", "stamps", "version")

    def __init__(self, labels: Iterable[tuple[str, str]]) -> None:
        self.labels = tuple(labels)
        self.stamps: tuple[int, ...] | None = None
        self.version = -1
        self.facing = NONE_FACING

    def __sizeof__(self) -> int:
        """With all that it faces."""
        return object.__sizeof__(self) + bytes_of((self.labels, self.stamps, self.facing))


class Matcher:
    """Works out `OwnTerms` and `FacingTerms`, and remembers."""

    def __init__(self, hard_weight: int) -> None:
        self._hard_weight = hard_weight
        self._compiled = Memory(_MAX_LOOKS)
        self._own = Memory(_MAX_LOOKS)
        self._facing = Memory(_MAX_LOOKS)
        self._asked: tuple[PairwiseKey, _Kept] | None = None
        self._carried = CarriedTerms()
        self._objects: ClusterObjects | None = None
        self._objects_position = -1
        forgets_unasked(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the answer about the last pod; memories count themselves."""
        return bytes_of(self._asked)

    def forget_unasked(self) -> None:
        """Forget the pod that was asked about last: it may be gone."""
        self._asked = None

    def own(self, pod: PodInfo, cluster: Cluster) -> OwnTerms:
        """The pod's own terms; raise `TermsError` when they do not parse."""
        namespace, _, _, affinity = key = pod.pairwise_key
        if not affinity:
            return NO_OWN_TERMS
        self._refresh(cluster)
        own = self._own.recall((namespace, affinity), lambda: self._own_terms(pod, cluster))
        wanted = own.others.wanted
        return own.likes if wanted is not None and wanted.selects(key, pod.labels) else own.others

    def facing(self, pod: PodInfo, cluster: Cluster) -> FacingTerms:
        """Terms of existing pods that mean this pod."""
        if not cluster.pairwise_counts.carriers:
            return NONE_FACING
        self._refresh(cluster)
        key, carried = pod.pairwise_key, self._carried
        if self._asked is None or self._asked[0] is not key or self._asked[1].version != carried.version:
            self._asked = (key, self._face(key, cluster))
        return self._asked[1].facing

    def _refresh(self, cluster: Cluster) -> None:
        if cluster.pairwise_counts.carried is not self._carried:
            self._carried = cluster.pairwise_counts.carried
            self._forget()
        if self._namespaces_changed(cluster.objects):
            self._forget()

    def _forget(self) -> None:
        self._own.forget()
        self._facing.forget()
        self._asked = None

    def _namespaces_changed(self, objects: ClusterObjects) -> bool:
        position = objects.changes.position
        if position == self._objects_position and objects is self._objects:
            return False
        changes = objects.changes.since(self._objects_position) if objects is self._objects else None
        self._objects, self._objects_position = objects, position
        return changes is None or any(change.kind is Namespace for change in changes)

    def _face(self, key: PairwiseKey, cluster: Cluster) -> _Kept:
        """Pods that differ only in labels that no term mentions, such as the members of a StatefulSet, face the same."""
        carried, namespace = self._carried, key.namespace
        labels = carried.mentioned(key.labels)
        look = (namespace, labels)
        kept = self._facing.recall(look, lambda: _Kept(labels))
        if kept.version != carried.version:
            stamps = carried.stamps(namespace, kept.labels)
            if stamps != kept.stamps:
                terms = carried.meeting(namespace, kept.labels)
                meant = dict(kept.labels), cluster.objects.namespace_labels(namespace)
                kept.facing = _facing([each for each in terms if each.term.matches(namespace, *meant)], self._hard_weight)
                kept.stamps = stamps
                self._facing.remember(look, kept)
            kept.version = carried.version
        return kept

    def _own_terms(self, pod: PodInfo, cluster: Cluster) -> _BothWays:
        affinity = pod.pod.spec.affinity
        terms = NO_TERMS if affinity is None else self._terms(affinity, pod.pairwise_key).strict()
        own = _own_terms(terms, cluster.objects.namespaces)
        return _BothWays(own, own if own.wanted is None else replace(own, wants_itself=True))

    def _terms(self, affinity: Affinity, owner: PairwiseKey) -> CompiledTerms:
        namespace = owner.namespace
        return self._compiled.recall((namespace, owner.affinity), lambda: compile_terms(affinity, namespace))


def _facing(terms: Iterable[CarriedTerm], hard_weight: int) -> FacingTerms:
    """Sum up the terms that mean a pod, with the profile's weight for required affinity."""
    banning: dict[str, set[AffinityCarrier]] = {}
    pulling: dict[str, dict[AffinityCarrier, int]] = {}
    for carried in terms:
        key, carrier = carried.term.key, carried.carrier
        if carried.weight is None:
            banning.setdefault(key, set()).add(carrier)
        elif hard_weight or not carried.required:
            weights = pulling.setdefault(key, {})
            weights[carrier] = weights.get(carrier, 0) + carried.weight * (hard_weight if carried.required else 1)
    bans = tuple([Ban(key, _pods_of(carriers)) for key, carriers in banning.items()])
    return FacingTerms(bans, tuple([pull for key, weights in pulling.items() for pull in _pulls(key, weights)]))


def _own_terms(terms: PodTerms, namespaces: Mapping[str, Namespace]) -> OwnTerms:
    bans = ((t.key, selection((t,), namespaces)) for t in terms.anti_affinity)
    pulls = ((t.key, weight, selection((t,), namespaces)) for weight, t in terms.preferred)
    return OwnTerms(
        keys=tuple(t.key for t in terms.affinity),
        wanted=selection(terms.affinity, namespaces) if terms.affinity else None,
        bans=tuple(Ban(key, pods) for key, pods in bans if pods is not None),
        pulls=tuple(Pull(key, weight, pods) for key, weight, pods in pulls if pods is not None),
        requires=bool(terms.affinity or terms.anti_affinity),
        prefers=bool(terms.preferred),
    )


def _pods_of(carriers: Iterable[AffinityCarrier]) -> PodSelection:
    """All pods of these carriers, as one selection: they are then counted in one place, however many they are."""
    chosen = frozenset(carriers)
    return PodSelection(frozenset(c.namespace for c in chosen), carriers=chosen)


def _pulls(key: str, weights: Mapping[AffinityCarrier, int]) -> Iterable[Pull]:
    """Pods of one weight are counted together; where there are many weights, all pods are, each with its weight.

    Weights that cancel out count, too: they give 0 points, and kube-scheduler scores a pod that such terms face.
    """
    by_weight: dict[int, list[AffinityCarrier]] = {}
    for carrier, weight in weights.items():
        by_weight.setdefault(weight, []).append(carrier)
    if len(by_weight) > _FEW_WEIGHTS:
        carriers = frozenset(carrier for each in by_weight.values() for carrier in each)
        own = {carrier: weights[carrier] for carrier in carriers}
        return (Pull(key, 1, PodSelection(frozenset(c.namespace for c in carriers), carriers=carriers, weights=own)),)
    return (Pull(key, weight, _pods_of(carriers)) for weight, carriers in by_weight.items())
