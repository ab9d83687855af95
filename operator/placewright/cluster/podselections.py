"""Which pods to count: a value that says it once, so that whoever counts can keep what it found under it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from placewright.api.bytecount import bytes_of
from placewright.api.pods import PairwiseKey
from placewright.api.selectors import EVERYTHING, Selector

#: A name of a namespace and a digest.
_CARRIER_BYTES: Final = 64


class AffinityCarrier(NamedTuple):
    """Pods that carry the same pod affinity in the same namespace: their terms mean the same to a newcomer."""

    namespace: str
    affinity: bytes


class PodSelection:
    """Which pods to count; a value that hashes once, so that it can be looked up in every cycle.

    Attributes:
        namespaces: where to look; None means everywhere.
        selector: what the labels must satisfy.
        terminating: whether pods that are being deleted count.
        carriers: only pods that carry one of these affinities; None means any pod.
        weights: by carrier, how much each of its pods counts, not 0; None: 1 each.
    """

    __slots__ = ("_hash", "carriers", "namespaces", "selector", "terminating", "weights")

    def __init__(
        self,
        namespaces: frozenset[str] | None,
        selector: Selector = EVERYTHING,
        *,
        terminating: bool = True,
        carriers: frozenset[AffinityCarrier] | None = None,
        weights: Mapping[AffinityCarrier, int] | None = None,
    ) -> None:
        self.namespaces = namespaces
        self.selector = selector
        self.terminating = terminating
        self.carriers = carriers
        self.weights = weights
        self._hash = hash(self._key())

    def __sizeof__(self) -> int:
        """With all it says; of carriers, which are shared by all selections that name them, a place in the set each."""
        carriers = 0 if self.carriers is None else sys.getsizeof(self.carriers) + _CARRIER_BYTES * len(self.carriers)
        return object.__sizeof__(self) + bytes_of((self.namespaces, self.selector)) + carriers

    def _key(self) -> tuple[object, ...]:
        said = (self.namespaces, self.selector, self.terminating, self.carriers)
        return said if self.weights is None else (*said, frozenset(self.weights.items()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, PodSelection) and self._hash == other._hash and self._key() == other._key()

    def __repr__(self) -> str:
        return f"PodSelection{self._key()}"

    def weight_of(self, group: PairwiseKey) -> int:
        """How much each pod of a group counts that is to be counted."""
        return 1 if self.weights is None else self.weights[AffinityCarrier(group.namespace, group.affinity)]

    def selects(self, group: PairwiseKey, labels: Mapping[str, str]) -> bool:
        """True when the pods of this group, which have these labels, are to be counted."""
        return self.covers(group) and self.selector.matches(labels)

    def covers(self, group: PairwiseKey) -> bool:
        """True when the pods of this group are to be counted, if their labels satisfy the selector."""
        if self.namespaces is not None and group.namespace not in self.namespaces:
            return False
        if group.terminating and not self.terminating:
            return False
        return self.carriers is None or AffinityCarrier(group.namespace, group.affinity) in self.carriers
