"""Placewright installed and taken away again, as docs/uninstall.md has it, by a real kubectl."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kubectl.page import Block, blocks_of
from kubectl.terminal import Desk, Shell, shell, terminal, work_through
from kubectl.tool import Kubectl
from kubesandbox.process import SandboxProcess

ROOT = Path(__file__).parents[2]
DEFINITIONS, BASE = ROOT / "crds", ROOT / "manifests" / "base"
OVERLAYS = sorted(folder for folder in (ROOT / "manifests" / "overlays").iterdir() if folder.name != "development")
BATCH = {
    "apiVersion": "placewright.dev/v1alpha1",
    "kind": "SchedulingProfile",
    "metadata": {"name": "batch"},
    "spec": {"schedulerName": "batch", "weights": {"NodeResourcesFit": 5}},
}
#: Told by somebody to somebody; they go by themselves.
PASSING = {"events", "events.events.k8s.io"}


@pytest.fixture
def desk(binary: str, tmp_path: Path) -> Desk:
    found = Desk(tmp_path, binary)
    found.prepare()
    for name in ("crds", "manifests"):
        (found.folder / name).symlink_to(ROOT / name)
    return found


@asynccontextmanager
async def cluster(desk: Desk) -> AsyncIterator[tuple[Kubectl, Shell, Path]]:
    """A cluster without anything of ours, and a shell on it."""
    async with SandboxProcess(nodes=1) as sandbox, shell(desk) as typed:
        worked, printed = await typed.run(f"export KUBECONFIG={sandbox.kubeconfig}")
        assert worked, printed
        yield Kubectl(desk.binary, sandbox.kubeconfig, desk.home, "placewright-system"), typed, sandbox.kubeconfig


async def install(kubectl: Kubectl, folder: Path = BASE) -> None:
    await kubectl("apply", "-k", str(DEFINITIONS))
    names = ("crd/schedulingprofiles.placewright.dev", "crd/clusterkopfpeerings.kopf.dev")
    await kubectl("wait", "--for", "condition=established", *names, "--timeout=20s")
    await kubectl("apply", "-k", str(folder))


def running(desk: Desk, kubeconfig: Path, *options: str) -> Any:
    """The operator, in a terminal of its own: nothing here runs a Deployment's pods."""
    return terminal(desk, f"exec placewright run --kubeconfig {kubeconfig} {' '.join(options)}")


async def everything(kubectl: Kubectl) -> dict[str, dict[str, Any]]:
    """All objects of all kinds that can be listed."""
    kinds = set((await kubectl("api-resources", "--verbs=list", "-o", "name", "--cached=false")).split())
    found = (await kubectl.read(",".join(sorted(kinds - PASSING)), "-A"))["items"]
    return {f"{each['kind']} {each['metadata'].get('namespace', '')}/{each['metadata']['name']}": each for each in found}


def commands_of_page() -> tuple[list[Block], Block]:
    """The blocks that take Placewright away, and the one that brings it back."""
    *steps, again = (block for block in blocks_of(ROOT / "docs" / "uninstall.md") if not block.reason)
    assert [block.commands.split()[:2] for block in steps[1:]] == [["kubectl", "delete"]] * 3
    return steps, again


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def empty(binary: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kubectl]:
    """A cluster from which each test takes away what it put there, but for the definitions and the profile `batch`."""
    async with SandboxProcess(nodes=1) as sandbox:
        yield Kubectl(binary, sandbox.kubeconfig, tmp_path_factory.mktemp("home"), "placewright-system")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("folder", [BASE, *OVERLAYS], ids=lambda folder: folder.name)
async def test_deleting_what_was_applied_leaves_profiles_and_definitions(empty: Kubectl, folder: Path) -> None:
    kubectl = empty
    await install(kubectl, folder)
    await kubectl("apply", "-f", "-", given=BATCH)
    before = await kubectl.read("schedprof", "batch")
    await kubectl("delete", "--ignore-not-found", "-k", str(folder))
    (after,) = (await kubectl.read("schedprof"))["items"]
    assert after == before
    gone = "deployments,namespaces,clusterroles,clusterrolebindings,clusterkopfpeerings"
    assert "placewright" not in await kubectl("get", gone, "-A")


async def test_the_operator_comes_back_to_the_profiles_that_it_left(desk: Desk) -> None:
    async with cluster(desk) as (kubectl, _, kubeconfig):
        await install(kubectl)
        await kubectl("apply", "-f", "-", given=BATCH)
        async with running(desk, kubeconfig):
            await kubectl("wait", "--for=condition=Ready", "schedprof/batch", "--timeout=20s")
        await kubectl("delete", "--ignore-not-found", "-k", str(BASE))
        await kubectl("apply", "-k", str(BASE))
        pod = {"schedulerName": "batch", "containers": [{"name": "main", "image": "app:1"}]}
        pods = kubectl.within("default")
        await pods("create", "-f", "-", given={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": pod})
        async with running(desk, kubeconfig):
            await pods("wait", "--for=condition=PodScheduled", "pod/web", "--timeout=20s")


async def test_after_all_steps_of_the_page_nothing_of_ours_is_left(desk: Desk, unused_tcp_port: int) -> None:
    async with cluster(desk) as (kubectl, typed, kubeconfig):
        untouched = await everything(kubectl)
        await install(kubectl)
        await kubectl("apply", "-f", "-", given=BATCH)
        async with running(desk, kubeconfig, "--admission", f"127.0.0.1:{unused_tcp_port}"):
            await kubectl("wait", "--for=condition=Ready", "schedprof/batch", "--timeout=20s")
            await kubectl("wait", "--for=create", "validatingwebhookconfiguration/placewright", "--timeout=20s")
            made = set(await everything(kubectl)) - set(untouched)
        assert {"Lease placewright-system/placewright", "ClusterKopfPeering /placewright"} <= made
        steps, again = commands_of_page()
        for block in steps:
            await work_through(typed, block, ())
            assert not [key for key, each in (await everything(kubectl)).items() if key in made and each["metadata"].get("finalizers")]
        assert set(await everything(kubectl)) == set(untouched)
        await work_through(typed, again, ())
        assert {each["metadata"]["name"] for each in (await kubectl.read("schedprof"))["items"]} == {"batch", "default"}
