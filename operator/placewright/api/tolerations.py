"""Does a toleration tolerate a taint? Rules: kube-scheduler's `ToleratesTaint`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from placewright.api.objects import Taint, Toleration

#: Effects that keep a pod off a node; PreferNoSchedule only lowers its score.
HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """True when this one toleration covers this one taint (key, effect and value)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


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
