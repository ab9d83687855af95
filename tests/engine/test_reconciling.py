"""The comparison of cache and queue with an API server: what was planted is found, mended and counted, and nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random

import msgspec
import pytest
import pytest_asyncio

from handlers.stage import DEADLINE, Running, Stage, new_stage, operator
from kubesandbox.faults import Rule
from kubesandbox.storage.writes import DeleteOptions
from placewright.api.decode import convert
from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.engine.engine import Engine
from placewright.engine.reconcile.loop import FEW, Comparer, ReconcileLoop
from placewright.kube.errors import ApiError
from placewright.scheduler.ports import AlwaysLead

#: Seconds between two looks.
SOON = 0.3
_AT_ONCE = DeleteOptions(grace=0)


def comparer(engine: Engine, *, patience: float = SOON, page: int = 2) -> Comparer:
    return Comparer(engine.writing.client, engine.reading.reconcile_loop.comparer.reconciler, patience=patience, page=page)


def made_up(name: str, *, node: str = "") -> PodInfo:
    """A pod that the API server has never heard of."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    spec = {"nodeName": node, "schedulerName": "placewright", "containers": [container]}
    return PodInfo(convert({"metadata": meta, "spec": spec, "status": {}}, Pod))


def uid(stage: Stage, name: str) -> str:
    return str(stage.show(name)["metadata"]["uid"])


def node_of_cache(engine: Engine, name: str) -> Node:
    row = engine.deciding.cluster.row(NodeName(name))
    assert row is not None
    return engine.deciding.cluster.node(row)


def a_lost_node(stage: Stage, engine: Engine) -> None:
    engine.deciding.cluster.remove_node(NodeName("node-0"))


def a_phantom_node(stage: Stage, engine: Engine) -> None:
    engine.deciding.cluster.set_node(convert({"metadata": {"name": "phantom"}, "status": {"allocatable": {"cpu": "64"}}}, Node))


def a_node_with_another_allocatable(stage: Stage, engine: Engine) -> None:
    """Of the same version: only its content tells."""
    node = node_of_cache(engine, "node-1")
    status = msgspec.structs.replace(node.status, allocatable={"cpu": "3", "pods": "110"})
    engine.deciding.cluster.set_node(msgspec.structs.replace(node, status=status))


def a_node_that_lost_its_taint(stage: Stage, engine: Engine) -> None:
    node = node_of_cache(engine, "tainted")
    engine.deciding.cluster.set_node(msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=None)))


def a_lost_pod_on_a_node(stage: Stage, engine: Engine) -> None:
    engine.deciding.cluster.remove_pod(uid(stage, "web-0"))


def a_phantom_pod_on_a_node(stage: Stage, engine: Engine) -> None:
    engine.deciding.cluster.set_pod(made_up("ghost", node="node-2"))


def a_pod_on_another_node(stage: Stage, engine: Engine) -> None:
    placement = engine.deciding.cluster.placement(uid(stage, "web-1"))
    assert placement is not None
    other = next(name for name in ("node-0", "node-1", "node-2") if name != placement.node)
    engine.deciding.cluster.set_pod(placement.pod.on(NodeName(other)))


def a_lost_pod_of_the_queue(stage: Stage, engine: Engine) -> None:
    engine.deciding.queue.delete(uid(stage, "big-0"))


def a_phantom_pod_in_the_queue(stage: Stage, engine: Engine) -> None:
    engine.deciding.queue.add(made_up("nobody"))


def a_pod_of_an_old_version_in_the_queue(stage: Stage, engine: Engine) -> None:
    known = engine.deciding.queue.latest(uid(stage, "big-1"))
    assert known is not None
    meta = msgspec.structs.replace(known.pod.metadata, resource_version="1", labels={"of": "old"})
    engine.deciding.queue.update(PodInfo(msgspec.structs.replace(known.pod, metadata=meta)))


