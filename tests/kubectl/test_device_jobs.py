"""From template to running pod and back, with a real operator and a real kubectl, for every way in which devices are handed out.

Whole devices go to claims and come back to others on docs/devices.md, which `test_pages.py` follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubectl.manifests import a_pod
from kubectl.tool import DEADLINE, Kubectl
from kubesandbox.devices.layouts import DRIVER, EXTENDED_RESOURCE, DeviceKind
from kubesandbox.process import SandboxProcess
from placewright.cli.definitions import crd_folders
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command

pytestmark = pytest.mark.timeout(180)
Object = dict[str, Any]
Device = tuple[str, str]
PROFILE = {
    "apiVersion": "placewright.dev/v1alpha1",
    "kind": "SchedulingProfile",
    "metadata": {"name": "default"},
    "spec": {"schedulerName": "default-scheduler"},
}


def template(**exactly: Any) -> Object:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, **exactly}}]
    spec = {"spec": {"devices": {"requests": requests}}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "gpus"}, "spec": spec}


def job(name: str, template: str = "gpus") -> Object:
    made = a_pod(name)
    made["spec"]["schedulerName"] = "default-scheduler"
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return made


class Cluster:
    """One node's worth of devices, an operator, and what kubectl shows of them."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl

    async def apply(self, *objects: Object) -> None:
        await self.kubectl("apply", "-f", "-", given=list(objects))

    async def phases(self) -> dict[str, str]:
        found = (await self.kubectl.read("pods"))["items"]
        return {each["metadata"]["name"]: each["status"]["phase"] for each in found}

    async def until_running(self, *names: str) -> None:
        ran = await self.kubectl.run("wait", "--for=condition=Ready", *(f"pod/{name}" for name in names), "--timeout=25s")
        assert ran.code == 0, await self.kubectl("describe", "pods")

    async def held(self) -> list[Device]:
        """The devices that claims have, as (pool, device), one entry for each."""
        claims = (await self.kubectl.read("resourceclaims"))["items"]
        results = [((each.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results", []) for each in claims]
        return sorted((each["pool"], each["device"]) for found in results for each in found)

    async def until_free(self) -> None:
        async with asyncio.timeout(DEADLINE):
            while (await self.kubectl.read("resourceclaims"))["items"]:
                pass


@asynccontextmanager
async def cluster_of(binary: str, folder: Path, kind: DeviceKind, devices: int) -> AsyncIterator[Cluster]:
    arguments = ["--devices", str(devices), "--device-kind", kind]
    async with SandboxProcess(nodes=1, crds=crd_folders(), arguments=arguments) as sandbox:
        cluster = Cluster(Kubectl(binary, sandbox.kubeconfig, folder))
        await cluster.apply(PROFILE)
        async with OperatorProcess(operator_command(sandbox.kubeconfig), folder / "operator.log"):
            yield cluster


async def test_devices_that_are_to_be_attached_are_before_their_pod_runs(binary: str, tmp_path: Path) -> None:
    async with cluster_of(binary, tmp_path, DeviceKind.ATTACHED, 1) as cluster:
        await cluster.apply(template(), job("web"))
        await cluster.until_running("web")
        [claim] = (await cluster.kubectl.read("resourceclaims"))["items"]
        [said] = claim["status"]["devices"]
        assert (said["device"], said["conditions"][0]["status"]) == ("gpu-0", "True")


async def test_a_device_is_cut_up_and_its_parts_are_no_more_than_the_whole(binary: str, tmp_path: Path) -> None:
    half = {"cel": {"expression": f'device.attributes["{DRIVER}"].profile == "half"'}}
    async with cluster_of(binary, tmp_path, DeviceKind.PARTITIONS, 1) as cluster:
        await cluster.apply(template(selectors=[half]), *(job(f"p{number}") for number in range(2)))
        await cluster.until_running("p0", "p1")
        assert await cluster.held() == [("node-0000", "gpu-0-half-0"), ("node-0000", "gpu-0-half-1")]
        whole = template()
        whole["metadata"]["name"] = "any"
        await cluster.apply(whole, job("third", "any"))
        await cluster.kubectl("wait", "--for=condition=PodScheduled=false", "pod/third", "--timeout=20s")
        assert (await cluster.phases())["third"] == "Pending", "nothing is left of the device, whole or in parts"


async def test_a_device_is_shared_by_the_memory_that_is_asked_for(binary: str, tmp_path: Path) -> None:
    async with cluster_of(binary, tmp_path, DeviceKind.SHARES, 1) as cluster:
        await cluster.apply(template(capacity={"requests": {"memory": "30Gi"}}), *(job(f"p{number}") for number in range(2)))
        await cluster.until_running("p0", "p1")
        assert await cluster.held() == [("node-0000", "gpu-0")] * 2
        await cluster.apply(job("late"))
        await cluster.kubectl("wait", "--for=condition=PodScheduled=false", "pod/late", "--timeout=20s")
        assert (await cluster.phases())["late"] == "Pending", "80Gi are there, 60Gi of them are taken"


async def test_an_extended_resource_that_no_node_has_comes_from_a_class(binary: str, tmp_path: Path) -> None:
    async with cluster_of(binary, tmp_path, DeviceKind.WHOLE, 2) as cluster:
        old = a_pod("old")
        old["spec"]["schedulerName"] = "default-scheduler"
        old["spec"]["containers"][0]["resources"] = {"limits": {EXTENDED_RESOURCE: "2"}}
        await cluster.apply(old)
        await cluster.until_running("old")
        assert await cluster.held() == [("node-0000", "gpu-0"), ("node-0000", "gpu-1")]
        await cluster.kubectl("delete", "pod", "old")
        await cluster.until_free()
