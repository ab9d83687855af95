"""A group that waits for long gets nodes kept for it, in memory; whatever fits beside it goes on being placed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from placewright.queue.queued import SubQueue
from scheduler.makers import World, node, pod

from .makers import bound, group, members, tried


def waiting(**settings: int) -> World:
    """Two nodes with a pod of three CPUs each, and a group that needs two empty ones; it has been tried at the beginning."""
    args = {"name": "GangScheduling", "args": {"reservations": 1, **settings}}
    world = World(pluginConfig=[args]).nodes(node("a"), node("b"))
    world.pods(*(pod(f"runs-{name}").requests(cpu="3").on(name) for name in "ab"))
    world.intake.cluster_object(group("job", 2))
    return world.pods(*members("job", 2, "3"))


async def later(world: World, seconds: float) -> None:
    """So much later, all that wait are tried again, whatever brought them back."""
    world.now += seconds
    world.queue.flush_unschedulable(0)
    world.now += 15
    world.queue.flush_backoff()
    await tried(world)


def kept(world: World, *names: str) -> list[str | None]:
    return [world.queue.nominator.node_of(f"uid-{name}") for name in names]


async def test_nodes_are_kept_after_a_while_and_not_before() -> None:
    world = waiting()
    await tried(world)
    await later(world, 10)
    assert kept(world, "job-0", "job-1") == [None, None]
    await later(world, 50)
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["a", "b"]
    assert not any(nominated for _, _, _, nominated in world.status.written), "nobody writes it to the API server"


async def test_no_node_is_kept_unless_the_profile_says_so() -> None:
    world = waiting(reservations=0, reservationAfterSeconds=0)
    unset = World().nodes(node("a"), node("b"))
    unset.pods(*(pod(f"runs-{name}").requests(cpu="3").on(name) for name in "ab"))
    unset.intake.cluster_object(group("job", 2))
    unset.pods(*members("job", 2, "3"))
    for each in (world, unset):
        await tried(each)
        await later(each, 3600)
        assert kept(each, "job-0", "job-1") == [None, None]


async def test_what_fits_beside_the_group_is_placed_and_what_does_not_waits() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["a", "b"]
    world.nodes(node("c").offers(cpu="2"))
    world.intake.assigned_pod_gone("uid-runs-a")
    world.pods(pod("beside").requests(cpu="1"), pod("large").requests(cpu="4"))
    await tried(world)
    assert world.node_of("beside") is not None
    assert world.place("large") is SubQueue.UNSCHEDULABLE, "the only node that could hold it is kept"
    world.intake.assigned_pod_gone("uid-runs-b")
    await later(world, 1)
    assert {world.node_of("job-0"), world.node_of("job-1")} == {"a", "b"}


async def test_more_important_pods_do_not_mind_what_is_kept() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.intake.assigned_pod_gone("uid-runs-a")
    world.pods(pod("vip").requests(cpu="4").priority(10))
    await tried(world)
    assert world.node_of("vip") == "a"


async def test_what_was_kept_is_free_again_when_the_group_is_gone() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.intake.assigned_pod_gone("uid-runs-a")
    world.pods(pod("large").requests(cpu="4"))
    await tried(world)
    assert world.place("large") is SubQueue.UNSCHEDULABLE
    for index in range(2):
        world.intake.pod_gone(f"uid-job-{index}")
    await later(world, 1)
    assert world.node_of("large") == "a"
    assert len(world.scheduler.pod_groups.reservations) == 0


async def test_what_was_kept_is_free_again_when_nobody_declares_the_group() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.intake.assigned_pod_gone("uid-runs-a")
    world.pods(pod("large").requests(cpu="4"))
    await tried(world)
    world.intake.cluster_object_gone(group("job", 2))
    await later(world, 1)
    assert world.node_of("large") == "a"


async def test_what_was_kept_is_free_again_although_no_pod_is_decided_after_the_group_is_gone() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.intake.assigned_pod_gone("uid-runs-a")
    world.pods(pod("large").requests(cpu="4"))
    await tried(world)
    beat = asyncio.Event()

    async def next_beat(_seconds: float) -> None:
        await beat.wait()
        beat.clear()

    world.scheduler._sleep = next_beat
    running = asyncio.create_task(world.scheduler.run())
    world.intake.cluster_object_gone(group("job", 2))
    beat.set()
    for _ in range(50):
        await asyncio.sleep(0)
    assert kept(world, "job-0", "job-1") == [None, None]
    assert world.place("large") is not SubQueue.UNSCHEDULABLE, "the pod was told"
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_the_more_important_group_gets_the_one_reservation() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.intake.cluster_object(group("vip", 2))
    world.pods(*(maker.priority(10) for maker in members("vip", 2, "3")))
    for name in "ab":  # as important as that, so nobody has to leave
        world.pods(pod(f"runs-{name}").requests(cpu="3").priority(10).on(name))
    await tried(world)
    assert sorted(map(str, kept(world, "vip-0", "vip-1"))) == ["a", "b"]
    assert kept(world, "job-0", "job-1") == [None, None]


async def test_the_older_of_two_equal_groups_keeps_its_reservation() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.now += 5
    world.intake.cluster_object(group("late", 2))
    world.pods(*members("late", 2, "3"))
    await tried(world)
    assert kept(world, "late-0", "late-1") == [None, None]
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["a", "b"]


async def test_a_second_reservation_is_planned_beside_the_first() -> None:
    world = waiting(reservationAfterSeconds=0, reservations=2)
    world.nodes(node("c"), node("d"))
    world.pods(*(pod(f"runs-{name}").requests(cpu="3").on(name) for name in "cd"))
    await tried(world)
    world.now += 5
    world.intake.cluster_object(group("late", 2))
    world.pods(*members("late", 2, "3"))
    await tried(world)
    assert sorted(map(str, kept(world, "job-0", "job-1", "late-0", "late-1"))) == ["a", "b", "c", "d"]


async def test_a_group_that_no_empty_cluster_could_hold_keeps_nothing_from_anybody() -> None:
    world = World(pluginConfig=[{"name": "GangScheduling", "args": {"reservationAfterSeconds": 0}}]).nodes(node("a"), node("b"))
    world.intake.cluster_object(group("job", 3))
    world.pods(*members("job", 3, "3"))
    await tried(world)
    assert kept(world, "job-0", "job-1", "job-2") == [None] * 3
    world.pods(pod("large").requests(cpu="4"))
    await tried(world)
    assert bound(world) == ["large"]


async def test_a_plan_that_stops_being_possible_gives_way_to_another() -> None:
    world = waiting(reservationAfterSeconds=0)
    world.nodes(node("c"))
    world.pods(pod("runs-c").requests(cpu="4").on("c"))
    await tried(world)
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["a", "b"], "least has to leave there"
    world.nodes(node("a").cordoned())
    await later(world, 1)
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["b", "c"]
