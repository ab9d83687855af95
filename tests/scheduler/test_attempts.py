"""What an observer hears of each attempt: its end, what came of it, and what took how long."""

from __future__ import annotations

import pytest

from placewright.framework.status import Code
from placewright.scheduler.attempts import Attempt, Result
from placewright.testing.world import AttemptLog
from scheduler.makers import CONFLICT, REFUSED, UNKNOWN, World, node, pod


def outcomes(attempt: Attempt) -> list[tuple[str, Code]]:
    return [(step.name, step.outcome) for step in attempt.steps.taken]


async def test_a_pod_that_is_bound_ends_one_attempt_with_every_point_it_passed() -> None:
    world = World().nodes(node("a"), node("b")).pods(pod("web"))
    await world.attempt()
    [attempt] = world.log.attempts
    assert (attempt.result, attempt.number, attempt.pod.key) == (Result.SCHEDULED, 1, "default/web")
    points = ["PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit", "PreBind", "Bind", "PostBind"]
    assert outcomes(attempt) == [(point, Code.SUCCESS) for point in points]


async def test_steps_follow_each_other_and_stay_within_the_attempt() -> None:
    world = World().nodes(node("a"), node("b")).pods(pod("web"))

    def ticking() -> float:
        world.now += 0.25
        return world.now

    world.scheduler.attempts.clock = ticking
    await world.attempt()
    [attempt] = world.log.attempts
    assert attempt.decided is not None
    assert attempt.ended is not None
    assert attempt.queued_at <= attempt.first_tried <= attempt.started < attempt.decided < attempt.ended
    ends = [attempt.started] + [step.began + step.seconds for step in attempt.steps.taken]
    begins = [step.began for step in attempt.steps.taken] + [attempt.ended]
    assert all(end <= begin for end, begin in zip(ends, begins, strict=True))


async def test_a_pod_that_fits_nowhere_ends_unschedulable_after_postfilter() -> None:
    world = World().nodes(node("a")).pods(pod("web").requests(cpu="900"))
    await world.attempt()
    [attempt] = world.log.attempts
    assert (attempt.result, attempt.schedule_result) == (Result.UNSCHEDULABLE, None)
    assert attempt.failure is not None
    assert "Insufficient cpu" in attempt.failure.message
    assert [name for name, code in outcomes(attempt) if code is not Code.SUCCESS] == ["Filter", "PostFilter"]


@pytest.mark.parametrize("problem", [REFUSED, CONFLICT])
async def test_a_binding_that_fails_ends_the_attempt_as_an_error(problem: Exception) -> None:
    world = World().nodes(node("a")).pods(pod("web"))
    world.binder.answers["uid-web"] = problem
    await world.attempt()
    [attempt] = world.log.attempts
    assert (attempt.result, outcomes(attempt)[-1]) == (Result.ERROR, ("Bind", Code.ERROR))


async def test_an_attempt_whose_binding_is_unknown_ends_only_when_somebody_tells() -> None:
    world = World().nodes(node("a")).pods(pod("web"))
    world.binder.answers["uid-web"] = UNKNOWN
    await world.attempt()
    assert world.log.attempts == []
    world.binding.resolve("uid-web", "a")
    assert [attempt.result for attempt in world.log.attempts] == [Result.SCHEDULED]


async def test_an_observer_hears_where_in_the_queue_a_pod_goes_and_why() -> None:
    world = World().nodes(node("a")).pods(pod("web").requests(cpu="900"))
    await world.attempt()
    assert world.log.entered == [("active", "UnscheduledPodAdd"), ("unschedulable", "ScheduleAttemptFailure")]


async def test_an_observer_that_breaks_keeps_nobody_from_hearing_nor_the_pod_from_its_node(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(AttemptLog):
        def attempt_ended(self, attempt: Attempt) -> None:
            raise RuntimeError("full")

    world = World().nodes(node("a")).pods(pod("web"))
    world.listening.insert(0, Broken())
    await world.attempt()
    assert world.node_of("web") == "a"
    assert [attempt.result for attempt in world.log.attempts] == [Result.SCHEDULED]
    assert "an observer broke" in caplog.text
