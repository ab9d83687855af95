"""Nodes and pods change while a decision about them is on its way."""

from __future__ import annotations

import asyncio

from .api import Refused
from .stage import NODES, OWN_PODS, Stage, now

BURST = 300
#: Seconds that each request of a replica takes: what is decided stays on its way for a while.
SLOW = 0.05
CHANGES = 12
#: So many pods that came last may not be bound yet.
NEWEST = 20


async def test_nodes_deleted_cordoned_and_shrunk_meanwhile(stage: Stage) -> None:
    names = await stage.nodes(10, cpu="4")
    await stage.replicas_at_work(2)
    slow_down(stage, SLOW)
    async with stage.burst(BURST):
        for number in range(CHANGES):
            await stage.until_bound(1 + number * 15)
            await change_node(stage, stage.random.choice(names))
    slow_down(stage, 0.0)
    await stage.until_settled()
    began = now()
    for name in names:
        await restore(stage, name)
    await stage.pod()
    await stage.until_recovered(began)
    await stage.until_settled()
    assert len(stage.history.nodes) == len(names)
    assert stage.history.bound > 15 * (CHANGES - 1)


def slow_down(stage: Stage, seconds: float) -> None:
    """Each request of a replica takes so long."""
    for proxy in stage.proxies:
        proxy.trouble.delay = seconds


async def change_node(stage: Stage, name: str) -> None:
    """One of what happens to nodes; to one that is gone nothing does."""
    path = f"{NODES}/{name}"
    change = stage.random.choice(("delete", "cordon", "uncordon", "shrink"))
    try:
        if change == "delete":
            await stage.api.delete(path)
        elif change == "shrink":
            await stage.api.patch(f"{path}/status", {"status": {"allocatable": {"cpu": stage.random.choice(("1", "2", "3500m"))}}})
        else:
            await stage.api.patch(path, {"spec": {"unschedulable": change == "cordon"}})
    except Refused as refused:
        assert refused.code == 404  # noqa: PT017 - anything else is not of this test


async def restore(stage: Stage, name: str) -> None:
    """As it was; a node that was deleted comes back under its name."""
    await stage.node(name, cpu="4")
    await stage.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": False}})
    await stage.api.patch(f"{NODES}/{name}/status", {"status": {"allocatable": {"cpu": "4"}}})


async def test_pods_deleted_edited_bound_by_another_and_replaced_by_namesakes_meanwhile(stage: Stage) -> None:
    names = await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    slow_down(stage, SLOW)
    began = now()
    async with stage.burst(BURST):
        changed: list[str] = []
        while len(changed) < BURST // 2:
            # Some changes are to pods that just came: of others there may be none that is not bound yet.
            newest = [uid for uid in stage.created[-NEWEST:] if uid not in changed]
            uid = stage.random.choice(newest if newest and len(changed) % 2 else stage.created)
            if uid in stage.history.pods and uid not in changed:
                changed.append(uid)
                await change_pod(stage, uid, stage.random.choice(names))
            await asyncio.sleep(0)  # the burst goes on beside this
    slow_down(stage, 0.0)
    await stage.until_recovered(began)
    await stage.until_settled()
    assert stage.foreign


async def change_pod(stage: Stage, uid: str, node: str) -> None:
    """One of what happens to pods, wherever they are on their way."""
    name = stage.name_of(uid)
    change = stage.random.choice(("delete", "edit", "bind", "replace"))
    if change == "edit":
        await stage.api.patch(f"{OWN_PODS}/{name}", {"metadata": {"labels": {"edited": "yes"}}})
    elif change == "bind":
        await stage.bind(uid, node)
    else:
        await stage.delete_pod(uid)
        if change == "replace":
            await stage.pod(name)
