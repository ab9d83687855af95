"""The server that the contract is held against: one for all tests, on which each has a namespace of its own."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path

import pytest
import pytest_asyncio

from contract.client import Client
from contract.cluster import Cluster, Server, client_from, within_namespace
from kubesandbox.controllers.kubelet import KubeletTimes
from kubesandbox.server import Sandbox, SandboxOptions
from lab.controlplane.breaking import forget_history, kill_api_server
from placewright_lab.controlplane.flags import Features
from placewright_lab.controlplane.server import ControlPlane, Options
from programs import needs_alpha_gates

#: Gates that are off in some version and that tests of the contract need, with the first minor version that has them.
GATES = {
    "DRADeviceTaints": 33,
    "DRADeviceTaintRules": 35,
    "TaintTolerationComparisonOperators": 35,
    "GenericWorkload": 35,
    "GangScheduling": 35,
    "TopologyAwareWorkloadScheduling": 36,
    "WorkloadAwarePreemption": 36,
}
ALPHA_FROM = min(GATES.values())
IDLE = KubeletTimes(start=3600.0, end=3600.0)
"""The tests play the kubelet themselves, as they must on a bare API server."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests in the loop in which the server was started, because it lives there."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(control_plane: ControlPlane | None) -> AsyncIterator[Server]:
    """Yield the cluster of KUBECONFIG_E2E, or (with `--real`) a control plane of ours, or a sandbox."""
    kubeconfig = os.environ.get("KUBECONFIG_E2E")
    if kubeconfig:
        async with client_from(Path(kubeconfig)) as client:
            yield Server(client, await minor_of(client))
    elif control_plane is not None:
        async with client_from(control_plane.kubeconfig) as client:
            tells = tells_progress(control_plane.assets.etcd)
            yield Server(client, await minor_of(client), compact=lambda: forget(control_plane), tells_progress=tells)
    else:
        async with Sandbox(SandboxOptions(kubelets=IDLE)) as sandbox, client_from(sandbox.kubeconfig) as client:
            yield Server(client, await minor_of(client), sandbox.faults.compact, sandbox.watches.bookmark_all, real=False)


@pytest.fixture(scope="session")
def alpha_plane(control_plane: ControlPlane | None) -> Iterator[ControlPlane | None]:
    """Yield a second control plane, with the gates for tests and every version of every API, or None without a first one.

    The first test that asks starts it. Before 1.33 there is none, and the skipped tests say so.
    """
    if control_plane is None:
        yield None
        return
    minor = control_plane.assets.minor
    needs_alpha_gates(minor, ALPHA_FROM)
    gates = ",".join(f"{name}=true" for name, since in GATES.items() if since <= minor)
    with ControlPlane(control_plane.assets, Options(audit=False, features=Features(gates, "api/all=true"))) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gated_server(server: Server, alpha_plane: ControlPlane | None) -> AsyncIterator[Server]:
    """Yield the server with alpha gates. The sandbox and the cluster of KUBECONFIG_E2E stay unchanged."""
    if alpha_plane is None:
        yield server
        return
    async with client_from(alpha_plane.kubeconfig) as client:
        yield Server(client, server.minor, tells_progress=server.tells_progress)


@pytest_asyncio.fixture(loop_scope="session")
async def gated(gated_server: Server) -> AsyncIterator[Cluster]:
    """Yield the server with alpha gates, and a namespace for one test."""
    async with within_namespace(gated_server) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(server: Server) -> AsyncIterator[Cluster]:
    """Yield the server, and a namespace for one test."""
    async with within_namespace(server) as found:
        yield found


async def minor_of(client: Client) -> int:
    """Return the server's minor version."""
    version = (await client.get("/version")).expect(200)
    return int(str(version["minor"]).rstrip("+"))


@cache
def tells_progress(etcd: Path) -> bool:
    """Return whether API servers trust this etcd's reports of progress, which depends on its version."""
    said = subprocess.run([etcd, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"etcd Version: (\d+)\.(\d+)\.(\d+)", said)
    assert found is not None, said
    version = tuple(int(each) for each in found.groups())
    return version >= (3, 5, 13) or (3, 4, 31) <= version < (3, 5)


def forget(control_plane: ControlPlane) -> None:
    """Clear both memories: etcd's by compaction, and the watch cache, which outlives it, by a restart."""
    kill_api_server(control_plane)
    forget_history(control_plane)
    control_plane.start_api_server()
