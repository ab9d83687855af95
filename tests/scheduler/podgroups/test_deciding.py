"""A group is decided in one go: all of its members get nodes, or none of them."""

from __future__ import annotations

from placewright.queue.queued import SubQueue
from scheduler.makers import World, node, pod

from .makers import bound, group, member, members, tried


async def test_a_group_that_fits_is_bound_as_a_whole() -> None:
    world = World().nodes(node("a").offers(cpu="2"), node("b").offers(cpu="2"))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3))
    assert await world.attempt(), "one decision binds all"
    assert sorted(bound(world)) == ["job-0", "job-1", "job-2"]
    assert world.queue.pop() is None
    assert len(world.queue) == 0


async def test_a_group_that_does_not_fit_takes_nothing() -> None:
    world = World().nodes(node("a").offers(cpu="2"))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3))
    assert await world.attempt() is None
    assert bound(world) == []
    assert world.requested("a") == 0
    assert [world.place(f"job-{n}") for n in range(3)] == [SubQueue.UNSCHEDULABLE] * 3
    assert all("needs 1 more member placed: 1 lacks cpu" in note for _, _, _, _, note in world.events.recorded)


async def test_members_wait_at_the_gate_until_enough_are_there() -> None:
    world = World().nodes(node("a").offers(cpu="4"))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 2))
    assert world.queue.pop() is None
    assert world.place("job-0") is SubQueue.GATED
    world.pods(member("job", 2))
    assert await world.attempt()
    assert sorted(bound(world)) == ["job-0", "job-1", "job-2"]


async def test_members_wait_until_somebody_declares_their_group() -> None:
    world = World().nodes(node("a").offers(cpu="4"))
    world.pods(*members("job", 3))
    assert world.queue.pop() is None
    world.event_handlers.cluster_object(group("job", 3))
    assert await world.attempt()
    assert len(bound(world)) == 3


async def test_a_group_that_found_no_room_is_tried_once_when_there_is_more() -> None:
    world = World().nodes(node("a").offers(cpu="2"))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3), pod("other"))
    await tried(world)
    assert bound(world) == ["other"]
    world.nodes(node("b").offers(cpu="2"))
    world.now += 2
    world.queue.flush_backoff()
    assert world.queue.sizes().active == 1, "one member brings the others"
    assert await world.attempt()
    assert sorted(bound(world)) == ["job-0", "job-1", "job-2", "other"]


async def test_members_beyond_the_minimum_are_placed_where_they_fit_and_join_later_where_not() -> None:
    world = World().nodes(node("a").offers(cpu="3"))
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*members("job", 4))
    assert await world.attempt()
    assert len(bound(world)) == 3
    world.nodes(node("b"))
    world.now += 2
    world.queue.flush_backoff()
    assert await world.attempt()
    assert len(bound(world)) == 4
