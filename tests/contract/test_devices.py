"""The resource.k8s.io group: every kind is made, read, found, watched, changed and deleted, and filled in as the real server does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from contract.client import JSON_PATCH, MERGE, STRATEGIC, Object
from contract.cluster import Cluster
from contract.devices import (
    DRIVER,
    FINALIZER,
    GROUP,
    VERSION,
    a_claim,
    allocation,
    alternative,
    alternatives,
    claims_path,
    device,
    device_class,
    request,
    resource_slice,
    result,
    shared_path,
    template,
    user,
)
from contract.objects import a_pod

Maker = Callable[[str], Object]
NAMESPACED: dict[str, Maker] = {"resourceclaims": a_claim, "resourceclaimtemplates": template}
SHARED: dict[str, Maker] = {"deviceclasses": device_class, "resourceslices": resource_slice}
KINDS = [*NAMESPACED, *SHARED]


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _enough(cluster: Cluster) -> AsyncIterator[None]:
    cluster.needs(VERSION, "resource.k8s.io/v1")
    yield
    for plural in SHARED:
        for each in (await cluster.client.get(shared_path(plural))).expect(200)["items"]:
            if each["metadata"]["name"].endswith(cluster.namespace.rpartition("-")[2]):
                await cluster.client.delete(shared_path(plural, each["metadata"]["name"]))


def place(cluster: Cluster, plural: str, *rest: str) -> str:
    return cluster.path(plural, *rest, group=GROUP) if plural in NAMESPACED else shared_path(plural, *rest)


def made(cluster: Cluster, plural: str) -> Object:
    return {**NAMESPACED, **SHARED}[plural](cluster.unique("it"))


@asynccontextmanager
async def stored(cluster: Cluster, body: Object, plural: str) -> AsyncIterator[Object]:
    found = (await cluster.client.post(place(cluster, plural), body)).expect(201)
    yield found
    await cluster.client.delete(place(cluster, plural, body["metadata"]["name"]))


async def test_discovery_names_the_group_and_its_types(cluster: Cluster) -> None:
    found = (await cluster.client.get(f"/apis/{GROUP}/v1")).expect(200)
    types = {each["name"]: (each["kind"], each["namespaced"]) for each in found["resources"]}
    assert types["resourceclaims"] == ("ResourceClaim", True)
    assert types["resourceclaims/status"] == ("ResourceClaim", True)
    assert types["resourceclaimtemplates"] == ("ResourceClaimTemplate", True)
    assert types["deviceclasses"] == ("DeviceClass", False)
    assert types["resourceslices"] == ("ResourceSlice", False)
    groups = (await cluster.client.get("/apis")).expect(200)["groups"]
    assert next(each for each in groups if each["name"] == GROUP)["preferredVersion"]["version"] == "v1"


@pytest.mark.parametrize("plural", KINDS)
async def test_an_object_of_each_kind_is_made_read_found_and_deleted(cluster: Cluster, plural: str) -> None:
    body = made(cluster, plural)
    name = body["metadata"]["name"]
    async with stored(cluster, body, plural) as created:
        assert created["metadata"]["uid"]
        assert (await cluster.client.get(place(cluster, plural, name))).expect(200)["spec"] == created["spec"]
        listed = (await cluster.client.get(place(cluster, plural))).expect(200)
        assert name in [each["metadata"]["name"] for each in listed["items"]]
        assert (await cluster.client.post(place(cluster, plural), body)).refused(409, "AlreadyExists")
        (await cluster.client.delete(place(cluster, plural, name))).expect(200)
        assert (await cluster.client.get(place(cluster, plural, name))).refused(404, "NotFound")


@pytest.mark.parametrize("plural", KINDS)
async def test_watchers_of_each_kind_see_it_come_change_and_go(cluster: Cluster, plural: str) -> None:
    body = made(cluster, plural)
    name = body["metadata"]["name"]
    start = (await cluster.client.get(place(cluster, plural))).expect(200)["metadata"]["resourceVersion"]
    selected = {"fieldSelector": f"metadata.name={name}", "resourceVersion": start}
    async with cluster.client.watch(place(cluster, plural), **selected) as watch:
        async with stored(cluster, body, plural):
            label = {"metadata": {"labels": {"seen": "yes"}}}
            (await cluster.client.patch(place(cluster, plural, name), label, MERGE)).expect(200)
        assert await watch.names(3) == [("ADDED", name), ("MODIFIED", name), ("DELETED", name)]


@pytest.mark.parametrize("plural", KINDS)
@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (MERGE, {"metadata": {"labels": {"a": "b"}}}),
        (STRATEGIC, {"metadata": {"labels": {"a": "b"}}}),
        (JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
    ],
)
async def test_each_kind_takes_each_sort_of_patch(cluster: Cluster, plural: str, content_type: str, patch: Any) -> None:
    body = made(cluster, plural)
    async with stored(cluster, body, plural):
        changed = (await cluster.client.patch(place(cluster, plural, body["metadata"]["name"]), patch, content_type)).expect(200)
        assert changed["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize("plural", KINDS)
async def test_each_kind_can_be_applied_by_the_server(cluster: Cluster, plural: str) -> None:
    body = made(cluster, plural)
    path = place(cluster, plural, body["metadata"]["name"])
    (await cluster.client.apply(path, body, "tester")).expect(201)
    body["metadata"]["labels"] = {"a": "b"}
    applied = (await cluster.client.apply(path, body, "tester")).expect(200)
    assert applied["metadata"]["labels"] == {"a": "b"}
    assert [each["manager"] for each in applied["metadata"]["managedFields"]] == ["tester"]
    await cluster.client.delete(path)


async def test_a_stale_write_of_a_claim_is_refused(cluster: Cluster) -> None:
    first = (await cluster.client.post(claims_path(cluster), a_claim("it"))).expect(201)
    path = claims_path(cluster, "it")
    (await cluster.client.patch(path, {"metadata": {"labels": {"a": "b"}}}, MERGE)).expect(200)
    assert "has been modified" in (await cluster.client.put(path, first)).refused(409, "Conflict")
    stale = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "status": {"allocation": allocation()}}
    assert "has been modified" in (await cluster.client.patch(f"{path}/status", stale, MERGE)).refused(409, "Conflict")
    other = {"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}, "status": {"allocation": allocation()}}
    assert (await cluster.client.patch(f"{path}/status", other, MERGE)).status in (409, 422)
    assert "allocation" not in (await cluster.read("resourceclaims", "it", group=GROUP)).get("status", {})


# --- what is filled in -------------------------------------------------------------------------------------------------------


async def test_requests_are_for_one_device_unless_they_say_otherwise(cluster: Cluster) -> None:
    requests = [
        request("one"),
        request("two", count=2),
        request("all", allocationMode="All"),
        alternatives("any", alternative("big"), alternative("small", count=4)),
    ]
    spec = (await cluster.client.post(claims_path(cluster), a_claim("it", *requests))).expect(201)["spec"]
    one, two, every, either = spec["devices"]["requests"]
    assert (one["exactly"]["allocationMode"], one["exactly"]["count"]) == ("ExactCount", 1)
    assert (two["exactly"]["allocationMode"], two["exactly"]["count"]) == ("ExactCount", 2)
    assert every["exactly"] == {"deviceClassName": "gpus", "allocationMode": "All"}
    assert [(each["allocationMode"], each["count"]) for each in either["firstAvailable"]] == [("ExactCount", 1), ("ExactCount", 4)]


async def test_templates_are_filled_in_like_claims(cluster: Cluster) -> None:
    path = cluster.path("resourceclaimtemplates", group=GROUP)
    found = (await cluster.client.post(path, template("it"))).expect(201)["spec"]
    assert found["metadata"] == {"labels": {"made": "so"}}
    assert found["spec"]["devices"]["requests"][0]["exactly"] == {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1}


async def test_a_toleration_means_equality_unless_it_says_otherwise(cluster: Cluster) -> None:
    body = a_claim("it", request(tolerations=[{"key": "example.com/broken", "value": "x"}]))
    spec = (await cluster.client.post(claims_path(cluster), body)).expect(201)["spec"]
    assert spec["devices"]["requests"][0]["exactly"]["tolerations"][0]["operator"] == "Equal"


async def test_a_taint_knows_since_when_it_is_there(cluster: Cluster) -> None:
    body = resource_slice(cluster.unique("it"), device("gpu-0", taints=[{"key": "example.com/broken", "effect": "NoSchedule"}]))
    async with stored(cluster, body, "resourceslices") as found:
        assert found["spec"]["devices"][0]["taints"][0]["timeAdded"].endswith("Z")


async def test_a_new_claim_has_no_status_whatever_was_sent(cluster: Cluster) -> None:
    body = {**a_claim("it"), "status": {"allocation": allocation(), "reservedFor": [user()]}}
    found = (await cluster.client.post(claims_path(cluster), body)).expect(201)
    assert not found.get("status")


# --- how they are found and shown --------------------------------------------------------------------------------------------


async def test_slices_are_found_by_node_and_driver(cluster: Cluster) -> None:
    here, there = resource_slice(cluster.unique("here")), resource_slice(cluster.unique("there"), allNodes=True)
    async with stored(cluster, here, "resourceslices"), stored(cluster, there, "resourceslices"):

        async def names(selector: str) -> set[str]:
            found = (await cluster.client.get(shared_path("resourceslices"), fieldSelector=selector)).expect(200)
            return {each["metadata"]["name"] for each in found["items"]} & {cluster.unique("here"), cluster.unique("there")}

        assert await names("spec.nodeName=node-a") == {cluster.unique("here")}
        assert await names("spec.nodeName=") == {cluster.unique("there")}
        assert await names(f"spec.driver={DRIVER},spec.nodeName!=node-a") == {cluster.unique("there")}
        refused = await cluster.client.get(shared_path("resourceslices"), fieldSelector="spec.pool.name=node-a")
        assert "field label not supported" in refused.refused(400, "BadRequest")


async def table(cluster: Cluster, path: str) -> tuple[list[str], list[list[Any]]]:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    found = (await cluster.client.get(path, accept=accept)).expect(200)
    return [each["name"] for each in found["columnDefinitions"]], [each["cells"] for each in found["rows"]]


async def test_claims_are_shown_with_their_state(cluster: Cluster) -> None:
    body = a_claim("it")
    body["metadata"]["finalizers"] = [FINALIZER]
    (await cluster.client.post(claims_path(cluster), body)).expect(201)
    path, using, seen = claims_path(cluster, "it"), await pod_that_uses(cluster, "web"), []
    for status in ({}, {"allocation": allocation()}, {"reservedFor": [using]}):
        (await cluster.client.patch(f"{path}/status", {"status": status}, MERGE)).expect(200)
        columns, [row] = await table(cluster, claims_path(cluster))
        seen.append(row[1])
    assert columns == ["Name", "State", "Age"]
    assert seen == ["pending", "allocated", "allocated,reserved"]


async def test_slices_are_shown_with_where_they_are(cluster: Cluster) -> None:
    body = resource_slice(cluster.unique("it"))
    async with stored(cluster, body, "resourceslices"):
        columns, rows = await table(cluster, shared_path("resourceslices", body["metadata"]["name"]))
        assert columns == ["Name", "Node", "Driver", "Pool", "Age"]
        assert rows[0][:4] == [body["metadata"]["name"], "node-a", DRIVER, "node-a"]


# --- the life of an allocation -----------------------------------------------------------------------------------------------


async def pod_that_uses(cluster: Cluster, name: str, claim: str = "it") -> Object:
    """A pod that is there and names the claim, as the claim names it: a cluster with controllers forgets any other."""
    made = await cluster.create("pods", a_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}]))
    return user(name, made["metadata"]["uid"])


async def allocated(cluster: Cluster) -> tuple[str, Object]:
    """A claim with a device that one pod may use: its path, and the pod."""
    (await cluster.client.post(claims_path(cluster), a_claim("it"))).expect(201)
    path, using = claims_path(cluster, "it"), await pod_that_uses(cluster, "web")
    status = {"status": {"allocation": allocation(), "reservedFor": [using]}}
    (await cluster.client.patch(f"{path}/status", status, MERGE)).expect(200)
    return path, using


async def test_a_status_write_leaves_everything_else_alone(cluster: Cluster) -> None:
    (await cluster.client.post(claims_path(cluster), a_claim("it"))).expect(201)
    change = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": [FINALIZER]},
        "spec": {"devices": {"requests": None}},
        "status": {"allocation": allocation()},
    }
    found = (await cluster.client.patch(f"{claims_path(cluster, 'it')}/status", change, MERGE)).expect(200)
    assert found["status"]["allocation"] == allocation()
    assert found["spec"]["devices"]["requests"][0]["name"] == "gpu"
    assert not {"labels", "annotations", "finalizers"} & found["metadata"].keys()


async def test_an_ordinary_write_leaves_the_status_alone(cluster: Cluster) -> None:
    path, using = await allocated(cluster)
    found = (await cluster.client.get(path)).expect(200)
    found["status"], found["metadata"]["finalizers"] = {}, [FINALIZER]
    (await cluster.client.put(path, found)).expect(200)
    after = (await cluster.client.get(path)).expect(200)
    assert after["metadata"]["finalizers"] == [FINALIZER]
    assert after["status"] == {"allocation": allocation(), "reservedFor": [using]}


async def test_pods_are_added_to_a_claim_by_their_uid(cluster: Cluster) -> None:
    path, using = await allocated(cluster)
    other = await pod_that_uses(cluster, "other")
    found = (await cluster.client.patch(f"{path}/status", {"status": {"reservedFor": [other]}}, STRATEGIC)).expect(200)
    assert found["status"]["reservedFor"] == [other, using], "what is new comes first"
    gone = {"status": {"reservedFor": [{"$patch": "delete", "uid": other["uid"]}]}}
    found = (await cluster.client.patch(f"{path}/status", gone, STRATEGIC)).expect(200)
    assert found["status"]["reservedFor"] == [using]


async def test_an_allocation_goes_and_comes_but_does_not_change(cluster: Cluster) -> None:
    path, _ = await allocated(cluster)
    other = {"status": {"allocation": allocation(result(device="gpu-1"))}}
    message = (await cluster.client.patch(f"{path}/status", other, MERGE)).refused(422, "Invalid")
    assert "status.allocation" in message
    assert "field is immutable" in message
    (await cluster.client.patch(f"{path}/status", {"status": {"allocation": None, "reservedFor": None}}, MERGE)).expect(200)
    found = (await cluster.client.patch(f"{path}/status", other, MERGE)).expect(200)
    assert found["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-1"


async def test_what_drivers_say_of_a_device_goes_with_it(cluster: Cluster) -> None:
    path, _ = await allocated(cluster)
    condition = {"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    said = {"driver": DRIVER, "pool": "node-a", "device": "gpu-0", "conditions": [condition]}
    found = (await cluster.client.patch(f"{path}/status", {"status": {"devices": [said]}}, MERGE)).expect(200)
    assert found["status"]["devices"][0]["conditions"][0]["type"] == "Ready"
    found = (await cluster.client.patch(f"{path}/status", {"status": {"allocation": None, "reservedFor": None}}, MERGE)).expect(200)
    assert not found.get("status", {}).get("devices")


async def test_a_protected_claim_outlives_its_deletion_until_it_is_free(cluster: Cluster) -> None:
    path, using = await allocated(cluster)
    (await cluster.client.patch(path, {"metadata": {"finalizers": [FINALIZER]}}, MERGE)).expect(200)
    found = (await cluster.client.delete(path)).expect(200)
    assert found["metadata"]["deletionTimestamp"]
    late = {"status": {"reservedFor": [using, await pod_that_uses(cluster, "late")]}}
    message = (await cluster.client.patch(f"{path}/status", late, MERGE)).refused(422, "Invalid")
    assert "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set" in message
    (await cluster.client.patch(path, {"metadata": {"finalizers": None}}, MERGE)).expect(200)
    assert (await cluster.client.get(path)).refused(404, "NotFound")


async def test_a_pod_keeps_what_it_says_of_claims_and_groups(cluster: Cluster) -> None:
    body = a_pod("it", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpus"}])
    body["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu", "request": "gpu"}]}
    found = (await cluster.client.post(cluster.path("pods"), body)).expect(201)
    assert found["spec"]["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    assert found["spec"]["containers"][0]["resources"]["claims"] == [{"name": "gpu", "request": "gpu"}]
    status = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "it-gpu-x"}]}}
    found = (await cluster.client.patch(cluster.path("pods", "it", "status"), status, STRATEGIC)).expect(200)
    assert {"name": "gpu", "resourceClaimName": "it-gpu-x"} in found["status"]["resourceClaimStatuses"]
