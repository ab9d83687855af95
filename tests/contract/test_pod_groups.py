"""scheduling.k8s.io PodGroups, as 1.36 serves them where they are switched on, and what pods say of their group."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from contract.client import APPLY, MERGE, STRATEGIC, Object
from contract.cluster import Cluster
from contract.objects import a_pod
from programs import not_on_this_server

GROUP, VERSION = "scheduling.k8s.io", "v1alpha2"


def pod_group(name: str, count: int | None = 3, **spec: Any) -> Object:
    policy = {"basic": {}} if count is None else {"gang": {"minCount": count}}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def path_of(cluster: Cluster, *rest: str) -> str:
    return cluster.path("podgroups", *rest, group=GROUP, version=VERSION)


@pytest_asyncio.fixture(loop_scope="session")
async def groups(gated: Cluster) -> Cluster:
    """A cluster that serves PodGroups."""
    if (await gated.client.get(f"/apis/{GROUP}/{VERSION}")).status == 404:
        not_on_this_server(f"it does not serve {GROUP}/{VERSION}, an alpha API")
    return gated


async def test_a_group_is_made_watched_and_deleted(groups: Cluster) -> None:
    # From a version, because a server whose etcd does not tell how far it is cannot begin a watch of what never changed.
    before = (await groups.client.post(path_of(groups), pod_group("before"))).expect(201)
    async with groups.client.watch(path_of(groups), resourceVersion=before["metadata"]["resourceVersion"]) as watch:
        found = (await groups.client.post(path_of(groups), pod_group("gang"))).expect(201)
        assert found["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
        # A real server protects groups that have pods by a finalizer, which a controller takes away.
        (await groups.client.patch(path_of(groups, "gang"), {"metadata": {"finalizers": None}}, MERGE)).expect(200)
        (await groups.client.delete(path_of(groups, "gang"))).expect(200)
        changes = ["ADDED", "MODIFIED", "DELETED"] if "finalizers" in found["metadata"] else ["ADDED", "DELETED"]
        assert await watch.names(len(changes)) == [(each, "gang") for each in changes]


async def test_a_groups_conditions_are_written_beside_its_spec(groups: Cluster) -> None:
    (await groups.client.post(path_of(groups), pod_group("gang"))).expect(201)
    one = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
    condition = {**one, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    patch = {"status": {"conditions": [condition]}}
    found = (await groups.client.patch(path_of(groups, "gang", "status"), patch, STRATEGIC)).expect(200)
    assert found["status"]["conditions"] == [condition]
    other = {**condition, "type": "Other"}
    found = (await groups.client.patch(path_of(groups, "gang", "status"), {"status": {"conditions": [other]}}, STRATEGIC)).expect(200)
    assert {each["type"] for each in found["status"]["conditions"]} == {"PodGroupScheduled", "Other"}


async def test_a_group_without_all_or_none_is_one_too(groups: Cluster) -> None:
    found = (await groups.client.post(path_of(groups), pod_group("loose", None))).expect(201)
    assert found["spec"]["schedulingPolicy"] == {"basic": {}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"schedulingPolicy": {}}, "must specify one of: `basic`, `gang`"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}, "spec.schedulingPolicy"),
        ({"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minCount: Required value"),
        ({"schedulingPolicy": {"gang": {"minCount": -1}}}, "spec.schedulingPolicy.gang.minCount: Invalid value: -1"),
    ],
)
async def test_a_group_is_refused_for(groups: Cluster, spec: Object, why: str) -> None:
    assert why in (await groups.client.post(path_of(groups), pod_group("gang", **spec))).refused(422, "Invalid")


async def test_what_a_group_asks_for_is_fixed(groups: Cluster) -> None:
    (await groups.client.apply(path_of(groups, "gang"), pod_group("gang"), "tester")).expect(201)
    answer = await groups.client.request("PATCH", path_of(groups, "gang"), pod_group("gang", 4), APPLY, fieldManager="tester")
    message = answer.refused(422, "Invalid")
    assert "spec.schedulingPolicy: Invalid value" in message
    assert "field is immutable" in message


async def test_a_pod_keeps_the_name_of_its_group(groups: Cluster) -> None:
    found = (await groups.client.post(groups.path("pods"), a_pod("it", schedulingGroup={"podGroupName": "gang"}))).expect(201)
    assert found["spec"]["schedulingGroup"] == {"podGroupName": "gang"}
    change = {"spec": {"schedulingGroup": {"podGroupName": "other"}}}
    assert (await groups.client.patch(groups.path("pods", "it"), change, MERGE)).refused(422, "Invalid")
