"""From the decision of a group to its Bindings: nobody is bound before all are ready, and what was sent is never taken back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import CycleState, PermitPlugin, PermitResult, PreBindPlugin
from placewright.framework.status import SUCCESS, Code, Status, error, unschedulable
from placewright.queue.queued import SubQueue
from scheduler.makers import REFUSED, UNKNOWN, World, node

from .makers import bound, group, member, members


class Readying(PreBindPlugin):
    """Prepares each pod when the test says so, and as the test says."""

    name = "Readying"
    may: dict[str, asyncio.Future[Status]]

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        return await self.may.setdefault(pod.name, asyncio.get_running_loop().create_future())


class Doorman(PermitPlugin):
    """Permits what the test says."""

    name = "Doorman"
    verdicts: dict[str, PermitResult]

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        return self.verdicts.get(pod.name, PermitResult(SUCCESS))


@pytest.fixture
def readying() -> type[Readying]:
    return type("OneReadying", (Readying,), {"may": {}})


@pytest.fixture
def doorman() -> type[Doorman]:
    return type("OneDoorman", (Doorman,), {"verdicts": {}})


async def turns() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def say(readying: type[Readying], name: str, status: Status = SUCCESS) -> None:
    readying.may[name].set_result(status)


def job(world: World, count: int = 3, minimum: int = 3, **asks: Any) -> World:
    world.nodes(node("a").offers(cpu="8"))
    world.event_handlers.cluster_object(group("job", minimum, **asks))
    return world.pods(*members("job", count))


async def begun(world: World) -> asyncio.Task[bool]:
    binding = world.decide()
    assert binding is not None
    task = asyncio.ensure_future(binding)
    await turns()
    return task


async def test_no_binding_is_sent_before_all_members_are_prepared(readying: type[Readying]) -> None:
    world = job(World(readying))
    task = await begun(world)
    say(readying, "job-0")
    say(readying, "job-2")
    await turns()
    assert bound(world) == []
    say(readying, "job-1")
    assert await task
    assert sorted(bound(world)) == ["job-0", "job-1", "job-2"]


async def test_one_that_cannot_be_prepared_takes_all_back(readying: type[Readying]) -> None:
    world = job(World(readying))
    task = await begun(world)
    say(readying, "job-0")
    say(readying, "job-1", error("no volume"))
    assert not await task, "and the third is not waited for"
    assert bound(world) == []
    assert world.requested("a") == 0
    assert [world.place(f"job-{n}") for n in range(3)] == [SubQueue.BACKOFF] * 3, "an error is tried again, by all together"
    notes = {name: note for name, _, _, _, note in world.events.recorded}
    assert "no volume" in notes["job-0"]
    assert "job-1 could not be bound" in notes["job-0"]


async def test_a_member_that_is_not_needed_is_left_behind_when_it_cannot_be_prepared(readying: type[Readying]) -> None:
    world = job(World(readying), minimum=2)
    task = await begun(world)
    say(readying, "job-2", error("no volume"))
    say(readying, "job-0")
    await turns()
    assert bound(world) == []
    say(readying, "job-1")
    await task
    assert sorted(bound(world)) == ["job-0", "job-1"]
    assert world.place("job-2") is SubQueue.BACKOFF


async def test_whoever_joins_while_the_group_is_prepared_waits_for_it_and_falls_with_it(readying: type[Readying]) -> None:
    world = job(World(readying))
    task = await begun(world)
    world.pods(member("job", 3))
    late = await begun(world)
    say(readying, "job-3")
    await turns()
    assert bound(world) == []
    say(readying, "job-0", error("no volume"))
    assert not await task
    assert not await late
    assert bound(world) == []
    assert world.requested("a") == 0


async def test_whoever_joins_while_the_group_is_prepared_is_bound_after_it(readying: type[Readying]) -> None:
    world = job(World(readying))
    task = await begun(world)
    world.pods(member("job", 3))
    late = await begun(world)
    for name in ("job-3", "job-0", "job-1", "job-2"):
        say(readying, name)
    assert await task
    assert await late
    assert len(bound(world)) == 4


async def test_a_member_deleted_while_the_others_are_prepared_takes_them_back(readying: type[Readying]) -> None:
    world = job(World(readying))
    task = await begun(world)
    say(readying, "job-0")
    await turns()
    world.event_handlers.pod_gone("uid-job-0")
    assert not await task
    assert bound(world) == []
    assert world.requested("a") == 0


async def test_members_do_not_wait_for_each_other_longer_than_the_group_says(readying: type[Readying]) -> None:
    world = job(World(readying), timeout=1)
    binding = world.decide()
    assert binding is not None
    task = asyncio.ensure_future(binding)
    await turns()
    say(readying, "job-0")
    assert not await asyncio.wait_for(task, 30)
    assert bound(world) == []
    assert any("was not ready after 1s: job-1, job-2" in note for _, _, _, _, note in world.events.recorded)
    world.now += 3
    world.queue.flush_backoff()
    assert len(world.queue.take_pod_group(world.pop())) == 3, "no event brings them back, so they are tried again by themselves"


async def test_one_that_permit_refuses_takes_all_back(doorman: type[Doorman]) -> None:
    doorman.verdicts["job-2"] = PermitResult(unschedulable("no quota"))
    world = job(World(doorman))
    assert world.decide() is None
    assert world.requested("a") == 0
    assert not len(world.scheduler.waiting)
    assert all("Permit refused 1" in note for _, _, _, _, note in world.events.recorded)


async def test_one_that_is_refused_while_it_waits_for_permission_takes_all_back(doorman: type[Doorman]) -> None:
    doorman.verdicts["job-2"] = PermitResult(Status(Code.WAIT), 60)
    world = job(World(doorman))
    task = await begun(world)
    assert bound(world) == [], "the others wait for it"
    [waiting] = world.scheduler.waiting
    waiting.reject("Doorman", "no quota")
    assert not await task
    assert bound(world) == []
    assert world.requested("a") == 0


async def test_what_is_bound_stays_bound_when_the_api_server_refuses_another_member() -> None:
    world = job(World())
    world.binder.answers["uid-job-1"] = REFUSED
    assert await world.attempt() is False
    assert world.node_of("job-0") == "a"
    assert world.node_of("job-2") == "a"
    assert world.place("job-1") is SubQueue.BACKOFF
    world.now += 3
    world.queue.flush_backoff()
    assert await world.attempt(), "it joins the others, alone"
    assert sorted(bound(world)) == ["job-0", "job-1", "job-1", "job-2"]


async def test_a_member_whose_binding_may_exist_keeps_its_place_with_the_group() -> None:
    world = job(World())
    world.binder.answers["uid-job-1"] = UNKNOWN
    assert await world.attempt() is False
    assert [world.node_of(f"job-{n}") for n in range(3)] == ["a", "a", "a"]
    assert world.place("job-1") is SubQueue.IN_FLIGHT


async def test_the_end_of_the_term_takes_back_a_group_that_is_being_prepared(readying: type[Readying]) -> None:
    world = job(World(readying))
    task = await begun(world)
    say(readying, "job-0")
    await turns()
    world.scheduler.end_term()
    assert not await task
    assert bound(world) == []
    assert world.requested("a") == 0


async def test_a_member_that_has_to_make_room_while_it_waits_for_its_group_is_not_evicted_but_taken_back(readying: type[Readying]) -> None:
    world = job(World(readying))
    task = await begun(world)
    say(readying, "job-0")
    await turns()
    assert world.binding.preempt("uid-job-0", "DefaultPreemption")
    assert not await task
    assert bound(world) == []


async def test_a_plugin_that_breaks_in_prebind_takes_all_back(readying: type[Readying]) -> None:
    world = job(World(readying))
    task = await begun(world)
    readying.may["job-1"].set_exception(RuntimeError("oh"))
    assert not await task
    assert bound(world) == []
    assert world.requested("a") == 0
    assert len(world.scheduler.pod_groups.forming) == 0
