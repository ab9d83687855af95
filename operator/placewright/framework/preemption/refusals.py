"""The words in which the rules of `spec.preemption` refuse, and the times after which they may refuse no longer.

They have two forms, both from kube-scheduler. The reason why a pod may not preempt at all follows `preemption: not eligible due to`. The
reason why victims stay is one that nodes are counted by, after `preemption: 0/5 nodes are available:`. A rule is named by its field, with
its value where it has one. The text is the same in each attempt, so that events about it are counted and not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from placewright.framework.ports import Seconds

#: The field of the profile that has the rules.
RULES: Final = "spec.preemption"
#: Seconds until a pod that a disruption budget keeps from preempting looks again: no plugin listens for changes of budgets.
LOOK_AGAIN: Final = 30.0


class PreemptionRefusal(NamedTuple):
    """Why a pod may not preempt, or victims may not leave.

    Attributes:
        reason: text that names the rule.
        retry_after: seconds after which the answer may be another although nothing happens in the cluster; None if only a change helps.
    """

    reason: str
    retry_after: Seconds | None = None


#: The profile's pods displace no others.
POLICY_NEVER: Final = PreemptionRefusal(f"not eligible due to {RULES}.policy=Never.")
PROTECTED: Final = PreemptionRefusal(f"Victims are protected by {RULES}.protect")
IN_BUDGETS: Final = PreemptionRefusal(f"Victims are kept by a PodDisruptionBudget under {RULES}.disruptionBudgets=Strict", LOOK_AGAIN)


def soonest(times: Iterable[Seconds | None]) -> Seconds | None:
    """Return the first of these times.

    Args:
        times: seconds from now; None for never.

    Returns:
        Seconds from now; None if all are never.
    """
    return min((time for time in times if time is not None), default=None)


def one_for_each_reason(refusals: Iterable[PreemptionRefusal | None]) -> tuple[PreemptionRefusal, ...]:
    """Put refusals for one reason together: the one that may end first stands for all.

    Args:
        refusals: one for each pod of a node; None for pods that may leave.
    """
    found: dict[str, PreemptionRefusal] = {}
    for each in refusals:
        if each is not None:
            before = found.get(each.reason, each)
            found[each.reason] = PreemptionRefusal(each.reason, soonest((before.retry_after, each.retry_after)))
    return tuple(found.values())
