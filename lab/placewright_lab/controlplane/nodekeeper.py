"""A kubelet's work for its node. It registers the node, renews its Lease, and offers its resources.

A controller manager counts a node without a renewed Lease as dead. A user may write an extended resource into a node's capacity, which a
kubelet then offers as allocatable. It stops offering a resource that disappears from the capacity.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kubesandbox.controllers.kubelet import simulated_node
from placewright.api.objects import Node
from placewright.api.requests import is_extended_resource
from placewright.kube.client import MERGE_PATCH, ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError
from placewright.kube.reflector import Reflector, Source
from placewright.kube.writers.events import seconds_time

#: Requests under way at once while nodes are made.
IN_FLIGHT: Final = 32
RENEW_SECONDS: Final = 10.0
_LEASE_SECONDS: Final = 40
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

_log = logging.getLogger(__name__)


class NodeKeeper:
    """Keeps all nodes of a cluster alive. It needs the rights to list and watch nodes, to patch their status, and to write Leases."""

    def __init__(self, client: ApiClient, renew_seconds: float = RENEW_SECONDS) -> None:
        self._client = client
        self._renew_seconds = renew_seconds
        self._names: set[str] = set()
        self._at_work: set[asyncio.Task[None]] = set()
        self._reflector = Reflector(client, Source("/api/v1/nodes", Node), self)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await asyncio.gather(self._reflector.run(), self._renew_for_good())
        finally:
            for task in self._at_work:
                task.cancel()
            await asyncio.gather(*self._at_work, return_exceptions=True)

    def changed(self, old: Node | None, new: Node) -> None:
        """Take in a node that came or changed."""
        if new.metadata.name not in self._names:
            self._names.add(new.metadata.name)
            self._begin(self._renew(new.metadata.name))
        if offered := newly_offered(new):
            self._begin(self._offer(new.metadata.name, offered))

    def deleted(self, old: Node) -> None:
        """Drop a node that is gone. The garbage collector removes its Lease."""
        self._names.discard(old.metadata.name)

    def synced(self) -> None:
        """Do nothing: no decision depends on complete lists here."""

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(_logging_refusals(work))
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def _renew_for_good(self) -> None:
        while True:
            await asyncio.sleep(self._renew_seconds)
            for name in sorted(self._names):
                self._begin(self._renew(name))

    async def _renew(self, name: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": now}
        try:
            await self._client.patch(f"{_LEASES}/{name}", {"spec": spec}, content_type=MERGE_PATCH)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
            await self._client.post(_LEASES, lease)

    async def _offer(self, name: str, offered: Mapping[str, str | None]) -> None:
        await self._client.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": offered}}, content_type=MERGE_PATCH)


async def make_nodes(client: ApiClient, count: int, minor: int) -> None:
    """Make plain nodes for kubelets of this minor version, which differ only in names and zones (`sandbox/nodes.py`)."""
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def make(number: int) -> None:
        node = simulated_node(number, seconds_time(datetime.now(UTC)))
        # kubectl shows the version, and no kubelet may be newer than its API server.
        node["status"]["nodeInfo"]["kubeletVersion"] = f"v1.{minor}.0-sandbox"
        node["status"]["addresses"][0]["address"] = _address(number)
        async with slots:
            await client.post("/api/v1/nodes", node)

    await asyncio.gather(*(make(number) for number in range(count)))


def _address(number: int) -> str:
    """Return an address of its own, for host ports. It is on loopback, so that asking for a pod's log fails at once."""
    return f"127.{1 + (number >> 16)}.{(number >> 8) & 255}.{number & 255}"


def newly_offered(node: Node) -> dict[str, str | None]:
    """Return the changes to a node's allocatable extended resources, as a merge patch."""
    has = {name: str(amount) for name, amount in (node.status.capacity or {}).items() if is_extended_resource(name)}
    offers = {name: str(amount) for name, amount in (node.status.allocatable or {}).items() if is_extended_resource(name)}
    return {name: has.get(name) for name in sorted(has.keys() | offers.keys()) if has.get(name) != offers.get(name)}


async def _logging_refusals(work: Any) -> None:
    """Log refusals, except not found and conflict. The next renewal comes soon, and the Leases' namespace may come late."""
    try:
        await work
    except ApiError as error:
        if error.status not in (NOT_FOUND, CONFLICT):
            _log.warning("node not kept: %s", error)
