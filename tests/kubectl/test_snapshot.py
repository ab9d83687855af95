"""`placewright snapshot` beside a real kubectl: of what `kubectl get -o json` shows, the snapshot holds what is read and nothing else."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kubectl.tool import Kubectl
from kubesandbox.process import SandboxProcess
from lab.snapshots.anyworld import AVOID, SECRET, World
from lab.snapshots.deviceworld import DeviceWorld
from placewright.cli.main import main
from placewright_lab.snapshots.snapshot import open_snapshot

pytestmark = pytest.mark.asyncio(loop_scope="session")

Object = dict[str, Any]
SEED = 11
#: What placement reads of pods and nodes, by path: here the snapshot has to have all that kubectl shows.
WHOLE = {
    "Pod": (
        "spec.nodeName", "spec.nodeSelector", "spec.affinity", "spec.tolerations", "spec.topologySpreadConstraints", "spec.priority",
        "spec.schedulerName", "spec.resourceClaims", "metadata.labels", "metadata.ownerReferences", "metadata.uid",
    ),
    "Node": ("metadata.labels", "spec.taints", "spec.unschedulable", "status.allocatable", "status.images"),
    "PersistentVolumeClaim": ("spec.volumeName", "spec.storageClassName", "spec.accessModes", "spec.resources"),
    "ResourceClaim": ("spec.devices.constraints",),
    "ResourceSlice": ("spec",),
}  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mine(binary: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kubectl]:
    """A cluster of the module's own with everything in it that placement reads, and a Secret."""
    async with SandboxProcess() as running:
        tool = Kubectl(binary, running.kubeconfig, tmp_path_factory.mktemp("home"), namespace="")
        objects = [*World(SEED).objects(), *DeviceWorld(SEED).objects()]
        for manifest in objects:
            (manifest.get("spec") or {}).pop("priority", None)  # by admission it comes from a class
        await tool("create", "--validate=false", "-f", "-", given=objects)
        await tool("create", "secret", "generic", "password", "-n", "home", f"--from-literal=word={SECRET}")
        await tool("create", "configmap", "settings", "-n", "home", f"--from-literal=word={SECRET}")
        yield tool


async def snapshot(tool: Kubectl, path: Path) -> list[Object]:
    assert await asyncio.to_thread(main, ["snapshot", "--kubeconfig", str(tool.kubeconfig), "--write", str(path)]) == 0
    return list(open_snapshot(path).objects)


def named(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def within(part: Any, whole: Any) -> bool:
    """Whether all that is said in `part` is said in `whole`, where lists may have more, in the same order; empty is as good as absent."""
    if part in ({}, []) and not whole:
        return True
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(within(value, whole.get(key)) for key, value in part.items())
    if isinstance(part, list):
        rest = iter(whole)
        return isinstance(whole, list) and all(any(within(each, other) for other in rest) for each in part)
    return bool(part == whole)


def at(item: Object, path: str) -> Any:
    """What stands there; empty is as good as absent. How long a taint is borne is the node controller's business."""
    found: Any = item
    for name in path.split("."):
        found = (found or {}).get(name)
    if name == "tolerations":
        found = [{key: value for key, value in each.items() if key != "tolerationSeconds"} for each in found or ()]
    return found or None


def without_avoided(item: Object) -> Object:
    """Of that annotation it holds whose pods are meant, not why."""
    annotations = {key: value for key, value in item["metadata"].get("annotations", {}).items() if key != AVOID}
    rest = {key: value for key, value in item["metadata"].items() if key != "annotations"}
    return item | {"metadata": rest | ({"annotations": annotations} if annotations else {})}


async def test_the_snapshot_holds_what_kubectl_shows(mine: Kubectl, tmp_path: Path) -> None:
    objects = await snapshot(mine, tmp_path / "s.gz")
    kinds = sorted({each["kind"] for each in objects})
    assert {"Pod", "Node", "Namespace", "PersistentVolumeClaim", "ResourceClaim", "ResourceSlice", "DeviceClass"} <= set(kinds)
    listed = (await mine.read(",".join(kind.lower() for kind in kinds), "-A"))["items"]
    for kind in kinds:
        shown = {named(each): each for each in listed if each["kind"] == kind}
        held = {named(each): each for each in objects if each["kind"] == kind}
        assert held.keys() == shown.keys(), kind
        for key, each in held.items():
            assert within(without_avoided(each), shown[key]), (kind, key)
            assert [path for path in WHOLE.get(kind, ()) if at(each, path) != at(shown[key], path)] == [], (kind, key)


async def test_what_kubectl_shows_of_secrets_is_in_no_snapshot(mine: Kubectl, tmp_path: Path) -> None:
    objects = await snapshot(mine, tmp_path / "s.gz")
    text = gzip.decompress((tmp_path / "s.gz").read_bytes()).decode()
    assert SECRET in await mine("get", "pods", "-A", "-o", "json")
    assert len((await mine.read("secret", "-n", "home"))["items"]) == 1
    assert SECRET not in text
    assert not {"Secret", "ConfigMap"} & {each["kind"] for each in objects}


async def test_kubectl_reads_each_line_of_a_snapshot_as_an_object(mine: Kubectl, tmp_path: Path) -> None:
    objects = await snapshot(mine, tmp_path / "s.gz")
    lines = gzip.decompress((tmp_path / "s.gz").read_bytes()).decode().splitlines()[1:]
    template = r"{.kind} {.metadata.namespace} {.metadata.name}{'\n'}"
    said = [await mine("create", "--dry-run=client", "--validate=false", "-f", "-", "-o", f"jsonpath={template}", given="\n".join(lines))]
    read = sorted(tuple(line.split(" ")) for line in "".join(said).splitlines())
    assert read == sorted((each["kind"], *named(each)) for each in objects)
