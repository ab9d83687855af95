from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import CycleState, PermitResult, PreBindPlugin
from placewright.framework.status import SUCCESS, Code, Status
from placewright.queue.queued import SubQueue
from placewright.scheduler import scheduler as module

from .makers import REFUSED, World, node, pod
from .scripted import Script, late_plugin


class Switch:
    """A lead that a test gives and takes."""

    def __init__(self) -> None:
        self.active = False
        self._turned = asyncio.Event()

    def give(self) -> None:
        self.active = True
        self._turned.set()

    async def wait_active(self) -> None:
        while not self.active:
            self._turned.clear()
            await self._turned.wait()


@asynccontextmanager
async def running(world: World) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(world.scheduler.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await world.scheduler.drain(0)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until the condition holds; fails after five seconds."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - the condition is anything
            await asyncio.sleep(0)


async def turns(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_pods_are_placed_as_they_come() -> None:
    world = World().nodes(node("a"))
    async with running(world):
        world.pods(pod("one"), pod("two"))
        await until(lambda: len(world.ports.bound) == 2)
        world.pods(pod("three"))
        await until(lambda: world.scheduler.counts.bound == 3)
    assert world.scheduler.counts.scheduled == 3


async def test_nothing_is_decided_without_the_lead() -> None:
    lead = Switch()
    world = World(lead=lead).nodes(node("a")).pods(pod("web"))
    async with running(world):
        await turns()
        assert world.place("web") is SubQueue.ACTIVE
        lead.give()
        await until(lambda: world.scheduler.counts.bound == 1)


async def test_a_lost_lead_stops_decisions_between_two_pods() -> None:
    lead = Switch()
    lead.give()

    def permit(_pod: object) -> PermitResult:
        lead.active = False
        return PermitResult(SUCCESS)

    world = World(late_plugin("P", Script(permit=permit)), lead=lead).nodes(node("a")).pods(pod("one"), pod("two"))
    async with running(world):
        await until(lambda: world.scheduler.counts.bound == 1)
        await turns()
        assert world.place("two") is SubQueue.ACTIVE


async def test_a_replica_that_lost_the_lead_takes_back_what_it_was_binding_without_a_word() -> None:
    """The next one may be binding that very pod: a condition from us would be about nothing."""
    lead = Switch()
    lead.give()
    world = World(lead=lead).nodes(node("a")).pods(pod("web").requests(cpu="1"))
    world.ports.answers["uid-web"] = answer = asyncio.get_running_loop().create_future()
    async with running(world):
        await until(lambda: len(world.ports.bound) == 1)
        lead.active = False
        answer.set_exception(REFUSED)
        await until(lambda: world.place("web") is SubQueue.BACKOFF)
    assert world.requested_cpu("a") == 0
    assert world.ports.events == []
    assert world.ports.statuses == []


async def test_no_more_bindings_are_begun_than_the_api_server_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BINDING", 3)
    world = World().nodes(node("a")).pods(*(pod(f"web-{number}") for number in range(5)))
    answers = {f"uid-web-{number}": asyncio.get_running_loop().create_future() for number in range(5)}
    world.ports.answers.update(answers)
    async with running(world):
        await turns()
        assert len(world.ports.bound) == 3
        assert world.queue.sizes().active == 2, "the others can still be updated, deleted or overtaken"
        answers[world.ports.bound[0][1]].set_result(None)
        await until(lambda: len(world.ports.bound) == 4)
        for answer in answers.values():
            if not answer.done():
                answer.set_result(None)
        await until(lambda: world.scheduler.counts.bound == 5)


async def test_pods_that_wait_for_permission_do_not_keep_others_from_being_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gang larger than the number of bindings under way must still come together."""
    monkeypatch.setattr(module, "MAX_BINDING", 2)
    script = Script(permit=lambda _pod: PermitResult(Status(Code.WAIT), 900))
    world = World(late_plugin("Gang", script)).nodes(node("a")).pods(*(pod(f"web-{number}") for number in range(6)))
    async with running(world):
        await until(lambda: len(world.scheduler.waiting) == 6)
        for waiting in world.scheduler.waiting:
            waiting.allow("Gang")
        await until(lambda: world.scheduler.counts.bound == 6)
    assert {name for name, _, _, _ in world.ports.bound} == {f"web-{number}" for number in range(6)}


async def test_pods_that_wait_for_their_volumes_do_not_keep_others_from_being_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BINDING", 2)
    made = asyncio.Event()

    class Provisioner(PreBindPlugin):
        name = "Provisioner"

        async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
            if pod.name != "plain":
                await made.wait()
            return SUCCESS

    claiming = [pod(f"web-{number}").priority(1) for number in range(4)]
    world = World(Provisioner).nodes(node("a")).pods(*claiming, pod("plain"))
    async with running(world):
        await until(lambda: world.scheduler.counts.bound == 1)
        assert [name for name, *_ in world.ports.bound] == ["plain"]
        made.set()
        await until(lambda: world.scheduler.counts.bound == 5)


async def test_others_get_their_turn_between_slices() -> None:
    """Every decision takes as long as a slice."""
    world = World(late_plugin("Slow", Script(reserve=lambda _pod: _takes_a_slice(world)))).nodes(node("a"))
    world.pods(*(pod(f"web-{number}") for number in range(20)))
    seen: list[int] = []
    async with running(world):
        async with asyncio.timeout(5):
            while not seen or seen[-1]:
                await asyncio.sleep(0)
                seen.append(world.queue.sizes().active)
    assert sorted(set(seen), reverse=True) == list(range(seen[0], -1, -1)), "one at a time, others in between"


def _takes_a_slice(world: World) -> Status:
    world.now += module.SLICE_SECONDS
    return SUCCESS


async def test_draining_waits_for_bindings_under_way() -> None:
    world = World().nodes(node("a")).pods(pod("web"))
    world.ports.answers["uid-web"] = answer = asyncio.get_running_loop().create_future()
    async with running(world) as loop:
        await until(lambda: len(world.ports.bound) == 1)
        loop.cancel()
        draining = asyncio.ensure_future(world.scheduler.drain())
        await turns()
        assert not draining.done()
        answer.set_result(None)
        await draining
    assert world.scheduler.counts.bound == 1


async def test_draining_gives_up_what_takes_too_long() -> None:
    world = World().nodes(node("a")).pods(pod("web"))
    world.ports.answers["uid-web"] = asyncio.get_running_loop().create_future()
    async with running(world) as loop:
        await until(lambda: len(world.ports.bound) == 1)
        loop.cancel()
        async with asyncio.timeout(5):
            await world.scheduler.drain(0.01)
    assert world.scheduler.counts.bound == 0


async def test_draining_does_not_wait_for_permissions_that_nobody_can_give_any_more() -> None:
    script = Script(permit=lambda _pod: PermitResult(Status(Code.WAIT), 900))
    world = World(late_plugin("Gang", script)).nodes(node("a")).pods(pod("web"))
    async with running(world) as loop:
        await until(lambda: len(world.scheduler.waiting) == 1)
        loop.cancel()
        async with asyncio.timeout(5):
            await world.scheduler.drain()
    assert world.ports.bound == []
    assert world.ports.events == []
