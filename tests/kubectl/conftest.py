"""The sandbox (one for the whole folder) and the kubectl under test."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from kubectl.tool import Kubectl
from kubesandbox.process import SandboxProcess
from lab.sandbox.http import Client, client_of
from programs import program

CRD = Path(__file__).parents[2] / "crds" / "schedulingprofiles.yaml"


@pytest.fixture(scope="session")
def binary() -> str:
    """The binary that KUBECTL names, else the one on PATH."""
    return program("kubectl")


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox(binary: str) -> AsyncIterator[SandboxProcess]:
    async with SandboxProcess(nodes=2, arguments=["--devices", "2"]) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api(sandbox: SandboxProcess) -> AsyncIterator[Client]:
    """For what a test needs and is not about: a process of kubectl's for each would be most of the time that the tests take."""
    async with client_of(sandbox.kubeconfig) as client:
        yield client


@pytest.fixture(scope="session")
def tool(binary: str, sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(binary, sandbox.kubeconfig, tmp_path_factory.mktemp("kubectl-home"))


@pytest_asyncio.fixture(loop_scope="session")
async def kubectl(tool: Kubectl, api: Client, numbers: Iterator[int]) -> Kubectl:
    """The tool, in a namespace of the test's own."""
    namespace = f"test-{next(numbers)}"
    await api.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    return tool.within(namespace)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _definition(tool: Kubectl) -> None:
    await tool("apply", "--server-side", "-f", str(CRD))
    await tool("wait", "--for=condition=Established", "crd/schedulingprofiles.placewright.dev", "--timeout=20s")


@pytest.fixture
def profiles(kubectl: Kubectl, _definition: None) -> Kubectl:
    """The tool, on a cluster that has the definition of profiles."""
    return kubectl
