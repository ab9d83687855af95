"""The words in which the rules of `spec.preemption` refuse, and the times after which they may refuse no longer.

They have two forms, both from kube-scheduler. The reason why a pod may not preempt at all follows `preemption: not eligible due to`. The
reason why victims stay is one that nodes are counted by, after `preemption: 0/5 nodes are available:`. A rule is named by its field, with
its value where it has one. Nothing in the text changes from one attempt to the next, so that events about it are counted and not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from placewright.framework.ports import Seconds

_PATH: Final = "spec.preemption"
#: Seconds until a pod that a disruption budget keeps from preempting looks again: no plugin listens for changes of budgets.
LOOK_AGAIN: Final = 30.0


class PreemptionRefusal(NamedTuple):
    """Why a pod may not preempt, or victims may not leave.

    Attributes:
        reason: names the rule.
        retry_after: seconds after which the answer may be another although nothing happens in the cluster; None where only a change helps.
    """

    reason: str
    retry_after: Seconds | None = None


#: Of a profile whose pods displace no others.
POLICY_NEVER: Final = PreemptionRefusal(f"not eligible due to {_PATH}.policy=Never.")
PROTECTED: Final = PreemptionRefusal(f"Victims are protected by {_PATH}.protect")
IN_BUDGETS: Final = PreemptionRefusal(f"Victims are kept by a PodDisruptionBudget under {_PATH}.disruptionBudgets=Strict", LOOK_AGAIN)


def waits(wait_seconds: Seconds, left: Seconds) -> PreemptionRefusal:
    """Refuse a pod that has not waited long enough.

    Args:
        wait_seconds: of the rule.
        left: until then.

    Returns:
        The refusal.
    """
    return PreemptionRefusal(f"not eligible due to {_PATH}.waitSeconds={wait_seconds:g}.", left)


def none_left(most: int, left: Seconds) -> PreemptionRefusal:
    """Refuse a pod in a minute in which its profile may displace no more pods.

    Args:
        most: evictions in a minute.
        left: until the minute has fewer.

    Returns:
        The refusal.
    """
    return PreemptionRefusal(f"not eligible due to {_PATH}.maxEvictionsPerMinute={most}.", left)


def has_run_too_short(min_run_seconds: Seconds, left: Seconds) -> PreemptionRefusal:
    """Refuse a victim that started a short while ago.

    Args:
        min_run_seconds: of the rule.
        left: until it has run long enough.

    Returns:
        The refusal.
    """
    return PreemptionRefusal(f"Victims have run less than {_PATH}.minRunSeconds={min_run_seconds:g}", left)


def too_many(most: int) -> PreemptionRefusal:
    """Refuse a preemption of too many victims.

    Args:
        most: that one preemption may have.

    Returns:
        The refusal.
    """
    return PreemptionRefusal(f"More victims than {_PATH}.maxVictims={most}")


def too_many_in_a_minute(most: int, left: Seconds | None) -> PreemptionRefusal:
    """Refuse a preemption of more victims than the last minute has room for.

    Args:
        most: evictions in a minute.
        left: until the minute has fewer; None for a preemption that no minute has room for.

    Returns:
        The refusal.
    """
    return PreemptionRefusal(f"More victims than {_PATH}.maxEvictionsPerMinute={most} allows", left)


def soonest(times: Iterable[Seconds | None]) -> Seconds | None:
    """Return the first of these times.

    Args:
        times: seconds from now; None for never.

    Returns:
        Seconds from now; None where all are never.
    """
    return min((time for time in times if time is not None), default=None)


def one_for_each_reason(refusals: Iterable[PreemptionRefusal | None]) -> tuple[PreemptionRefusal, ...]:
    """Put refusals for one reason together: the one that may end first stands for all.

    Args:
        refusals: of the pods of a node; None for pods that may leave.

    Returns:
        One for each reason.
    """
    found: dict[str, PreemptionRefusal] = {}
    for each in refusals:
        if each is not None:
            before = found.get(each.reason, each)
            found[each.reason] = PreemptionRefusal(each.reason, soonest((before.retry_after, each.retry_after)))
    return tuple(found.values())
