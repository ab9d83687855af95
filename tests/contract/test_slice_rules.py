"""What the real server refuses of slices, classes and pods with claims, and in which words: one fault each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from contract.boxes import causes
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
from contract.objects import pod
from programs import not_on_this_server

LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
PLACES = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
Fields = dict[str, Any]


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _enough(cluster: Cluster) -> AsyncIterator[None]:
    cluster.needs(VERSION, "resource.k8s.io/v1")
    yield


async def refusal(cluster: Cluster, path: str, body: Object) -> str:
    answer = await cluster.client.post(path, body)
    if answer.status == 201:
        await cluster.client.delete(f"{path}/{body['metadata']['name']}")
    return answer.refused(422, "Invalid")


# --- slices ------------------------------------------------------------------------------------------------------------------


def counters(*names: str) -> list[Object]:
    return [{"name": name, "counters": {"memory": {"value": "80Gi"}}} for name in names]


def shared(name: str, default: str, **limits: str) -> Object:
    policy = {"default": default, "validRange": limits}
    return device(name, allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi", "requestPolicy": policy}})


TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
SLICES: list[tuple[str, Fields, str]] = [
    ("somebody publishes it", {"driver": ""}, "spec.driver: Required value"),
    ("its pool has a name", {"pool": {"name": ""}}, "spec.pool.name: Required value"),
    ("and a size", {"pool": {"resourceSliceCount": 0}}, "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"),
    ("it says where its devices are", {"nodeName": None}, f"spec: Required value: {PLACES}"),
    ("in one way", {"nodeName": "node-a", "allNodes": True}, f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {PLACES}, but multiple'),
    ("no device is there twice", {"devices": [device("a"), device("a")]}, 'spec.devices[1]: Duplicate value: "a"'),
]
DEVICES: list[tuple[Object, str, str]] = [
    (device("A"), "name", f'Invalid value: "A": {LABEL}'),
    (device("b", attributes={"x": {"int": 1, "bool": True}}), "attributes[x]", "Invalid value"),
    (device("c", attributes={"x": {}}), "attributes[x]", "Invalid value"),
    (device("h", taints=[{"key": "a"}]), "taints[0].effect", "Required value"),
    (device("i", taints=[{"key": "", "effect": "None"}]), "taints[0].key", 'Invalid value: "": name part must'),
]


def changed_slice(name: str, fields: Fields) -> Object:
    body = resource_slice(name)
    spec = {**body["spec"], **fields, "pool": {**body["spec"]["pool"], **fields.get("pool", {})}}
    if {"allNodes", "nodeSelector", "perDeviceNodeSelection"} & fields.keys() and "nodeName" not in fields:
        del spec["nodeName"]
    return {**body, "spec": {key: value for key, value in spec.items() if value is not None}}


@pytest.mark.parametrize(("fields", "why"), [case[1:] for case in SLICES], ids=[case[0] for case in SLICES])
async def test_a_slice_is_refused_unless(cluster: Cluster, fields: Fields, why: str) -> None:
    assert why in await refusal(cluster, shared_path("resourceslices"), changed_slice(cluster.unique("it"), fields))


async def test_a_slice_is_refused_for_each_fault_of_its_devices(cluster: Cluster) -> None:
    body = resource_slice(cluster.unique("it"), *(each for each, _, _ in DEVICES))
    answer = await cluster.client.post(shared_path("resourceslices"), body)
    said = causes(answer)
    wanted = {f"spec.devices[{at}]{field and f'.{field}'}": why for at, (_, field, why) in enumerate(DEVICES)}
    assert {field: message[: len(wanted.get(field, ""))] for field, message in said.items()} == wanted
    assert 'spec.devices[4].taints[0].key: Invalid value: "": name part must be non-empty' in answer.body["message"]
    assert "exactly one value must be specified" in said["spec.devices[1].attributes[x]"]


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


async def test_a_slice_stays_with_its_pool_and_its_node(cluster: Cluster) -> None:
    body = resource_slice(cluster.unique("it"))
    path = shared_path("resourceslices", body["metadata"]["name"])
    (await cluster.client.post(shared_path("resourceslices"), body)).expect(201)
    messages = {}
    for field, value in (("driver", "other.example.com"), ("nodeName", "node-b"), ("pool", {"name": "other"})):
        messages[field] = (await cluster.client.patch(path, {"spec": {field: value}}, MERGE)).refused(422, "Invalid")
    more = {"spec": {"pool": {"generation": 2}, "devices": [device("gpu-1")]}}
    found = (await cluster.client.patch(path, more, MERGE)).expect(200)
    await cluster.client.delete(path)
    assert 'spec.driver: Invalid value: "other.example.com": field is immutable' in messages["driver"]
    assert 'spec.nodeName: Invalid value: "node-b": field is immutable' in messages["nodeName"]
    assert 'spec.pool.name: Invalid value: "other": field is immutable' in messages["pool"]
    assert (found["spec"]["pool"]["generation"], found["metadata"]["generation"]) == (2, 2)


async def test_an_amount_that_is_none_is_no_slice(cluster: Cluster) -> None:
    body = resource_slice(cluster.unique("it"), device("gpu-0", capacity={"memory": {"value": "lots"}}))
    assert "quantities must match" in (await cluster.client.post(shared_path("resourceslices"), body)).refused(400, "BadRequest")


# --- classes -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"selectors": [{}]}, "spec.selectors[0].cel: Required value"),
        ({"selectors": [{"cel": {"expression": "device."}}]}, "spec.selectors[0].cel.expression: Invalid value"),
        ({"config": [{"opaque": {"driver": "A_b", "parameters": {}}}]}, f'spec.config[0].opaque.driver: Invalid value: "A_b": {SUBDOMAIN}'),
        ({"extendedResourceName": "cpu"}, 'spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name'),
        ({"extendedResourceName": "kubernetes.io/gpu"}, "must be a valid extended resource name"),
    ],
)
async def test_a_class_is_refused_for(cluster: Cluster, spec: Object, why: str) -> None:
    if "extendedResourceName" in spec:
        cluster.needs(36, "extended resources by DeviceClass")
    assert why in await refusal(cluster, shared_path("deviceclasses"), device_class(cluster.unique("it"), **spec))


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


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"taint": {"key": "a"}}, "spec.taint.effect: Required value"),
        ({"taint": {"key": "a", "effect": "Soon"}}, 'spec.taint.effect: Unsupported value: "Soon"'),
        ({"taint": {"key": "a b", "effect": "None"}}, 'spec.taint.key: Invalid value: "a b": name part must consist of'),
    ],
)
async def test_a_taint_rule_is_refused_for(gated: Cluster, spec: Object, why: str) -> None:
    path, version = await taint_rules(gated)
    assert why in await refusal(gated, path, taint_rule(gated.unique("it"), version, **spec))


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
    body = pod("it", resourceClaims=claims)
    body["spec"]["containers"][0]["resources"] = {"claims": uses}
    assert why in (await cluster.client.post(cluster.path("pods"), body)).refused(422, "Invalid")
