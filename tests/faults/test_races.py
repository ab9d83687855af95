"""Races that kube-scheduler and Kueue have met: evictions that are told of late, victims that end one by one, and news that comes twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from .proxy import LOSE, Trouble
from .stage import OWN_PODS, Stage, now

NODES = 6
#: Pods that fill a node.
SMALL = 4
LAG = 1.5
#: Seconds within which a pod is placed once its victims are gone; kube-scheduler looks after 300 for pods that no event brought back.
SOON = 20.0


async def full_of_small_pods(stage: Stage, grace: int = 30) -> list[str]:
    await stage.nodes(NODES, cpu="8")
    await stage.priority_class("first", 1000, preempts=True)
    await stage.replicas_at_work(1)
    small = [await stage.pod(cpu="1900m", grace=number % (grace + 1)) for number in range(NODES * SMALL)]
    await stage.until(lambda: all(map(stage.node_of, small)), "the nodes are full")
    return small


#: Evictions are told of late, or carried out with an answer that is lost.
LATE = [{"watch_lag": LAG}, {"evictions": 0.5, "answers": (LOSE,)}, {"evictions": 0.4, "answers": (LOSE, 500)}]


@pytest.mark.parametrize("trouble", LATE)
async def test_victims_that_are_gone_and_evicted_again(stage: Stage, trouble: dict[str, Any]) -> None:
    """Kubernetes#141694: the last victim's end was told of before its eviction ended, and no event brings the preemptor back."""
    small = await full_of_small_pods(stage)
    (proxy,) = stage.proxies
    proxy.trouble = Trouble(**trouble)
    large = [await stage.pod(cpu="7500m", priority_class="first") for _ in range(NODES // 2)]
    began = now()
    # Events that bring waiting pods back in the midst of evictions.
    for number in range(NODES):
        await stage.node(f"empty-{number}", cpu="100m")
    await stage.until(lambda: all(map(stage.node_of, large)), "all preemptors have a node", SOON)
    stage.recovery = now() - began
    gone = [uid for uid in small if uid not in stage.history.pods]
    assert len(gone) == SMALL * len(large), "no victim leaves for nothing"


@pytest.mark.ends(4.0)
async def test_victims_that_end_one_by_one_while_other_pods_want_the_room(stage: Stage) -> None:
    """Kueue#13797: others take the room that the first victims leave, and more are evicted again and again."""
    small = await full_of_small_pods(stage, grace=4)
    thieves = await stage.pods(2 * NODES, cpu="1900m")
    began = now()
    large = [await stage.pod(cpu="7500m", priority_class="first") for _ in range(NODES // 2)]
    async with stage.steadily(10.0, cpu="1900m"):
        await stage.until(lambda: all(map(stage.node_of, large)), "all preemptors have a node", SOON)
    stage.recovery = now() - began
    gone = [uid for uid in small if uid not in stage.history.pods]
    assert len(gone) == SMALL * len(large), "no victim leaves for nothing"
    assert not any(map(stage.node_of, thieves))


async def test_pods_that_change_while_their_bindings_fail(stage: Stage) -> None:
    """Kubernetes#139450: a pod that changes between its hand-out and the end of its attempt is in no queue afterwards."""
    await stage.nodes(NODES, cpu="8")
    await stage.replicas_at_work(1)
    (proxy,) = stage.proxies
    proxy.trouble.bindings, proxy.trouble.answers, proxy.trouble.delay = 0.5, (500,), 0.02
    uids = await stage.pods(60)
    for round_ in range(5):
        for uid in uids:
            if uid in stage.history.first:
                await stage.api.patch(f"{OWN_PODS}/{stage.name_of(uid)}", {"metadata": {"labels": {"round": str(round_)}}})
            await asyncio.sleep(0)
    began = now()
    await stage.until(lambda: all(map(stage.node_of, uids)), "all pods have a node")
    stage.recovery = now() - began
    assert proxy.counts.answers[500] >= 10, "hardly any Binding failed"
    assert stage.history.bound == len(stage.created)


async def test_deletions_that_are_told_twice(stage: Stage) -> None:
    """The second time, another pod of the name is there, waits or has a node."""
    await stage.nodes(NODES, cpu="8")
    await stage.replicas_at_work(1)
    (proxy,) = stage.proxies
    proxy.trouble.deleted_again = 0.3
    for _ in range(4):
        uids = [await stage.pod(f"again-{number}", cpu="1") for number in range(10)]
        waiting = [await stage.pod(f"large-{number}", cpu="9") for number in range(5)]
        await stage.until(lambda uids=uids: all(map(stage.node_of, uids)), "the pods have nodes")  # type: ignore[misc]
        for uid in (*uids, *waiting):
            await stage.delete_pod(uid)
    uids = [await stage.pod(f"again-{number}", cpu="1") for number in range(10)]
    waiting = [await stage.pod(f"large-{number}", cpu="9") for number in range(5)]
    await stage.until(lambda: proxy.counts.told_again >= 60 and not proxy.repeating, "deletions are told again")
    (replica,) = stage.replicas
    replica.compare()
    await stage.until(replica.comparisons, "it compares")
    assert replica.comparisons()[0].endswith(" no difference")
    await stage.node("large", cpu="64")
    await stage.until(lambda: all(map(stage.node_of, (*uids, *waiting))), "all pods have a node", SOON)
