"""`minCount` changes: an attempt goes by the value that it began with, and the next one by the new value; standing members stay."""

from __future__ import annotations

import pytest

from scheduler.makers import World, node, pod

from .makers import bound, group, native, native_member, tried
from .test_large_groups import COUNT, Busy


def changed(world: World, needed: int) -> None:
    world.event_handlers.cluster_object(native("job", needed))


async def again(world: World) -> None:
    """Everything that may be tried by itself is tried."""
    world.now += 11
    world.queue.flush_backoff()
    await tried(world)


def names(count: int) -> list[str]:
    return [f"m{number}" for number in range(count)]


def small(needed: int, members: int, cpu: int) -> World:
    world = World().nodes(node("a").offers(cpu=str(cpu)))
    changed(world, needed)
    return world.pods(*(native_member("job", name) for name in names(members)))


async def test_members_that_are_too_few_are_tried_as_soon_as_the_minimum_falls() -> None:
    world = small(4, members=3, cpu=8)
    await again(world)
    assert bound(world) == []
    changed(world, 3)
    await tried(world)
    assert sorted(bound(world)) == names(3)


async def test_members_that_fit_in_part_are_tried_when_the_minimum_falls() -> None:
    world = small(4, members=4, cpu=3)
    await tried(world)
    assert bound(world) == []
    changed(world, 3)
    await again(world)
    assert len(bound(world)) == 3


async def test_members_that_wait_for_a_node_are_enough_no_longer_when_the_minimum_rises() -> None:
    world = small(3, members=3, cpu=2)
    await tried(world)
    changed(world, 4)
    world.nodes(node("b").offers(cpu="8"))
    await again(world)
    assert bound(world) == []
    world.pods(native_member("job", "m3"))
    await again(world)
    assert sorted(bound(world)) == names(4)


async def test_members_that_are_active_are_enough_no_longer_when_the_minimum_rises() -> None:
    world = small(3, members=3, cpu=8)
    changed(world, 4)
    await tried(world)
    assert bound(world) == []
    assert world.groups.waits[-1].missing == 4


@pytest.mark.parametrize(
    ("before", "after", "first", "later"), [(COUNT, COUNT - 8, 0, COUNT - 8), (COUNT - 8, COUNT, COUNT - 8, COUNT - 8)]
)
async def test_a_change_during_an_attempt_counts_for_the_next_one(before: int, after: int, first: int, later: int) -> None:
    """There is room for eight members less. The group is tried again although nothing else has changed."""
    busy = Busy(minimum=before, cpu=COUNT - 8)
    busy.meanwhile[4] = lambda: busy.world.event_handlers.cluster_object(group("job", after))
    await busy.run()
    assert len(bound(busy.world)) == first
    await again(busy.world)
    assert len(bound(busy.world)) == COUNT - 8


@pytest.mark.parametrize("needed", [1, 3, 9])
async def test_standing_members_stay_and_later_ones_join_whatever_the_minimum_becomes(needed: int) -> None:
    world = small(2, members=2, cpu=8)
    await tried(world)
    changed(world, needed)
    world.pods(native_member("job", "m2"))
    await tried(world)
    assert sorted(bound(world)) == names(3)
    assert world.evictor.evicted == []


@pytest.mark.parametrize(("needed", "victims"), [(2, 1), (3, 1), (4, 4), (5, 4)])
async def test_a_standing_group_can_spare_as_many_members_as_it_has_beyond_the_new_minimum(needed: int, victims: int) -> None:
    world = small(1, members=4, cpu=4)
    await tried(world)
    assert len(bound(world)) == 4
    changed(world, needed)
    world.pods(pod("vip").requests(cpu="1").priority(100))
    await tried(world)
    await world.scheduler.drain()
    assert len(world.evictor.evicted) == victims
