"""Preemption among groups on random clusters: compared with a plain model, and judged by the rules alone (see `victims_model`)."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from plugins.preempting import budget as disruption_budget
from scheduler.makers import World, node, pod
from seeds import seeds

from .makers import group, native, native_member, tried
from .makers import member as coscheduled
from .victims_model import Audit, Declared, Running, Town, leaving_for

PREEMPTOR = 50
GUARDED = {"guarded": "yes"}


def random_town(seed: int) -> Town:
    """A few full nodes, with pods and members of groups of all kinds."""
    rng = random.Random(seed)
    town = Town({f"n{n}": rng.randint(2, 8) for n in range(rng.randint(1, 6))})
    priority: dict[str, int] = {}
    for index in range(rng.randint(1, 4)):
        mode = rng.choice(("", "", "", "Pod", "PodGroup"))
        own = rng.choice((None, 5, 45, 60)) if mode else None
        town.groups[f"g{index}"] = Declared(rng.choice((None, 1, 2, 3, 4)) if mode else rng.randint(1, 4), mode, own)
        priority[f"g{index}"] = rng.choice((0, 10, 20, 60))
    since = rng.sample(range(10_000), 200)
    for name, cpus in town.nodes.items():
        unused = cpus
        while unused:
            takes, of = rng.randint(1, min(unused, 3)), rng.choice(("", *town.groups, *town.groups))
            level = priority[of] if of and rng.random() < 0.7 else rng.choice((0, 10, 20, 60))
            town.pods.append(Running(f"p{len(town.pods)}", name, takes, level, since.pop(), of, rng.random() < 0.2))
            unused -= takes
    return town


def world_of(town: Town) -> World:
    world = World().nodes(*(node(name).offers(cpu=str(cpus)) for name, cpus in town.nodes.items()))
    world.event_handlers.cluster_object(disruption_budget({"matchLabels": GUARDED}))
    for name, declared in town.groups.items():
        if declared.mode or declared.minimum is None:
            told = {"disruptionMode": declared.mode} | ({} if declared.own is None else {"priority": declared.own})
            world.event_handlers.cluster_object(native(name, declared.minimum, **told))
        else:
            world.event_handlers.cluster_object(group(name, declared.minimum))
    for each in town.pods:
        declared_of = town.groups.get(each.group)
        if declared_of is None:
            maker = pod(each.name).requests(cpu=str(each.cpus))
        elif declared_of.mode or declared_of.minimum is None:
            maker = native_member(each.group, each.name, str(each.cpus))
        else:
            maker = pod(each.name).in_coscheduling_group(each.group).requests(cpu=str(each.cpus))
        start = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=each.since)).isoformat()
        maker = maker.labels(GUARDED if each.guarded else {}).status(startTime=start)
        world.pods(maker.priority(each.priority).on(each.node))
    return world


def left(world: World) -> set[str]:
    return {victim for victim, _, _ in world.evictor.evicted}


#: A constraint that no cluster here can break; but a filter that looks at all nodes has a say then, so they are tried one by one.
SPREAD = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 100, "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize("spread", [False, True])
@seeds(range(200))
async def test_a_pod_makes_those_leave_whom_the_plain_model_names(seed: int, *, spread: bool) -> None:
    town = random_town(seed)
    cpus = random.Random(seed).randint(1, 5)
    world = world_of(town)
    vip = pod("vip").requests(cpu=str(cpus)).priority(PREEMPTOR)
    if spread:
        vip = vip.spread("kubernetes.io/hostname", GUARDED, max_skew=100)
    world.pods(vip)
    await tried(world)
    await world.scheduler.drain()
    assert left(world) == leaving_for(town, cpus, PREEMPTOR)
    assert Audit(town_on(town, world), cpus, PREEMPTOR, 1, left(world)).breaches() == []


def town_on(town: Town, world: World) -> Town:
    """The town as the pod sees it that is nominated: only its node is of use to it."""
    at = world.queue.nominator.node_of("uid-vip")
    return Town({name: cpus if name == at else 0 for name, cpus in town.nodes.items()}, town.pods, town.groups)


@seeds(range(1000, 1300))
async def test_a_group_makes_nobody_leave_in_vain_and_breaks_no_group(seed: int) -> None:
    town, rng = random_town(seed), random.Random(seed)
    cpus, count = rng.randint(1, 4), rng.randint(1, 4)
    world = world_of(town)
    world.event_handlers.cluster_object(group("job", count))
    world.pods(*(coscheduled("job", n, str(cpus)).priority(PREEMPTOR) for n in range(count)))
    await tried(world)
    await world.scheduler.drain()
    assert Audit(town, cpus, PREEMPTOR, count, left(world)).breaches() == []
    if not left(world) and not bound_to_be_kept(town):
        assert town.places([each for each in town.pods if may_leave(town, each)], cpus) < count, "somebody could have left"


def may_leave(town: Town, each: Running) -> bool:
    declared = town.groups.get(each.group)
    if declared is None or declared.loose:
        return each.priority < PREEMPTOR
    return town.rank(each.group) < PREEMPTOR


def bound_to_be_kept(town: Town) -> bool:
    """Whether a group may lose some members and not all: whom it loses is a choice that may turn out to have been the wrong one."""
    return any(
        town.of(name) and not declared.loose and town.spare(name) and town.rank(name) >= PREEMPTOR for name, declared in town.groups.items()
    )
