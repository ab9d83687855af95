"""The same state, profile and seed: simulate and the operator at work on an API server put the same pods on the same nodes.

The order in which pods are tried is made certain: they have priorities of their own, and are all there when their profile comes, or they
come one after the other. Equal nodes are left equal: the seed and the order of rows decide between them, here as there.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from handlers.stage import FAST, Stage, new_stage, operator
from placewright.api.decode import convert
from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.offline.kinds import Manifest
from placewright.plugins.catalog import in_tree
from placewright_lab.simulation.scenario import Act, Happening, Scenario
from placewright_lab.simulation.simulation import simulate
from randomcases import cases
from scheduler.makers import World

from .scenarios import a_pod, a_profile, random_nodes, random_pod
from .stories import SCHEDULER, objects_of, places, put

PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "packed": {"preset": "bin-packing"},
    "balanced": {"preset": "spread", "weights": {"NodeResourcesBalancedAllocation": 10}},
}


async def settled(stage: Stage, names: set[str]) -> None:
    """Every pod has a node, or was told why not."""
    await stage.until(lambda: all(stage.node_of(name) or stage.condition(name) for name in names), "every pod is decided")


async def live_burst(nodes: list[Manifest], pods: list[Manifest], seed: int, spec: dict[str, Any]) -> tuple[list[Manifest], dict[str, str]]:
    """(what there was at the beginning, where pods are at the end): pods wait for their profile, then all are decided at once."""
    async with new_stage() as stage:
        for manifest in (*nodes, *pods):
            put(stage, manifest)
        before = objects_of(stage)
        async with operator(stage, replace(FAST, seed=seed, leader_elect=False)) as running:
            await stage.until(lambda: running.agrees_with(stage))
            stage.profile(**spec)
            await settled(stage, {each["metadata"]["name"] for each in pods})
        return before, places(objects_of(stage))


async def live_in_turn(nodes: list[Manifest], pods: list[Manifest], seed: int) -> tuple[list[Manifest], list[Manifest], dict[str, str]]:
    """(what there was at the beginning, pods as they came, where they are at the end)."""
    async with new_stage() as stage:
        stage.profile()
        for manifest in nodes:
            put(stage, manifest)
        before, came = objects_of(stage), []
        async with operator(stage, replace(FAST, seed=seed, leader_elect=False)) as running:
            for manifest in pods:
                name = manifest["metadata"]["name"]
                put(stage, manifest)
                came.append({**stage.show(name), "kind": "Pod"})
                await settled(stage, {name})
                await stage.until(lambda: running.agrees_with(stage))
        return before, came, places(objects_of(stage))


def crowd(seed: int, count: int = 70) -> tuple[list[Manifest], list[Manifest]]:
    """Make nodes in no order, and more pods than there is room for, each with its own priority."""
    rng = random.Random(seed)
    nodes = random_nodes(rng, 9)
    rng.shuffle(nodes)
    priorities = rng.sample(range(10, 1000), count)
    pods = [random_pod(rng, f"pod-{i:02d}", priority, schedulerName=SCHEDULER) for i, priority in enumerate(priorities)]
    for each in pods:  # victims leave in their own time, and the next pod would be decided before or after that
        each["spec"]["preemptionPolicy"] = "Never"
    return nodes, pods


def simulated(objects: list[Manifest], seed: int, spec: dict[str, Any], *happenings: Happening) -> dict[str, str]:
    resolved = a_profile(name="default", schedulerName=SCHEDULER, **spec)
    outcome = simulate(Scenario("the same state", objects, happenings), resolved, in_tree(), seed=seed)
    return {fate.pod.name: fate.node or "" for fate in outcome.fates.values()}


@pytest.mark.parametrize("spec", PROFILES)
@pytest.mark.parametrize("seed", range(cases(3, fewest=1)))
def test_a_burst_is_placed_as_the_operator_places_it(seed: int, spec: str) -> None:
    nodes, pods = crowd(seed)
    before, live = asyncio.run(live_burst(nodes, pods, seed, PROFILES[spec]))
    ours = simulated(before, seed, PROFILES[spec])
    assert ours == live
    assert len(set(live.values())) > 5
    assert "" in live.values()


@pytest.mark.parametrize("seed", range(3))
def test_pods_that_come_in_turn_are_placed_as_the_operator_places_them(seed: int) -> None:
    nodes, pods = crowd(seed)
    before, came, live = asyncio.run(live_in_turn(nodes, pods, seed))
    ours = simulated(before, seed, {}, *(Happening(10.0 * i, Act.ADDED, each) for i, each in enumerate(came)))
    assert ours == live


def test_the_seed_matters_or_the_comparison_would_prove_little() -> None:
    nodes, pods = crowd(0)
    for each in pods:
        each["metadata"]["uid"] = each["metadata"]["name"]
    assert len({tuple(simulated([*nodes, *pods], seed, {}).items()) for seed in range(5)}) > 1


async def in_turn_by_hand(objects: list[Manifest]) -> dict[str, str]:
    """The tests' own scheduler with a clock that stands still, seed 7: decided and bound one by one."""
    world = World()
    for each in objects:
        if each["kind"] == "Node":
            world.event_handlers.node(convert(each, Node))
    infos = [PodInfo(convert(each, Pod)) for each in objects if each["kind"] == "Pod"]
    for info in infos:
        world.event_handlers.unscheduled_pod(info)
    while world.queue.sizes().active:
        await world.attempt()
    return {info.name: str(((found := world.cluster.placement(info.uid)) and found.node) or "") for info in infos}


