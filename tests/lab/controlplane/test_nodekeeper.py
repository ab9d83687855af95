"""What keeps simulated nodes alive for a controller manager, against the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kubesandbox.server import Sandbox, SandboxOptions
from kubesandbox.storage.store import Change
from placewright.api.decode import convert
from placewright.api.objects import Node
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.controlplane.nodekeeper import NodeKeeper, make_nodes, newly_offered
from placewright_lab.demo.feed import background

Object = dict[str, Any]
DEADLINE = 20.0


class Kept:
    """A sandbox without nodes, a client, and a keeper that renews as fast as possible."""

    def __init__(self, sandbox: Sandbox, client: ApiClient) -> None:
        self.sandbox = sandbox
        self.client = client
        self._news = asyncio.Event()
        sandbox.store.listeners.append(self._heard)

    def _heard(self, key: object, change: Change) -> None:
        self._news.set()

    def show(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        stored = self.sandbox.store.get(self.sandbox.resource(group, "v1", plural).key, namespace, name)
        return stored.object if stored else None

    def lease(self, name: str) -> Object | None:
        return self.show("coordination.k8s.io", "leases", "kube-node-lease", name)

    def allocatable(self, name: str) -> Object:
        node = self.show("", "nodes", "", name)
        assert node is not None
        return dict(node["status"]["allocatable"])

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not done():
                self._news.clear()
                await self._news.wait()


@pytest.fixture
async def kept() -> AsyncIterator[Kept]:
    async with (
        Sandbox(SandboxOptions(nodes=0)) as sandbox,
        ApiClient(load_config(str(sandbox.kubeconfig))) as client,
        background(NodeKeeper(client, renew_seconds=0.01).run(), "nodekeeper"),
    ):
        yield Kept(sandbox, client)


async def test_each_node_has_a_lease_that_is_renewed(kept: Kept) -> None:
    await make_nodes(kept.client, 2, 31)
    await kept.until(lambda: kept.lease("node-0000") is not None and kept.lease("node-0001") is not None)
    first = kept.lease("node-0000")
    assert first is not None
    assert first["spec"]["holderIdentity"] == "node-0000"
    await kept.until(lambda: (kept.lease("node-0000") or first)["spec"]["renewTime"] > first["spec"]["renewTime"])


async def test_nodes_are_of_the_server_s_version(kept: Kept) -> None:
    await make_nodes(kept.client, 1, 31)
    node = kept.show("", "nodes", "", "node-0000")
    assert node is not None
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.31.0-sandbox"


async def test_each_node_has_an_address_of_its_own(kept: Kept) -> None:
    await make_nodes(kept.client, 3, 31)
    nodes = [kept.show("", "nodes", "", f"node-000{number}") for number in range(3)]
    assert len({node["status"]["addresses"][0]["address"] for node in nodes if node}) == 3


async def test_an_extended_resource_in_a_node_s_capacity_is_offered_until_it_is_taken_away(kept: Kept) -> None:
    await make_nodes(kept.client, 1, 31)
    path, merge = "/api/v1/nodes/node-0000/status", "application/merge-patch+json"
    await kept.client.patch(path, {"status": {"capacity": {"example.com/fake": "5"}}}, content_type=merge)
    await kept.until(lambda: kept.allocatable("node-0000").get("example.com/fake") == "5")
    await kept.client.patch(path, {"status": {"capacity": {"example.com/fake": None}}}, content_type=merge)
    await kept.until(lambda: "example.com/fake" not in kept.allocatable("node-0000"))
    assert kept.allocatable("node-0000")["cpu"] == "16"


@pytest.mark.parametrize(
    ("capacity", "allocatable", "changes"),
    [
        ({"cpu": "4"}, {"cpu": "3"}, {}),
        ({"cpu": "4", "a.com/b": "1"}, {"cpu": "4", "a.com/b": "1"}, {}),
        ({"a.com/b": "1"}, {}, {"a.com/b": "1"}),
        ({"a.com/b": "2"}, {"a.com/b": "1"}, {"a.com/b": "2"}),
        ({}, {"a.com/b": "1"}, {"a.com/b": None}),
        ({}, {"hugepages-2Mi": "1"}, {}),
    ],
)
def test_only_extended_resources_follow_the_capacity(capacity: Object, allocatable: Object, changes: Object) -> None:
    node = convert({"metadata": {"name": "n"}, "status": {"capacity": capacity, "allocatable": allocatable}}, Node)
    assert newly_offered(node) == changes
