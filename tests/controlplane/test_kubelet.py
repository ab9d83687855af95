"""The kubelet that works by requests, against the sandbox with its own kubelets so slow that they do nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from placewright.cli.feed import background
from placewright.controlplane.kubelet import Kubelet
from placewright.kube.client import ApiClient
from placewright.kube.login import load_config
from placewright.sandbox.kubelet import RUN_SECONDS, KubeletTimes
from placewright.sandbox.server import Sandbox, SandboxOptions
from placewright.sandbox.store import Change
from placewright.sandbox.writes import DeleteOptions

Object = dict[str, Any]
DEADLINE = 20.0


class Ward:
    """A sandbox whose pods only our kubelet looks after."""

    def __init__(self, sandbox: Sandbox, kubelet: Kubelet) -> None:
        self.sandbox = sandbox
        self.kubelet = kubelet
        self.pods = sandbox.resource("", "v1", "pods")
        self._news = asyncio.Event()
        sandbox.store.listeners.append(self._heard)

    def _heard(self, key: object, change: Change) -> None:
        self._news.set()

    def pod(self, name: str, *, node: str = "node-0", **annotations: str) -> None:
        container = {"name": "main", "image": "example.test/main"}
        spec = {"containers": [container]} | ({"nodeName": node} if node else {})
        self.sandbox.writes.create(self.pods, "default", {"metadata": {"name": name, "annotations": annotations}, "spec": spec})

    def delete(self, name: str) -> None:
        self.sandbox.writes.delete(self.pods, "default", name, DeleteOptions())

    def show(self, name: str) -> Object | None:
        found = self.sandbox.store.get(self.pods.key, "default", name)
        return found.object if found else None

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


async def test_a_server_that_goes_away_is_waited_for(ward: Ward) -> None:
    ward.sandbox.faults.refuse_connections(0.3)
    ward.pod("web")
    found = await ward.until_phase("web", "Running")
    assert found is not None
    assert found["status"]["containerStatuses"][0]["state"]["running"]
