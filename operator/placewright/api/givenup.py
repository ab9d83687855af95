"""The condition of pods and groups that are given up (`spec.giveUpAfterSeconds` of a profile): its type, its reasons, and how it is read.

PodScheduled stays as kube-scheduler writes it. The condition is also the mark by which a new leader knows that a pod has been reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from placewright.api.objects import Condition, NodeName
from placewright.api.pods import PodInfo

GIVEN_UP: Final = "placewright.dev/GivenUp"
#: Reasons: of status True; of status False after another limit, and after a binding.
WAITED_TOO_LONG: Final = "WaitedTooLong"
PROFILE_CHANGED: Final = "ProfileChanged"
SCHEDULED: Final = "Scheduled"


def find_given_up(conditions: Iterable[Condition] | None) -> Condition | None:
    """Find the condition among others.

    Returns:
        The condition; None for an object that was never given up.
    """
    return next((each for each in conditions or () if each.type == GIVEN_UP), None)


def is_given_up(pod: PodInfo) -> bool:
    """Tell whether a pod's status says that it is given up."""
    condition = find_given_up(pod.pod.status.conditions)
    return condition is not None and condition.status == "True"


def given_up_condition(message: str) -> Condition:
    """Make the condition of a pod that has waited too long, or of its group."""
    return Condition(type=GIVEN_UP, status="True", reason=WAITED_TOO_LONG, message=message)


def taken_back_condition(message: str) -> Condition:
    """Make the condition of a pod that was given up, and whose profile allows a longer wait now."""
    return Condition(type=GIVEN_UP, status="False", reason=PROFILE_CHANGED, message=message)


def placed_condition(node: NodeName) -> Condition:
    """Make the condition of a pod that was given up, and is bound now."""
    return Condition(type=GIVEN_UP, status="False", reason=SCHEDULED, message=f"assigned to {node}")
