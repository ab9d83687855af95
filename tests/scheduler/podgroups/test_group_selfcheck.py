"""A group that would fit and that nothing brought back is found, through one member; the scheduler itself then says whether it fits."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from placewright.framework.events import QueueingHint
from placewright.plugins.catalog import in_tree
from placewright.queue.check import check_invariants
from placewright.scheduler import selfcheck
from placewright.scheduler.selfcheck import Forgotten, SelfCheck, SkipReason
from placewright.testing import device_class, resource_claim
from randomcases import cases
from scheduler.makers import PodMaker, World, node, pod

from .makers import bound, child, composite, group, member, members, native_member, tried


def look(world: World, name: str) -> Forgotten | SkipReason | None:
    queued = world.queue.get(f"uid-{name}")
    assert queued is not None
    [lane] = world.queue.profile_queues()
    return SelfCheck(world.cluster, world.queue, world.profiles.get, world.time).look(lane, queued)


async def waiting(world: World, minimum: int, *makers: PodMaker, **declared: Any) -> World:
    """A group `job` that was tried, and waits."""
    world.event_handlers.cluster_object(group("job", minimum, **declared))
    world.pods(*makers)
    await tried(world)
    assert bound(world) == []
    return world


def full(nodes: int = 1, cpu: str = "4") -> World:
    """Nodes of so many CPUs, each with a pod that takes them all."""
    world = World()
    for n in range(nodes):
        world.nodes(node(f"n{n}").labels(rack=f"r{n}").offers(cpu=cpu)).pods(pod(f"big{n}").requests(cpu=cpu).on(f"n{n}"))
    return world


def freed(world: World, *names: str) -> World:
    """Room that nobody tells of."""
    for name in names:
        world.cluster.remove_pod(f"uid-{name}")
    return world


async def test_the_first_waiting_member_speaks_for_a_group_that_fits() -> None:
    world = await waiting(full(), 3, *members("job", 3))
    assert look(world, "job-0") is None
    freed(world, "big0")
    found = look(world, "job-0")
    assert isinstance(found, Forgotten)
    assert (found.plugin, found.node, found.event) == ("NodeResourcesFit", "n0", None)
    assert [look(world, name) for name in ("job-1", "job-2")] == [SkipReason.GROUP, SkipReason.GROUP]


async def test_no_member_of_a_tree_speaks_for_it_by_itself() -> None:
    world = full()
    for each in (composite("root", 2), child("a", None, "root"), child("b", 1, "root")):
        world.event_handlers.cluster_object(each)
    world.pods(native_member("a", "a0"), native_member("b", "b0", cpu="4"))
    await tried(world)
    freed(world, "big0")
    assert [look(world, name) for name in ("a0", "b0")] == [SkipReason.GROUP] * 2


async def test_a_group_that_is_put_back_takes_all_members_along_and_is_placed() -> None:
    world = freed(await waiting(full(), 3, *members("job", 3)), "big0")
    found = look(world, "job-0")
    assert isinstance(found, Forgotten)
    world.queue.retry(found.uid)
    assert look(world, "job-1") is SkipReason.GROUP, "the group is about to be tried"
    world.now += 20
    world.queue.flush_backoff()
    await tried(world)
    assert sorted(bound(world)) == ["job-0", "job-1", "job-2"]


async def test_room_for_too_few_members_is_no_room() -> None:
    world = await waiting(full(2, "2"), 3, *members("job", 3))
    assert look(freed(world, "big0"), "job-0") is None
    assert isinstance(look(freed(world, "big1"), "job-0"), Forgotten)


async def test_a_group_that_requires_a_domain_has_to_fit_in_one() -> None:
    world = await waiting(full(2, "2"), 3, *members("job", 3), topology="rack")
    assert look(freed(world, "big0", "big1"), "job-0") is None
    world.cluster.set_node(node("n1").labels(rack="r0").offers(cpu="2").build())
    assert isinstance(look(world, "job-0"), Forgotten)


async def test_a_hint_that_slept_is_named_with_the_event_that_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = in_tree()["NodeResourcesFit"]
    events = kind.events
    monkeypatch.setattr(kind, "events", lambda self: tuple(replace(each, hint=lambda *_: QueueingHint.SKIP) for each in events(self)))
    world = await waiting(full(), 3, *members("job", 3))
    world.event_handlers.assigned_pod_gone("uid-big0")
    found = look(world, "job-0")
    assert isinstance(found, Forgotten)
    assert found.event is not None
    assert (found.plugin, found.event.event.label) == ("NodeResourcesFit", "AssignedPodDelete")


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(member("job", 9, cpu="2"), id="of another size"),
        pytest.param(member("job", 9).labels(app="job").spread("rack", labelSelector={"matchLabels": {"app": "job"}}), id="spread"),
        pytest.param(member("job", 9).volume_claims("data"), id="with a volume"),
        pytest.param(member("job", 9).resource_claims("gpu"), id="with devices"),
    ],
)
async def test_groups_whose_members_cannot_be_counted_are_left_out(odd: PodMaker) -> None:
    world = await waiting(full().show(device_class("gpu"), resource_claim("gpu").request("gpu")), 2, member("job", 0), odd)
    assert look(freed(world, "big0"), "job-0") is SkipReason.GROUP


async def test_a_large_group_is_left_to_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck, "MOST_MEMBERS", 2)
    monkeypatch.setattr("placewright.scheduler.selfcheck.MOST_MEMBERS", 2)
    world = await waiting(full(), 3, *members("job", 3))
    assert look(freed(world, "big0"), "job-0") is SkipReason.LARGE


async def test_a_group_without_its_object_is_left_out() -> None:
    world = freed(await waiting(full(), 3, *members("job", 3)), "big0")
    world.event_handlers.cluster_object_gone(group("job", 3))
    assert look(world, "job-0") is SkipReason.GROUP


async def test_a_member_whose_group_stands_is_looked_at_by_itself_and_in_its_groups_domain() -> None:
    world = full(2, "2")
    world.event_handlers.cluster_object(group("job", 1, topology="rack"))
    world.pods(member("job", 0).on("n0"))
    freed(world, "big0")
    world.pods(pod("small").requests(cpu="1").on("n0"), member("job", 1))
    await tried(world)
    assert bound(world) == []
    assert look(freed(world, "big1"), "job-1") is None, "there is room only where the group does not stand"
    found = look(freed(world, "small"), "job-1")
    assert isinstance(found, Forgotten)
    assert found.node == "n0"


async def test_looking_at_a_group_changes_nothing() -> None:
    world = freed(await waiting(full(), 3, *members("job", 3)), "big0")
    before = world.queue.sizes(), world.requested("n0"), len(world.evaluator.kept), list(world.events.recorded)
    assert isinstance(look(world, "job-0"), Forgotten)
    assert (world.queue.sizes(), world.requested("n0"), len(world.evaluator.kept), list(world.events.recorded)) == before
    check_invariants(world.queue)


@pytest.mark.parametrize("seed", range(cases(60)))
async def test_the_check_and_the_scheduler_agree_on_random_clusters(seed: int) -> None:
    dice = random.Random(seed)
    world, names = World(), list[str]()
    for n in range(dice.randint(1, 6)):
        cpu = dice.randint(1, 5)
        maker = node(f"n{n}").labels(rack=f"r{dice.randint(0, 2)}").offers(cpu=str(cpu), pods=dice.choice((2, 110)))
        world.nodes(maker.taint("gpu") if dice.random() < 0.2 else maker)
        for k in range(cpu):
            names.append(f"big{n}-{k}")
            world.pods(pod(names[-1]).requests(cpu="1").on(f"n{n}"))
    minimum, topology = dice.randint(2, 5), dice.choice(("", "rack"))
    port = dice.random() < 0.3
    makers = members("job", minimum + dice.randint(0, 2), dice.choice(("1", "2")))
    await waiting(world, minimum, *(maker.host_port(80) if port else maker for maker in makers), topology=topology)
    freed(world, *dice.sample(names, dice.randint(0, len(names))))
    found = look(world, "job-0")
    world.queue.retry("uid-job-0")
    world.now += 20
    world.queue.flush_backoff()
    await tried(world)
    assert isinstance(found, Forgotten) == bool(bound(world))


async def test_a_pod_that_a_reservation_holds_off_after_its_end_is_forgotten() -> None:
    settings = {"reservations": 1, "reservationAfterSeconds": 0, "reservationPercentOfNamespace": 100, "reservationPercent": 100}
    world = World(pluginConfig=[{"name": "GangScheduling", "args": settings}])
    world.nodes(node("n0")).pods(pod("runs").requests(cpu="3").spec(restartPolicy="Never").on("n0"))
    await waiting(world, 1, member("job", 0, "4"))
    world.cluster.remove_pod("uid-runs")
    world.pods(pod("held").requests(cpu="1"))
    await tried(world)
    assert look(world, "held") is None, "the node is kept for the group"
    world.now += 599
    assert look(world, "held") is None
    world.now += 1
    found = look(world, "held")
    assert isinstance(found, Forgotten)
    assert (found.plugin, found.node) == ("NodeResourcesFit", "n0")
    world.now -= 1
    world.event_handlers.cluster_object_gone(group("job", 1))
    assert isinstance(look(world, "held"), Forgotten), "no object declares the group"
    assert world.queue.nominator.node_of("uid-job-0") == "n0", "the check changes nothing"
