"""Patches of the three plain kinds; server-side apply has tests of its own."""

from __future__ import annotations

import aiohttp
import pytest

from contract.client import JSON_PATCH, MERGE, STRATEGIC, Object
from contract.cluster import Cluster
from contract.objects import config_map, node, pod

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


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ({"op": "test", "path": "/data/a", "value": "2"}, 422),
        ({"op": "remove", "path": "/data/nothing"}, 422),
        ({"op": "test", "path": "/nowhere/below", "value": None}, 422),
        ({"op": "move", "from": "/data/nothing", "path": "/data/c"}, 422),
        ({"op": "replace", "path": "/nowhere/below", "value": "1"}, 422),
        ({"op": "add", "path": "/nowhere/below", "value": "1"}, 422),
        ({"op": "replace", "path": "/metadata/finalizers/0", "value": "example.com/a"}, 422),
        ({"op": "increment", "path": "/data/a"}, 422),
        ({"op": "remove"}, 422),
        ({"op": "remove", "path": "data/a"}, 422),
    ],
)
async def test_a_json_patch_that_does_not_fit_changes_nothing(cluster: Cluster, operation: Object, code: int) -> None:
    made = await cluster.create("configmaps", config_map("it", {"a": "1"}))
    operations = [{"op": "add", "path": "/data/b", "value": "1"}, operation]
    answer = await cluster.client.patch(cluster.path("configmaps", "it"), operations, JSON_PATCH)
    assert answer.refused(code, "Invalid")
    assert (await cluster.read("configmaps", "it"))["metadata"]["resourceVersion"] == made["metadata"][
        "resourceVersion"
    ]


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "replace", "path": "/data/c", "value": "1"}, {"a": "1", "c": "1"}),
        ({"op": "add", "path": "/data/c", "value": None}, {"a": "1", "c": ""}),
        ({"op": "copy", "from": "/data/nothing", "path": "/data/c"}, {"a": "1", "c": ""}),
        ({"op": "add", "path": "/data/c"}, {"a": "1", "c": ""}),
        ({"op": "test", "path": "/data/nothing", "value": None}, {"a": "1"}),
    ],
)
async def test_a_json_patch_is_taken_for_a_key_that_is_not_there(cluster: Cluster, operation: Object, after: Object) -> None:
    """Beyond the standard, and on every version."""
    await cluster.create("configmaps", config_map("it", {"a": "1"}))
    assert (await patched(cluster, [operation], JSON_PATCH))["data"] == after


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "replace", "path": "/metadata/finalizers/-1", "value": "example.com/c"}, "ac"),
        ({"op": "remove", "path": "/metadata/finalizers/-2"}, "b"),
        ({"op": "add", "path": "/metadata/finalizers/-1", "value": "example.com/c"}, "abc"),
        ({"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/c"}, "cab"),
    ],
)
async def test_a_json_patch_counts_from_either_end_of_a_list(cluster: Cluster, operation: Object, after: str) -> None:
    await cluster.create("configmaps", config_map("it", finalizers=["example.com/a", "example.com/b"]))
    if cluster.minor == 20 and operation["op"] == "replace":  # it breaks on that, and drops the connection
        with pytest.raises(aiohttp.ClientError):
            await patched(cluster, [operation], JSON_PATCH)
        await patched(cluster, {"metadata": {"finalizers": None}}, MERGE)
        return
    found = await patched(cluster, [operation], JSON_PATCH)
    assert found["metadata"]["finalizers"] == [f"example.com/{letter}" for letter in after]
    await patched(cluster, {"metadata": {"finalizers": None}}, MERGE)


async def test_a_json_patch_works_on_lists(cluster: Cluster) -> None:
    name = cluster.unique("it")
    body = node(name, taints=[{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}])
    (await cluster.client.post("/api/v1/nodes", body)).expect(201)
    try:
        operations = [
            {"op": "remove", "path": "/spec/taints/0"},
            {"op": "add", "path": "/spec/taints/-", "value": {"key": "c", "effect": "NoExecute"}},
        ]
        found = (await cluster.client.patch(f"/api/v1/nodes/{name}", operations, JSON_PATCH)).expect(200)
        kept = [taint["key"] for taint in found["spec"]["taints"] if not taint["key"].startswith("node.kubernetes.io/")]
        assert kept == ["b", "c"]
    finally:
        await cluster.client.delete(f"/api/v1/nodes/{name}")


async def test_a_merge_patch_merges_objects_and_null_removes(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it", {"a": "1", "b": "2"}))
    found = await patched(cluster, {"data": {"a": None, "c": "3"}}, MERGE)
    assert found["data"] == {"b": "2", "c": "3"}


async def test_a_merge_patch_replaces_lists(cluster: Cluster) -> None:
    await cluster.create("deployments", deployment("it"), group="apps")
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "other", "image": "other:1"}]}}}}
    found = await patched(cluster, patch, MERGE, "deployments", "apps")
    assert [each["name"] for each in found["spec"]["template"]["spec"]["containers"]] == ["other"]


async def containers_after(cluster: Cluster, containers: list[Object]) -> dict[str, Object]:
    await cluster.create("deployments", deployment("it"), group="apps")
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    found = await patched(cluster, patch, STRATEGIC, "deployments", "apps")
    return {each["name"]: each for each in found["spec"]["template"]["spec"]["containers"]}


