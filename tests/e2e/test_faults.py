"""Servers, operators and histories that are killed: no pod is lost, none is bound twice, and what vanished unseen is noticed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial

from lab.controlplane.breaking import forget_history
from placewright_lab.controlplane.audit import Record

from .installation import USER
from .stage import Stage
from .views import DEADLINE

BURST = 300
MIDDLE = 60


async def test_all_pods_are_placed_when_the_api_server_is_killed_in_mid_burst(rough_stage: Stage) -> None:
    stage = rough_stage
    await stage.nodes(20)
    async with stage.active_operator():
        creating = asyncio.create_task(stage.pods(BURST))
        await stage.until_some_placed(MIDDLE)
        stage.kill_api_server()
        stage.start_api_server()
        keys = await creating
        await stage.until_running(keys)
        assert len({key for key in keys if stage.node_of(key)}) == BURST


async def test_all_pods_are_placed_when_history_is_forgotten_in_mid_burst(rough_stage: Stage) -> None:
    stage = rough_stage
    await stage.nodes(20)
    async with stage.active_operator():
        creating = asyncio.create_task(stage.pods(BURST))
        await stage.until_some_placed(MIDDLE)
        stage.kill_api_server()
        watched, then = listed(stage.records()), stage.control_plane.audit_log.stat().st_size
        assert {"/api/v1/nodes", "/api/v1/namespaces"} <= watched
        forget_history(stage.control_plane)
        stage.start_api_server()
        keys = await creating
        await stage.until_running(keys)
        late = await stage.pods(10)
        await stage.until_running(late)
        await stage.views.until(
            lambda: listed(stage.records(then)) >= watched,
            lambda: f"every watch was told 410 and began with a list, not these: {watched - listed(stage.records(then))}",
        )


def listed(records: list[Record]) -> set[str]:
    """What the operator listed: collections, with their field selectors; but for the history of profiles, which nobody watches."""
    of_ours = (each for each in records if each.user == USER and each.verb == "list" and each.code == 200)
    collections = (each.request_uri.partition("&limit")[0].partition("?limit")[0] for each in of_ours)
    return {each for each in collections if "/controllerrevisions" not in each}


async def test_what_vanished_unseen_with_history_forgotten_is_gone_from_the_cache_and_the_queue(rough_stage: Stage) -> None:
    stage = rough_stage
    kept, vanishing = await stage.node("kept"), await stage.node("vanishing")
    async with stage.active_operator() as operator:
        fills = await stage.pods(1, cpu="4", on=kept) + await stage.pods(1, cpu="4", on=vanishing)
        await stage.until_running(fills)
        (waits, hopeless) = await stage.pods(1, cpu="4", on=kept) + await stage.pods(1, cpu="8")
        await stage.until_rejected(waits)
        assert "0/2 nodes are available" in await stage.until_rejected(hopeless)
        await stage.until_pending(2)
        with stage.stopped(operator):
            # In this order: what is deleted while the operator's connections are open waits for it in their buffers.
            stage.kill_api_server()
            forget_history(stage.control_plane)
            stage.start_api_server()
            for key in (*fills, hopeless):
                await stage.delete_pod(key)
            await stage.delete(f"/api/v1/nodes/{vanishing}")
        await stage.until_running([waits])
        assert stage.node_of(waits) == kept
        assert "0/1 nodes are available" in await told_when_the_node_is_known_to_be_gone(stage)
        await stage.until_pending(1)


async def told_when_the_node_is_known_to_be_gone(stage: Stage) -> str:
    """What is said of a pod that fits nowhere. Each reflector comes back in its own time: until then pods may still meet the node."""
    said = ""
    async with asyncio.timeout(DEADLINE):
        while "0/1 nodes" not in said:
            (key,) = await stage.pods(1, cpu="4")
            decided = partial(was_decided, stage, key)
            await stage.views.until(decided, lambda: "a pod is placed or rejected")
            said = str(stage.pod(key).condition("PodScheduled").get("message", ""))
            if "0/1 nodes" not in said:
                await stage.delete_pod(key)
    return said


def was_decided(stage: Stage, key: str) -> bool:
    return key in stage.views.pods and bool(stage.node_of(key) or stage.pod(key).condition("PodScheduled"))


async def test_a_namespace_that_goes_takes_its_pods_out_of_the_queue(rough_stage: Stage) -> None:
    stage = rough_stage
    tainted = await stage.node("tainted", taint="maintenance")
    doomed = await stage.create_namespace("doomed")
    async with stage.active_operator() as operator:
        ending = await stage.pods(5, namespace=doomed)
        staying = await stage.pods(5)
        await stage.until_rejected(staying[-1])
        await stage.until_pending(10)
        await stage.client.delete(f"/api/v1/namespaces/{doomed}")
        await stage.patch(f"/api/v1/nodes/{tainted}", {"spec": {"taints": None}})
        await stage.until_running(staying)
        await stage.views.until(
            lambda: all(each.code == 403 for each in stage.bindings_of(ending)) and stage.bindings_of(ending),
            lambda: f"bindings in a namespace that ends are refused: {stage.bindings_of(ending)}",
        )
        for key in ending:
            await stage.delete_pod(key)
        await finalize(stage, doomed)
        await stage.until_pending(0)
        again = await stage.create_namespace("doomed")
        await stage.until_running(await stage.pods(5, namespace=again))
        assert operator.exit_code is None


async def finalize(stage: Stage, namespace: str) -> None:
    """As the namespace controller does when nothing is left in it."""
    path = f"/api/v1/namespaces/{namespace}"
    content = json.loads(await stage.client.get(path))
    content["spec"]["finalizers"] = []
    await stage.client.put(f"{path}/finalize", content)


async def test_all_pods_are_placed_once_when_the_operator_is_killed_in_mid_burst(rough_stage: Stage) -> None:
    stage = rough_stage
    await stage.nodes(20)
    async with stage.active_operator() as first:
        creating = asyncio.create_task(stage.pods(BURST))
        await stage.until_some_placed(MIDDLE)
        await stage.kill(first)
        placed = Counter(bool(each.spec.get("nodeName")) for each in stage.views.pods.values())
        keys = await creating
        async with stage.operator():
            await stage.until_running(keys)
    assert placed[True] < BURST, "there was something left to do"


async def test_of_two_operators_one_places_and_the_other_takes_over(rough_stage: Stage) -> None:
    stage = rough_stage
    await stage.nodes(10)
    async with AsyncExitStack() as first:
        await first.enter_async_context(stage.active_operator())
        (leader,) = stage.views.peers
        async with stage.operator():
            await stage.views.until(lambda: len(stage.views.peers) == 2, lambda: f"two peers, not {stage.views.peers}")
            (heir,) = stage.views.peers - {leader}
            early = await stage.pods(100)
            await stage.until_told(early)
            await first.aclose()
            late = await stage.pods(100)
            await stage.until_told(late)
    assert stage.views.reporters(early) == {leader}
    assert stage.views.reporters(late) == {heir}
    requests = Counter(each.uid for each in stage.binding_requests())
    assert requests == dict.fromkeys((stage.pod(key).metadata.uid for key in early + late), 1)
