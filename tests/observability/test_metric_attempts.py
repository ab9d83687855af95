"""What becomes of attempts in the metrics: each kind of end, plugins' times, and profiles that come, change and go."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from observability.metricsdesk import Seen, read
from placewright.framework.interface import PermitResult
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.status import Code, Status, unschedulable
from placewright.observability.metrics.attempts import AttemptSeries
from placewright.observability.metrics.family import histogram
from placewright.observability.metrics.series import Histograms
from placewright.scheduler.attempts import PLUGINS_SAMPLED
from placewright_console.pages.timeline import PlacementTally
from scheduler.makers import REFUSED, World, node, pod
from scheduler.scripted import late

ATTEMPTS = "scheduler_schedule_attempts_total"
POINT = "scheduler_framework_extension_point_duration_seconds_count"
CALLS = "scheduler_plugin_execution_duration_seconds_count"


class Counted(World):
    """A world whose attempts are counted."""

    series: AttemptSeries

    def seen(self) -> Seen:
        return read(self.series.series())

    @property
    def profile(self) -> ResolvedProfile:
        return self.evaluator.runtime.profile


def counted(*args: object, **spec: object) -> Counted:
    world = Counted(*args, **spec)  # type: ignore[arg-type]
    world.series = AttemptSeries()
    world.listening.append(world.series)
    return world


async def test_each_end_of_an_attempt_is_counted_under_its_result() -> None:
    world = counted().nodes(node("a"), node("b")).pods(pod("bound"), pod("broken"), pod("big").requests(cpu="900"))
    world.binder.answers["uid-broken"] = REFUSED
    for _ in range(3):
        await world.attempt()
    seen = world.seen()
    of_it = {"profile": "default-scheduler"}
    results = {result: seen.value(ATTEMPTS, result=result, **of_it) for result in ("scheduled", "unschedulable", "error")}
    assert results == {"scheduled": 1, "unschedulable": 1, "error": 1}
    assert seen.value(POINT, extension_point="Bind", status="Error", profile="default-scheduler") == 1
    assert seen.value(POINT, extension_point="Bind", status="Success", profile="default-scheduler") == 1
    assert seen.value("scheduler_pod_scheduling_attempts_count") == 1


async def test_durations_are_those_of_the_clock() -> None:
    world = counted().nodes(node("a")).pods(pod("web"))

    def ticking() -> float:
        world.now += 0.25
        return world.now

    world.now = 107.0  # it came to the queue at 100
    world.scheduler.attempts.clock = ticking
    await world.attempt()
    [attempt] = world.log.attempts
    assert attempt.ended is not None
    seen = world.seen()
    took = attempt.ended - attempt.started
    assert seen.value("scheduler_scheduling_attempt_duration_seconds_sum", result="scheduled", profile="default-scheduler") == took
    assert seen.value("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="1") == attempt.ended - 100.0
    assert attempt.ended - 100.0 > 7
    for step in attempt.steps.taken:
        at = {"extension_point": step.name, "status": "Success", "profile": "default-scheduler"}
        assert seen.value("scheduler_framework_extension_point_duration_seconds_sum", **at) == step.seconds


@pytest.mark.parametrize(("tries", "label"), [(14, "14"), (15, "15+"), (40, "15+")])
async def test_many_attempts_share_a_label(tries: int, label: str) -> None:
    world = counted().nodes(node("a")).pods(pod("web"))
    queued = world.queue.get("uid-web")
    assert queued is not None
    queued.attempts = tries - 1
    await world.attempt()
    assert world.seen().value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts=label) == 1
    assert world.seen().value("scheduler_pod_scheduling_attempts_sum") == tries


async def test_a_pod_that_only_the_timeout_brought_back_is_counted_as_such() -> None:
    world = counted().nodes(node("a").offers(cpu="1")).pods(pod("late").requests(cpu="2"), pod("early"))
    await world.attempt()
    await world.attempt()
    assert world.seen().value("scheduler_pod_scheduled_after_flush_total") == 0
    late = world.queue.get("uid-late")
    assert late is not None
    world.now += 1000
    world.queue.flush_unschedulable()
    world.cluster.set_node(node("b").offers(cpu="4").build())  # nobody told the queue
    await world.attempt()
    assert world.seen().value("scheduler_pod_scheduled_after_flush_total") == 1


async def test_preemption_is_counted_with_its_victims() -> None:
    world = counted().nodes(node("a").offers(cpu="2"))
    world.pods(*(pod(f"low-{n}").requests(cpu="1").on("a") for n in range(2)), pod("high").requests(cpu="2").priority(9))
    await world.attempt()
    seen = world.seen()
    assert seen.value("scheduler_preemption_attempts_total") == 1
    assert seen.value("scheduler_preemption_victims_sum") == 2
    assert seen.value("scheduler_preemption_victims_count") == 1


async def test_waiting_for_permission_is_counted_by_its_verdict() -> None:
    world = counted(late("Slow", permit=PermitResult(Status(Code.WAIT), 0.0)).kind).nodes(node("a")).pods(pod("web"))
    assert await world.attempt() is False
    seen = world.seen()
    assert seen.value("scheduler_permit_wait_duration_seconds_count", result="Unschedulable") == 1
    assert seen.value(POINT, extension_point="Permit", status="Wait", profile="default-scheduler") == 1
    assert "WaitOnPermit" not in seen.values(POINT, "extension_point")


async def test_plugins_times_are_taken_in_one_attempt_of_ten() -> None:
    world = counted().nodes(node("a"), node("b")).pods(*(pod(f"web-{n}") for n in range(5 * PLUGINS_SAMPLED)))
    for _ in range(5 * PLUGINS_SAMPLED):
        await world.attempt()
    seen = world.seen()
    assert PLUGINS_SAMPLED == 10
    assert seen.value(CALLS, plugin="DefaultBinder", extension_point="Bind", status="Success") == 5
    assert seen.value(CALLS, plugin="NodeResourcesFit", extension_point="Filter", status="Success") == 5
    assert seen.value(CALLS, plugin="NodeResourcesFit", extension_point="Score", status="Success") == 5


async def test_a_plugins_refusal_is_timed_under_its_status() -> None:
    refusing = late("Quota", permit=PermitResult(unschedulable("no quota")))
    world = counted(refusing.kind).nodes(node("a")).pods(*(pod(f"web-{n}") for n in range(PLUGINS_SAMPLED)))
    for _ in range(PLUGINS_SAMPLED):
        await world.attempt()
    seen = world.seen()
    assert seen.value(CALLS, plugin="Quota", extension_point="Permit", status="Unschedulable") == 1
    assert seen.value(CALLS, plugin="Quota", extension_point="Reserve", status="Success") == 1


async def test_no_time_of_a_plugin_is_taken_where_nobody_observes() -> None:
    world = World().nodes(node("a")).pods(*(pod(f"web-{n}") for n in range(PLUGINS_SAMPLED)))
    world.listening.clear()
    sampled = [world.observers.sampled() for _ in range(3 * PLUGINS_SAMPLED)]
    assert not any(sampled)


async def test_plugins_are_counted_with_the_attempts_that_they_had_a_say_in() -> None:
    world = counted().nodes(node("a"), node("b")).pods(pod("web"), pod("db"), pod("big").requests(cpu="900"))
    for _ in range(3):
        await world.attempt()
    evaluated = "scheduler_plugin_evaluation_total"
    seen = world.seen()
    of_it = {"plugin": "NodeResourcesFit", "profile": "default-scheduler"}
    assert seen.value(evaluated, extension_point="Filter", **of_it) == 3
    assert seen.value(evaluated, extension_point="Score", **of_it) == 2
    assert "NodePorts" not in seen.values(evaluated, "plugin")  # it skips pods without host ports
    assert seen.values(evaluated, "extension_point") == {"PreFilter", "Filter", "PreScore", "Score"}


async def test_what_is_counted_by_the_hundred_is_what_was_observed() -> None:
    pods = 1100
    world = counted().nodes(*(node(f"n-{n}").offers(pods="400", cpu="64") for n in range(4)))
    world.pods(*(pod(f"web-{n}").requests(cpu="10m") for n in range(pods)))

    def ticking() -> float:
        world.now += chance.expovariate(100)
        return world.now

    chance = random.Random(3)
    world.scheduler.attempts.clock = ticking
    for _ in range(pods):
        await world.attempt()
    seen, attempts = world.seen(), world.log.attempts
    took = [attempt.ended - attempt.started for attempt in attempts if attempt.ended is not None]
    for bound in (0.128, 0.256):
        at = {"result": "scheduled", "profile": "default-scheduler", "le": str(bound)}
        counted_up_to = sum(seconds <= bound for seconds in took)
        assert seen.value("scheduler_scheduling_attempt_duration_seconds_bucket", **at) == counted_up_to
        assert 0 < counted_up_to < pods
    binds = [step.seconds for attempt in attempts for step in attempt.steps.taken if step.name == "Bind"]
    of_bind = {"extension_point": "Bind", "status": "Success", "profile": "default-scheduler"}
    assert seen.value(POINT, **of_bind) == len(binds) == pods
    assert seen.value(POINT.replace("_count", "_sum"), **of_bind) == pytest.approx(sum(binds))
    of_it = {"plugin": "NodeResourcesFit", "profile": "default-scheduler"}
    assert seen.value("scheduler_plugin_evaluation_total", extension_point="Score", **of_it) == pods


def test_a_value_on_a_bound_belongs_below_it_one_by_one_and_many_at_once() -> None:
    family = histogram("test_seconds", "For a test.", (0.1, 0.2, 0.4))
    values = [0.0, 0.1, 0.1000001, 0.2, 0.3, 0.4, 0.5, 9.0]
    singly, at_once = Histograms(family), Histograms(family)
    for value in values:
        singly.at().observe(value)
    at_once.at().observe_all(np.array(values))
    assert singly.at().counts == at_once.at().counts == [2, 2, 2, 2]
    assert read([singly]).value("test_seconds_bucket", le="0.2") == 4
    assert read([at_once]).value("test_seconds_bucket", le="+Inf") == len(values)
    assert read([at_once]).value("test_seconds_sum") == pytest.approx(sum(values))


async def test_shares_of_the_score_are_those_of_the_decisions_since_the_swap() -> None:
    world = counted().nodes(node("a"), node("b")).pods(*(pod(f"web-{n}") for n in range(6)))
    for _ in range(3):
        await world.attempt()
    world.use_profile(generation=2, weights={"NodeResourcesFit": 50})
    for _ in range(3):
        await world.attempt()
    world.seen()
    placements = [attempt.schedule_result for attempt in world.log.attempts[3:]]
    points: dict[str, int] = {}
    for placement in placements:
        assert placement is not None
        for plugin, product in placement.plugins.items():
            points[plugin] = points.get(plugin, 0) + product
    whole = sum(points.values())
    shares = {plugin: share for (_, plugin), share in world.series.shares().items()}
    assert shares == pytest.approx({plugin: product / whole for plugin, product in points.items()})
    assert max(shares, key=lambda plugin: shares[plugin]) == "NodeResourcesFit"


async def test_only_profiles_in_effect_have_series_however_many_came_and_went() -> None:
    world = counted().nodes(node("a"))
    sizes = []
    for number in range(30):
        name = f"team-{number}"
        world.use_profile(name=name, schedulerName=name)
        world.pods(pod(f"web-{number}").scheduler(name))
        await world.attempt()
        assert name in world.seen().values(ATTEMPTS, "profile")
        world.series.keep_only({"default-scheduler": world.profile})
        sizes.append(len(world.seen().text.splitlines()))
    assert world.seen().values(ATTEMPTS, "profile") == {"default-scheduler"}
    assert sizes[-1] == sizes[2 * PLUGINS_SAMPLED]


async def test_the_late_end_of_an_attempt_of_a_removed_profile_is_not_shown_for_long() -> None:
    world = counted().nodes(node("a"))
    world.use_profile(name="team", schedulerName="team")
    world.pods(pod("web").scheduler("team"))
    binding = world.decide()
    assert binding is not None
    world.series.keep_only({"default-scheduler": world.profile})
    await binding
    world.series.keep_only({"default-scheduler": world.profile})
    seen = world.seen()
    assert "team" not in seen.values(ATTEMPTS, "profile")
    assert seen.value("scheduler_pod_scheduling_attempts_count") == 1


async def test_a_second_reader_of_the_counts_gets_all_of_them_by_generation() -> None:
    world = counted().nodes(node("a"), node("b")).pods(*(pod(f"web-{n}") for n in range(3)), pod("big").requests(cpu="900"))
    world.series.tally = tally = PlacementTally()
    for _ in range(4):
        await world.attempt()
    newer = replace(world.profile, generation=world.profile.generation + 1)
    world.series.keep_only({"default-scheduler": newer})
    world.series.of(newer)
    world.pods(pod("late"))
    await world.attempt()
    world.series.of(newer)
    world.series.settle()
    taken = tally.take()
    bound = {series: (part.bound, part.decisions, int(part.deciding.sum()), int(part.binding.sum())) for series, part in taken.items()}
    first = ("default-scheduler", world.profile.generation)
    assert bound[first] == (3, 4, 3, 3)
    assert sum(each[0] for each in bound.values()) == 4
    assert tally.take() == {}


@pytest.mark.parametrize("name", ['a"} 1\nhacked_total{x="', "back\\slash", "line\nbreak", "ünïcode", "{}", ""])
async def test_a_hostile_name_stays_within_its_label(name: str) -> None:
    world = counted().nodes(node("a")).pods(pod("web"))
    await world.attempt()
    [attempt] = world.log.attempts
    series = AttemptSeries()
    attempt.profile = replace(attempt.profile, scheduler_name=name)
    series.attempt_ended(attempt)
    series.pod_entered(name, name)
    seen = read(series.series())
    assert seen.value(ATTEMPTS, result="scheduled", profile=name) == 1
    assert seen.value("scheduler_queue_incoming_pods_total", queue=name, event=name) == 1
    assert "hacked" not in seen.families
