"""Preemption for a group: enough members get a node, or nobody has to leave."""

from __future__ import annotations

import random

from placewright.queue.queued import SubQueue
from scheduler.makers import World, node, pod
from seeds import seeds

from .makers import bound, group, member, members, tried


def important(count: int, cpu: str = "1", of: str = "job") -> list:  # type: ignore[type-arg]
    return [maker.priority(100) for maker in members(of, count, cpu)]


async def gone(world: World) -> None:
    """Victims leave, and whoever waits for that is tried."""
    for victim, _, _ in world.evictor.evicted:
        world.event_handlers.assigned_pod_gone(f"uid-{victim}")
    world.now += 3
    world.queue.flush_backoff()
    await tried(world)


async def test_a_group_makes_as_many_leave_as_it_needs_and_is_placed() -> None:
    world = World().nodes(node("a").offers(cpu="2"), node("b").offers(cpu="2"))
    world.pods(*(pod(f"low-{n}").requests(cpu="1").on("ab"[n % 2]) for n in range(4)))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*important(3))
    assert world.decide() is None
    await world.scheduler.drain()
    assert len(world.evictor.evicted) == 3
    await gone(world)
    assert sorted(bound(world)) == ["job-0", "job-1", "job-2"]


async def test_nobody_leaves_for_a_group_that_would_not_fit_all_the_same() -> None:
    world = World().nodes(node("a").offers(cpu="2"), node("b").offers(cpu="2"))
    world.pods(*(pod(f"low-{n}").requests(cpu="1").on("a") for n in range(2)))
    world.pods(*(pod(f"high-{n}").requests(cpu="1").priority(1000).on("b") for n in range(2)))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*important(3))
    assert world.decide() is None
    await world.scheduler.drain()
    assert world.evictor.evicted == []
    assert bound(world) == []
    assert all(nominated in (None, "") for _, _, _, nominated in world.status.written)


async def test_members_that_fit_as_it_is_keep_their_room_while_others_wait_for_theirs() -> None:
    world = World().nodes(node("a").offers(cpu="1"), node("b").offers(cpu="1"))
    world.pods(pod("low").requests(cpu="1").on("a"))
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*important(2))
    assert world.decide() is None
    await world.scheduler.drain()
    assert [victim for victim, _, _ in world.evictor.evicted] == ["low"]
    assert {world.queue.nominator.node_of(f"uid-job-{n}") for n in range(2)} == {"a", "b"}
    world.pods(pod("sneaky").requests(cpu="1"))
    await tried(world)
    assert world.place("sneaky") is SubQueue.UNSCHEDULABLE, "the free node is spoken for"
    await gone(world)
    assert sorted(bound(world)) == ["job-0", "job-1"]


async def test_a_group_does_not_make_others_leave_while_its_victims_are_still_leaving() -> None:
    world = World().nodes(node("a").offers(cpu="2"), node("b").offers(cpu="2"))
    world.pods(*(pod(f"low-{n}").requests(cpu="1").on("ab"[n % 2]) for n in range(4)))
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*important(2, "2"))
    assert world.decide() is None
    await world.scheduler.drain()
    assert len(world.evictor.evicted) == 4
    world.event_handlers.assigned_pod_gone("uid-low-0")
    world.now += 3
    world.queue.flush_backoff()
    await tried(world)
    await world.scheduler.drain()
    assert bound(world) == [], "one of its nodes at most is free"
    assert {world.node_of(f"low-{n}") for n in (1, 2, 3)} <= {"a", "b"}


async def test_no_member_makes_another_member_leave() -> None:
    world = World().nodes(node("a").offers(cpu="1"))
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(member("job", 0).priority(1), member("job", 1).priority(100))
    assert world.decide() is None
    await world.scheduler.drain()
    assert world.evictor.evicted == []


async def test_a_group_that_never_preempts_makes_nobody_leave() -> None:
    world = World().nodes(node("a").offers(cpu="2"))
    world.pods(*(pod(f"low-{n}").requests(cpu="1").on("a") for n in range(2)))
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*(maker.never_preempts() for maker in important(2)))
    assert world.decide() is None
    await world.scheduler.drain()
    assert world.evictor.evicted == []


@seeds(range(40))
async def test_on_full_random_clusters_it_is_all_or_nobody(seed: int) -> None:
    """Nobody else comes, so whoever has to leave leaves for a group that is then placed."""
    rng = random.Random(seed)
    world = World()
    index = 0
    for n in range(rng.randint(1, 6)):
        cpu = rng.randint(1, 6)
        zone = rng.choice(("east", "west"))
        world.nodes(node(f"n{n}").offers(cpu=str(cpu)).labels(zone=zone))
        while cpu > 0 and rng.random() < 0.9:
            takes = rng.randint(1, min(cpu, 2))
            world.pods(pod(f"runs-{index}").requests(cpu=str(takes)).priority(rng.choice((0, 0, 0, 200))).on(f"n{n}"))
            cpu, index = cpu - takes, index + 1
    count = rng.randint(1, 6)
    world.event_handlers.cluster_object(group("job", rng.randint(1, count), topology=rng.choice(("", "zone"))))
    world.pods(*[member("job", n, str(rng.randint(1, 3))).priority(100) for n in range(count)])
    await tried(world)
    await world.scheduler.drain()
    minimum = world.cluster.pod_groups.get(member("job", 0).build().pod_group).min_member  # type: ignore[arg-type,union-attr]
    if world.evictor.evicted:
        await gone(world)
        assert len(bound(world)) >= minimum
    assert len(bound(world)) == 0 or len(bound(world)) >= minimum
    for n in range(6):
        row = world.cluster.row(f"n{n}")  # type: ignore[arg-type]
        if row is not None:
            column = world.cluster.resources.column("cpu")
            assert column.requested[row] <= column.allocatable[row]
