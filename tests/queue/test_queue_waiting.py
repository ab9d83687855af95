"""Waiting for a pod: asleep while there is none, awake as soon as there is one."""

from __future__ import annotations

import asyncio

import pytest
from queue_makers import FakePolicy, World, pod

from placewright.framework.events import NODE_ADD

DEADLINE = 5.0


async def asleep(world: World) -> asyncio.Task[None]:
    """A task that waits for a pod, and had every opportunity not to."""
    task = asyncio.create_task(world.queue.wait_for_pod())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_it_returns_at_once_when_a_pod_is_active() -> None:
    world = World()
    world.add(pod("web"))
    await asyncio.wait_for(world.queue.wait_for_pod(), DEADLINE)
    assert world.pop().pod.name == "web"


async def test_a_new_pod_wakes_it() -> None:
    world = World()
    task = await asleep(world)
    world.add(pod("web"))
    await asyncio.wait_for(task, DEADLINE)
    assert world.pop().pod.name == "web"


async def test_a_pod_that_enters_backoff_wakes_it() -> None:
    world = World(FakePolicy(interests={"Fit": None}))
    world.rejected(pod("web"), "Fit")
    task = await asleep(world)
    world.queue.move(NODE_ADD)
    await asyncio.wait_for(task, DEADLINE)
    assert world.pop().pod.name == "web"


async def test_a_pod_that_failed_by_error_wakes_it_only_when_its_backoff_is_over() -> None:
    world = World()
    world.rejected(pod("web"))
    task = await asleep(world)
    world.now += 5
    world.queue.flush_backoff()
    await asyncio.wait_for(task, DEADLINE)
    assert world.pop().pod.name == "web"


async def test_a_gated_pod_does_not_wake_it() -> None:
    world = World()
    task = await asleep(world)
    world.add(pod("web").gates("quota"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_paused_profiles_pod_wakes_it_when_the_profile_resumes() -> None:
    world = World(FakePolicy(paused=True))
    world.add(pod("web"))
    task = await asleep(world)
    world.policy.paused = False
    world.queue.reprioritise("default-scheduler")
    await asyncio.wait_for(task, DEADLINE)
    assert world.pop().pod.name == "web"


async def test_two_waiters_and_two_pods_leave_nobody_behind() -> None:
    world = World()
    popped: list[str] = []

    async def worker() -> None:
        while (queued := world.queue.pop()) is None:
            await world.queue.wait_for_pod()
        popped.append(queued.pod.name)

    workers = [asyncio.create_task(worker()) for _ in range(2)]
    await asyncio.sleep(0)
    world.add(pod("a"))
    await asyncio.sleep(0)
    world.add(pod("b"))
    await asyncio.wait_for(asyncio.gather(*workers), DEADLINE)
    assert sorted(popped) == ["a", "b"]
