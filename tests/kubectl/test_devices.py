"""Devices as a user of kubectl meets them: class, template, pod, claims and slices, on a cluster whose nodes have two devices each."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kubectl.manifests import a_pod
from kubectl.tool import DEADLINE, Kubectl
from kubesandbox.devices.layouts import DRIVER

pytestmark = pytest.mark.asyncio(loop_scope="session")
Object = dict[str, Any]
GROUP = "resource.k8s.io"


def device_class(name: str, expression: str = f'device.driver == "{DRIVER}"') -> Object:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": f"{GROUP}/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def template(name: str, device_class: str = DRIVER, count: int = 1) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class, "count": count}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec}


def pod_with(name: str, template: str, node: str = "") -> Object:
    made = a_pod(name, *([node] if node else []))
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return made


async def claim_of(kubectl: Kubectl, pod: str) -> str:
    return (await kubectl("get", "pod", pod, "-o", "jsonpath={.status.resourceClaimStatuses[0].resourceClaimName}")).strip()


async def allocate(kubectl: Kubectl, name: str, pod: str) -> None:
    """As a scheduler, by raw requests: this kubectl may be too old to write a status."""
    path = f"/apis/{GROUP}/v1/namespaces/{kubectl.namespace}/resourceclaims/{name}"
    claim, uid = await kubectl.read("resourceclaim", name), (await kubectl.read("pod", pod))["metadata"]["uid"]
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    claim = json.loads(await kubectl("replace", "--raw", path, "-f", "-", given=json.dumps(claim)))
    result = {"request": "gpu", "driver": DRIVER, "pool": "node-0000", "device": "gpu-0"}
    claim["status"] = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [{"resource": "pods", "name": pod, "uid": uid}]}
    await kubectl("replace", "--raw", f"{path}/status", "-f", "-", given=json.dumps(claim))


async def test_a_pod_gets_a_claim_runs_with_it_and_takes_it_along(kubectl: Kubectl) -> None:
    out = await kubectl("apply", "-f", "-", given=[template("gpus"), pod_with("web", "gpus", "node-0000")])
    assert out.split() == ["resourceclaimtemplate.resource.k8s.io/gpus", "created", "pod/web", "created"]
    name = await claim_of(kubectl, "web")
    header, row = (await kubectl("get", "resourceclaims")).splitlines()
    assert header.split() == ["NAME", "STATE", "AGE"]
    assert row.split()[:2] == [name, "pending"]
    await allocate(kubectl, name, "web")
    await kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")
    assert "allocated,reserved" in await kubectl("get", "resourceclaim", name)
    await kubectl("delete", "pod", "web", "--wait=true")
    async with asyncio.timeout(DEADLINE):  # an old `wait` fails where there is nothing to wait for
        while "No resources found" not in (ran := await kubectl.run("get", "resourceclaims")).err:
            assert name in ran.out


async def test_describe_says_what_a_pod_waits_for_and_what_a_claim_asks_for(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=[template("gpus"), pod_with("web", "gpus", "node-0001")])
    name = await claim_of(kubectl, "web")
    shown = await kubectl("describe", "resourceclaim", name)
    assert DRIVER in shown
    assert "resource.kubernetes.io/pod-claim-name: gpu" in shown
    shown = await described(kubectl, "web", "FailedPrepareDynamicResources")
    assert f"ResourceClaim {name} is not allocated" in shown


async def described(kubectl: Kubectl, pod: str, awaited: str) -> str:
    """What describe says of a pod, once an event of that reason is there."""
    async with kubectl.started("get", "events", "--field-selector", f"reason={awaited}", "--watch") as process:
        assert process.stdout is not None
        while pod not in (line := (await process.stdout.readline()).decode()):
            assert line, "the watch ended"
    return await kubectl("describe", "pod", pod)


async def test_slices_are_listed_with_their_nodes_and_selected_by_them(kubectl: Kubectl) -> None:
    header, *rows = (await kubectl("get", "resourceslices")).splitlines()
    assert header.split() == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    shown = {tuple(row.split()[1:4]) for row in rows}  # other tests have nodes of their own
    assert shown >= {(node, DRIVER, node) for node in ("node-0000", "node-0001")}
    found = await kubectl.read("resourceslices", "--field-selector", "spec.nodeName=node-0001")
    [only] = found["items"]
    assert [each["name"] for each in only["spec"]["devices"]] == ["gpu-0", "gpu-1"]
    assert "gpu-1" in await kubectl("describe", "resourceslice", only["metadata"]["name"])


async def test_a_class_is_applied_again_with_another_expression(kubectl: Kubectl) -> None:
    name = f"class-{kubectl.namespace}"
    assert "created" in await kubectl("apply", "-f", "-", given=device_class(name))
    assert "unchanged" in await kubectl("apply", "-f", "-", given=device_class(name))
    changed = device_class(name, f'device.attributes["{DRIVER}"].model == "a"')
    assert "configured" in await kubectl("apply", "-f", "-", given=changed)
    found = (await kubectl.read("deviceclass", name))["spec"]["selectors"]
    assert [each["cel"]["expression"] for each in found] == [f'device.attributes["{DRIVER}"].model == "a"']
    assert "serverside-applied" in await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=device_class(name))
    await kubectl("delete", "deviceclass", name)


async def test_what_is_refused_is_said_with_its_field(kubectl: Kubectl) -> None:
    why = await kubectl.fails("apply", "-f", "-", given=device_class("broken", "device.driver =="))
    assert "spec.selectors[0].cel.expression: Invalid value" in why
    await kubectl("apply", "-f", "-", given=template("gpus"))
    why = await kubectl.fails("apply", "-f", "-", given=template("gpus", count=2))
    assert "field is immutable" in why


async def test_the_group_is_discovered(kubectl: Kubectl) -> None:
    listed = {line.split()[0]: line for line in (await kubectl("api-resources", "--api-group", GROUP, "--no-headers")).splitlines()}
    assert listed.keys() == {"deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"}
    assert "true" in listed["resourceclaims"]
    assert "false" in listed["deviceclasses"]
