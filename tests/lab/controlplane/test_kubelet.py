"""The kubelet that works by requests, against the sandbox with its own kubelets so slow that they do nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubesandbox.controllers.kubelet import RUN_SECONDS, START_SECONDS, TURNS_AWAY, Kubelets, KubeletTimes, simulated_node
from kubesandbox.faults import Rule
from kubesandbox.server import Sandbox, SandboxOptions
from kubesandbox.storage.store import Change
from kubesandbox.storage.writes import DeleteOptions
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.controlplane.kubelet import AssignedMeta, AssignedPod, Kubelet, Step, step_delay
from placewright_lab.demo.feed import background

Object = dict[str, Any]
DEADLINE = 20.0


class Ward:
    """A sandbox whose pods only our kubelet handles."""

    def __init__(self, sandbox: Sandbox, kubelet: Kubelet) -> None:
        self.sandbox = sandbox
        self.kubelet = kubelet
        self.pods = sandbox.resource("", "v1", "pods")
        self._news = asyncio.Event()
        sandbox.store.listeners.append(self._heard)

    def _heard(self, key: object, change: Change) -> None:
        self._news.set()

    def pod(self, name: str, *, node: str = "node-0", cpu: str = "", finalizers: tuple[str, ...] = (), **annotations: str) -> None:
        resources = {"requests": {"cpu": cpu}} if cpu else {}
        container = {"name": "main", "image": "example.test/main", "resources": resources}
        spec = {"containers": [container]} | ({"nodeName": node} if node else {})
        metadata = {"name": name, "annotations": annotations, "finalizers": list(finalizers)}
        self.sandbox.writes.create(self.pods, "default", {"metadata": metadata, "spec": spec})

    def delete(self, name: str) -> None:
        self.sandbox.writes.delete(self.pods, "default", name, DeleteOptions())

    def show(self, name: str) -> Object | None:
        found = self.sandbox.store.get(self.pods.key, "default", name)
        return found.object if found else None

    async def news(self) -> None:
        """Return when something changed."""
        self._news.clear()
        await self._news.wait()

    async def until_phase(self, name: str, phase: str | None) -> Object | None:
        async with asyncio.timeout(DEADLINE):
            while True:
                self._news.clear()
                found = self.show(name)
                if (found and found["status"]["phase"]) == phase:
                    return found
                await self._news.wait()


@pytest.fixture
async def ward() -> AsyncIterator[Ward]:
    options = SandboxOptions(nodes=1, kubelets=KubeletTimes(start=3600, end=3600))
    async with Sandbox(options) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        made = Ward(sandbox, Kubelet(client, start_seconds=0.0))
        async with background(made.kubelet.run(), "kubelet"):
            yield made


async def test_an_assigned_pod_runs_and_is_ready(ward: Ward) -> None:
    ward.pod("web")
    found = await ward.until_phase("web", "Running")
    assert found is not None
    assert {one["type"] for one in found["status"]["conditions"] if one["status"] == "True"} >= {"Ready", "ContainersReady"}
    assert found["status"]["containerStatuses"][0]["state"]["running"]


async def test_a_pod_keeps_its_address_when_the_answer_to_its_report_is_lost(ward: Ward) -> None:
    ward.sandbox.faults.add(Rule(method="PATCH", path="/pods/web/status", lose_answer=True, times=1))
    ward.pod("web")
    running = await ward.until_phase("web", "Running")
    ward.pod("later")
    await ward.until_phase("later", "Running")
    async with asyncio.timeout(DEADLINE):
        while ward.kubelet.counts[Step.START] < 2:  # noqa: ASYNC110 - the second report changes nothing: nobody hears of it
            await asyncio.sleep(0.01)
    found = ward.show("web")
    assert running is not None
    assert found is not None
    assert found["status"]["podIPs"] == running["status"]["podIPs"] == [{"ip": running["status"]["podIP"]}]


async def test_a_pod_that_was_made_on_its_node_counts_as_scheduled(ward: Ward) -> None:
    ward.pod("web")
    found = await ward.until_phase("web", "Running")
    assert found is not None
    assert [one["status"] for one in found["status"]["conditions"] if one["type"] == "PodScheduled"] == ["True"]


async def test_a_pod_without_a_node_is_left_alone(ward: Ward) -> None:
    ward.pod("waits", node="")
    ward.pod("web")
    await ward.until_phase("web", "Running")
    assert (ward.show("waits") or {})["status"]["phase"] == "Pending"


async def test_a_pod_deleted_with_grace_goes(ward: Ward) -> None:
    ward.pod("web")
    await ward.until_phase("web", "Running")
    ward.delete("web")
    await ward.until_phase("web", None)
    assert ward.show("web") is None


async def test_a_pod_that_runs_for_a_while_completes(ward: Ward) -> None:
    ward.pod("job", **{RUN_SECONDS: "0"})
    found = await ward.until_phase("job", "Succeeded")
    assert found is not None
    assert {one["type"]: one["status"] for one in found["status"]["conditions"]}["Ready"] == "False"


async def test_annotations_of_nodes_and_pods_mean_what_they_mean_in_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them every pod here waits for an hour."""
    monkeypatch.setattr(Kubelets, "_adopt", lambda *_: None)  # the sandbox's own would heed them, too
    async with Sandbox(SandboxOptions(nodes=1)) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        nodes = sandbox.resource("", "v1", "nodes")
        for number, notes in ((1, {START_SECONDS: "0"}), (2, {TURNS_AWAY: "OutOfcpu"})):
            node = simulated_node(number, "2023-11-14T22:13:20Z")
            sandbox.writes.create(nodes, "", {**node, "metadata": {**node["metadata"], "annotations": notes}})
        ward = Ward(sandbox, Kubelet(client, start_seconds=3600.0))
        async with background(ward.kubelet.run(), "kubelet"):
            ward.pod("late", node="node-0000")
            ward.pod("later", node="node-0001", **{START_SECONDS: "3600"})
            ward.pod("soon", node="node-0000", **{START_SECONDS: "0"})
            ward.pod("on-a-soon-node", node="node-0001")
            ward.pod("turned-away", node="node-0002", **{START_SECONDS: "0"})
            for name in ("soon", "on-a-soon-node"):
                await ward.until_phase(name, "Running")
            failed = await ward.until_phase("turned-away", "Failed")
            assert failed is not None
            assert failed["status"]["reason"] == "OutOfcpu"
            assert [(ward.show(name) or {})["status"]["phase"] for name in ("late", "later")] == ["Pending", "Pending"]


