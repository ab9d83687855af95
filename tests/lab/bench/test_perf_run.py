"""Workloads of scheduler_perf over a sandbox, with a scheduler of the test's own: what is created, waited for and measured."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kubesandbox.server import Sandbox
from lab.bench.sandboxplane import Incoming, SandboxPlane
from placewright.api.objects import Pod
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import ApiError
from placewright.kube.reflector import Reflector, Source
from placewright_lab.bench.contenders import Contender, RunningScheduler
from placewright_lab.bench.measuredcluster import Patience, WaveFailed
from placewright_lab.bench.schedulerperf.contests import run_turn
from placewright_lab.bench.schedulerperf.operations import (
    AllocatableStrategy,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    DeletePods,
    NotKnown,
    Operation,
    PerfWorkload,
    SchedulingStage,
    StartCollectingMetrics,
    StopCollectingMetrics,
    Template,
    UpdateAny,
)
from placewright_lab.bench.schedulerperf.verdicts import PerfTurn

SHORT = Patience(binding=5.0, event=0.2)
#: Seconds that nothing here takes.
LIMIT = 30.0


@dataclass
class BindingScheduler:
    """Binds every pod to the first node, one after the other.

    Attributes:
        kubeconfig: kubeconfig of the sandbox.
        leaves: prefixes of names of pods that it calls unschedulable.
        dies_at: prefix of a pod's name at which it ends.
        churned: names of pods that must come before it binds a pod whose name begins with "last".
        seen: pods in the order in which they came, as `namespace/name`.
    """

    kubeconfig: Path
    leaves: str = "unschedulable"
    dies_at: str = "deadly"
    churned: int = 0
    seen: list[str] = field(default_factory=list)
    pid: int = field(default_factory=os.getpid)
    ended: bool = False

    @property
    def contender(self) -> Contender:
        return Contender("test", "default-scheduler", self.start)

    def last_words(self) -> str:
        return "farewell"

    @asynccontextmanager
    async def start(self, folder: Path) -> AsyncIterator[RunningScheduler]:
        async with ApiClient(load_config(str(self.kubeconfig))) as client:
            queue: asyncio.Queue[Pod] = asyncio.Queue()
            reflector = Reflector(client, Source("/api/v1/pods", Pod, "spec.nodeName="), Incoming(queue))
            tasks = [asyncio.create_task(reflector.run()), asyncio.create_task(self._work(client, queue))]
            yield self
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, client: ApiClient, queue: asyncio.Queue[Pod]) -> None:
        held: list[Pod] = []
        while True:
            came = await queue.get()
            metadata = came.metadata
            self.seen.append(f"{metadata.namespace}/{metadata.name}")
            path = f"/api/v1/namespaces/{metadata.namespace}/pods/{metadata.name}"
            if sum("/churned-" in key for key in self.seen) >= self.churned and held:
                queue.put_nowait(held.pop())
            if metadata.name.startswith(self.dies_at):
                self.ended = True
            elif metadata.name.startswith("last") and sum("/churned-" in key for key in self.seen) < self.churned:
                held.append(came)
            elif metadata.name.startswith(self.leaves):
                await client.patch(f"{path}/status", {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}})
            else:
                nodes = json.loads(await client.get("/api/v1/nodes"))["items"]
                target = {"apiVersion": "v1", "kind": "Node", "name": nodes[0]["metadata"]["name"]}
                await client.post(f"{path}/binding", {"metadata": {"name": metadata.name}, "target": target})


@pytest.fixture
async def plane() -> AsyncIterator[SandboxPlane]:
    async with Sandbox() as sandbox:
        yield SandboxPlane(Path(sandbox.kubeconfig))


async def run(plane: SandboxPlane, *operations: Operation, scheduler: BindingScheduler | None = None, limit: float = LIMIT) -> PerfTurn:
    made = scheduler or BindingScheduler(plane.kubeconfig)
    workload = PerfWorkload("Case/5Nodes", operations)
    return await run_turn(workload, plane, made.contender, limit, lambda _done, _wanted: None, SHORT)


async def listed(plane: SandboxPlane, path: str) -> list[dict[str, Any]]:
    async with ApiClient(load_config(str(plane.kubeconfig))) as client:
        items: list[dict[str, Any]] = json.loads(await client.get(path))["items"]
        return items


def a_pod(name: str, **fields: Any) -> Template:
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0}
    metadata = {"generateName": f"{name}-", "labels": {"app": name}}
    return Template(Path(f"{name}.yaml"), json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, **fields}}))


def named(kind: str, name: str, version: str = "v1", **fields: Any) -> Template:
    return Template(Path(f"{name}.yaml"), json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}))


def names(found: Iterable[dict[str, Any]]) -> list[str]:
    return [each["metadata"]["name"] for each in found]


async def test_only_the_measured_pods_are_measured_and_all_are_counted_at_the_end(plane: SandboxPlane) -> None:
    turn = await run(plane, CreateNodes(3), CreatePods(4), CreatePods(6, collect_metrics=True))
    assert (turn.ended, turn.scheduler, turn.pods) == ("", "test", 6)
    assert turn.seconds > 0
    assert (turn.bound, turn.pending, turn.deleted) == ({"namespace-1": 4, "namespace-2": 6}, {}, {})
    assert len(await listed(plane, "/api/v1/nodes")) == 3


async def test_the_cluster_is_empty_again_after_the_warm_up(plane: SandboxPlane) -> None:
    scheduler = BindingScheduler(plane.kubeconfig)
    turn = await run(plane, CreateNodes(1), CreatePods(1, collect_metrics=True), scheduler=scheduler)
    assert [key.partition("/")[0] for key in scheduler.seen] == ["warm-up", "namespace-1"]
    assert turn.bound == {"namespace-1": 1}
    assert await listed(plane, "/api/v1/namespaces/warm-up/pods") == []


async def test_pods_that_are_not_waited_for_may_stay_pending(plane: SandboxPlane) -> None:
    turn = await run(
        plane, CreateNodes(1), CreatePods(3, a_pod("unschedulable"), skip_wait_to_completion=True), CreatePods(2, collect_metrics=True)
    )
    assert (turn.ended, turn.pods) == ("", 2)
    assert turn.pending == {"namespace-1": 3}


async def test_claims_and_volumes_are_there_before_their_pods(plane: SandboxPlane) -> None:
    volume = named("PersistentVolume", "", spec={"csi": {"driver": "d"}, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany"]})
    claim = named("PersistentVolumeClaim", "", spec={"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}})
    strategy = AllocatableStrategy(csi_node_allocatable={"d": {"count": 5}})
    turn = await run(plane, CreateNodes(1, allocatable=strategy), CreatePods(3, volume=volume, claim=claim, collect_metrics=True))
    assert (turn.ended, turn.pods) == ("", 3)
    claims = await listed(plane, "/api/v1/namespaces/namespace-1/persistentvolumeclaims")
    assert {each["spec"]["volumeName"] for each in claims} == set(names(await listed(plane, "/api/v1/persistentvolumes")))
    assert [each["status"]["phase"] for each in claims] == ["Bound"] * 3
    assert len(await listed(plane, "/apis/storage.k8s.io/v1/csinodes")) == 1


async def test_barriers_wait_for_pods_that_were_left_behind_bound_or_tried(plane: SandboxPlane) -> None:
    scheduler = BindingScheduler(plane.kubeconfig)
    turn = await run(
        plane,
        CreateNodes(1),
        StartCollectingMetrics(("a", "b"), {"app": "web"}),
        CreatePods(2, a_pod("unschedulable"), "a", skip_wait_to_completion=True),
        Barrier(stage=SchedulingStage.ATTEMPTED),
        CreatePods(3, a_pod("web"), "b", skip_wait_to_completion=True),
        Barrier(("b",), {"app": "web"}),
        CreatePods(2, a_pod("other"), "c", skip_wait_to_completion=True),
        Barrier(("c",)),
        StopCollectingMetrics(),
        scheduler=scheduler,
    )
    assert (turn.ended, turn.pods) == ("", 3)
    assert turn.pending == {"a": 2}
    assert [key.partition("/")[0] for key in scheduler.seen[1:]] == ["a"] * 2 + ["b"] * 3 + ["c"] * 2


async def test_deleted_pods_are_counted_as_such(plane: SandboxPlane) -> None:
    operations = (
        CreatePods(3, a_pod("web"), "a"),
        DeletePods("a", {"app": "web"}, delete_pods_per_second=100),
        CreatePods(1, collect_metrics=True),
    )
    turn = await run(plane, CreateNodes(1), *operations)
    assert (turn.bound, turn.deleted) == ({"namespace-3": 1}, {"a": 3})


async def test_churn_goes_on_beside_and_its_pods_are_not_measured(plane: SandboxPlane) -> None:
    scheduler = BindingScheduler(plane.kubeconfig, churned=2)
    churn = Churn("create", (a_pod("churned"),), 2, interval_milliseconds=10)
    turn = await run(plane, CreateNodes(1), churn, CreatePods(1, a_pod("last"), collect_metrics=True), scheduler=scheduler)
    assert (turn.pods, turn.bound) == (1, {"namespace-1": 2, "namespace-2": 1})


async def test_churn_that_recreates_takes_away_what_it_made_before_it_makes_more(plane: SandboxPlane) -> None:
    scheduler = BindingScheduler(plane.kubeconfig, churned=2)
    churn = Churn("recreate", (a_pod("churned"),), 1, interval_milliseconds=50)
    turn = await run(plane, CreateNodes(1), churn, CreatePods(1, a_pod("last"), collect_metrics=True), scheduler=scheduler)
    assert turn.bound.get("namespace-1", 0) <= 1
    assert turn.deleted["namespace-1"] >= 1


async def test_objects_of_any_kind_are_created_and_written_anew(plane: SandboxPlane) -> None:
    changed = named("Node", "mine", metadata={"name": "mine", "labels": {"a": "b"}})
    await run(
        plane,
        CreateNamespaces(2, "ns", named("Namespace", "", metadata={"labels": {"team": "devops"}})),
        CreateAny(named("Node", "mine", status={"capacity": {"cpu": "4", "pods": "10"}})),
        UpdateAny(changed),
        CreatePods(1, collect_metrics=True),
    )
    (node,) = await listed(plane, "/api/v1/nodes")
    assert node["metadata"]["labels"]["a"] == "b"
    made = {each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in await listed(plane, "/api/v1/namespaces")}
    assert made["ns-1"]["team"] == "devops"


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (CreateAny(named("Gadget", "g", "toys.dev/v1")), "the API server does not serve Gadget in toys.dev/v1"),
        (Churn("create", (named("Gadget", "g", "v1"),)), "the API server does not serve Gadget in v1"),
        (CreateAny(named("Node", "n"), namespace="here"), "nodes in the namespace 'here': allowed none"),
        (UpdateAny(named("Pod", "p")), "pods in the namespace '': allowed a name"),
    ],
)
async def test_a_kind_that_is_not_served_leaves_the_workload_out_before_it_begins(
    plane: SandboxPlane, operation: Operation, said: str
) -> None:
    with pytest.raises(NotKnown, match=said):
        await run(plane, CreateNodes(1), operation)
    assert await listed(plane, "/api/v1/nodes") == []


async def test_a_workload_that_does_not_end_is_ended_and_says_how_far_it_came(plane: SandboxPlane) -> None:
    operations = (
        CreateNodes(1),
        StartCollectingMetrics(("a",)),
        CreatePods(2, a_pod("web"), "a"),
        CreatePods(1, a_pod("unschedulable"), "b"),
    )
    turn = await run(plane, *operations, limit=2.0)
    assert turn.ended == "not at its end after 2 s, 2 measured pods bound"


async def test_a_scheduler_that_ends_by_itself_is_told_with_its_last_words(plane: SandboxPlane) -> None:
    with pytest.raises(WaveFailed, match="it ended by itself: farewell"):
        await run(plane, CreateNodes(1), CreatePods(1, a_pod("deadly"), collect_metrics=True))


async def test_what_churn_cannot_create_ends_the_workload(plane: SandboxPlane) -> None:
    twice = Churn("create", (named("Namespace", "one"),), interval_milliseconds=10)
    with pytest.raises(ApiError, match="already exists"):
        await run(plane, CreateNodes(1), twice, CreatePods(1, a_pod("unschedulable"), collect_metrics=True))
