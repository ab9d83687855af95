"""Does a toleration tolerate a taint? Rules: kube-scheduler's `ToleratesTaint`.

The operators Gt and Lt are behind the feature gate TaintTolerationComparisonOperators (alpha in 1.35). They are always obeyed here: an API
server takes no pod that has them unless its gate is on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from placewright.api.objects import Taint, Toleration

#: Effects that keep a pod off a node; PreferNoSchedule only lowers its score.
HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
#: A number as people write it: no plus sign, no zeros in front.
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_LIMIT: Final = 1 << 63
#: Up to so many tolerations are gone through one by one.
_FEW: Final = 8


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """True when this one toleration covers this one taint (key, effect and value)."""
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
    """Gt: the taint has more than the toleration says; Lt: it has less. What is no number on either side is not tolerated."""
    if of_taint is None or of_toleration is None:
        return False
    return of_taint > of_toleration if operator == "Gt" else of_taint < of_toleration


def integer(text: str | None) -> int | None:
    """The whole number of 64 bits that the text is, as it must be written for Gt and Lt; None where it is not."""
    number = int(text) if text and _INTEGER.fullmatch(text) else None
    return number if number is not None and -_LIMIT <= number < _LIMIT else None


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """True when any of the tolerations covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


class TolerationSet:
    """A pod's tolerations, to be asked about many taints: many are indexed once, so that a taint costs the same however many there are."""

    __slots__ = ("_above", "_any_value", "_below", "_few", "_values")

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._few: Sequence[Toleration] | None = tolerations
        if len(tolerations) > _FEW:
            self._few = None
            self._index(tolerations)

    def _index(self, tolerations: Sequence[Toleration]) -> None:
        """By key and effect, each of them empty where the toleration leaves it open."""
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
        """True when any of the tolerations covers the taint: `tolerated`."""
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
        """The first hard taint (NoSchedule, NoExecute) that nothing tolerates, or None."""
        for taint in taints:
            if taint.effect in HARD_EFFECTS and not self.covers(taint):
                return taint
        return None

    def intolerable_preferences(self, taints: Sequence[Taint]) -> int:
        """How many PreferNoSchedule taints stay untolerated."""
        return sum(1 for taint in taints if taint.effect == "PreferNoSchedule" and not self.covers(taint))

    def tolerates_all(self, taints: Sequence[Taint]) -> bool:
        """Whether nothing keeps the pod off a node with these taints."""
        return self.first_untolerated(taints) is None


def first_untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The same for one node."""
    return TolerationSet(tolerations).first_untolerated(taints)


def intolerable_preferences(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many PreferNoSchedule taints stay untolerated: the raw score of TaintToleration."""
    return TolerationSet(tolerations).intolerable_preferences(taints)
