"""The sandbox (one for the whole folder) and the kubectl under test."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from inputs.real import pytest_configure
from kubectl.tool import Kubectl
from placewright.sandbox.process import SandboxProcess

__all__ = ["binary", "kubectl", "numbers", "pytest_configure", "sandbox"]


@pytest.fixture(scope="session")
def binary() -> str:
    """The binary that KUBECTL names, else the one on PATH."""
    found = shutil.which(os.environ.get("KUBECTL", "kubectl"))
    if found is None:
        pytest.skip("no kubectl on PATH (Debian: apt-get install kubernetes-client), and KUBECTL names none")
    return found


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox(binary: str) -> AsyncIterator[SandboxProcess]:
    async with SandboxProcess(nodes=2, arguments=["--devices", "2"]) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def kubectl(
    binary: str, sandbox: SandboxProcess, numbers: Iterator[int], tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    """The tool, in a namespace of the test's own."""
    home = tmp_path_factory.getbasetemp() / "kubectl-home"
    home.mkdir(exist_ok=True)
    tool = Kubectl(binary, sandbox.kubeconfig, home)
    namespace = f"test-{next(numbers)}"
    await tool("create", "namespace", namespace)
    return tool.within(namespace)
