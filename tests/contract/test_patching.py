"""Patches in general, and merge patches; the other kinds have tests of their own."""

from __future__ import annotations

import pytest

from contract.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object
from contract.cluster import Cluster
from contract.objects import config_map

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}


def deployment(name: str) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
    }


async def patched(cluster: Cluster, body: object, kind: str, plural: str = "configmaps", group: str = "") -> Object:
    return (await cluster.client.patch(cluster.path(plural, "it", group=group), body, kind)).expect(200)


async def test_a_json_patch_does_all_its_operations(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it", {"a": "1", "b": "2", "c": "3"}))
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "remove", "path": "/data/b"},
        {"op": "replace", "path": "/data/c", "value": "4"},
        {"op": "copy", "from": "/data/a", "path": "/data/copied"},
        {"op": "move", "from": "/data/c", "path": "/data/moved"},
        {"op": "add", "path": "/metadata/labels", "value": {"app": "web"}},
        {"op": "add", "path": "/metadata/labels/example.com~1tier", "value": "front"},
    ]
    found = await patched(cluster, operations, JSON_PATCH)
    assert found["data"] == {"a": "1", "copied": "1", "moved": "4"}
    assert found["metadata"]["labels"] == {"app": "web", "example.com/tier": "front"}


async def test_a_null_is_an_empty_text_where_text_belongs(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it", {"a": "1"}))
    assert (await patched(cluster, [{"op": "add", "path": "/data/c", "value": None}], JSON_PATCH))["data"] == {"a": "1", "c": ""}


async def test_a_merge_patch_merges_objects_and_null_removes(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it", {"a": "1", "b": "2"}))
    found = await patched(cluster, {"data": {"a": None, "c": "3"}}, MERGE)
    assert found["data"] == {"b": "2", "c": "3"}


async def test_a_merge_patch_replaces_lists(cluster: Cluster) -> None:
    await cluster.create("deployments", deployment("it"), group="apps")
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "other", "image": "other:1"}]}}}}
    found = await patched(cluster, patch, MERGE, "deployments", "apps")
    assert [each["name"] for each in found["spec"]["template"]["spec"]["containers"]] == ["other"]


async def test_a_patch_of_another_kind_is_an_unsupported_media_type(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it"))
    answer = await cluster.client.patch(cluster.path("configmaps", "it"), {}, "application/json")
    assert answer.refused(415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (MERGE, "{half"),
        (MERGE, "[]"),
        (STRATEGIC, "{half"),
        (STRATEGIC, '"text"'),
        (APPLY, "{half"),
        (APPLY, "{}"),
        (APPLY, "null"),
    ],
)
async def test_a_body_that_is_no_patch_is_refused(cluster: Cluster, kind: str, body: str) -> None:
    await cluster.create("configmaps", config_map("it"))
    answer = await cluster.client.patch(cluster.path("configmaps", "it"), body, kind, fieldManager="tester")
    old = {"{half": 500, "[]": 422}[body] if cluster.minor == 20 and kind == MERGE else None
    assert answer.refused(old or 400)


async def test_an_apply_patch_with_metadata_of_no_shape_is_refused_without_a_reason(cluster: Cluster) -> None:
    answer = await cluster.client.apply(cluster.path("configmaps", "it"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": 1}, "me")
    assert "failed to create typed patch object" in answer.refused(500)


async def test_a_patch_that_leaves_another_kind_or_wrong_types_is_invalid(cluster: Cluster) -> None:
    made = await cluster.create("configmaps", config_map("it"))
    patches = (
        {"kind": "Secret"},
        {"apiVersion": "v9"},
        {"data": {"a": 1}},
        {"data": [1]},
        {"metadata": {"labels": {"a": 1}}},
    )
    for patch in patches:
        assert (await cluster.client.patch(cluster.path("configmaps", "it"), patch, MERGE)).refused(422, "Invalid")
    assert (await cluster.read("configmaps", "it"))["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_only_apply_patches_can_be_forced(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it"))
    answer = await cluster.client.patch(cluster.path("configmaps", "it"), {}, MERGE, force=True)
    assert "force: Forbidden" in answer.refused(422, "Invalid")


async def test_a_patch_of_nothing_is_not_found(cluster: Cluster) -> None:
    assert (await cluster.client.patch(cluster.path("configmaps", "it"), {}, MERGE)).refused(404, "NotFound")


async def test_a_patch_cannot_rename(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it"))
    answer = await cluster.client.patch(cluster.path("configmaps", "it"), {"metadata": {"name": "other"}}, MERGE)
    message = answer.refused(400, "BadRequest")
    assert message == "the name of the object (other) does not match the name on the URL (it)"
