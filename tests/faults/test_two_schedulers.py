"""Another scheduler places pods of its own on the same nodes, knowing nothing of ours.

Nobody can keep two schedulers from deciding for the last room on a node at the same moment. What is audited is what one of them owes: when
we bind, all that we put on the node before, and all that the other put there before our decision began, leave room for the pod.
"""

from __future__ import annotations

import asyncio

from placewright_lab.demo.feed import background

from .history import NodeView, PodView
from .stage import Stage, now

NAIVE = "naive"
EACH = 150


async def test_two_schedulers_on_the_same_nodes(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    began = now()
    async with background(place_naively(stage), "naive scheduler") as naive:
        async with stage.burst(EACH), stage.burst(EACH, scheduler=NAIVE):
            pass
        await stage.until_settled()
        await stage.until(lambda: not naively_placeable(stage), "the other scheduler has placed what fits")
        await stage.until_recovered(began)
        assert not naive.done()
    placed = {pod.scheduler for pod in stage.history.pods.values() if pod.node}
    assert placed == {NAIVE, "placewright"}


async def place_naively(stage: Stage) -> None:
    """First pod, any node with room as it is known here: a scheduler without a queue, a cache or doubts."""
    while True:
        for pod, nodes in naively_placeable(stage):
            await stage.bind(pod.uid, stage.random.choice(nodes).name)
            break
        await asyncio.sleep(0.002)


def naively_placeable(stage: Stage) -> list[tuple[PodView, list[NodeView]]]:
    """Its first pod without a node, with nodes that have room; empty when there is none."""
    pods = stage.history.pods.values()
    waiting = (pod for pod in pods if pod.scheduler == NAIVE and not pod.node and pod.uid not in stage.foreign)
    pod = next(waiting, None)
    if pod is None:
        return []
    used = dict.fromkeys(stage.history.nodes, pod.asks)
    for each in pods:
        if each.node:
            used[each.node] = used[each.node] + each.asks
    nodes = [node for node in stage.history.nodes.values() if used[node.name] <= node.room]
    return [(pod, nodes)] if nodes else []