async def test_a_strategic_patch_merges_containers_by_name(cluster: Cluster) -> None:
    main = {"name": "main", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]}
    found = await containers_after(cluster, [main, {"name": "side", "image": "side:1"}])
    assert found.keys() == {"main", "side"}
    assert found["main"]["image"] == "app:1"
    assert found["main"]["env"] == [{"name": "A", "value": "1"}]
    assert found["main"]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


async def test_a_strategic_patch_can_take_an_element_out_and_put_one_in(cluster: Cluster) -> None:
    containers = [{"name": "main", "$patch": "delete"}, {"name": "side", "image": "side:1"}]
    assert (await containers_after(cluster, containers)).keys() == {"side"}


async def test_a_strategic_patch_can_replace_a_list(cluster: Cluster) -> None:
    found = await containers_after(cluster, [{"$patch": "replace"}, {"name": "side", "image": "side:1"}])
    assert found.keys() == {"side"}


async def test_a_strategic_patch_takes_values_out_of_a_list_of_strings(cluster: Cluster) -> None:
    finalizers = ["example.com/a", "example.com/b"]
    await cluster.create("configmaps", config_map("it", finalizers=finalizers))
    added = await patched(cluster, {"metadata": {"finalizers": ["example.com/c"]}}, STRATEGIC)
    assert set(added["metadata"]["finalizers"]) == {*finalizers, "example.com/c"}
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/c"]}}
    assert (await patched(cluster, less, STRATEGIC))["metadata"]["finalizers"] == ["example.com/b"]
    await patched(cluster, {"metadata": {"finalizers": None}}, MERGE)


async def test_a_strategic_patch_replaces_the_taints_of_a_node(cluster: Cluster) -> None:
    name = cluster.unique("it")
    body = node(name, taints=[{"key": "a", "effect": "NoSchedule"}])
    (await cluster.client.post("/api/v1/nodes", body)).expect(201)
    try:
        patch = {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}
        found = (await cluster.client.patch(f"/api/v1/nodes/{name}", patch, STRATEGIC)).expect(200)
        kept = [taint["key"] for taint in found["spec"]["taints"] if not taint["key"].startswith("node.kubernetes.io/")]
        assert kept == ["b"]
    finally:
        await cluster.client.delete(f"/api/v1/nodes/{name}")


async def test_a_strategic_patch_of_status_merges_conditions_by_type(cluster: Cluster) -> None:
    await cluster.create("pods", pod("it"))
    path = cluster.path("pods", "it", "status")
    for kind, status in (("PodScheduled", "False"), ("example.com/Mine", "True"), ("PodScheduled", "True")):
        patch = {"status": {"conditions": [{"type": kind, "status": status}]}}
        (await cluster.client.patch(path, patch, STRATEGIC)).expect(200)
    conditions = (await cluster.read("pods", "it"))["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions} == {"PodScheduled": "True", "example.com/Mine": "True"}


@pytest.mark.parametrize(
    ("patched_types", "order", "after"),
    [
        ("d", "", "dabc"),
        ("ca", "", "bca"),
        ("b", "", "abc"),
        ("bd", "", "abdc"),
        ("d", "da", "dabc"),
        ("", "ca", "bca"),
    ],
)
async def test_a_strategic_patch_puts_what_is_new_first(cluster: Cluster, patched_types: str, order: str, after: str) -> None:
    """Elements that the patch names have its order; others stay before those that they were before."""

    def conditions(types: str) -> list[Object]:
        return [{"type": each, "status": "True"} for each in types]

    await cluster.create("pods", pod("it"))
    path = cluster.path("pods", "it", "status")
    (await cluster.client.patch(path, {"status": {"conditions": conditions("abc")}}, MERGE)).expect(200)
    patch: Object = {"conditions": conditions(patched_types)} if patched_types else {}
    if order:
        patch["$setElementOrder/conditions"] = [{"type": each} for each in order]
    found = (await cluster.client.patch(path, {"status": patch}, STRATEGIC)).expect(200)
    assert "".join(each["type"] for each in found["status"]["conditions"]) == after


async def test_strings_that_a_strategic_patch_adds_come_first(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it", finalizers=["example.com/a", "example.com/b"]))
    added = await patched(cluster, {"metadata": {"finalizers": ["example.com/c", "example.com/b"]}}, STRATEGIC)
    assert [each[-1] for each in added["metadata"]["finalizers"]] == ["c", "a", "b"]
    await patched(cluster, {"metadata": {"finalizers": None}}, MERGE)


async def test_a_patch_of_another_kind_is_an_unsupported_media_type(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("it"))
    answer = await cluster.client.patch(cluster.path("configmaps", "it"), {}, "application/json")
    assert answer.refused(415, "UnsupportedMediaType")


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC, JSON_PATCH])
async def test_a_patch_that_is_no_json_is_refused(cluster: Cluster, kind: str) -> None:
    await cluster.create("configmaps", config_map("it"))
    answer = await cluster.client.patch(cluster.path("configmaps", "it"), "{half", kind)
    assert answer.refused(500 if cluster.minor == 20 and kind == MERGE else 400)


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
    assert (await cluster.read("configmaps", "it"))["metadata"]["resourceVersion"] == made["metadata"][
        "resourceVersion"
    ]


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
