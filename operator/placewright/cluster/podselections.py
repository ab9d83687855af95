"""Selections: values that say which pods to count, so that equal questions share one count."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from placewright.api.bytecount import bytes_of
from placewright.api.pods import PairwiseKey
from placewright.api.selectors import EVERYTHING, Selector

#: Bytes of a carrier: the name of a namespace and a digest.
_CARRIER_BYTES: Final = 64


class AffinityCarrier(NamedTuple):
    """Pods that carry the same pod affinity in the same namespace: their terms mean the same to a newcomer.

    Attributes:
        namespace: the pods'.
        affinity: a digest of their affinity; empty for none.
    """

    namespace: str
    affinity: bytes


class PodSelection:
    """Which pods to count. A value that computes its hash once, because it is looked up in every scheduling cycle.

    Args:
        namespaces: namespaces whose pods count; None for all.
        selector: the pods' labels must satisfy it.
        terminating: whether pods that are being deleted count.
        carriers: only pods that carry one of these affinities; None for any pod.
        weights: weight of each pod of a carrier, not 0; None counts each as 1.
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
        """Return the bytes of the selection. Carriers, which all selections share, count as a place in the set each."""
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
        """Return the weight of a selected group's pods.

        Returns:
            How much each pod counts; 1 without weights.
        """
        return 1 if self.weights is None else self.weights[AffinityCarrier(group.namespace, group.affinity)]

    def selects(self, group: PairwiseKey, labels: Mapping[str, str]) -> bool:
        """Return whether the pods of a group are counted."""
        return self.covers(group) and self.selector.matches(labels)

    def covers(self, group: PairwiseKey) -> bool:
        """Test a group without its labels.

        Returns:
            True when its pods are counted if their labels satisfy the selector.
        """
        if self.namespaces is not None and group.namespace not in self.namespaces:
            return False
        if group.terminating and not self.terminating:
            return False
        return self.carriers is None or AffinityCarrier(group.namespace, group.affinity) in self.carriers
