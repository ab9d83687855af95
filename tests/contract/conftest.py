"""One fixture: the server that the contract is held against."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from contract.cluster import Cluster, client_from, with_namespace
from placewright.sandbox.kubelet import KubeletTimes
from placewright.sandbox.server import Sandbox, SandboxOptions

IDLE = KubeletTimes(start=3600.0, end=3600.0)
"""The tests play the kubelet themselves, as they must on a bare API server."""


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """The cluster of KUBECONFIG_E2E where that is set, else a sandbox in this process; with a fresh namespace."""
    kubeconfig = os.environ.get("KUBECONFIG_E2E")
    if kubeconfig:
        async with client_from(Path(kubeconfig)) as client, with_namespace(client) as (namespace, minor):
            yield Cluster(client, namespace, minor)
        return
    async with (
        Sandbox(SandboxOptions(kubelets=IDLE)) as sandbox,
        client_from(sandbox.kubeconfig) as client,
        with_namespace(client) as (namespace, minor),
    ):
        yield Cluster(client, namespace, minor, sandbox.faults.compact, sandbox.watches.bookmark_all)
