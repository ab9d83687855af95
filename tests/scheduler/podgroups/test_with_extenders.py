"""Groups of a profile with extenders: members are asked about one after the other, and taken back together."""

from __future__ import annotations

import asyncio

from placewright.queue.queued import SubQueue
from placewright.testing import FakeExtender
from scheduler.makers import World, node, pod

from .makers import bound, group, members


def asking() -> FakeExtender:
    return FakeExtender("http://nowhere.invalid", preempt_verb="")


async def test_all_members_are_asked_about_and_bound_together() -> None:
    extender = asking()
    world = World().nodes(node("a"), node("b"))
    world.use_profile(asking=[extender])
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3))
    assert await world.attempt()
    assert sorted(bound(world)) == ["job-0", "job-1", "job-2"]
    assert {name for verb, name, _ in extender.asked if verb == "filter"} == {"job-0", "job-1", "job-2"}


async def test_a_refusal_of_one_takes_all_back() -> None:
    extender = asking()
    extender.failed["a"] = "not here"
    world = World().nodes(node("a"), node("b").offers(cpu="2"))
    world.use_profile(asking=[extender])
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3))
    assert await world.attempt() is False
    assert bound(world) == []
    assert world.requested("b") == 0
    assert {world.place(f"job-{n}") for n in range(3)} <= {SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF}


async def test_a_member_that_is_deleted_while_it_is_asked_about_is_left_out() -> None:
    extender = asking()
    world = World().nodes(node("a"), node("b"))
    world.use_profile(asking=[extender])
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*members("job", 3))

    def deleted(verb: str) -> None:
        if extender.asked[-1][:2] == ("filter", "job-2"):
            world.event_handlers.pod_gone("uid-job-2")

    extender.meanwhile = deleted
    assert await world.attempt()
    assert sorted(bound(world)) == ["job-0", "job-1"]
    assert len(world.queue.in_flight) == 0


async def test_no_other_pod_of_the_profile_is_decided_meanwhile() -> None:
    extender = asking()
    world = World().nodes(node("a"))
    world.use_profile(asking=[extender])
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*members("job", 2))
    extender.pause()
    deciding = asyncio.ensure_future(world.attempt())
    await asyncio.sleep(0)
    world.pods(pod("single"))
    assert world.queue.pop() is None
    extender.resume()
    assert await deciding
    assert world.pop().pod.name == "single"
