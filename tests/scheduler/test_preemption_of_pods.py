"""What happens between the choice of victims and their preemptor's next attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from placewright.api.errors import EvictError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import CycleState, PreBindPlugin
from placewright.framework.status import SUCCESS, Status
from placewright.queue.queued import SubQueue
from placewright.scheduler.ports import EventType
from placewright.testing import World as KitWorld

from .makers import DEADLINE, World, node, pod


class SlowEvictor:
    """Evicts when it is told to, victim by victim; what is not told yet waits."""

    def __init__(self, world: World) -> None:
        self.begun: list[str] = []
        self.may: dict[str, asyncio.Event] = {}
        self.came = asyncio.Event()
        world.evictor.evict = self.evict  # type: ignore[method-assign]

    async def evict(self, victim: PodInfo, preemptor: PodInfo, on: NodeName) -> None:
        self.begun.append(victim.name)
        self.came.set()
        await self.may.setdefault(victim.name, asyncio.Event()).wait()

    def let_go(self, name: str) -> None:
        self.may.setdefault(name, asyncio.Event()).set()

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self.came.clear()
                await self.came.wait()


def crowded() -> World:
    """Three small pods fill a node, and somebody important wants all of it."""
    low = [pod(f"low-{n}").requests(cpu="1").on("a").priority(n) for n in range(3)]
    world = World().nodes(node("a").offers(cpu="3")).pods(*low)
    return world.pods(pod("vip").requests(cpu="3").priority(100))


def left(world: World, name: str) -> None:
    world.event_handlers.assigned_pod_gone(f"uid-{name}")


async def test_the_last_victim_goes_when_all_others_were_told() -> None:
    world = crowded()
    evictor = SlowEvictor(world)
    assert world.decide() is None
    await evictor.until(lambda: len(evictor.begun) == 2)
    assert sorted(evictor.begun) == ["low-1", "low-2"], "the most important first, the least important last"
    for name in list(evictor.begun):
        evictor.let_go(name)
    await evictor.until(lambda: len(evictor.begun) == 3)
    evictor.let_go("low-0")
    await world.scheduler.drain()
    assert sorted(name for name, _, reason, _, _ in world.events.recorded if reason == "Preempted") == ["low-0", "low-1", "low-2"]


async def test_a_victims_end_does_not_bring_the_pod_back_before_all_were_told() -> None:
    world = crowded()
    evictor = SlowEvictor(world)
    world.decide()
    await evictor.until(lambda: len(evictor.begun) == 2)
    left(world, "low-2")
    assert world.place("vip") is SubQueue.GATED
    assert world.queue.pop() is None
    for name in ("low-0", "low-1", "low-2"):
        evictor.let_go(name)
    await world.scheduler.drain()
    assert world.place("vip") is SubQueue.UNSCHEDULABLE, "victims still stand, and their end will bring it back"
    left(world, "low-1")
    assert world.place("vip") in (SubQueue.BACKOFF, SubQueue.ACTIVE)
    left(world, "low-0")
    world.now += 10
    world.queue.flush_backoff()
    assert await world.attempt(), "it gets the room that was made"


async def test_when_all_victims_ended_before_the_gate_was_lifted_the_pod_comes_back_by_itself() -> None:
    world = crowded()
    evictor = SlowEvictor(world)
    world.decide()
    await evictor.until(lambda: len(evictor.begun) == 2)
    for name in ("low-2", "low-1", "low-0"):
        left(world, name)
        evictor.let_go(name)
    assert world.place("vip") is SubQueue.GATED
    await world.scheduler.drain()
    assert world.place("vip") in (SubQueue.BACKOFF, SubQueue.ACTIVE), "there is no event left that would bring it back"


async def test_a_pod_that_was_gated_comes_back_with_its_last_victim_whatever_had_rejected_it() -> None:
    """Only the end that it missed would have been worth a try to the plugin that rejected it."""
    low = [pod("first").requests(cpu="1").on("a").priority(1), pod("last").requests(memory="2Gi").on("a").priority(0)]
    world = World().nodes(node("a").offers(cpu="1", memory="2Gi")).pods(*low)
    world.pods(pod("vip").requests(cpu="1", memory="2Gi").priority(100))
    evictor = SlowEvictor(world)
    world.decide()
    await evictor.until(lambda: evictor.begun == ["first"])
    left(world, "first")
    assert world.place("vip") is SubQueue.GATED
    queued = world.queue.get("uid-vip")
    assert queued is not None
    queued.unschedulable_plugins = {"NodePorts", "DefaultPreemption"}
    for name in ("first", "last"):
        evictor.let_go(name)
    await world.scheduler.drain()
    assert world.place("vip") is SubQueue.UNSCHEDULABLE, "it is not tried while its last victim stands"
    left(world, "last")
    assert world.place("vip") in (SubQueue.BACKOFF, SubQueue.ACTIVE)


async def test_once_all_victims_were_told_a_pod_that_was_gated_hears_of_new_nodes() -> None:
    world = crowded()
    evictor = SlowEvictor(world)
    world.decide()
    await evictor.until(lambda: len(evictor.begun) == 2)
    left(world, "low-2")
    for name in ("low-0", "low-1", "low-2"):
        evictor.let_go(name)
    await world.scheduler.drain()
    world.nodes(node("b").offers(cpu="3"))
    assert world.place("vip") in (SubQueue.BACKOFF, SubQueue.ACTIVE)


async def test_the_end_of_the_last_victim_brings_the_pod_back() -> None:
    world = crowded()
    world.decide()
    await world.scheduler.drain()
    assert world.place("vip") is SubQueue.UNSCHEDULABLE
    for name in ("low-2", "low-1", "low-0"):
        left(world, name)
    world.now += 10
    world.queue.flush_backoff()
    assert await world.attempt()


async def test_lower_nominations_on_the_node_end_and_equal_ones_stay() -> None:
    world = crowded()
    world.pods(pod("lower").requests(cpu="9").priority(50), pod("equal").priority(100))
    for name in ("lower", "equal"):
        queued = world.queue.get(f"uid-{name}")
        assert queued is not None
        world.queue.nominate(queued.pod, NodeName("a"))
    world.decide()
    await world.scheduler.drain()
    assert world.status.nominated == [("lower", "")]
    assert world.queue.nominator.node_of("uid-lower") is None
    assert world.queue.nominator.node_of("uid-equal") == "a"
    assert world.queue.nominator.node_of("uid-vip") == "a"


async def test_a_victim_is_told_by_whom_it_had_to_go() -> None:
    world = crowded()
    world.decide()
    await world.scheduler.drain()
    notes = {event for event in world.events.recorded if event[2] == "Preempted"}
    assert ("low-0", EventType.NORMAL, "Preempted", "Preempting", "Preempted by pod uid-vip on node a") in notes
    assert len(notes) == 3


async def test_after_a_refusal_the_pod_is_not_gated_and_comes_back_by_itself() -> None:
    world = crowded()

    async def refuse(*_: object) -> None:
        raise RuntimeError("no")

    world.evictor.evict = refuse  # type: ignore[assignment]
    world.decide()
    await world.scheduler.drain()
    assert world.place("vip") is SubQueue.BACKOFF
    assert not world.queue.nominator.making_room_for
    assert not [event for event in world.events.recorded if event[2] == "Preempted"]


def test_where_every_eviction_is_refused_the_pod_is_tried_after_each_backoff_and_never_in_between() -> None:
    """Nothing else waits, so the queue would try a pod in backoff early; each try would tell the victims again, as fast as we can."""
    world = KitWorld(nodes=[node("a", cpu="1")], pods=[pod("low").requests(cpu="1").on("a")])
    world.evictor.fail(EvictError("403: pods is forbidden"))
    world.add(pod("vip").requests(cpu="1").priority(10)).advance(60)
    # 1, 2, 4, 8, 10, 10, 10 seconds of backoff, each until the second in which it ends is over.
    tried = [100, 102, 105, 110, 119, 130, 141, 152]
    assert [attempt.started for attempt in world.log.attempts] == tried
    assert len(world.evictor.evicted) == len(tried)
    world.evictor.recover()
    world.advance(20)
    assert world.node_of("vip") == "a"


class Slow(PreBindPlugin):
    """Prepares a pod for ever, as a volume does that nobody makes."""

    name = "Slow"

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        if pod.name == "victim":
            await asyncio.Event().wait()
        return SUCCESS


async def test_a_victim_that_is_still_being_prepared_for_the_node_is_taken_back_and_not_deleted() -> None:
    world = World(Slow).nodes(node("a").offers(cpu="1")).pods(pod("victim").requests(cpu="1"))
    preparing = world.decide()
    assert preparing is not None
    binding = asyncio.create_task(preparing)
    await asyncio.sleep(0)
    world.pods(pod("vip").requests(cpu="1").priority(100))
    world.decide()
    assert await binding is False
    await world.scheduler.drain()
    assert world.evictor.evicted == []
    assert ("victim", EventType.NORMAL, "Preempted", "Preempting", "Preempted by pod uid-vip on node a (in kube-scheduler memory).") in (
        world.events.recorded
    )
    assert world.node_of("victim") is None
    assert world.place("victim") is SubQueue.BACKOFF
    assert ("victim", "SchedulerError", "preempted while it was prepared for its node", "") in world.status.written
    world.now += 10
    world.queue.flush_backoff()
    assert await world.attempt()
    assert world.node_of("vip") == "a"
