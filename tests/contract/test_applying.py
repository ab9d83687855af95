"""Server-side apply: managers own fields, meet in conflicts, share, force and let go."""

from __future__ import annotations

import pytest

from contract.client import MERGE, Object
from contract.cluster import Cluster
from contract.objects import config_map


def data(**values: str) -> Object:
    return config_map("it", values)


def deployment(**fields: object) -> Object:
    labels = {"app": "web"}
    containers = fields.pop("containers", [{"name": "main", "image": "app:1"}])
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "it"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, "replicas": 0, **fields},
    }


async def apply(cluster: Cluster, body: Object, manager: str, **query: object) -> Object:
    plural, group = ("deployments", "apps") if body["kind"] == "Deployment" else ("configmaps", "")
    answer = await cluster.client.apply(cluster.path(plural, "it", group=group), body, manager, **query)
    return answer.expect(200, 201)


async def test_applying_creates_what_is_not_there_and_updates_what_is(cluster: Cluster) -> None:
    path = cluster.path("configmaps", "it")
    (await cluster.client.apply(path, data(a="1"), "one")).expect(201)
    found = (await cluster.client.apply(path, data(a="2"), "one")).expect(200)
    assert found["data"] == {"a": "2"}


async def test_applying_the_same_again_changes_nothing(cluster: Cluster) -> None:
    first = await apply(cluster, data(a="1"), "one")
    second = await apply(cluster, data(a="1"), "one")
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_the_record_says_who_applied_what(cluster: Cluster) -> None:
    found = await apply(cluster, data(a="1"), "one")
    [entry] = found["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("one", "Apply", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}}


async def test_another_value_from_another_manager_is_a_conflict(cluster: Cluster) -> None:
    await apply(cluster, data(a="1", b="1"), "one")
    answer = await cluster.client.apply(cluster.path("configmaps", "it"), data(a="2"), "two")
    message = answer.refused(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    [cause] = answer.body["details"]["causes"]
    assert cause == {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    assert (await cluster.read("configmaps", "it"))["data"] == {"a": "1", "b": "1"}


async def test_several_conflicts_are_all_named(cluster: Cluster) -> None:
    await apply(cluster, data(a="1", b="1"), "one")
    answer = await cluster.client.apply(cluster.path("configmaps", "it"), data(a="2", b="2"), "two")
    assert answer.refused(409).startswith('Apply failed with 2 conflicts: conflicts with "one"')
    assert {cause["field"] for cause in answer.body["details"]["causes"]} == {".data.a", ".data.b"}


async def test_force_takes_the_field_over(cluster: Cluster) -> None:
    await apply(cluster, data(a="1", b="1"), "one")
    assert (await apply(cluster, data(a="2"), "two", force=True))["data"] == {"a": "2", "b": "1"}
    answer = await cluster.client.apply(cluster.path("configmaps", "it"), data(a="1", b="1"), "one")
    assert 'conflict with "two": .data.a' in answer.refused(409)


async def test_the_same_value_is_shared_and_stays_until_the_last_owner_lets_go(cluster: Cluster) -> None:
    await apply(cluster, data(a="1"), "one")
    await apply(cluster, data(a="1", b="2"), "two")
    assert (await apply(cluster, data(), "one"))["data"] == {"a": "1", "b": "2"}
    assert "a" not in (await apply(cluster, data(b="2"), "two"))["data"]


async def test_what_is_no_longer_applied_is_removed_and_what_others_wrote_stays(cluster: Cluster) -> None:
    await apply(cluster, data(a="1", b="1"), "one")
    patch = {"data": {"c": "1"}}
    await cluster.client.patch(cluster.path("configmaps", "it"), patch, MERGE, fieldManager="editor")
    assert (await apply(cluster, data(a="1"), "one"))["data"] == {"a": "1", "c": "1"}


async def test_a_plain_write_takes_ownership_and_then_conflicts(cluster: Cluster) -> None:
    await apply(cluster, data(a="1"), "one")
    patch = {"data": {"a": "2"}}
    await cluster.client.patch(cluster.path("configmaps", "it"), patch, MERGE, fieldManager="editor")
    answer = await cluster.client.apply(cluster.path("configmaps", "it"), data(a="1"), "one")
    assert 'conflict with "editor" using v1' in answer.refused(409)
    assert (await apply(cluster, data(a="1"), "one", force=True))["data"] == {"a": "1"}


async def test_what_was_created_without_applying_is_somebody_elses(cluster: Cluster) -> None:
    (await cluster.client.post(cluster.path("configmaps"), data(a="1"), fieldManager="maker")).expect(201)
    answer = await cluster.client.apply(cluster.path("configmaps", "it"), data(a="2"), "one")
    assert 'conflict with "maker" using v1' in answer.refused(409)
    assert (await apply(cluster, data(a="1"), "one"))["data"] == {"a": "1"}


async def test_elements_of_keyed_lists_have_owners_of_their_own(cluster: Cluster) -> None:
    await apply(cluster, deployment(), "one")
    side = deployment(containers=[{"name": "side", "image": "side:1", "ports": [{"containerPort": 80}]}])
    found = await apply(cluster, side, "two")
    assert {each["name"] for each in found["spec"]["template"]["spec"]["containers"]} == {"main", "side"}
    other = deployment(containers=[{"name": "main", "image": "app:2"}])
    answer = await cluster.client.apply(cluster.path("deployments", "it", group="apps"), other, "three")
    field = '.spec.template.spec.containers[name="main"].image'
    assert [cause["field"] for cause in answer.expect(409)["details"]["causes"]] == [field]


async def test_an_element_that_is_no_longer_applied_goes_with_its_defaults(cluster: Cluster) -> None:
    main, side = {"name": "main", "image": "app:1"}, {"name": "side", "image": "side:1"}
    await apply(cluster, deployment(containers=[main, side]), "one")
    found = await apply(cluster, deployment(containers=[main]), "one")
    assert [each["name"] for each in found["spec"]["template"]["spec"]["containers"]] == ["main"]


async def test_ports_are_told_apart_by_number_and_protocol(cluster: Cluster) -> None:
    ports = [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]
    found = await apply(cluster, deployment(containers=[{"name": "main", "image": "app:1", "ports": ports}]), "one")
    assert len(found["spec"]["template"]["spec"]["containers"][0]["ports"]) == 2


async def test_applying_needs_a_manager(cluster: Cluster) -> None:
    answer = await cluster.client.patch(cluster.path("configmaps", "it"), data(), "application/apply-patch+yaml")
    assert answer.status in (400, 422), answer
    assert "fieldManager" in answer.body["message"]


async def test_managed_fields_cannot_be_applied(cluster: Cluster) -> None:
    found = await apply(cluster, data(a="1"), "one")
    body = data(a="1")
    body["metadata"]["managedFields"] = found["metadata"]["managedFields"]
    answer = await cluster.client.apply(cluster.path("configmaps", "it"), body, "one")
    assert "metadata.managedFields must be nil" in answer.refused(400, "BadRequest")


async def test_a_dry_run_applies_nothing(cluster: Cluster) -> None:
    found = (await cluster.client.apply(cluster.path("configmaps", "it"), data(a="1"), "one", dryRun="All")).body
    assert found["data"] == {"a": "1"}
    assert (await cluster.client.get(cluster.path("configmaps", "it"))).refused(404)


@pytest.mark.parametrize("body", ["apiVersion: v1\nkind: ConfigMap\nmetadata: {name: it}\ndata: {a: '1'}\n"])
async def test_yaml_is_taken(cluster: Cluster, body: str) -> None:
    assert (await cluster.client.apply(cluster.path("configmaps", "it"), body, "one")).expect(201)["data"] == {"a": "1"}
