"""Pages whose commands need no more than a cluster with an operator, nodes, pods and a profile (`pages.py` has the rule)."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from kubectl.manifests import deployment
from kubectl.page import blocks_of, files_of
from kubectl.pages import ROOT, run_together
from kubectl.terminal import Desk, shell, terminal, until_serving, work_through
from kubectl.tool import Kubectl
from kubesandbox.process import SandboxProcess
from ports import reserved_port

READING = (
    "kubectl get ",
    "kubectl placewright explain ",
    "placewright explain ",
    "placewright profiles history ",
    "placewright profiles list",
    "placewright profiles show ",
)
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "placewright-system"}}
PODS = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "schedulerName": "placewright",
            "containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}],
        },
    }
    for name, cpu in (("web", "1"), ("huge", "500"))
]
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def desk(binary: str, tmp_path: Path) -> Desk:
    """A folder with copies of what a checkout holds, because pages edit it."""
    found = Desk(tmp_path, binary, reserved_port())
    found.prepare()
    for name in ("crds", "manifests", "examples"):
        shutil.copytree(ROOT / name, found.folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    return found


@asynccontextmanager
async def cluster(desk: Desk) -> AsyncIterator[Path]:
    """A kubeconfig of the cluster that pages have unless they start one."""
    async with SandboxProcess(crds=[ROOT / "crds"], nodes=3) as sandbox:
        kubectl = Kubectl(desk.binary, sandbox.kubeconfig, desk.home)
        await kubectl("create", "-f", "-", given=[NAMESPACE, *PODS, deployment("web", {"name": "main", "image": "app:1"})])
        await kubectl("apply", "-f", str(ROOT / "manifests" / "base" / "profile.yaml"))
        async with terminal(desk, f"exec placewright run --kubeconfig {sandbox.kubeconfig}"):
            await kubectl("wait", "--for=condition=Ready", "schedprof/default", "pod/web", "--timeout=20s")
            yield sandbox.kubeconfig


@pytest.mark.parametrize("page", run_together())
async def test_the_commands_of_a_page_do_what_it_shows(desk: Desk, page: str) -> None:
    for name, text in files_of(ROOT / page).items():
        (desk.folder / name).parent.mkdir(exist_ok=True)
        (desk.folder / name).write_text(text)
    blocks = [block for block in blocks_of(ROOT / page) if not block.reason]
    async with AsyncExitStack() as opened:
        typed = await opened.enter_async_context(shell(desk))
        before = ""
        if not any("placewright sandbox" in block.commands for block in blocks):
            before = f"export KUBECONFIG={await opened.enter_async_context(cluster(desk))}\n"
            assert (await typed.run(before))[0]
        for block in blocks:
            if block.kind.endswith("-terminal"):
                await opened.enter_async_context(terminal(desk, before + block.commands))
                if not before:
                    await until_serving(typed)
            else:
                await work_through(typed, block, READING)
