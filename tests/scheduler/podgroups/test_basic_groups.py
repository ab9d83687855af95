"""Groups of the policy `basic`: members are decided one by one, and the group's status tells it as kube-scheduler does."""

from __future__ import annotations

from scheduler.makers import World, node

from .makers import bound, native, native_member, tried


async def test_the_group_is_scheduled_once_with_its_first_member_and_never_waits_again() -> None:
    world = World().nodes(node("a").offers(cpu="2"))
    world.event_handlers.cluster_object(native("free", None))
    world.pods(*(native_member("free", f"m{number}") for number in range(3)))
    await tried(world)
    assert bound(world) == ["m0", "m1"]
    assert world.groups.placed == [("free", 1)]
    assert world.groups.waits == []


async def test_the_group_waits_while_no_member_has_a_node() -> None:
    world = World().nodes(node("a").offers(cpu="2"))
    world.event_handlers.cluster_object(native("free", None))
    world.pods(native_member("free", "large", cpu="4"))
    await tried(world)
    assert world.groups.placed == []
    [waits] = world.groups.waits
    assert (waits.group, waits.placed, waits.missing, waits.error) == ("free", 0, 1, False)
    told = world.status.last_of("large")
    assert told is not None
    assert waits.message == told.message
    world.pods(native_member("free", "small"))
    await tried(world)
    assert world.groups.placed == [("free", 1)]


async def test_nothing_is_told_of_a_gang_that_another_member_joins() -> None:
    world = World().nodes(node("a").offers(cpu="4"))
    world.event_handlers.cluster_object(native("gang", 1))
    world.pods(native_member("gang", "first"))
    await tried(world)
    told = list(world.groups.placed)
    world.pods(native_member("gang", "second"))
    await tried(world)
    assert bound(world) == ["first", "second"]
    assert world.groups.placed == told
