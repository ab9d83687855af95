"""Strategic merge patches: lists merge by key, and directives are obeyed."""

from __future__ import annotations

import pytest

from contract.client import MERGE, STRATEGIC, Answer, Object
from contract.cluster import Cluster
from contract.objects import a_node, a_pod, config_map

MAIN, SIDE = ({"name": name, "image": f"{name}:1"} for name in ("main", "side"))


async def answered(cluster: Cluster, before: Object, patch: Object, at: str = "pod") -> Answer:
    """The answer to a patch of a Deployment, or of the spec of its pods; those have `main` unless other containers are given."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [MAIN], **(before if at == "pod" else {})}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template, **(before if at == "spec" else {})}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "it"}, "spec": spec}
    await cluster.create("deployments", body, group="apps")
    sent = {"spec": {"template": {"spec": patch}}} if at == "pod" else {at: patch}
    return await cluster.client.patch(cluster.path("deployments", "it", group="apps"), sent, STRATEGIC)


async def pods_after(cluster: Cluster, before: Object, patch: Object) -> Object:
    found: Object = (await answered(cluster, before, patch)).expect(200)["spec"]["template"]["spec"]
    return found


async def containers_after(cluster: Cluster, containers: list[Object]) -> dict[str, Object]:
    return {each["name"]: each for each in (await pods_after(cluster, {}, {"containers": containers}))["containers"]}


async def test_a_strategic_patch_merges_containers_by_name(cluster: Cluster) -> None:
    main = {"name": "main", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]}
    found = await containers_after(cluster, [main, SIDE])
    assert found.keys() == {"main", "side"}
    assert found["main"]["image"] == "main:1"
    assert found["main"]["env"] == [{"name": "A", "value": "1"}]
    assert found["main"]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


async def test_keyed_lists_in_keyed_lists_merge_too(cluster: Cluster) -> None:
    before = {**MAIN, "env": [{"name": "X", "value": "1"}], "ports": [{"containerPort": 80}]}
    patch = {"name": "main", "env": [{"name": "Y", "value": "2"}], "ports": [{"containerPort": 81}]}
    [found] = (await pods_after(cluster, {"containers": [before]}, {"containers": [patch]}))["containers"]
    assert [each["name"] for each in found["env"]] == ["Y", "X"]
    assert [each["containerPort"] for each in found["ports"]] == [81, 80]


async def test_an_element_can_be_taken_out_and_one_put_in(cluster: Cluster) -> None:
    assert (await containers_after(cluster, [{"name": "main", "$patch": "delete"}, SIDE])).keys() == {"side"}


async def test_a_list_can_be_replaced(cluster: Cluster) -> None:
    assert (await containers_after(cluster, [{"$patch": "replace"}, SIDE])).keys() == {"side"}


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ({"c": "3"}, {"a": "1", "c": "3"}),
        ({"a": None, "c": "3"}, {"c": "3"}),
        ({"$patch": "replace", "c": "3"}, {"c": "3"}),
        ({"$patch": "delete"}, None),
        (None, None),
    ],
)
async def test_a_map_merges_is_replaced_or_deleted(cluster: Cluster, patch: Object | None, after: Object | None) -> None:
    found = await pods_after(cluster, {"nodeSelector": {"a": "1"}, "hostname": "kept"}, {"nodeSelector": patch})
    assert (found.get("nodeSelector"), found["hostname"]) == (after, "kept")


async def test_null_in_a_new_element_is_not_stored(cluster: Cluster) -> None:
    found = await containers_after(cluster, [{**SIDE, "tty": None, "env": [{"name": "A", "value": None}]}])
    assert "tty" not in found["side"]
    assert found["side"]["env"] == [{"name": "A"}]


async def test_tolerations_are_replaced_as_a_whole(cluster: Cluster) -> None:
    before, after = ([{"key": key, "operator": "Exists"}] for key in "ab")
    assert (await pods_after(cluster, {"tolerations": before}, {"tolerations": after}))["tolerations"] == after


async def test_only_retained_keys_stay(cluster: Cluster) -> None:
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    found = (await answered(cluster, {"strategy": {"type": "RollingUpdate"}}, patch, "spec")).expect(200)
    assert found["spec"]["strategy"] == {"type": "Recreate"}


async def test_another_source_of_a_volume_takes_the_place_of_the_old_one(cluster: Cluster) -> None:
    patch = {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}
    found = await pods_after(cluster, {"volumes": [{"name": "v", "emptyDir": {}}]}, patch)
    assert [(each["name"], each["configMap"]["name"], "emptyDir" in each) for each in found["volumes"]] == [("v", "c", False)]


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ({"containers": [{"image": "no-name"}]}, 500),
        ({"containers": ["text"]}, 500),
        ({"$patch": "explode"}, 500),
        ({"$setElementOrder/containers": "a"}, 500),
        ({"$retainKeys": "a"}, 400),
        ({"$retainKeys": ["a"], "b": 1}, 400),
    ],
)
async def test_a_directive_that_makes_no_sense_is_refused(cluster: Cluster, patch: Object, code: int) -> None:
    assert (await answered(cluster, {}, patch)).refused(code)


async def test_values_join_and_leave_a_list_of_strings_and_new_ones_come_first(cluster: Cluster) -> None:
    async def finalizers_after(patch: Object, kind: str = STRATEGIC) -> list[str]:
        found = (await cluster.client.patch(cluster.path("configmaps", "it"), {"metadata": patch}, kind)).expect(200)
        return [each[-1] for each in found["metadata"].get("finalizers", ())]

    await cluster.create("configmaps", config_map("it", finalizers=["example.com/a", "example.com/b"]))
    assert await finalizers_after({"finalizers": ["example.com/c", "example.com/b"]}) == ["c", "a", "b"]
    less = {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/c", "example.com/z"]}
    assert await finalizers_after(less) == ["b"]
    if cluster.minor > 20:  # which refuses it
        assert await finalizers_after({"$deleteFromPrimitiveList/finalizers": "example.com/b"}) == ["b"], "what is no list is passed over"
    assert await finalizers_after({"finalizers": None}, MERGE) == []


async def test_the_taints_of_a_node_are_replaced(cluster: Cluster) -> None:
    name = cluster.unique("it")
    body = a_node(name, taints=[{"key": "a", "effect": "NoSchedule"}])
    (await cluster.client.post("/api/v1/nodes", body)).expect(201)
    try:
        patch = {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}
        found = (await cluster.client.patch(f"/api/v1/nodes/{name}", patch, STRATEGIC)).expect(200)
        kept = [taint["key"] for taint in found["spec"]["taints"] if not taint["key"].startswith("node.kubernetes.io/")]
        assert kept == ["b"]
    finally:
        await cluster.client.delete(f"/api/v1/nodes/{name}")


async def test_conditions_of_a_status_merge_by_type(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("it"))
    path = cluster.path("pods", "it", "status")
    for kind, status in (("PodScheduled", "False"), ("example.com/Mine", "True"), ("PodScheduled", "True")):
        patch = {"status": {"conditions": [{"type": kind, "status": status}]}}
        (await cluster.client.patch(path, patch, STRATEGIC)).expect(200)
    conditions = (await cluster.read("pods", "it"))["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions} == {"PodScheduled": "True", "example.com/Mine": "True"}


@pytest.mark.parametrize(
    ("before", "patched_types", "order", "after"),
    [
        ("", "ba", "", "ba"),
        ("abc", "d", "", "dabc"),
        ("abc", "ca", "", "bca"),
        ("abc", "b", "", "abc"),
        ("abc", "bd", "", "abdc"),
        ("abc", "db", "", "dabc"),
        ("abc", "d", "da", "dabc"),
        ("abc", "", "ca", "bca"),
        ("ab", "c", "ca", "cab"),
        ("ab", "c", "cba", "cba"),
        ("cab", "d", "da", "dcab"),
        ("dcab", "", "ba", "dcba"),
    ],
)
async def test_what_is_new_comes_first(cluster: Cluster, before: str, patched_types: str, order: str, after: str) -> None:
    """Elements that the patch names have its order; others stay before those that they were before."""

    def conditions(types: str) -> list[Object]:
        return [{"type": each, "status": "True"} for each in types]

    await cluster.create("pods", a_pod("it"))
    path = cluster.path("pods", "it", "status")
    (await cluster.client.patch(path, {"status": {"conditions": conditions(before)}}, MERGE)).expect(200)
    patch: Object = {"conditions": conditions(patched_types)} if patched_types else {}
    if order:
        patch["$setElementOrder/conditions"] = [{"type": each} for each in order]
    found = (await cluster.client.patch(path, {"status": patch}, STRATEGIC)).expect(200)
    assert "".join(each["type"] for each in found["status"]["conditions"]) == after
