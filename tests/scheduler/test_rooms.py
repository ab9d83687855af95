"""Who is slow holds up nobody but those who wait for it: extenders, Bindings, preparations, each in its own profile and namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from placewright.api.extenders import ManagedResource
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import CycleState, Plugin, PreBindPlugin
from placewright.framework.status import SUCCESS, Status
from placewright.queue.inflight import ON_THEIR_WAY, RoomSizes
from placewright.queue.queued import SubQueue
from placewright.testing import FakeExtender

from .makers import UNKNOWN, PodMaker, World, node, pod
from .test_loop import running, turns, until

#: What a namespace that is alone may have, as docs/overload.md says: pods ahead of their Bindings, and at an extender.
AHEAD, ASKED_AT_ONCE = 224, 112
#: More of the event loop's turns than a pod needs from its creation to its Binding, whatever else hangs.
FEW = 10


def big_world(*plugins: type[Plugin]) -> World:
    """Nodes for thousands of pods."""
    return World(*plugins).nodes(*(node(f"n{number}").offers(pods="1000", cpu="1000") for number in range(20)))


def binding_extender(**settings: Any) -> FakeExtender:
    """One that binds, does nothing else, and does not answer before it is told to."""
    made = FakeExtender(bind_verb="bind", filter_verb="", prioritize_verb="", preempt_verb="", **settings)
    made.pause()
    return made


def crowd(count: int, namespace: str = "default", name: str = "crowd") -> list[PodMaker]:
    return [pod(f"{name}-{number}").namespace(namespace) for number in range(count)]


async def placed_soon(world: World, *makers: PodMaker) -> None:
    """These pods are bound within a few turns."""
    names = [maker.build().name for maker in makers]
    world.pods(*makers)
    await turns(FEW * len(names))
    assert {name for name, *_ in world.binder.bound} >= set(names)


def room(world: World, profile: str = "default-scheduler") -> tuple[int, int]:
    """How many pods of a profile are on their way, and how many stand aside."""
    return next((queue.room.on_their_way, queue.room.aside) for queue in world.queue.profile_queues() if queue.name == profile)


@pytest.mark.parametrize("count", [512, 600])
async def test_an_extender_that_hangs_holds_up_only_the_pods_of_its_profile(count: int) -> None:
    world, hangs = big_world(), binding_extender()
    world.use_profile(name="slow", schedulerName="slow", asking=(hangs,))
    async with running(world):
        world.pods(*(maker.scheduler("slow") for maker in crowd(count)))
        await until(lambda: len(hangs.asked) == ASKED_AT_ONCE)
        await placed_soon(world, pod("other"))
        assert len(hangs.asked) == ASKED_AT_ONCE, "and the others of its own wait in the queue"
        hangs.resume()
        await until(lambda: world.scheduler.counts.bound == count + 1)
    assert room(world, "slow") == (0, 0)


async def test_an_extender_that_hangs_for_one_namespace_is_still_asked_about_others() -> None:
    world, hangs = big_world(), binding_extender()
    world.use_profile(asking=(hangs,))
    async with running(world):
        world.pods(*crowd(600))
        await until(lambda: len(hangs.asked) == ASKED_AT_ONCE)
        world.pods(pod("other").namespace("other"))
        await until(lambda: "other" in {name for _, name, _ in hangs.asked})


async def test_pods_that_the_extender_does_not_bind_go_past_those_that_wait_for_it() -> None:
    world, hangs = big_world(), binding_extender(managed_resources=(ManagedResource(name="example.com/licence"),))
    world.nodes(*(node(f"n{number}").offers(pods="1000", **{"example.com/licence": "1000"}) for number in range(20)))
    world.use_profile(asking=(hangs,))
    async with running(world):
        world.pods(*(maker.requests(**{"example.com/licence": "1"}) for maker in crowd(600)))
        await until(lambda: len(hangs.asked) == ASKED_AT_ONCE)
        await placed_soon(world, pod("plain"))


async def test_a_namespace_whose_bindings_hang_leaves_room_to_others_of_its_profile() -> None:
    world = big_world()
    for number in range(2000):
        world.binder.answers[f"crowd-{number}"] = asyncio.get_running_loop().create_future()
    async with running(world):
        world.pods(*crowd(2000, "stuck"))
        await until(lambda: len(world.binder.bound) == AHEAD)
        await placed_soon(world, *crowd(20, "healthy", "web"))
        assert room(world) == (AHEAD, 0)


async def test_many_stuck_namespaces_leave_room_to_one_more() -> None:
    world = big_world()
    for name in range(30):
        for number in range(50):
            world.binder.answers[f"s{name}-{number}"] = asyncio.get_running_loop().create_future()
    async with running(world):
        for name in range(30):
            world.pods(*crowd(50, f"stuck-{name}", f"s{name}"))
        await turns()
        await placed_soon(world, *crowd(20, "healthy", "web"))


class NeverReady(PreBindPlugin):
    """A driver, or a provisioner, that does not get ready for pods called `crowd-…`."""

    name = "NeverReady"

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        if pod.name.startswith("crowd"):
            await asyncio.Event().wait()
        return SUCCESS


async def test_pods_that_are_never_ready_stand_aside_and_keep_nobody_waiting() -> None:
    world = World(NeverReady, sizes=RoomSizes(in_all=800)).nodes(node("a").offers(pods="1000", cpu="1000"))
    async with running(world):
        world.pods(*crowd(500, "stuck"))
        await until(lambda: room(world) == (0, 350))
        await placed_soon(world, *crowd(20, "healthy", "web"))
        assert world.queue.sizes().active == 150, "and more of that namespace are not decided"
        for uid in list(world.binding.preparing)[:50]:
            world.binding.end_preparation(uid)
        await until(lambda: world.queue.sizes().active == 100)


async def test_a_binding_whose_outcome_is_unknown_stands_aside() -> None:
    world = big_world()
    world.binder.answers |= {f"crowd-{number}": UNKNOWN for number in range(ON_THEIR_WAY)}
    async with running(world):
        world.pods(*crowd(ON_THEIR_WAY))
        await until(lambda: len(world.binding.unresolved) == ON_THEIR_WAY)
        assert room(world) == (0, ON_THEIR_WAY)
        await placed_soon(world, pod("web"))


async def test_evictions_that_hang_keep_no_pod_from_being_decided() -> None:
    """They belong to the victims' namespaces, and have places of their own."""
    world = big_world()
    async with running(world):
        for _ in range(ON_THEIR_WAY):
            world.scheduler.spawn(asyncio.Event().wait())  # type: ignore[arg-type]
        await placed_soon(world, pod("web"))


