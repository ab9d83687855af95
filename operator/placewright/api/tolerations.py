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


def first_untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first hard taint (NoSchedule, NoExecute) that nothing tolerates, or None."""
    for taint in taints:
        if taint.effect in HARD_EFFECTS and not tolerated(taint, tolerations):
            return taint
    return None


def intolerable_preferences(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many PreferNoSchedule taints stay untolerated: the raw score of TaintToleration."""
    soft = [t for t in tolerations if t.effect in ("", "PreferNoSchedule")]
    return sum(1 for taint in taints if taint.effect == "PreferNoSchedule" and not tolerated(taint, soft))