PLANTED: dict[str, tuple[Callable[[Stage, Engine], None], str]] = {
    "a lost node": (a_lost_node, "nodes_missed"),
    "a phantom node": (a_phantom_node, "nodes_vanished"),
    "a node with another allocatable": (a_node_with_another_allocatable, "nodes_stale"),
    "a node that lost its taint": (a_node_that_lost_its_taint, "nodes_stale"),
    "a lost pod on a node": (a_lost_pod_on_a_node, "pods_missed"),
    "a phantom pod on a node": (a_phantom_pod_on_a_node, "pods_vanished"),
    "a pod on another node": (a_pod_on_another_node, "pods_stale"),
    "a lost pod of the queue": (a_lost_pod_of_the_queue, "missed"),
    "a phantom pod in the queue": (a_phantom_pod_in_the_queue, "vanished"),
    "a pod of an old version in the queue": (a_pod_of_an_old_version_in_the_queue, "outdated"),
}


async def settled(stage: Stage, running: Running) -> None:
    """Three nodes and a tainted one, six pods on them, three that fit nowhere."""
    stage.node("tainted", taint="example.test/away")
    placed = stage.pods(6)
    for number in range(3):
        stage.pod(f"big-{number}", cpu="80")
    await stage.until(lambda: all(stage.show(name)["status"].get("phase") == "Running" for name in placed))
    await stage.until(lambda: all(stage.condition(f"big-{number}") for number in range(3)))
    await stage.until(lambda: mirrors(stage, running), "columns and queue agree with the store")


def mirrors(stage: Stage, running: Running) -> bool:
    """Nodes and pods are as the store has them, in every version and amount."""
    engine = running.engine
    stored = {one.object["metadata"]["name"]: one.object for one in stage.sandbox.store.listed(stage._nodes.key)}
    believed = {node.metadata.name: node for node in engine.deciding.cluster.nodes()}
    pods = {one.uid: one.object["metadata"]["resourceVersion"] for one in stage.sandbox.store.listed(stage.pod_key)}
    known = {one.pod.uid: one.pod.pod.metadata.resource_version for one in engine.deciding.cluster.placements() if not one.assumed}
    waiting = {uid: pod.pod.metadata.resource_version for uid in engine.deciding.queue.uids() if (pod := engine.deciding.queue.latest(uid))}
    nodes_alike = stored.keys() == believed.keys() and all(convert(one, Node) == believed[name] for name, one in stored.items())
    return nodes_alike and running.agrees_with(stage) and known | waiting == pods


def found(counts: list[tuple[str, int]]) -> dict[str, int]:
    return {kind: count for kind, count in counts if count}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at_work() -> AsyncIterator[tuple[Stage, Running]]:
    """One operator for all that is planted one by one: whoever uses it leaves it as it was."""
    async with new_stage() as stage:
        stage.profile().nodes(3)
        async with operator(stage) as running:
            await settled(stage, running)
            yield stage, running


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("what", PLANTED)
async def test_what_is_planted_is_found_mended_and_counted(at_work: tuple[Stage, Running], what: str) -> None:
    plant, kind = PLANTED[what]
    stage, running = at_work
    await stage.until(lambda: running.engine.leading.takeover.active and mirrors(stage, running), "it goes on where it stood still")
    plant(stage, running.engine)
    assert not mirrors(stage, running), "something was planted"
    repairs = await comparer(running.engine).compare(cache=True, queue=True)
    assert found(list(repairs.counts())) == {kind: 1}
    await stage.until(lambda: mirrors(stage, running), "mended")
    again = await comparer(running.engine).compare(cache=True, queue=True)
    assert again.total == 0


async def test_everything_planted_at_once_is_found_in_one_comparison(stage: Stage) -> None:
    """But for the old version of a pod: nodes that come and go bring that pod another status, and the watch its newest version."""
    async with operator(stage) as running:
        await settled(stage, running)
        expected: dict[str, int] = {}
        for plant, kind in (one for one in PLANTED.values() if one[1] != "outdated"):
            plant(stage, running.engine)
            expected[kind] = expected.get(kind, 0) + 1
        repairs = await comparer(running.engine).compare(cache=True, queue=True)
        assert found(list(repairs.counts())) == expected
        await stage.until(lambda: mirrors(stage, running), "mended")