@pytest.mark.parametrize("seed", range(8))
def test_pods_are_placed_as_by_a_scheduler_that_is_driven_by_hand(seed: int) -> None:
    rng = random.Random(seed)
    nodes = random_nodes(rng, 10)
    pods = [random_pod(rng, f"pod-{i:02d}", rng.randrange(5), preemptionPolicy="Never") for i in range(60)]
    outcome = simulate(Scenario("the same state", [*nodes, *pods]), a_profile(), in_tree(), seed=7)
    assert {fate.pod.name: fate.node or "" for fate in outcome.fates.values()} == asyncio.run(in_turn_by_hand([*nodes, *pods]))


async def live_preemption(nodes: list[Manifest], low: list[Manifest], urgent: Manifest) -> tuple[list[Manifest], dict[str, str]]:
    async with new_stage() as stage:
        stage.profile()
        for manifest in (*nodes, *low):
            put(stage, manifest)
        before = objects_of(stage)
        async with operator(stage, replace(FAST, seed=3)):
            put(stage, urgent)
            name = urgent["metadata"]["name"]
            before.append({**stage.show(name), "kind": "Pod"})
            await stage.until(lambda: stage.placed(name))
        return before, places(objects_of(stage))


@pytest.mark.parametrize("seed", range(3))
def test_the_same_victims_leave_for_the_same_pod(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [each for each in random_nodes(rng, 8) if not each["spec"].get("taints")]
    low = []
    for i, each in enumerate(nodes):
        filling = str(int(each["status"]["allocatable"]["cpu"]) - 1)
        low.append(a_pod(f"low-{i}", filling, on=each["metadata"]["name"], priority=i + 1, terminationGracePeriodSeconds=0))
    urgent = a_pod("urgent", "2", priority=1000, schedulerName=SCHEDULER)
    before, live = asyncio.run(live_preemption(nodes, low, urgent))
    resolved = a_profile(name="default", schedulerName=SCHEDULER)
    outcome = simulate(Scenario("the same state", before), resolved, in_tree(), seed=3)
    assert {placement.pod.name: str(placement.node) for placement in outcome.cluster.placements()} == live
    assert len(outcome.evicted) == 1
