"""The status body: what kstatus, Flux, Argo CD and people read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from placewright.api.objects import Condition
from placewright.api.profile import QueueSizes
from placewright.profiles.advice import Recommendation
from placewright.profiles.profilestate import ProfileStanding, Reason, status_of

NOW, EARLIER = "2026-03-01T12:00:00Z", "2026-03-01T11:00:00Z"


def standing(reason: Reason, observed: int = 4, active: int | None = 4) -> ProfileStanding:
    return ProfileStanding("p", "x", observed, active, reason, "because")


def conditions(status: dict[str, Any]) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in status["conditions"]}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Reason.ACTIVE, {"Ready": "True"}),
        (Reason.PAUSED, {"Ready": "True"}),
        (Reason.APPLYING, {"Ready": "False", "Reconciling": "True"}),
        (Reason.INVALID_PROFILE, {"Ready": "False", "Stalled": "True"}),
        (Reason.BUILD_FAILED, {"Ready": "False", "Stalled": "True"}),
        (Reason.SCHEDULER_NAME_TAKEN, {"Ready": "False", "Stalled": "True"}),
        (Reason.QUEUE_SORT_DIFFERS, {"Ready": "False", "Stalled": "True"}),
    ],
)
def test_only_conditions_that_are_true_stand_beside_ready(reason: Reason, expected: dict[str, str]) -> None:
    assert conditions(status_of(standing(reason), [], NOW)) == expected


def kstatus(generation: int, status: dict[str, Any]) -> str:
    """What kstatus, which Flux and Argo CD go by, makes of an object (cli-utils, pkg/kstatus/status/generic.go)."""
    if status["observedGeneration"] != generation:
        return "InProgress"
    true = {kind for kind, value in conditions(status).items() if value == "True"}
    if "Reconciling" in true:
        return "InProgress"
    if "Stalled" in true:
        return "Failed"
    return "Current" if "Ready" in true else "InProgress"


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason is not Reason.APPLYING])
def test_tools_take_a_profile_in_effect_for_current_a_refused_one_for_failed_and_a_newer_one_for_in_progress(reason: Reason) -> None:
    status = status_of(standing(reason), [], NOW, hints=[Recommendation("Drowned", "one.")])
    assert kstatus(4, status) == ("Failed" if reason.stalls else "Current")
    assert kstatus(5, status) == "InProgress"


def test_a_rejected_generation_is_observed_while_the_earlier_one_stays_active() -> None:
    status = status_of(standing(Reason.INVALID_PROFILE, observed=5, active=4), [], NOW)
    assert (status["observedGeneration"], status["activeGeneration"]) == (5, 4)
    assert {condition["observedGeneration"] for condition in status["conditions"]} == {5}
    assert {condition["reason"] for condition in status["conditions"]} == {"InvalidProfile"}


def test_the_time_of_a_condition_changes_only_when_its_status_flips() -> None:
    previous = [
        Condition(type="Ready", status="True", reason="Active", last_transition_time=EARLIER),
        Condition(type="Stalled", status="True", last_transition_time=EARLIER),
    ]
    (ready,) = status_of(standing(Reason.PAUSED), previous, NOW)["conditions"]
    assert (ready["lastTransitionTime"], ready["reason"]) == (EARLIER, "Paused")
    flipped = status_of(standing(Reason.INVALID_PROFILE), previous[:1], NOW)["conditions"]
    assert [condition["lastTransitionTime"] for condition in flipped] == [NOW, NOW]


def test_conditions_of_others_are_not_ours_to_say() -> None:
    theirs = Condition(type="Audited", status="True", reason="Fine", message="m", last_transition_time=EARLIER)
    assert conditions(status_of(standing(Reason.ACTIVE), [theirs], NOW)) == {"Ready": "True"}


def test_advice_stands_beside_ready_only_while_there_is_any_and_is_about_the_generation_in_effect() -> None:
    previous = [Condition(type="Advice", status="True", reason="Old", message="m", last_transition_time=EARLIER)]
    hints = [Recommendation("Drowned", "one."), Recommendation("Drowned", "two.")]
    *_, advice = status_of(standing(Reason.INVALID_PROFILE, observed=5, active=4), previous, NOW, hints=hints)["conditions"]
    assert advice == {
        "type": "Advice", "status": "True", "reason": "Drowned", "message": "one. two.", "lastTransitionTime": EARLIER,
        "observedGeneration": 4,
    }  # fmt: skip
    assert conditions(status_of(standing(Reason.ACTIVE), previous, NOW)) == {"Ready": "True"}


def test_advice_of_several_kinds_has_a_reason_of_its_own() -> None:
    *_, advice = status_of(standing(Reason.ACTIVE), [], NOW, hints=[Recommendation("A", "a."), Recommendation("B", "b.")])["conditions"]
    assert (advice["reason"], advice["message"]) == ("SeveralHints", "a. b.")


def test_the_queue_s_sizes_come_with_their_sum() -> None:
    pending = QueueSizes(active=1, backoff=2, unschedulable=3, gated=4)
    expected = {"total": 10, "active": 1, "backoff": 2, "unschedulable": 3, "gated": 4}
    assert status_of(standing(Reason.ACTIVE), [], NOW, pending)["pending"] == expected


def test_a_profile_that_is_not_in_effect_has_active_generation_zero() -> None:
    assert status_of(standing(Reason.INVALID_PROFILE, active=None), [], NOW)["activeGeneration"] == 0


def test_a_message_fits_what_the_api_server_takes() -> None:
    long = ProfileStanding("p", "x", 1, None, Reason.INVALID_PROFILE, "m" * 100_000)
    assert max(len(condition["message"]) for condition in status_of(long, [], NOW)["conditions"]) <= 32_768


def test_a_status_is_plain_json() -> None:
    assert msgspec.json.encode(status_of(standing(Reason.ACTIVE), [], NOW))
