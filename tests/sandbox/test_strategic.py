"""Strategic merge patches: lists merge by key, and directives are obeyed."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.sandbox.shapes import shape_of
from placewright.sandbox.strategic import StrategicPatchError, strategic_merge


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def patched(current: dict[str, Any], patch: dict[str, Any], kind: str = "Pod") -> dict[str, Any]:
    return strategic_merge(current, patch, shape_of(kind))


TWO = [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]


def names(current: list[str], *patch: str, order: list[str] | None = None) -> str:
    """The containers after a patch with these, in their order."""
    given: dict[str, Any] = {"containers": [{"name": each} for each in patch]}
    if order is not None:
        given["$setElementOrder/containers"] = [{"name": each} for each in order]
    found = patched(pod(containers=[{"name": each} for each in current]), pod(**given))["spec"]["containers"]
    return "".join(each["name"] for each in found)


def test_elements_merge_by_name_and_new_ones_come_first() -> None:
    patch = pod(containers=[{"name": "c", "image": "3"}, {"name": "a", "tty": True}])
    assert patched(pod(containers=TWO), patch)["spec"]["containers"] == [
        {"name": "c", "image": "3"},
        {"name": "a", "image": "1", "tty": True},
        {"name": "b", "image": "1"},
    ]


def test_elements_of_the_patch_have_its_order_and_the_others_stay_before_those_that_they_were_before() -> None:
    assert names(["a", "b", "c"], "b") == "abc"
    assert names(["a", "b", "c"], "c", "a") == "bca"
    assert names(["a", "b", "c"], "d") == "dabc"
    assert names(["a", "b", "c"], "b", "d") == "abdc"
    assert names(["a", "b", "c"], "d", "b") == "dabc"
    assert names([], "b", "a") == "ba"


def test_nested_keyed_lists_merge_too() -> None:
    current = pod(containers=[{"name": "a", "env": [{"name": "X", "value": "1"}], "ports": [{"containerPort": 80}]}])
    patch = pod(containers=[{"name": "a", "env": [{"name": "Y", "value": "2"}], "ports": [{"containerPort": 81}]}])
    [container] = patched(current, patch)["spec"]["containers"]
    assert [each["name"] for each in container["env"]] == ["Y", "X"]
    assert [each["containerPort"] for each in container["ports"]] == [81, 80]


def test_tolerations_are_replaced_as_a_whole() -> None:
    found = patched(pod(tolerations=[{"key": "a"}]), pod(tolerations=[{"key": "b"}]))
    assert found == pod(tolerations=[{"key": "b"}])


def test_an_element_is_deleted_by_directive() -> None:
    patch = pod(containers=[{"name": "a", "$patch": "delete"}])
    assert [each["name"] for each in patched(pod(containers=TWO), patch)["spec"]["containers"]] == ["b"]


def test_a_list_and_a_map_are_replaced_by_directive() -> None:
    patch = pod(containers=[{"$patch": "replace"}, {"name": "c"}])
    assert patched(pod(containers=TWO), patch) == pod(containers=[{"name": "c"}])
    assert patched({"spec": {"a": 1, "b": 2}}, {"spec": {"$patch": "replace", "c": 3}}) == {"spec": {"c": 3}}


def test_a_map_is_deleted_by_directive() -> None:
    assert (
        patched({"spec": {"securityContext": {"a": 1}}}, {"spec": {"securityContext": {"$patch": "delete"}}}) == pod()
    )


def test_null_removes_a_field_and_is_never_stored() -> None:
    assert patched(pod(hostname="x", nodeName="n"), pod(hostname=None)) == pod(nodeName="n")
    assert patched({}, pod(containers=[{"name": "a", "tty": None}])) == pod(containers=[{"name": "a"}])


def test_elements_take_the_order_that_the_patch_names() -> None:
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}],
            "containers": [{"name": "c"}],
        }
    }
    assert [each["name"] for each in patched(pod(containers=TWO), patch)["spec"]["containers"]] == ["c", "b", "a"]


def test_an_element_that_the_order_does_not_name_stays_before_those_that_it_was_before() -> None:
    assert names(["a", "b"], "c", order=["c", "a"]) == "cab"
    assert names(["c", "a", "b"], "d", order=["d", "a"]) == "dcab"
    assert names(["d", "c", "a", "b"], order=["b", "a"]) == "dcba"


def test_values_join_and_leave_a_list_of_strings() -> None:
    current = {"metadata": {"finalizers": ["a", "b"]}}
    assert patched(current, {"metadata": {"finalizers": ["b", "c"]}}) == {"metadata": {"finalizers": ["a", "b", "c"]}}
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "z"]}}
    assert patched(current, less) == {"metadata": {"finalizers": ["b"]}}


def test_only_retained_keys_stay() -> None:
    current = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patched(current, patch, "Deployment") == {"spec": {"strategy": {"type": "Recreate"}}}


def test_another_source_of_a_volume_takes_the_place_of_the_old_one() -> None:
    current = pod(volumes=[{"name": "v", "emptyDir": {}}])
    patch = pod(volumes=[{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}])
    assert patched(current, patch) == pod(volumes=[{"name": "v", "configMap": {"name": "c"}}])


@pytest.mark.parametrize(
    "patch",
    [
        pod(containers=[{"image": "no-name"}]),
        pod(containers=["text"]),
        {"spec": {"$patch": "explode"}},
        {"spec": {"$retainKeys": "a"}},
        {"spec": {"$retainKeys": ["a"], "b": 1}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
    ],
)
def test_a_patch_that_makes_no_sense_is_refused(patch: dict[str, Any]) -> None:
    with pytest.raises(StrategicPatchError):
        patched({**pod(containers=TWO)}, patch)


def test_the_patched_object_is_not_changed() -> None:
    current = pod(containers=[dict(each) for each in TWO])
    patched(current, pod(containers=[{"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}]))
    assert current == pod(containers=TWO)


def test_an_element_that_is_no_object_is_merged_around() -> None:
    patch = pod(containers=[{"name": "a", "tty": True}])
    assert patched(pod(containers=[1, {"name": "a"}]), patch) == pod(containers=[1, {"name": "a", "tty": True}])