async def test_a_server_that_goes_away_is_waited_for(ward: Ward) -> None:
    ward.sandbox.faults.refuse_connections(0.3)
    ward.pod("web")
    found = await ward.until_phase("web", "Running")
    assert found is not None
    assert found["status"]["containerStatuses"][0]["state"]["running"]


async def test_a_pod_whose_node_has_no_room_left_is_failed_in_a_kubelet_s_words(ward: Ward) -> None:
    ward.pod("first", node="node-0000", cpu="10")
    await ward.until_phase("first", "Running")
    ward.pod("second", node="node-0000", cpu="6500m")
    found = await ward.until_phase("second", "Failed")
    assert found is not None
    assert found["status"]["reason"] == "OutOfcpu"
    amounts = "requested: 6500, used: 10000, capacity: 16000"
    assert found["status"]["message"] == f"Pod was rejected: Node didn't have enough resource: cpu, {amounts}"


@pytest.mark.parametrize("ending", ["deleted", "completed"])
async def test_a_pod_that_ended_leaves_its_room_to_the_next(ward: Ward, ending: str) -> None:
    ward.pod("first", node="node-0000", cpu="10", **({RUN_SECONDS: "0"} if ending == "completed" else {}))
    if ending == "completed":
        await ward.until_phase("first", "Succeeded")
    else:
        await ward.until_phase("first", "Running")
        ward.delete("first")
        await ward.until_phase("first", None)
    ward.pod("second", node="node-0000", cpu="10")
    assert await ward.until_phase("second", "Running") is not None


async def test_pods_assigned_at_once_share_the_room_there_is(ward: Ward) -> None:
    for number in range(4):
        ward.pod(f"pod-{number}", node="node-0000", cpu="5")
    async with asyncio.timeout(DEADLINE):
        while "Pending" in (phases := [(ward.show(f"pod-{number}") or {})["status"]["phase"] for number in range(4)]):
            await ward.news()
    assert sorted(phases) == ["Failed", "Running", "Running", "Running"]


async def test_a_pod_that_ran_before_the_kubelet_began_counts() -> None:
    options = SandboxOptions(nodes=1, kubelets=KubeletTimes(start=3600, end=3600))
    async with Sandbox(options) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        for name, phase in (("first", "Running"), ("second", "Failed")):
            ward = Ward(sandbox, Kubelet(client, start_seconds=0.0))
            async with background(ward.kubelet.run(), "kubelet"):
                ward.pod(name, node="node-0000", cpu="10")
                assert await ward.until_phase(name, phase) is not None


async def test_a_pod_is_not_refused_for_a_change_of_its_node_that_the_kubelet_has_not_heard_of(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node is asked for anew before anybody is refused."""
    ward.pod("first", node="node-0000", cpu="16")
    await ward.until_phase("first", "Running")
    nodes = ward.sandbox.resource("", "v1", "nodes")
    stored = ward.sandbox.store.get(nodes.key, "", "node-0000")
    assert stored is not None
    grown = {**stored.object, "status": {**stored.object["status"], "allocatable": {"cpu": "32", "memory": "64Gi", "pods": "110"}}}
    monkeypatch.setattr("placewright_lab.controlplane.kubelet._Nodes.changed", lambda *_: None)
    ward.sandbox.store.put(nodes.key, "", "node-0000", grown)
    ward.pod("second", node="node-0000", cpu="16")
    assert await ward.until_phase("second", "Running") is not None


async def test_a_deleted_pod_with_a_finalizer_has_ended_and_holds_no_room(ward: Ward) -> None:
    ward.pod("kept", node="node-0000", cpu="10", finalizers=("example.com/kept",))
    await ward.until_phase("kept", "Running")
    ward.delete("kept")
    assert await ward.until_phase("kept", "Succeeded") is not None
    ward.pod("next", node="node-0000", cpu="10")
    assert await ward.until_phase("next", "Running") is not None
    assert ward.show("kept") is not None


def test_a_hook_that_sleeps_delays_the_end_within_the_grace() -> None:
    assert end_delay(sleep=7, grace=30) == 7
    assert end_delay(sleep=70, grace=30) == 30
    assert end_delay(sleep=7, grace=0) == 0.5
    assert end_delay(sleep=7, grace=30, phase="Pending") == 0.5


def end_delay(*, sleep: int, grace: int, phase: str = "Running") -> float:
    metadata = AssignedMeta(name="web", deletion_timestamp="2026-01-01T00:00:00Z", deletion_grace_period_seconds=grace)
    containers = [{"name": "main"}, {"name": "side", "lifecycle": {"preStop": {"sleep": {"seconds": sleep}}}}]
    return step_delay(AssignedPod(metadata, {"containers": containers}, {"phase": phase}), Step.END, 0.5)
