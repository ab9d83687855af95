"""A group that waits for long gets nodes kept for it, in memory; whatever fits beside it goes on being placed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from placewright.queue.queued import SubQueue
from scheduler.makers import PodMaker, World, node, pod

from .makers import bound, group, members, tried

#: Shares that keep nothing from a group.
ALL_NODES = {"reservationPercent": 100, "reservationPercentOfNamespace": 100}


def runs(name: str, cpu: str = "3") -> PodMaker:
    """`runs-NAME`, a pod of a Job on a node of that name."""
    return pod(f"runs-{name}").requests(cpu=cpu).spec(restartPolicy="Never").on(name)


def waiting(**settings: int) -> World:
    """Two nodes with a pod of three CPUs each, and a group that needs two empty ones; it has been tried at the beginning."""
    args = {"name": "GangScheduling", "args": {"reservations": 1, **ALL_NODES, **settings}}
    world = World(pluginConfig=[args]).nodes(node("a"), node("b"))
    world.pods(*(runs(name) for name in "ab"))
    world.event_handlers.cluster_object(group("job", 2))
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
    unset.pods(*(runs(name) for name in "ab"))
    unset.event_handlers.cluster_object(group("job", 2))
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
    world.event_handlers.assigned_pod_gone("uid-runs-a")
    world.pods(pod("beside").requests(cpu="1"), pod("large").requests(cpu="4"))
    await tried(world)
    assert world.node_of("beside") is not None
    assert world.place("large") is SubQueue.UNSCHEDULABLE, "the only node that could hold it is kept"
    world.event_handlers.assigned_pod_gone("uid-runs-b")
    await later(world, 1)
    assert {world.node_of("job-0"), world.node_of("job-1")} == {"a", "b"}


async def test_more_important_pods_do_not_mind_what_is_kept() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.event_handlers.assigned_pod_gone("uid-runs-a")
    world.pods(pod("vip").requests(cpu="4").priority(10))
    await tried(world)
    assert world.node_of("vip") == "a"


async def test_what_was_kept_is_free_again_when_the_group_is_gone() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.event_handlers.assigned_pod_gone("uid-runs-a")
    world.pods(pod("large").requests(cpu="4"))
    await tried(world)
    assert world.place("large") is SubQueue.UNSCHEDULABLE
    for index in range(2):
        world.event_handlers.pod_gone(f"uid-job-{index}")
    await later(world, 1)
    assert world.node_of("large") == "a"
    assert len(world.scheduler.pod_groups.reservations) == 0


async def test_what_was_kept_is_free_again_when_nobody_declares_the_group() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.event_handlers.assigned_pod_gone("uid-runs-a")
    world.pods(pod("large").requests(cpu="4"))
    await tried(world)
    world.event_handlers.cluster_object_gone(group("job", 2))
    await later(world, 1)
    assert world.node_of("large") == "a"


async def test_what_was_kept_is_free_again_although_no_pod_is_decided_after_the_group_is_gone() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.event_handlers.assigned_pod_gone("uid-runs-a")
    world.pods(pod("large").requests(cpu="4"))
    await tried(world)
    beat = asyncio.Event()

    async def next_beat(_seconds: float) -> None:
        await beat.wait()
        beat.clear()

    world.scheduler._sleep = next_beat
    running = asyncio.create_task(world.scheduler.run())
    world.event_handlers.cluster_object_gone(group("job", 2))
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
    world.event_handlers.cluster_object(group("vip", 2))
    world.pods(*(maker.priority(10) for maker in members("vip", 2, "3")))
    for name in "ab":  # as important as that, so nobody has to leave
        world.pods(runs(name).priority(10))
    await tried(world)
    assert sorted(map(str, kept(world, "vip-0", "vip-1"))) == ["a", "b"]
    assert kept(world, "job-0", "job-1") == [None, None]


async def test_the_older_of_two_equal_groups_keeps_its_reservation() -> None:
    world = waiting(reservationAfterSeconds=0)
    await tried(world)
    world.now += 5
    world.event_handlers.cluster_object(group("late", 2))
    world.pods(*members("late", 2, "3"))
    await tried(world)
    assert kept(world, "late-0", "late-1") == [None, None]
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["a", "b"]


async def test_a_second_reservation_is_planned_beside_the_first() -> None:
    world = waiting(reservationAfterSeconds=0, reservations=2)
    world.nodes(node("c"), node("d"))
    world.pods(*(runs(name) for name in "cd"))
    await tried(world)
    world.now += 5
    world.event_handlers.cluster_object(group("late", 2))
    world.pods(*members("late", 2, "3"))
    await tried(world)
    assert sorted(map(str, kept(world, "job-0", "job-1", "late-0", "late-1"))) == ["a", "b", "c", "d"]


async def test_a_group_that_no_empty_cluster_could_hold_keeps_nothing_from_anybody() -> None:
    world = World(pluginConfig=[{"name": "GangScheduling", "args": {"reservationAfterSeconds": 0}}]).nodes(node("a"), node("b"))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3, "3"))
    await tried(world)
    assert kept(world, "job-0", "job-1", "job-2") == [None] * 3
    world.pods(pod("large").requests(cpu="4"))
    await tried(world)
    assert bound(world) == ["large"]


async def test_a_plan_that_stops_being_possible_gives_way_to_another() -> None:
    world = waiting(reservationAfterSeconds=0)
    world.nodes(node("c"))
    world.pods(runs("c", cpu="4"))
    await tried(world)
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["a", "b"], "least has to leave there"
    world.nodes(node("a").cordoned())
    await later(world, 1)
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["b", "c"]


def ten_nodes(**settings: int) -> World:
    """Ten nodes with a pod of a Job on each, and groups that need whole nodes: `one` and `two` of namespace `default`."""
    args = {"name": "GangScheduling", "args": {"reservationAfterSeconds": 0, **settings}}
    names = [f"n{number}" for number in range(10)]
    world = World(pluginConfig=[args]).nodes(*(node(name) for name in names)).pods(*(runs(name, cpu="1") for name in names))
    for name, size in (("one", 1), ("two", 2)):
        world.event_handlers.cluster_object(group(name, size))
        world.pods(*members(name, size, "4"))
    return world


async def test_no_more_nodes_are_kept_than_the_share_of_a_namespace() -> None:
    for percent, nominated in ((10, 0), (19, 0), (20, 2), (100, 2)):
        world = ten_nodes(reservations=1, reservationPercent=100, reservationPercentOfNamespace=percent)
        world.event_handlers.pod_gone("uid-one-0")
        await tried(world)
        assert len([name for name in kept(world, "two-0", "two-1") if name]) == nominated, percent


async def test_no_more_nodes_are_kept_than_the_share_of_all_groups() -> None:
    for percent, nominated in ((5, 1), (10, 1), (29, 1), (30, 3)):
        world = ten_nodes(reservations=2, reservationPercent=percent, reservationPercentOfNamespace=100)
        await tried(world)
        assert len(list(filter(None, kept(world, "one-0", "two-0", "two-1")))) == nominated, percent


async def test_members_share_the_nodes_that_may_be_kept() -> None:
    world = ten_nodes(reservations=1, reservationPercent=10, reservationPercentOfNamespace=10)
    world.event_handlers.pod_gone("uid-one-0")
    world.event_handlers.cluster_object(group("small", 2))
    world.pods(*members("small", 2, "2"))
    for number in range(10):
        world.pods(pod(f"more-{number}").requests(cpu="2").spec(activeDeadlineSeconds=60).on(f"n{number}"))
    await tried(world)
    assert len(set(kept(world, "small-0", "small-1"))) == 1
    assert None not in kept(world, "small-0", "small-1")


async def test_a_node_with_a_pod_that_has_no_end_is_not_kept() -> None:
    world = waiting(reservationAfterSeconds=0)
    world.nodes(node("c")).pods(pod("service").requests(cpu="3").on("c"), pod("agent").requests(cpu="1").owned_by("DaemonSet", "d").on("a"))
    await tried(world)
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["a", "b"]
    world.pods(pod("late").requests(cpu="1").on("b"))
    await later(world, 1)
    assert sorted(map(str, kept(world, "job-0", "job-1"))) == ["a", "b"], "a pod that came later ends no reservation"
    services = waiting(reservationAfterSeconds=0)
    services.pods(*(pod(f"service-{name}").requests(cpu="10m").on(name) for name in "ab"))
    await tried(services)
    assert kept(services, "job-0", "job-1") == [None, None]


async def test_nodes_are_kept_for_a_time_and_then_not_for_as_long() -> None:
    world = waiting(reservationAfterSeconds=0, reservationSeconds=100)
    await tried(world)
    assert None not in kept(world, "job-0", "job-1")
    await later(world, 80)
    assert None not in kept(world, "job-0", "job-1")
    world.now += 6
    world.scheduler.pod_groups.reservations.review()
    assert kept(world, "job-0", "job-1") == [None, None]
    await later(world, 70)
    assert kept(world, "job-0", "job-1") == [None, None]
    await later(world, 20)
    assert None not in kept(world, "job-0", "job-1")


async def test_a_group_that_is_made_anew_gains_nothing() -> None:
    world = waiting(reservationAfterSeconds=0, reservationSeconds=600)
    await tried(world)
    world.now += 300
    for index in range(2):
        world.event_handlers.pod_gone(f"uid-job-{index}")
    world.event_handlers.cluster_object_gone(group("job", 2))
    world.event_handlers.cluster_object(group("next", 2))
    world.pods(*members("next", 2, "3"))
    await tried(world)
    await later(world, 250)
    assert kept(world, "next-0", "next-1") == [None, None]
    await later(world, 50)
    assert None not in kept(world, "next-0", "next-1")


async def test_a_pod_that_is_held_off_is_told_for_which_group_and_until_when() -> None:
    world = waiting(reservationAfterSeconds=0, reservationSeconds=600)
    world.nodes(node("c").offers(cpu="1"))
    began = datetime.fromtimestamp(world.claims.now(), UTC)
    await tried(world)
    world.event_handlers.assigned_pod_gone("uid-runs-a")
    world.pods(pod("large").requests(cpu="4"), pod("larger").requests(cpu="5"))
    await tried(world)
    until = f"{began + timedelta(seconds=600):%Y-%m-%dT%H:%M:%SZ}"
    told = world.status.last_of("large")
    assert told is not None
    assert told.message.startswith(f"0/3 nodes are available: 1 node is kept for group default/job until {until}, 2 Insufficient cpu.")
    larger = world.status.last_of("larger")
    assert larger is not None
    assert "kept" not in larger.message, "it fits nowhere anyway"
    world.cluster.remove_pod("uid-runs-b")  # which nothing tells the group
    world.pods(pod("last").requests(cpu="4"))
    await tried(world)
    told = world.status.last_of("last")
    assert told is not None
    assert f"2 nodes are kept for group default/job until {until}" in told.message
