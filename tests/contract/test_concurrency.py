"""Optimistic concurrency: nobody overwrites what he has not seen."""

from __future__ import annotations

from contract.client import MERGE, STRATEGIC
from contract.cluster import Cluster
from contract.objects import a_pod, config_map, lease


async def test_an_update_of_an_outdated_copy_is_refused(cluster: Cluster) -> None:
    first = await cluster.create("configmaps", config_map("shared", {"a": "1"}))
    path = cluster.path("configmaps", "shared")
    (await cluster.client.put(path, {**first, "data": {"a": "2"}})).expect(200)
    message = (await cluster.client.put(path, {**first, "data": {"a": "3"}})).refused(409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version and try again" in message
    assert (await cluster.read("configmaps", "shared"))["data"] == {"a": "2"}


async def test_a_patch_that_names_an_outdated_version_is_refused(cluster: Cluster) -> None:
    first = await cluster.create("configmaps", config_map("shared"))
    path, version = cluster.path("configmaps", "shared"), first["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"a": "1"}}
    (await cluster.client.patch(path, patch, MERGE)).expect(200)
    assert (await cluster.client.patch(path, patch | {"data": {"a": "2"}}, MERGE)).refused(409, "Conflict")


async def test_an_update_without_a_version_overwrites_where_the_type_allows_it(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("shared", {"a": "1"}))
    answer = await cluster.client.put(cluster.path("configmaps", "shared"), config_map("shared", {"a": "2"}))
    assert answer.expect(200)["data"] == {"a": "2"}


async def test_an_update_without_a_version_is_refused_for_a_lease(cluster: Cluster) -> None:
    group = "coordination.k8s.io"
    await cluster.create("leases", lease("ours"), group=group)
    answer = await cluster.client.put(cluster.path("leases", "ours", group=group), lease("ours", "me"))
    assert "metadata.resourceVersion" in answer.refused(422, "Invalid")


async def test_every_change_gets_a_version_and_no_change_gets_none(cluster: Cluster) -> None:
    first = await cluster.create("configmaps", config_map("shared", {"a": "1"}))
    path = cluster.path("configmaps", "shared")
    same = (await cluster.client.put(path, first)).expect(200)
    patched = (await cluster.client.patch(path, {"data": {"a": "1"}}, MERGE)).expect(200)
    assert same["metadata"]["resourceVersion"] == patched["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    changed = (await cluster.client.put(path, {**first, "data": {"a": "2"}})).expect(200)
    assert int(changed["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


async def test_a_name_is_given_once(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("taken"))
    again = await cluster.client.post(cluster.path("configmaps"), config_map("taken"))
    assert again.refused(409, "AlreadyExists") == 'configmaps "taken" already exists'


async def test_a_deletion_meant_for_a_predecessor_is_refused(cluster: Cluster) -> None:
    first = await cluster.create("configmaps", config_map("renewed"))
    path = cluster.path("configmaps", "renewed")
    (await cluster.client.delete(path)).expect(200)
    await cluster.create("configmaps", config_map("renewed"))
    precondition = {"preconditions": {"uid": first["metadata"]["uid"]}}
    answer = await cluster.client.delete(path, precondition)
    assert "does not match the UID in record" in answer.refused(409, "Conflict")
    assert answer.body["details"] == {"name": "renewed", "kind": "ConfigMap"}
    await cluster.read("configmaps", "renewed")


async def test_a_deletion_of_an_outdated_version_is_refused(cluster: Cluster) -> None:
    first = await cluster.create("configmaps", config_map("shared"))
    path = cluster.path("configmaps", "shared")
    (await cluster.client.patch(path, {"data": {"a": "1"}}, MERGE)).expect(200)
    precondition = {"preconditions": {"resourceVersion": first["metadata"]["resourceVersion"]}}
    message = (await cluster.client.delete(path, precondition)).refused(409, "Conflict")
    assert "does not match the ResourceVersion in record" in message
    found = (await cluster.read("configmaps", "shared"))["metadata"]
    right = {"preconditions": {"resourceVersion": found["resourceVersion"], "uid": found["uid"]}}
    (await cluster.client.delete(path, right)).expect(200)


async def test_a_patch_meant_for_a_predecessor_is_refused(cluster: Cluster) -> None:
    """As schedulers and kubelets write the status of a pod that may have been replaced meanwhile."""
    first = await cluster.create("pods", a_pod("p"))
    path = cluster.path("pods", "p")
    (await cluster.client.delete(path, {"gracePeriodSeconds": 0})).expect(200)
    await cluster.create("pods", a_pod("p"))
    stale = {"metadata": {"uid": first["metadata"]["uid"]}, "status": {"nominatedNodeName": "n"}}
    message = (await cluster.client.patch(f"{path}/status", stale, STRATEGIC)).refused(422, "Invalid")
    assert "metadata.uid: Invalid value" in message
    assert "field is immutable" in message
    assert "nominatedNodeName" not in (await cluster.read("pods", "p"))["status"]


async def test_an_update_of_another_uid_is_refused(cluster: Cluster) -> None:
    first = await cluster.create("configmaps", config_map("renewed"))
    path = cluster.path("configmaps", "renewed")
    (await cluster.client.delete(path)).expect(200)
    await cluster.create("configmaps", config_map("renewed"))
    body = config_map("renewed", {"a": "1"}, uid=first["metadata"]["uid"])
    assert (await cluster.client.put(path, body)).refused(409, "Conflict")


async def test_what_is_created_must_not_name_a_version(cluster: Cluster) -> None:
    answer = await cluster.client.post(cluster.path("configmaps"), config_map("new", resourceVersion="5"))
    assert answer.refused(500) == "resourceVersion should not be set on objects to be created"


async def test_the_server_owns_uid_and_times(cluster: Cluster) -> None:
    first = await cluster.create("configmaps", config_map("shared", creationTimestamp="2001-01-01T00:00:00Z", uid="mine"))
    assert first["metadata"]["uid"] != "mine"
    assert not first["metadata"]["creationTimestamp"].startswith("2001")
    path, wanted = cluster.path("configmaps", "shared"), {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 99}
    second = (await cluster.client.patch(path, {"metadata": {**wanted, "labels": {"a": "b"}}}, MERGE)).expect(200)
    assert [second["metadata"].get(key) for key in wanted] == [first["metadata"].get(key) for key in wanted]
    deleted = await cluster.client.patch(path, {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}, MERGE)
    assert "metadata.deletionTimestamp: Invalid value" in deleted.refused(422, "Invalid")
