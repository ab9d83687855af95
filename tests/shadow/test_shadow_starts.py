"""Shadows under policies that go by what kubelets do: pods that become Ready, and pods that were turned away."""

from __future__ import annotations

import gc
from typing import Any

from placewright.api.objects import NodeName
from placewright.api.turnedaway import Owner
from placewright.plugins.noderejections import record_of
from placewright.shadow.shadow import Shadow
from scheduler.makers import node, pod
from shadow.shadowing import Beside

READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}


def running(plugin: str, **args: Any) -> dict[str, Any]:
    return {"plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}, "pluginConfig": [{"name": plugin, "args": args}]}


def placed(shadow: Shadow) -> set[str]:
    return {place.pod.name for place in shadow._world.cluster.placements()}


async def decide(world: Beside, *names: str) -> None:
    for name in names:
        world.pods(pod(name))
        await world.attempt()
        world.pods(pod(name).on(str(world.node_of(name))))


async def test_a_pod_that_becomes_ready_in_the_cluster_lets_the_shadow_start_the_next_one() -> None:
    world = Beside().nodes(node("a"))
    shadow = world.shadow(**running("NodeStartRate", maxStarting=1))
    await decide(world, "p1", "p2")
    world.rest(shadow)
    assert (placed(shadow), shadow.report.pending) == ({"p1"}, 1)
    world.pods(pod("p1").on("a").labels(seen="yes"))
    world.rest(shadow)
    assert placed(shadow) == {"p1"}
    world.pods(pod("p1").on("a").status(**READY))
    world.rest(shadow)
    assert placed(shadow) == {"p1", "p2"}


async def test_the_live_cluster_follows_no_readiness_once_the_shadow_that_wanted_it_is_gone() -> None:
    world = Beside().nodes(node("a"))
    shadow = world.shadow(**running("NodeStartRate", maxStarting=1))
    await decide(world, "p1")
    world.rest(shadow)
    assert len(world.cluster.pod_followers.known) == 1
    world.shadows.adopt(())
    del shadow
    gc.collect()
    assert world.cluster.pod_followers.known == ()


async def test_a_shadow_leaves_out_the_nodes_that_turned_pods_of_the_owner_away() -> None:
    world = Beside().nodes(node("a"))
    shadow = world.shadow(**running("NodeRejections"))
    record_of(world.cluster).note(Owner("default", "Pod", "p1"), NodeName("a"), "OutOfcpu", 0.0)
    await decide(world, "p1", "p2")
    world.rest(shadow)
    assert placed(shadow) == {"p2"}
    assert shadow.report.live_only == 1
