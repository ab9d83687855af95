"""Matches of terms: the pods that an incoming pod's terms select, and the existing pods' terms that select the incoming pod.

Both are computed once per kind of pod and kept. A pod's own terms hold until namespaces change. The facing terms
hold until a term that its labels meet comes or goes. The results are selections to be counted. Each cycle counts them anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import bytes_of
from placewright.api.pods import PairwiseKey, PodInfo
from placewright.api.workloads import Namespace
from placewright.cluster.affinityterms import PodTerms, selection, terms_of
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObjects
from placewright.cluster.pairwisegroups import CarriedTerm, CarriedTerms
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from placewright.framework.memory import Memory

#: Most kinds of pods. Each takes about 1.5 KB at most places; pods of a Deployment's revision, or of a StatefulSet, are one kind here.
_MAX_LOOKS: Final = 16_384
#: Most weights over one label that are counted separately.
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
    """The demands of an incoming pod's terms.

    Attributes:
        keys: labels of the required affinity terms.
        wanted: pods that all required affinity terms select; None if there can be none.
        wants_itself: whether these terms select the pod itself.
        bans, pulls: terms of required anti-affinity, and all preferred terms.
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
    """The own terms of pods with the same affinity: one for pods that they do not select, and one for pods that they do."""

    others: OwnTerms
    likes: OwnTerms


class _Kept:
    """The terms that some labels meet, and a stamp that shows whether they still hold.

    Attributes:
        labels: labels in the order of the stamps.
        version: latest version of all terms for which this is known to hold.
    """

    __slots__ = ("facing", "labels", "stamps", "version")

    def __init__(self, labels: Iterable[tuple[str, str]]) -> None:
        self.labels = tuple(labels)
        self.stamps: tuple[int, ...] | None = None
        self.version = -1
        self.facing = NONE_FACING

    def __sizeof__(self) -> int:
        """Include all facing terms in the size."""
        return object.__sizeof__(self) + bytes_of((self.labels, self.stamps, self.facing))


class Matcher:
    """Computes `OwnTerms` and `FacingTerms`, and keeps them."""

    def __init__(self, hard_weight: int) -> None:
        self._hard_weight = hard_weight
        self._own = Memory(_MAX_LOOKS)
        self._facing = Memory(_MAX_LOOKS)
        self._asked: tuple[PairwiseKey, _Kept] | None = None
        self._carried = CarriedTerms()
        self._objects: ClusterObjects | None = None
        self._objects_position = -1
        forgets_unasked(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the answer about the last pod; the caches count themselves."""
        return bytes_of(self._asked)

    def forget_unasked(self) -> None:
        """Forget the last pod, because it may be gone."""
        self._asked = None

    def own(self, pod: PodInfo, cluster: Cluster) -> OwnTerms:
        """Return the pod's own terms. Raise `TermsError` if they do not parse."""
        namespace, _, _, affinity = key = pod.pairwise_key
        if not affinity:
            return NO_OWN_TERMS
        self._refresh(cluster)
        own = self._own.recall((namespace, affinity), lambda: self._own_terms(pod, cluster))
        wanted = own.others.wanted
        return own.likes if wanted is not None and wanted.selects(key, pod.labels) else own.others

    def facing(self, pod: PodInfo, cluster: Cluster) -> FacingTerms:
        """Return the terms of existing pods that select this pod."""
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
        """Find the facing terms. Pods that differ only in labels that no term reads, such as a StatefulSet's members, share them."""
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
        own = _own_terms(terms_of(pod).strict(), cluster.objects.namespaces)
        return _BothWays(own, own if own.wanted is None else replace(own, wants_itself=True))


def _facing(terms: Iterable[CarriedTerm], hard_weight: int) -> FacingTerms:
    """Sum up the terms that select a pod, with the profile's weight for required affinity."""
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
    """Select all pods of these carriers at once, so that they are counted in one place."""
    chosen = frozenset(carriers)
    return PodSelection(frozenset(c.namespace for c in chosen), carriers=chosen)


def _pulls(key: str, weights: Mapping[AffinityCarrier, int]) -> Iterable[Pull]:
    """Group pods by weight to count them together; if there are many weights, count all pods with their own weights.

    Weights that cancel out count, too. They give 0 points, and kube-scheduler scores a pod that faces such terms.
    """
    by_weight: dict[int, list[AffinityCarrier]] = {}
    for carrier, weight in weights.items():
        by_weight.setdefault(weight, []).append(carrier)
    if len(by_weight) > _FEW_WEIGHTS:
        carriers = frozenset(carrier for each in by_weight.values() for carrier in each)
        own = {carrier: weights[carrier] for carrier in carriers}
        return (Pull(key, 1, PodSelection(frozenset(c.namespace for c in carriers), carriers=carriers, weights=own)),)
    return (Pull(key, weight, _pods_of(carriers)) for weight, carriers in by_weight.items())
