from __future__ import annotations

import asyncio

import pytest

from placewright.queue.queued import SubQueue
from placewright.scheduler.attempts import FailureHandler
from placewright.scheduler.cycle import FitError
from placewright.scheduler.ports import AlwaysLead, EventType

from .makers import World, node, pod
from .scripted import room_maker

NO_PREEMPTION = {"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}


def handler(world: World) -> FailureHandler:
    return FailureHandler(world.queue, world.events, world.status, AlwaysLead())


REJECTED = FitError("0/1 nodes are available: 1 no.", unschedulable_plugins=frozenset({"NodeResourcesFit"}))


def test_a_rejected_pod_gets_a_warning_and_the_condition_unschedulable() -> None:
    world = World(**NO_PREEMPTION).nodes(node("a").offers(cpu="1")).pods(pod("web").requests(cpu="2"))
    assert world.decide() is None
    message = "0/1 nodes are available: 1 Insufficient cpu."
    assert world.events.recorded == [("web", EventType.WARNING, "FailedScheduling", "Scheduling", message)]
    assert world.status.written == [("web", "Unschedulable", message, None)]
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    assert world.scheduler.counts.errors == 0


def test_the_event_comes_after_the_pod_is_back_in_the_queue() -> None:
    """Whoever acts on the event must find the pod waiting."""
    world = World().pods(pod("web"))
    places: list[SubQueue | None] = []
    world.events.record = lambda *_: places.append(world.place("web"))  # type: ignore[method-assign]
    handler(world).handle(world.pop(), REJECTED)
    assert places == [SubQueue.UNSCHEDULABLE]


def test_an_internal_failure_names_the_scheduler_and_backs_off() -> None:
    world = World().pods(pod("web"))
    handler(world).handle(world.pop(), FitError("it broke", internal=True))
    assert world.status.written == [("web", "SchedulerError", "it broke", None)]
    assert world.place("web") is SubQueue.BACKOFF


def test_a_nomination_is_remembered_and_written() -> None:
    world = World().pods(pod("web"))
    failure = FitError("no", unschedulable_plugins=REJECTED.unschedulable_plugins, nominated_node="a")  # type: ignore[arg-type]
    handler(world).handle(world.pop(), failure)
    assert world.queue.nominator.node_of("uid-web") == "a"
    assert world.status.written[0][3] == "a"


def test_an_empty_nomination_withdraws_an_earlier_one_and_none_leaves_it() -> None:
    world = World().pods(pod("web").nominated("a"))
    handler(world).handle(world.pop(), FitError("no", internal=True))
    assert world.queue.nominator.node_of("uid-web") == "a"
    world.now += 10
    world.queue.flush_backoff()
    handler(world).handle(world.pop(), FitError("no", internal=True, nominated_node=""))  # type: ignore[arg-type]
    assert world.queue.nominator.node_of("uid-web") is None
    assert [status[3] for status in world.status.written] == [None, ""]


async def test_victims_are_evicted_in_the_preemptors_name() -> None:
    low = pod("low").requests(cpu="4").on("a")
    world = World(room_maker("a", low.build()).kind).nodes(node("a")).pods(low, pod("vip").requests(cpu="1").priority(5))
    assert world.decide() is None
    await world.scheduler.drain()
    assert world.evictor.evicted == [("low", "vip", "a")]
    assert world.queue.nominator.node_of("uid-vip") == "a"


async def test_a_victim_that_was_not_evicted_is_logged_and_the_pod_is_tried_after_its_backoff(caplog: pytest.LogCaptureFixture) -> None:
    low = pod("low").requests(cpu="4").on("a")
    world = World(room_maker("a", low.build()).kind).nodes(node("a")).pods(low, pod("vip").requests(cpu="1").priority(5))

    async def refuse(*_: object) -> None:
        raise RuntimeError("the budget forbids it")

    world.evictor.evict = refuse  # type: ignore[assignment]
    world.decide()
    await world.scheduler.drain()
    assert "the budget forbids it" in caplog.text
    assert world.place("vip") is SubQueue.BACKOFF


async def test_victims_count_as_leaving_until_it_is_known_that_they_stay() -> None:
    victims = [pod(name).requests(cpu="2").on("a") for name in ("first", "last")]
    world = World().nodes(node("a")).pods(*victims, pod("vip").requests(cpu="4").priority(5))
    asked = asyncio.Event()

    async def hang(*_: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    world.evictor.evict = hang  # type: ignore[assignment]
    world.decide()
    await asked.wait()
    assert all(world.cluster.leaves(each.build()) for each in victims)
    for task in tuple(world.scheduler._tasks):
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert not any(world.cluster.leaves(each.build()) for each in victims)


async def test_nobody_is_evicted_for_a_pod_that_is_gone() -> None:
    low = pod("low").requests(cpu="4").on("a")
    world = World(room_maker("a", low.build()).kind).nodes(node("a")).pods(low, pod("vip").requests(cpu="1").priority(5))
    queued = world.pop()
    world.event_handlers.unscheduled_pod_gone(pod("vip").build())
    assert world.schedule(queued) is None
    await world.scheduler.drain()
    assert world.evictor.evicted == []


def test_a_pod_deleted_in_flight_is_dropped_without_a_word() -> None:
    world = World().pods(pod("web"))
    queued = world.pop()
    world.event_handlers.unscheduled_pod_gone(pod("web").build())
    assert handler(world).handle(queued, REJECTED) is None
    assert len(world.queue) == 0
    assert not world.events.recorded
    assert not world.status.written


def test_a_pod_replaced_by_a_namesake_in_flight_is_dropped_and_the_namesake_waits() -> None:
    world = World().pods(pod("web"))
    queued = world.pop()
    world.pods(pod("web").uid("second"))
    assert handler(world).handle(queued, REJECTED) is None
    assert world.queue.uids() == {"second"}
    assert world.queue.locate("second") is SubQueue.ACTIVE
    assert not world.events.recorded


def test_what_is_reported_is_the_pods_newest_version() -> None:
    world = World().pods(pod("web"))
    queued = world.pop()
    world.pods(pod("web").labels(tier="gold"))
    reported = handler(world).handle(queued, REJECTED)
    assert reported is not None
    assert reported.labels == {"tier": "gold"}


def test_a_pod_being_deleted_is_not_tried_but_its_events_say_so() -> None:
    world = World().nodes(node("a")).pods(pod("web").deleting())
    assert world.decide() is None
    assert world.events.recorded == [
        ("web", EventType.WARNING, "FailedScheduling", "Scheduling", "skip schedule deleting pod: default/web")
    ]
    assert len(world.queue) == 0


def test_a_pod_that_stands_on_a_node_already_is_skipped_without_a_word() -> None:
    world = World().nodes(node("a")).pods(pod("web"))
    world.cluster.assume(pod("web").build(), "a")  # type: ignore[arg-type]
    assert world.decide() is None
    assert len(world.queue) == 0
    assert not world.events.recorded


def test_a_pod_whose_profile_went_in_mid_attempt_waits_for_it() -> None:
    world = World().nodes(node("a")).pods(pod("web"))
    queued = world.pop()
    evaluator = world.profiles.pop("default-scheduler")
    world.queue.reprioritise("default-scheduler")
    assert world.schedule(queued) is None
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    world.profiles["default-scheduler"] = evaluator
    world.queue.reprioritise("default-scheduler")
    assert world.place("web") in (SubQueue.ACTIVE, SubQueue.BACKOFF)
