"""docs/upgrade.md and docs/beside-default-scheduler.md: their commands are given to a real kubectl, and print what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl.manifests import deployment
from kubectl.page import Block, blocks_of
from kubectl.terminal import Desk, Shell, shell, terminal, work_through
from kubectl.tool import Kubectl
from kubesandbox.process import SandboxProcess

ROOT = Path(__file__).parents[2]
READING = ("kubectl get ",)
PROFILE = ROOT / "manifests" / "base" / "profile.yaml"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-7"}}


def commands_of(page: str) -> list[Block]:
    return [block for block in blocks_of(ROOT / "docs" / page) if not block.reason]


async def follow(page: str, typed: Shell, kubeconfig: Path) -> None:
    worked, printed = await typed.run(f"export KUBECONFIG={kubeconfig}")
    assert worked, printed
    for block in commands_of(page):
        await work_through(typed, block, READING)


@pytest.fixture
def desk(binary: str, tmp_path: Path) -> Desk:
    found = Desk(tmp_path, binary)
    found.prepare()
    for name in ("crds", "manifests"):
        (found.folder / name).symlink_to(ROOT / name)
    return found


async def test_the_commands_of_an_upgrade_do_what_the_page_shows(desk: Desk) -> None:
    async with SandboxProcess(crds=[ROOT / "crds"]) as sandbox, shell(desk) as typed:
        kubectl = Kubectl(desk.binary, sandbox.kubeconfig, desk.home)
        await kubectl("apply", "-f", str(PROFILE))
        async with terminal(desk, f"exec placewright run --kubeconfig {sandbox.kubeconfig}"):
            await kubectl("wait", "--for=condition=Ready", "schedprof/default", "--timeout=20s")
            await follow("upgrade.md", typed, sandbox.kubeconfig)
            await kubectl("delete", "schedprof", "default")
            await work_through(typed, commands_of("upgrade.md")[-1], READING)
            assert (await kubectl.read("schedprof", "default"))["spec"]["schedulerName"] == "placewright"


async def test_moving_pods_to_placewright_and_back_does_what_the_page_shows(desk: Desk) -> None:
    async with SandboxProcess(crds=[ROOT / "crds"]) as sandbox, shell(desk) as typed:
        kubectl = Kubectl(desk.binary, sandbox.kubeconfig, desk.home)
        await kubectl("create", "-f", "-", given=[NODE, deployment("web", {"name": "main", "image": "app:1"})])
        await follow("beside-default-scheduler.md", typed, sandbox.kubeconfig)
        assert (await kubectl.read("deployment", "web"))["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"
        (taint,) = (await kubectl.read("node", "worker-7"))["spec"]["taints"]
        assert (taint["key"], taint["effect"]) == ("placewright.dev/pool", "NoSchedule")