async def test_more_differences_than_are_read_one_by_one_are_settled_by_a_second_list(stage: Stage) -> None:
    count = FEW + 20
    for number in range(count):
        stage.node(f"more-{number}")
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.deciding.cluster.node_count == count + 3)
        for number in range(count):
            running.engine.deciding.cluster.remove_node(NodeName(f"more-{number}"))
        a_phantom_node(stage, running.engine)
        repairs = await comparer(running.engine, page=50).compare(cache=True, queue=True)
        assert found(list(repairs.counts())) == {"nodes_missed": count, "nodes_vanished": 1}
        assert mirrors(stage, running)


async def test_a_comparison_that_breaks_off_is_taken_up_again(stage: Stage) -> None:
    async with operator(stage) as running:
        await settled(stage, running)
        a_lost_node(stage, running.engine)
        stage.sandbox.faults.add(Rule(method="GET", path="/api/v1/nodes/node-0", code=500, times=1))
        with pytest.raises(ApiError):
            await comparer(running.engine).compare(cache=True, queue=True)
        assert running.engine.reading.event_handlers._departed is None
        repairs = await comparer(running.engine).compare(cache=True, queue=True)
        assert found(list(repairs.counts())) == {"nodes_missed": 1}


class Churn:
    """Creates, changes and deletes nodes and pods, from a seed, until told to end."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._random = Random(seed)
        self.steps = 0

    async def run(self) -> None:
        while True:
            self._step()
            self.steps += 1
            await asyncio.sleep(self._random.random() * 0.02)

    def _step(self) -> None:
        stage, name = self._stage, f"churn-{self.steps}"
        stored = [one.object["metadata"]["name"] for one in stage.sandbox.store.listed(stage.pod_key)]
        nodes = [one.object["metadata"]["name"] for one in stage.sandbox.store.listed(stage._nodes.key)]
        kind = self._random.randrange(6)
        if kind == 0:
            stage.node(name)
        elif kind == 1 and len(nodes) > 3:
            stage.sandbox.writes.delete(stage._nodes, "", self._random.choice(nodes), _AT_ONCE)
        elif kind == 2:
            stage._modify(stage._nodes, self._random.choice(nodes), lambda node: node["metadata"].update(labels={"step": name}))
        elif kind == 3 and stored:
            stage.delete_pod(self._random.choice(stored))
        else:
            stage.pod(name, cpu=self._random.choice(["100m", "80"]))


@pytest.mark.parametrize("seed", range(3))
async def test_under_churn_nothing_is_repaired(seed: int) -> None:
    async with new_stage() as stage:
        stage.profile().nodes(6)
        async with operator(stage) as running:
            await stage.until(lambda: running.engine.leading.leadership.active)
            churn = Churn(stage, seed)
            task = asyncio.create_task(churn.run())
            await stage.until(lambda: churn.steps > 50)
            for _ in range(3):
                async with asyncio.timeout(DEADLINE):
                    repairs = await comparer(running.engine, patience=1.0, page=10).compare(cache=True, queue=True)
                assert found(list(repairs.counts())) == {}
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await stage.until(lambda: mirrors(stage, running), "the watches alone were enough")


async def test_a_comparison_that_is_refused_waits_for_as_long_as_it_was_asked_to(stage: Stage) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with operator(stage) as running:
        await settled(stage, running)
        engine = running.engine
        lister = ReconcileLoop(comparer(engine), 0.05, AlwaysLead(), engine.deciding.profiles, sleep)
        refused = stage.sandbox.faults.add(Rule(method="GET", path="/api/v1/nodes", watch=False, code=429, retry_after=3, times=1))
        task = asyncio.create_task(lister.run())
        await stage.until(lambda: slept)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert refused.met == 1
    assert slept[0] >= 3
