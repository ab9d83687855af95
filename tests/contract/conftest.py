"""One fixture: the server that the contract is held against."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import pytest_asyncio

from contract.cluster import Cluster, client_from, with_namespace
from placewright.controlplane.server import ControlPlane
from placewright.sandbox.kubelet import KubeletTimes
from placewright.sandbox.server import Sandbox, SandboxOptions

IDLE = KubeletTimes(start=3600.0, end=3600.0)
"""The tests play the kubelet themselves, as they must on a bare API server."""


@pytest_asyncio.fixture
async def cluster(control_plane: ControlPlane | None) -> AsyncIterator[Cluster]:
    """A fresh namespace on the cluster of KUBECONFIG_E2E, else (with `--real`) on a control plane of ours, else on a sandbox."""
    kubeconfig = os.environ.get("KUBECONFIG_E2E")
    if kubeconfig:
        async with client_from(Path(kubeconfig)) as client, with_namespace(client) as (namespace, minor):
            yield Cluster(client, namespace, minor)
    elif control_plane is not None:
        async with client_from(control_plane.kubeconfig) as client, with_namespace(client) as (namespace, minor):
            tells = tells_progress(control_plane.assets.etcd)
            yield Cluster(client, namespace, minor, compact=lambda: forget(control_plane), tells_progress=tells)
    else:
        async with (
            Sandbox(SandboxOptions(kubelets=IDLE)) as sandbox,
            client_from(sandbox.kubeconfig) as client,
            with_namespace(client) as (namespace, minor),
        ):
            yield Cluster(client, namespace, minor, sandbox.faults.compact, sandbox.watches.bookmark_all, real=False)


@cache
def tells_progress(etcd: Path) -> bool:
    """Whether API servers trust this etcd to say how far its watches are; they go by its version."""
    said = subprocess.run([etcd, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"etcd Version: (\d+)\.(\d+)\.(\d+)", said)
    assert found is not None, said
    version = tuple(int(each) for each in found.groups())
    return version >= (3, 5, 13) or (3, 4, 31) <= version < (3, 5)


def forget(control_plane: ControlPlane) -> None:
    """Both memories go: etcd's by compaction, the watch cache by a restart, for it outlives a compaction."""
    control_plane.kill_api_server()
    control_plane.forget_history()
    control_plane.start_api_server()
