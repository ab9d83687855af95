"""Decides whether tolerations cover taints, by the rules of kube-scheduler's `ToleratesTaint`.

The operators Gt and Lt are behind the feature gate TaintTolerationComparisonOperators (alpha in 1.35). They are always obeyed here, because
an API server whose gate is off accepts no pod that uses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from placewright.api.objects import Taint, Toleration

#: Effects that keep a pod off a node; PreferNoSchedule only lowers its score.
HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
#: A number in its canonical form: no plus sign, no leading zeros. Gt and Lt accept no other.
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_LIMIT: Final = 1 << 63
#: Number of tolerations that are compared one by one, because an index would cost more than it saves.
_FEW: Final = 8


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Compare key, effect and value of one toleration and one taint.

    Returns:
        True when the toleration covers the taint.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("Gt", "Lt"):
        return _compares(toleration.operator, integer(taint.value), integer(toleration.value))
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def _compares(operator: str, of_taint: int | None, of_toleration: int | None) -> bool:
    """Compare for Gt (the taint's number is greater) and Lt (it is less). A value that is no number is not tolerated."""
    if of_taint is None or of_toleration is None:
        return False
    return of_taint > of_toleration if operator == "Gt" else of_taint < of_toleration


def integer(text: str | None) -> int | None:
    """Parse a number as Gt and Lt need it.

    Returns:
        The number; None if the text is not a canonical integer of 64 bits.
    """
    number = int(text) if text and _INTEGER.fullmatch(text) else None
    return number if number is not None and -_LIMIT <= number < _LIMIT else None


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Find a toleration that covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


class TolerationSet:
    """A pod's tolerations, to be compared with many taints.

    Many tolerations are indexed once, so that comparing a taint takes the same time however many there are:

        tolerations = TolerationSet(pod.spec.tolerations or ())
        tolerations.tolerates_all(node.spec.taints or ())
    """

    __slots__ = ("_above", "_any_value", "_below", "_few", "_values")

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._few: Sequence[Toleration] | None = tolerations
        if len(tolerations) > _FEW:
            self._few = None
            self._index(tolerations)

    def _index(self, tolerations: Sequence[Toleration]) -> None:
        """Index by (key, effect); each is empty if the toleration leaves it open."""
        self._any_value: set[tuple[str, str]] = set()
        self._values: set[tuple[str, str, str]] = set()
        self._above: dict[tuple[str, str], int] = {}
        self._below: dict[tuple[str, str], int] = {}
        for each in tolerations:
            where = (each.key, each.effect)
            if each.operator == "Exists":
                self._any_value.add(where)
            elif each.operator in ("", "Equal"):
                self._values.add((*where, each.value))
            elif (bound := integer(each.value)) is None:
                continue
            elif each.operator == "Gt":
                self._above[where] = min(bound, self._above.get(where, bound))
            elif each.operator == "Lt":
                self._below[where] = max(bound, self._below.get(where, bound))

    def covers(self, taint: Taint) -> bool:
        """Find a toleration that covers the taint; gives the same answer as `tolerated`."""
        if self._few is not None:
            return tolerated(taint, self._few)
        places = ((taint.key, taint.effect), (taint.key, ""), ("", taint.effect), ("", ""))
        if any(place in self._any_value or (*place, taint.value) in self._values for place in places):
            return True
        number = integer(taint.value) if self._above or self._below else None
        if number is None:
            return False
        return any(self._above.get(place, number) < number or self._below.get(place, number) > number for place in places)

    def first_untolerated(self, taints: Sequence[Taint]) -> Taint | None:
        """Find the first hard taint (NoSchedule, NoExecute) that no toleration covers.

        Returns:
            The taint; None when all are covered.
        """
        for taint in taints:
            if taint.effect in HARD_EFFECTS and not self.covers(taint):
                return taint
        return None

    def intolerable_preferences(self, taints: Sequence[Taint]) -> int:
        """Count the PreferNoSchedule taints that no toleration covers."""
        return sum(1 for taint in taints if taint.effect == "PreferNoSchedule" and not self.covers(taint))

    def tolerates_all(self, taints: Sequence[Taint]) -> bool:
        """Return whether the pod may be on a node with these taints.

        Returns:
            True when every hard taint is covered.
        """
        return self.first_untolerated(taints) is None


def first_untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Find the first hard taint that no toleration covers; for one node (`TolerationSet` serves many).

    Returns:
        The taint; None when all are covered.
    """
    return TolerationSet(tolerations).first_untolerated(taints)
