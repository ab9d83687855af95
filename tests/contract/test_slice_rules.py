"""What the real server takes of slices and classes, and refuses of classes and pods with claims, and in which words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from contract.client import MERGE, Object
from contract.cluster import Cluster
from contract.devices import (
    DRIVER,
    GROUP,
    VERSION,
    device,
    device_class,
    resource_slice,
    shared_path,
)
from contract.objects import a_pod
from programs import not_on_this_server

LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
Fields = dict[str, Any]


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _enough(cluster: Cluster) -> AsyncIterator[None]:
    cluster.needs(VERSION, "resource.k8s.io/v1")
    yield


# --- slices ------------------------------------------------------------------------------------------------------------------


def counters(*names: str) -> list[Object]:
    return [{"name": name, "counters": {"memory": {"value": "80Gi"}}} for name in names]


def shared(name: str, default: str, **limits: str) -> Object:
    policy = {"default": default, "validRange": limits}
    return device(name, allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi", "requestPolicy": policy}})


TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}


def changed_slice(name: str, fields: Fields) -> Object:
    body = resource_slice(name)
    spec = {**body["spec"], **fields, "pool": {**body["spec"]["pool"], **fields.get("pool", {})}}
    if {"allNodes", "nodeSelector", "perDeviceNodeSelection"} & fields.keys() and "nodeName" not in fields:
        del spec["nodeName"]
    return {**body, "spec": {key: value for key, value in spec.items() if value is not None}}


@pytest.mark.parametrize(
    "fields",
    [
        {"devices": [device(f"d{at}") for at in range(128)]},
        {"devices": []},
        {"devices": None, "sharedCounters": counters(*(f"c{at}" for at in range(8)))},
        {"perDeviceNodeSelection": True, "devices": [device("a", nodeName="x"), device("b", allNodes=True)]},
        {"nodeSelector": {"nodeSelectorTerms": [TERM]}},
        {"devices": [shared("a", "3Gi", min="1Gi", max="79Gi", step="2Gi")]},
        {"devices": [device("a", attributes={"example.com/x": {"version": "1.2.3-rc.1+b"}, "y": {"bool": False}})]},
        {"devices": [device("a", bindingConditions=["x/a"], bindingFailureConditions=["x/b"], bindsToNode=True)]},
    ],
)
async def test_a_slice_with_what_drivers_publish_is_taken(cluster: Cluster, fields: Fields) -> None:
    body = changed_slice(cluster.unique("it"), fields)
    found = (await cluster.client.post(shared_path("resourceslices"), body)).expect(201)
    await cluster.client.delete(shared_path("resourceslices", body["metadata"]["name"]))
    assert {key: found["spec"].get(key) for key in body["spec"] if key != "devices"} == {
        key: value for key, value in body["spec"].items() if key != "devices"
    }


async def test_an_amount_that_is_none_is_no_slice(cluster: Cluster) -> None:
    body = resource_slice(cluster.unique("it"), device("gpu-0", capacity={"memory": {"value": "lots"}}))
    assert "quantities must match" in (await cluster.client.post(shared_path("resourceslices"), body)).refused(400, "BadRequest")


# --- classes -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"selectors": [{}]}, "spec.selectors[0].cel: Required value"),
        ({"selectors": [{"cel": {"expression": "device."}}]}, "spec.selectors[0].cel.expression: Invalid value"),
    ],
)
async def test_a_class_is_refused_for(cluster: Cluster, spec: Object, why: str) -> None:
    assert why in await cluster.refusal(shared_path("deviceclasses"), device_class(cluster.unique("it"), **spec))


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "a"',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("10Gi")) >= 0',
        f'"{DRIVER}" in device.attributes && has(device.attributes["{DRIVER}"].numa)',
        f'["a", "b"].exists(m, device.attributes["{DRIVER}"].model == m)',
        f'device.attributes["{DRIVER}"].driverVersion.isGreaterThan(semver("1.0.0"))',
        f'cel.bind(dra, device.attributes["{DRIVER}"], dra.model == "a" && dra.numa == 0)',
    ],
)
async def test_a_class_with_an_expression_as_drivers_write_them_is_taken(cluster: Cluster, expression: str) -> None:
    body = device_class(cluster.unique("it"), expression)
    answer = await cluster.client.post(shared_path("deviceclasses"), body)
    await cluster.client.delete(shared_path("deviceclasses", body["metadata"]["name"]))
    assert answer.expect(201)["spec"]["selectors"] == [{"cel": {"expression": expression}}]


# --- taint rules -------------------------------------------------------------------------------------------------------------

TAINTED: Fields = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "example.com/broken", "effect": "NoExecute"}}


def taint_rule(name: str, version: str, **spec: Any) -> Object:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "DeviceTaintRule", "metadata": {"name": name}, "spec": {**TAINTED, **spec}}


async def taint_rules(cluster: Cluster) -> tuple[str, str]:
    """The path of taint rules, and the version that serves them: they became stable later than the rest."""
    for version in ("v1", "v1beta2", "v1alpha3"):
        found = await cluster.client.get(f"/apis/{GROUP}/{version}")
        if found.status == 200 and any(each["name"] == "devicetaintrules" for each in found.body["resources"]):
            return shared_path("devicetaintrules", version=version), version
    return not_on_this_server("it does not serve devicetaintrules")


async def test_a_taint_rule_is_made_changed_and_reported_on(gated: Cluster) -> None:
    path, version = await taint_rules(gated)
    name = gated.unique("it")
    made = (await gated.client.post(path, taint_rule(name, version))).expect(201)
    changed = (await gated.client.patch(f"{path}/{name}", {"spec": {"taint": {"effect": "NoSchedule"}}}, MERGE)).expect(200)
    said = {"type": "EvictionInProgress", "status": "True", "reason": "Pods", "message": ""}
    condition = {**said, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    told = (await gated.client.patch(f"{path}/{name}/status", {"status": {"conditions": [condition]}}, MERGE)).expect(200)
    (await gated.client.delete(f"{path}/{name}")).expect(200)
    assert made["spec"]["taint"]["timeAdded"]
    assert (changed["spec"]["taint"]["effect"], changed["metadata"]["generation"]) == ("NoSchedule", 2)
    assert told["status"]["conditions"] == [condition]


# --- pods --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "uses", "why"),
    [
        ([{"name": "a"}], [], "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
        (
            [{"name": "a", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}],
            [],
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        ),
        ([{"name": "a", "resourceClaimName": "c"}] * 2, [], "spec.resourceClaims[1]"),
        ([{"name": "A", "resourceClaimName": "c"}], [], f'spec.resourceClaims[0].name: Invalid value: "A": {LABEL}'),
        ([{"name": "a", "resourceClaimName": "C"}], [], "spec.resourceClaims[0].resourceClaimName: Invalid value"),
        (
            [{"name": "a", "resourceClaimName": "c"}],
            [{"name": "b"}],
            'spec.containers[0].resources.claims[0]: Not found: "b": must be one of the names in pod.spec.resourceClaims: a',
        ),
        ([], [{"name": "b"}], 'claims[0]: Not found: "b": must be one of the names in pod.spec.resourceClaims which is empty'),
        ([{"name": "a", "resourceClaimName": "c"}], [{}], "spec.containers[0].resources.claims[0]: Required value"),
        (
            [{"name": "a", "resourceClaimName": "c"}],
            [{"name": "a", "request": "A"}],
            f'spec.containers[0].resources.claims[0].request: Invalid value: "A": {LABEL}',
        ),
        (
            [{"name": "a", "resourceClaimName": "c"}],
            [{"name": "a", "request": "r"}, {"name": "a", "request": "r"}],
            'spec.containers[0].resources.claims[1]: Duplicate value: "a/r"',
        ),
        (
            [{"name": "a", "resourceClaimName": "c"}],
            [{"name": "a", "request": "r"}, {"name": "a"}],
            'spec.containers[0].resources.claims[1]: Duplicate value: "a"',
        ),
        (
            [{"name": "a", "resourceClaimName": "c"}],
            [{"name": "a"}, {"name": "a", "request": "r"}],
            'spec.containers[0].resources.claims[1]: Duplicate value: "a"',
        ),
    ],
)
async def test_a_pod_is_refused_for(cluster: Cluster, claims: list[Object], uses: list[Object], why: str) -> None:
    body = a_pod("it", resourceClaims=claims)
    body["spec"]["containers"][0]["resources"] = {"claims": uses}
    assert why in (await cluster.client.post(cluster.path("pods"), body)).refused(422, "Invalid")
