"""How often, and what, is said of profiles; on a fake clock and a fake API server."""

from __future__ import annotations

import itertools
import logging
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from placewright.api.objects import Condition, ObjectMeta
from placewright.api.profile import ProfileStatus, QueueSizes, SchedulingProfile
from placewright.engine.profilestatus import StatusReporter
from placewright.kube.errors import ApiError, RequestError, Unreachable
from placewright.profiles.profilestate import ProfileStanding, Reason

NOBODY = QueueSizes()


class Office:
    """An API server that notes what is applied, and who hears of events; `refuse` makes it refuse."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.refuse: RequestError | None = None
        self.applied: list[dict[str, Any]] = []
        self.events: list[tuple[str, str, str]] = []
        self.reporter = StatusReporter(
            cast(Any, self), cast(Any, self), lambda: datetime.fromtimestamp(self.seconds, UTC), lambda: self.seconds
        )

    async def patch(self, path: str, body: dict[str, Any], params: dict[str, str], content_type: str) -> bytes:
        if self.refuse is not None:
            raise self.refuse
        self.applied.append(body["status"])
        return b"{}"

    async def record(self, profile: ObjectMeta, kind: str, reason: str, note: str) -> None:
        self.events.append((kind, reason, note))

    def shows(self, status: dict[str, Any] | ProfileStatus | None = None, uid: str = "u") -> None:
        known = status if isinstance(status, ProfileStatus) else msgspec.convert(status or {}, ProfileStatus)
        self.reporter.seen(SchedulingProfile(metadata=ObjectMeta(name="p", uid=uid), status=known))

    async def report(self, generation: int = 1, pending: QueueSizes = NOBODY, reason: Reason = Reason.ACTIVE) -> None:
        active = None if reason.stalls else generation
        await self.reporter.report(ProfileStanding("p", "x", generation, active, reason, "because"), pending, ())


@pytest.fixture
def office() -> Office:
    made = Office()
    made.shows()
    return made


async def test_a_standing_that_is_over_before_the_status_is_due_is_announced_all_the_same(office: Office) -> None:
    await office.report(1)
    for generation in (2, 3):
        standing = ProfileStanding("p", "x", generation, generation, Reason.ACTIVE, f"because {generation}")
        office.reporter.note(standing)
        await office.reporter.report(standing, NOBODY, ())  # not due
    assert [note for _, _, note in office.events] == ["because", "because 2"], "what holds now is told with its status"
    office.seconds += 1.0
    for _ in range(3):
        await office.reporter.report(ProfileStanding("p", "x", 3, 3, Reason.ACTIVE, "because 3"), NOBODY, ())
    assert [note for _, _, note in office.events] == ["because", "because 2", "because 3"]


async def test_a_standing_that_comes_while_an_earlier_one_is_announced_makes_none_to_be_announced_twice(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    standings = [ProfileStanding("p", "x", generation, generation, Reason.ACTIVE, f"because {generation}") for generation in range(5)]
    record = office.record

    async def another_follows(profile: ObjectMeta, kind: str, reason: str, note: str) -> None:
        if note == "because 2":
            office.reporter.note(standings[4])
        await record(profile, kind, reason, note)

    monkeypatch.setattr(office, "record", another_follows)
    await office.reporter.report(standings[1], NOBODY, ())
    office.seconds += 1.0
    office.reporter.note(standings[2])
    office.reporter.note(standings[3])
    await office.reporter.report(standings[3], NOBODY, ())
    office.seconds += 1.0
    await office.reporter.report(standings[4], NOBODY, ())
    assert [note for _, _, note in office.events] == ["because 1", "because 2", "because 3", "because 4"]
    assert [status["observedGeneration"] for status in office.applied] == [1, 3, 4]


async def test_of_a_storm_of_changes_the_last_are_announced(office: Office) -> None:
    await office.report(1)
    for generation in range(2, 1000):
        office.reporter.note(ProfileStanding("p", "x", generation, generation, Reason.ACTIVE, str(generation)))
    office.seconds += 1.0
    await office.reporter.report(ProfileStanding("p", "x", 999, 999, Reason.ACTIVE, "999"), NOBODY, ())
    assert [note for _, _, note in office.events][1:] == [str(number) for number in range(980, 1000)]


async def test_the_status_is_written_once_when_nothing_changes(office: Office) -> None:
    for _ in range(5):
        await office.report()
        office.shows(office.applied[-1])
        office.seconds += 10
    assert len(office.applied) == 1


async def test_the_status_is_written_at_most_once_a_second(office: Office) -> None:
    written: list[tuple[float, int]] = []
    for generation in range(1, 41):
        await office.report(generation)
        if not written or office.applied[-1]["observedGeneration"] != written[-1][1]:
            written.append((office.seconds, office.applied[-1]["observedGeneration"]))
        office.seconds += 0.25
    assert [generation for _, generation in written] == list(range(1, 41, 4)), "the newest at each second"
    assert min(b[0] - a[0] for a, b in itertools.pairwise(written)) >= 1.0


async def test_a_change_that_was_not_due_is_known_to_be_due_later(office: Office) -> None:
    await office.report(1)
    assert office.reporter.seconds_until_due("p") == 1.0
    office.seconds += 0.75
    await office.report(2)
    assert (len(office.applied), office.reporter.seconds_until_due("p")) == (1, 0.25)
    office.seconds += 0.25
    await office.report(2)
    assert [status["observedGeneration"] for status in office.applied] == [1, 2]


async def test_a_status_that_somebody_else_changed_is_written_again(office: Office) -> None:
    await office.report()
    office.shows(office.applied[0] | {"activeGeneration": 99})
    office.seconds += 1
    await office.report()
    assert office.applied == [office.applied[0]] * 2


async def test_conditions_that_others_add_are_no_reason_to_write(office: Office) -> None:
    await office.report()
    theirs = {"type": "Audited", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    office.shows(office.applied[0] | {"conditions": [*office.applied[0]["conditions"], theirs]})
    office.seconds += 1
    await office.report()
    assert len(office.applied) == 1


async def test_a_status_that_could_not_be_written_is_tried_again_and_said_once(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    office.refuse = ApiError(403, "Forbidden", "cannot patch resource schedulingprofiles/status")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await office.report()
            office.seconds += 1
    assert [record.message for record in caplog.records] == [
        "profile p: status could not be written, will be tried again: 403 Forbidden: cannot patch resource schedulingprofiles/status"
    ]
    office.refuse = None
    await office.report()
    assert len(office.applied) == 1


async def test_a_status_without_an_answer_is_left_to_the_notice_of_an_absence(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for refuse in (Unreachable("Cannot connect"), ApiError(403, "Forbidden", "")):
            office.refuse = refuse
            await office.report()
            office.seconds += 1
    assert [record.message for record in caplog.records] == ["profile p: status could not be written, will be tried again: 403 Forbidden: "]


async def test_a_profile_that_is_gone_is_nothing_to_speak_of(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    office.refuse = ApiError(404, "NotFound", "")
    with caplog.at_level(logging.WARNING):
        await office.report()
    assert caplog.records == []


async def test_every_change_of_standing_is_announced_once(office: Office) -> None:
    for generation, reason in ((1, Reason.ACTIVE), (1, Reason.ACTIVE), (2, Reason.INVALID_PROFILE), (2, Reason.INVALID_PROFILE)):
        await office.report(generation, reason=reason)
        office.seconds += 1
    assert office.events == [("Normal", "ProfileActive", "because"), ("Warning", "ProfileRejected", "because")]


async def test_sizes_of_the_queue_are_no_news_to_announce(office: Office) -> None:
    await office.report()
    office.seconds += 1
    await office.report(pending=QueueSizes(active=3))
    assert (office.applied[-1]["pending"]["total"], len(office.events)) == (3, 1)


async def test_a_standing_that_the_status_tells_of_already_is_not_announced_after_a_restart(office: Office) -> None:
    await office.report(4)
    after = Office()
    after.shows(office.applied[0])
    await after.report(4)
    assert after.events == []
    after.seconds += 1
    await after.report(5)
    assert [reason for _, reason, _ in after.events] == ["ProfileActive"]


async def test_the_time_of_a_condition_outlives_a_restart(office: Office) -> None:
    earlier = Condition(type="Ready", status="True", reason="Active", last_transition_time="2026-01-01T00:00:00Z")
    office.shows(ProfileStatus(conditions=[earlier]), uid="another")
    await office.report()
    assert office.applied[0]["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


async def test_nothing_is_said_of_a_profile_that_was_forgotten(office: Office) -> None:
    office.reporter.forget("p")
    await office.report()
    assert (office.applied, office.events) == ([], [])
