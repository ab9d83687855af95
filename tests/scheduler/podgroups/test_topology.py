"""A group may ask for one domain of a node label."""

from __future__ import annotations

from placewright.queue.queued import SubQueue
from scheduler.makers import World, node, pod

from .makers import bound, group, member, members, tried


def racks(**cpus: str) -> World:
    """Two nodes in each rack, of so many CPUs."""
    world = World()
    for rack, cpu in cpus.items():
        world.nodes(*(node(f"{rack}{n}").labels(rack=rack).offers(cpu=cpu) for n in range(2)))
    return world


def stands_in(world: World) -> set[str]:
    """The racks of all members."""
    return {str(world.node_of(name))[:-1] for name in bound(world)}


async def test_all_members_stand_in_one_domain() -> None:
    world = racks(a="1", b="2", c="1")
    world.event_handlers.cluster_object(group("job", 4, topology="rack"))
    world.pods(*members("job", 4))
    assert await world.attempt()
    assert stands_in(world) == {"b"}, "only there is room for four"


async def test_a_group_that_requires_a_domain_waits_while_none_holds_it() -> None:
    world = racks(a="1", b="1", c="1")
    world.event_handlers.cluster_object(group("job", 4, topology="rack"))
    world.pods(*members("job", 4))
    assert await world.attempt() is None
    assert bound(world) == []
    assert all("which comes closest" in note for _, _, _, _, note in world.events.recorded)
    world.nodes(node("b2").labels(rack="b").offers(cpu="2"))
    world.now += 3
    world.queue.flush_backoff()
    assert await world.attempt()
    assert stands_in(world) == {"b"}


async def test_a_group_that_prefers_a_domain_is_spread_when_none_holds_it() -> None:
    world = racks(a="1", b="1")
    world.event_handlers.cluster_object(group("job", 4, topology="rack", mode="preferred"))
    world.pods(*members("job", 4))
    assert await world.attempt()
    assert stands_in(world) == {"a", "b"}


async def test_a_group_that_prefers_a_domain_gets_it_where_one_holds_it() -> None:
    world = racks(a="1", b="2", c="1")
    world.event_handlers.cluster_object(group("job", 4, topology="rack", mode="preferred"))
    world.pods(*members("job", 4))
    assert await world.attempt()
    assert stands_in(world) == {"b"}


async def test_of_domains_that_hold_the_group_the_one_with_the_best_scores_is_taken() -> None:
    """LeastAllocated likes empty nodes; the tightest domain is looked at first, and is not taken for that."""
    world = racks(a="3", b="16", c="4")
    world.event_handlers.cluster_object(group("job", 4, topology="rack"))
    world.pods(*members("job", 4))
    assert await world.attempt()
    assert stands_in(world) == {"b"}


async def test_nodes_without_the_label_are_in_no_domain() -> None:
    world = World().nodes(node("x").offers(cpu="16"))
    world.event_handlers.cluster_object(group("job", 2, topology="rack"))
    world.pods(*members("job", 2))
    assert await world.attempt() is None
    assert bound(world) == []
    assert all("no node has the label rack" in note for _, _, _, _, note in world.events.recorded)


async def test_whoever_joins_stands_in_the_groups_domain_or_waits() -> None:
    world = racks(a="2", b="8")
    world.event_handlers.cluster_object(group("job", 3, topology="rack"))
    world.pods(*members("job", 3))
    await tried(world)
    [rack] = stands_in(world)
    room = 16 if rack == "b" else 4
    world.pods(*(member("job", index) for index in range(3, room + 1)))
    await tried(world)
    assert stands_in(world) == {rack}
    assert len(bound(world)) == room
    assert world.place(f"job-{room}") is SubQueue.UNSCHEDULABLE, "there is room in the other rack"


async def test_room_in_a_domain_that_was_not_tried_brings_the_group_back() -> None:
    """The members' own failures are about the domain that comes closest, where taints keep them off."""
    world = racks(a="2", b="2")
    world.nodes(*(node(f"a{n}").labels(rack="a").offers(cpu="2").taint("gpu") for n in range(2)))
    world.pods(*(pod(f"big{n}").requests(cpu="2").on(f"b{n}") for n in range(2)))
    world.event_handlers.cluster_object(group("job", 4, topology="rack"))
    world.pods(*members("job", 4))
    await tried(world)
    assert bound(world) == []
    world.event_handlers.assigned_pod_gone("uid-big0")
    world.event_handlers.assigned_pod_gone("uid-big1")
    assert world.place("job-0") in (SubQueue.ACTIVE, SubQueue.BACKOFF)
    world.now += 3
    world.queue.flush_backoff()
    await tried(world)
    assert stands_in(world) == {"b"}


async def test_a_domain_whose_nodes_lose_their_taint_brings_the_group_back_although_another_comes_closest() -> None:
    world = racks(a="2", b="4")
    world.nodes(*(node(f"a{n}").labels(rack="a").offers(cpu="2").taint("gpu") for n in range(2)))
    world.nodes(*(node(f"b{n}").labels(rack="b").offers(cpu="4").cordoned() for n in range(2)))
    world.event_handlers.cluster_object(group("job", 4, topology="rack"))
    world.pods(*members("job", 4))
    await tried(world)
    assert bound(world) == []
    world.nodes(*(node(f"a{n}").labels(rack="a").offers(cpu="2") for n in range(2)))
    assert world.place("job-0") in (SubQueue.ACTIVE, SubQueue.BACKOFF)


async def test_a_node_that_comes_into_a_domain_brings_the_group_back() -> None:
    world = racks(a="1")
    world.nodes(node("c").offers(cpu="2"))
    world.event_handlers.cluster_object(group("job", 3, topology="rack"))
    world.pods(*members("job", 3))
    await tried(world)
    assert bound(world) == []
    world.nodes(node("c").labels(rack="a").offers(cpu="2"))
    assert world.place("job-0") in (SubQueue.ACTIVE, SubQueue.BACKOFF)
