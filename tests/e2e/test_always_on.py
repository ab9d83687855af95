"""Several replicas, and what may happen to them and to the control plane: each Binding comes from the one that leads, by the audit log."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from faults.audit import Findings
from faults.report import append
from lab.controlplane.breaking import forget_history
from placewright.kube.errors import CONFLICT, ApiError
from placewright_lab.controlplane.audit import Record

from .judging import seconds
from .replicas import Member, Replicas
from .stage import Stage
from .test_faults import listed

#: As many pods as there is room for on `NODES` of `CPU`, but for the one that shows who leads.
BURST = 299
BEGUN = 60
LATER = 50
NODES = 10
CPU = "3"
PODS_A_SECOND = 30.0

Judge = Callable[[float], Awaitable[Findings]]


@pytest.fixture
async def replicas(rough_stage: Stage) -> AsyncIterator[Replicas]:
    made = Replicas(rough_stage)
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
def judge(replicas: Replicas, request: pytest.FixtureRequest) -> Judge:
    """Ends the replicas, and says what was wrong; takes how long it took to recover, in seconds."""

    async def verdict(recovery: float) -> Findings:
        found = await replicas.judged()
        file: Path | None = request.config.getoption("report")
        fault = f"{request.node.name.removeprefix('test_').replace('_', ' ')}, on kube-apiserver"
        if file is not None:  # on a real control plane there are no seeds
            append(file, fault, 0, found, recovery)
        return found

    return verdict


async def test_leader_killed_in_mid_burst(replicas: Replicas, judge: Judge) -> None:
    await replicas.stage.nodes(NODES, cpu=CPU)
    leader, (heir,) = await replicas.at_work(2)
    async with replicas.burst(BURST, BEGUN):
        killed = time.time()
        await leader.kill()
    next_one = await replicas.until_bound(killed, heir)
    verdict = await judge(next_one.received - killed)
    assert verdict.faults == []
    assert (leader.name, heir.name) in pairwise(replicas.leaders())


async def test_leader_frozen_past_its_lifetime_and_thawed(replicas: Replicas, judge: Judge) -> None:
    await replicas.stage.nodes(NODES, cpu=CPU)
    leader, (heir,) = await replicas.at_work(2)
    async with replicas.burst(BURST - LATER, BEGUN):
        frozen = time.time()
        leader.freeze()
        next_one = await replicas.until_bound(frozen, heir)
        await replicas.until_lifetime_is_over(frozen)
        leader.thaw()
        await replicas.until_asks(leader, time.time())
    await replicas.stage.until_running(await replicas.stage.pods(LATER))
    verdict = await judge(next_one.received - frozen)
    assert verdict.faults == []
    assert (leader.name, heir.name) in pairwise(replicas.leaders())


async def test_leader_cut_off_and_healed(replicas: Replicas, judge: Judge) -> None:
    await replicas.stage.nodes(NODES, cpu=CPU)
    leader, (heir,) = await replicas.at_work(2, can_be_cut=True)
    async with replicas.burst(BURST - LATER, BEGUN):
        cut = time.time()
        leader.proxy.cut(refuse=False)
        next_one = await replicas.until_bound(cut, heir)
        await replicas.until_lifetime_is_over(cut)
        await leader.proxy.heal()
        await replicas.until_asks(leader, time.time())
    await replicas.stage.until_running(await replicas.stage.pods(LATER))
    verdict = await judge(next_one.received - cut)
    assert verdict.faults == []
    assert (leader.name, heir.name) in pairwise(replicas.leaders())


async def test_api_server_restarted(replicas: Replicas, judge: Judge) -> None:
    await replicas.stage.nodes(NODES, cpu=CPU)
    await replicas.at_work(2)
    async with replicas.burst(BURST, BEGUN):
        replicas.stage.kill_api_server()
        down = time.time()
        await replicas.stage.until_api_server_is_back()
    verdict = await judge(await replicas.until_back(down))
    assert verdict.faults == []


async def test_etcd_restarted(replicas: Replicas, judge: Judge) -> None:
    await replicas.stage.nodes(NODES, cpu=CPU)
    await replicas.at_work(2)
    async with replicas.burst(BURST, BEGUN):
        down = time.time()
        await replicas.stage.restart_etcd()
    verdict = await judge(await replicas.until_back(down))
    assert verdict.faults == []


async def test_history_compacted_so_that_every_watch_lists_again(replicas: Replicas, judge: Judge) -> None:
    stage = replicas.stage
    await stage.nodes(NODES, cpu=CPU)
    leader, (standby,) = await replicas.at_work(2)
    async with replicas.burst(BURST, BEGUN):
        stage.kill_api_server()
        down = time.time()
        watched = {each.name: listed(asked_by(each, replicas, 0)) for each in (leader, standby)}
        forget_history(stage.control_plane)
        await stage.until_api_server_is_back()
    recovery = await replicas.until_back(down)
    assert "/api/v1/nodes" in watched[leader.name] & watched[standby.name]
    for each in (leader, standby):
        await until_listed_again(replicas, each, watched[each.name], down)
    verdict = await judge(recovery)
    assert verdict.faults == []


async def until_listed_again(replicas: Replicas, member: Member, collections: set[str], after: float) -> None:
    def missing() -> set[str]:
        return collections - listed(asked_by(member, replicas, after))

    await replicas.stage.views.until(lambda: not missing(), lambda: f"{member.name} lists again: {missing()}")


def asked_by(member: Member, replicas: Replicas, after: float) -> list[Record]:
    """What this replica asked for later."""
    return [each for each in replicas.records() if each.pod == member.name and seconds(each.request_received_timestamp) > after]


async def test_rolling_update_of_three_replicas_under_load(replicas: Replicas, judge: Judge) -> None:
    await replicas.stage.nodes(2 * NODES, cpu=CPU)
    leader, others = await replicas.at_work(3)
    began = time.time()
    async with replicas.steadily(PODS_A_SECOND, cpu="10m") as keys:
        for each in (leader, *others):
            await replicas.until_ready(await replicas.start())
            assert await each.end() == 0
        await replicas.until_bound(time.time())
    moments = sorted(each.received for each in replicas.bindings() if each.asked.bound and each.received > began)
    verdict = await judge(max(after - before for before, after in pairwise(moments)))
    assert verdict.faults == []
    assert len(keys) > PODS_A_SECOND
    assert len(replicas.leaders()) >= 2


async def test_a_second_scheduler_places_the_same_pods_on_the_same_nodes(replicas: Replicas, judge: Judge) -> None:
    stage = replicas.stage
    # Room to spare: nobody can keep two schedulers from deciding for the last room on a node at the same moment.
    nodes = await stage.nodes(NODES, cpu="4")
    await replicas.at_work(2)
    began = time.time()
    random = Random(0)
    async with asyncio.TaskGroup() as group:
        left = group.create_task(stage.pods(BURST // 2))
        grabbed = [group.create_task(create_and_bind(stage, random.choice(nodes))) for _ in range(BURST // 2)]
    pods = left.result() + [each.result() for each in grabbed]
    # A replica that always is the first to bind meets nobody: the other one goes on until it was faster once.
    while len(pods) < 2 * BURST and not any(each.asked.bound for each in replicas.bindings() if not each.replica):
        pods.append(await create_and_bind(stage, random.choice(nodes)))
    await stage.until_running(pods)
    first, sent = await replicas.until_bound(began), replicas.bindings()
    verdict = await judge(first.received - began)
    assert verdict.faults == []
    assert any(each.asked.bound for each in sent if not each.replica), "the other scheduler came first now and then"
    assert any(each.asked.code == CONFLICT for each in sent if each.replica), "and we met what it had done"


async def create_and_bind(stage: Stage, node: str) -> str:
    """A scheduler without a queue, a cache or doubts: a pod is bound to some node as soon as it is there."""
    (key,) = await stage.pods(1)
    namespace, _, name = key.partition("/")
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    metadata = {"name": name, "namespace": namespace, "uid": json.loads(await stage.client.get(path))["metadata"]["uid"]}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    try:
        await stage.client.post(f"{path}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})
    except ApiError as refusal:
        assert refusal.status == CONFLICT  # noqa: PT017 - anything else is not of this test
    return key