# --- ended twice at once --------------------------------------------------------------------------------------------------------------


Ending = Callable[[World, str], Any]
_ENDINGS: Sequence[Ending] = (
    lambda world, uid: world.binding.preempt(uid, "DefaultPreemption"),
    lambda world, uid: world.scheduler.end_term(),
    lambda world, uid: world.binding.call_off(uid, "its group is taken back"),
)


@pytest.mark.parametrize("first", _ENDINGS)
@pytest.mark.parametrize("second", _ENDINGS)
async def test_a_preparation_may_be_ended_twice_before_it_hears_of_it(first: Ending, second: Ending) -> None:
    """By preemption, by the end of the term, by its group: in one turn, and when the first has been heard of only half."""
    for between in range(3):
        world = big_world(NeverReady).pods(*crowd(1))
        under_way = asyncio.ensure_future(await_nothing_else(world.decide()))
        await turns(3)
        assert list(world.binding.preparing) == ["uid-crowd-0"]
        first(world, "uid-crowd-0")
        for _ in range(between):
            await asyncio.sleep(0)
        second(world, "uid-crowd-0")
        second(world, "uid-crowd-0")
        await asyncio.wait_for(under_way, 5)
        assert world.place("crowd-0") is SubQueue.BACKOFF


async def test_an_attempt_that_waits_for_an_extender_may_be_ended_twice_before_it_hears_of_it() -> None:
    world, hangs = big_world(), FakeExtender()
    hangs.pause()
    world.use_profile(asking=(hangs,))
    for between in range(3):
        world.pods(pod(f"web-{between}"))
        under_way = asyncio.ensure_future(await_nothing_else(world.decide()))
        await turns(3)
        world.scheduler.end_term()
        for _ in range(between):
            await asyncio.sleep(0)
        world.scheduler.end_term()
        await asyncio.wait_for(under_way, 5)
        assert world.place(f"web-{between}") is SubQueue.BACKOFF


async def await_nothing_else(work: Awaitable[bool] | None) -> bool:
    assert work is not None
    return await work
