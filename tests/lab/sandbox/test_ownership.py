"""Field ownership: sets of fields, and what server-side apply does with them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesandbox.edits.apply import APPLY, UPDATE, Manager, track_update
from kubesandbox.edits.fieldsets import compare, decode, encode, fields_of, text
from kubesandbox.edits.patches import APPLY_PATCH, PatchRequest, apply_patch
from kubesandbox.edits.shapes import shape_of
from kubesandbox.status import ApiError

POD = shape_of("Pod")
NAMES = "abc"
SUBSETS = [list(each) for count in range(4) for each in permutations(NAMES, count)]
MAPS = [dict(zip(keys, values, strict=True)) for keys in SUBSETS for values in product(NAMES, repeat=len(keys))]
LISTS = [list(each) for count in range(4) for each in product(NAMES, repeat=count)]


def pod_of(order: list[str], parts: Sequence[tuple[str, dict[str, str]]], labels: Any, finalizers: Any, tolerations: list[str]) -> Any:
    """Make a pod with these containers in this order. A part is an image and an environment."""
    found = [
        {"name": name, "image": image, "env": [{"name": key, "value": value} for key, value in env.items()]}
        for name, (image, env) in zip(order, parts, strict=False)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels, "finalizers": finalizers},
        "spec": {"containers": found, "tolerations": [{"key": key} for key in tolerations]},
    }


# Of lists and maps that are all made beforehand one is drawn at a time: an element at a time takes ten times as long.
maps, subsets = st.sampled_from(MAPS), st.sampled_from(SUBSETS)
part = st.tuples(st.sampled_from(NAMES), maps)
pods = st.builds(pod_of, subsets, st.tuples(part, part, part), maps, subsets, st.sampled_from(LISTS)).map(copy.deepcopy)


EDITOR = Manager("editor", UPDATE, "v1")


def apply(current: Any, sent: Any, manager: str, *, force: bool = False, now: str = "t1", schema: Any = None) -> dict[str, Any]:
    return apply_patch(current, PatchRequest(sent, APPLY_PATCH, force), Manager(manager, APPLY, sent["apiVersion"]), now, schema)


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object without its managed fields."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


@settings(max_examples=50)
@given(pods)
def test_a_set_of_fields_survives_its_encoding(pod: dict[str, Any]) -> None:
    fields = fields_of(pod, POD)
    assert decode(encode(fields)) == fields


@settings(max_examples=50)
@given(pods)
def test_an_object_does_not_differ_from_itself(pod: dict[str, Any]) -> None:
    assert compare(pod, pod, POD) == (set(), set())


@settings(max_examples=50)
@given(pods, pods)
def test_what_one_manager_applies_last_is_what_there_is_of_its_lists_and_maps(first: Any, second: Any) -> None:
    live = apply(apply(None, first, "one"), second, "one")
    assert live["metadata"].get("labels", {}) == second["metadata"]["labels"]
    assert live["spec"].get("tolerations", []) == second["spec"]["tolerations"]
    wanted = {each["name"]: each for each in second["spec"]["containers"]}
    found = {each["name"]: each for each in live["spec"].get("containers", [])}
    assert found.keys() == wanted.keys()
    for name, each in wanted.items():
        environment = {entry["name"]: entry["value"] for entry in found[name].get("env", [])}
        assert environment == {entry["name"]: entry["value"] for entry in each["env"]}


@settings(max_examples=50)
@given(pods, pods)
def test_forcing_gives_everything_that_was_sent_and_takes_nothing_that_others_alone_hold(first: Any, second: Any) -> None:
    live = apply(apply(None, first, "one"), second, "two", force=True)
    assert first["metadata"]["labels"].keys() <= live["metadata"].get("labels", {}).keys()
    assert second["metadata"]["labels"].items() <= live["metadata"].get("labels", {}).items()
    assert {each["name"] for each in live["spec"].get("containers", [])} == {
        each["name"] for each in first["spec"]["containers"] + second["spec"]["containers"]
    }


@settings(max_examples=50)
@given(pods)
def test_applying_twice_is_applying_once(pod: dict[str, Any]) -> None:
    once = apply(None, pod, "one", now="t1")
    assert apply(once, pod, "one", now="t2") == once


@settings(max_examples=50)
@given(pods, pods)
def test_every_change_is_owned_by_whoever_made_it(first: Any, second: Any) -> None:
    live = apply(None, first, "one")
    second = {**second, "metadata": {**second["metadata"], "managedFields": live["metadata"]["managedFields"]}}
    track_update(live, second, EDITOR, "t2")
    written, _ = compare(first, bare(second), POD)
    entries = {each["manager"]: decode(each["fieldsV1"]) for each in second["metadata"].get("managedFields", [])}
    assert written <= entries.get("editor", frozenset())
    assert not written & entries.get("one", frozenset())


def test_paths_are_shown_as_users_know_them() -> None:
    path = (
        "f:spec",
        "f:containers",
        'k:{"name":"web"}',
        "f:ports",
        'k:{"containerPort":80,"protocol":"TCP"}',
        "f:name",
    )
    assert text(path) == '.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].name'
    assert text(("f:metadata", "f:finalizers", 'v:"a"')) == '.metadata.finalizers[="a"]'


def test_a_port_without_protocol_is_the_tcp_port() -> None:
    def pod(**port: Any) -> dict[str, Any]:
        spec = {"containers": [{"name": "a", "ports": [port]}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}

    live = apply(None, pod(containerPort=80, protocol="TCP"), "one")
    found = apply(live, pod(containerPort=80, name="http"), "two")
    assert found["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP", "name": "http"}]


def test_an_element_that_somebody_else_adds_to_stays_without_our_fields() -> None:
    def pod(**container: Any) -> dict[str, Any]:
        spec = {"containers": [{"name": "a", **container}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}

    live = apply(apply(None, pod(image="1"), "one"), pod(tty=True), "two")
    empty = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"hostname": "h"}}
    assert apply(live, empty, "one")["spec"]["containers"] == [{"name": "a", "tty": True}]


def test_status_is_not_owned_through_the_main_endpoint() -> None:
    sent = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"hostname": "h"}, "status": {"a": 1}}
    [entry] = apply(None, sent, "one")["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {"f:hostname": {}}}


def test_a_status_is_owned_through_its_own_endpoint() -> None:
    sent = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"}}
    kubelet = Manager("kubelet", APPLY, "v1", "status")
    [entry] = apply_patch({**sent, "status": {}}, PatchRequest(sent, APPLY_PATCH), kubelet, "t1")["metadata"]["managedFields"][:1]
    assert (entry["manager"], entry["subresource"]) == ("kubelet", "status")
    assert entry["fieldsV1"] == {"f:status": {"f:phase": {}}}


def test_lists_of_a_custom_schema_merge_as_it_says() -> None:
    item = {"type": "object", "properties": {"name": {"type": "string"}, "zone": {"type": "string", "default": "z"}}}
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "zone"],
        "items": item,
    }
    plain = {"type": "array", "items": {"type": "string"}}
    spec = {"type": "object", "properties": {"keyed": keyed, "plain": plain}}
    schema = {"type": "object", "properties": {"spec": spec}}

    def box(name: str) -> dict[str, Any]:
        body = {"keyed": [{"name": name}], "plain": [name]}
        return {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b"}, "spec": body}

    live = apply(None, box("a"), "one", schema=schema)
    live["spec"]["keyed"][0]["zone"] = "z"  # what defaulting does
    with pytest.raises(ApiError) as refused:
        apply(live, box("b"), "two", schema=schema)
    assert [cause["field"] for cause in refused.value.details["causes"]] == [".spec.plain"]
    found = apply(live, box("b"), "two", schema=schema, force=True)["spec"]
    assert [each["name"] for each in found["keyed"]] == ["a", "b"]
    assert found["plain"] == ["b"]


def recorded(obj: dict[str, Any], schema: dict[str, Any] | None = None) -> dict[str, Any]:
    track_update({}, obj, Manager("maker", UPDATE, obj["apiVersion"]), "t1", schema)
    [entry] = obj["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("maker", "Update")
    fields: dict[str, Any] = entry["fieldsV1"]
    return fields


def test_whoever_writes_plainly_owns_the_maps_and_elements_too() -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "labels": {"l": "1"}},
        "data": {"a": "1"},
    }
    assert recorded(config) == {
        "f:data": {".": {}, "f:a": {}},
        "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
    }
    spec = {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    limits = {".": {}, "f:limits": {".": {}, "f:cpu": {}}}
    assert recorded(pod) == {"f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:resources": limits}}}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    box = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b"}, "spec": {"a": "1"}}
    assert recorded(box, schema) == {"f:spec": {".": {}, "f:a": {}}}


def test_an_object_without_records_belongs_to_before_first_apply() -> None:
    live = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"hostname": "a"}}
    sent = {**live, "spec": {"hostname": "b"}}
    with pytest.raises(ApiError, match='conflict with "before-first-apply" using v1'):
        apply(live, sent, "one")


@pytest.mark.parametrize("broken", [[{"manager": "x", "fieldsV1": {"f:a": 1}}], [{"manager": "x", "fieldsV1": []}]])
def test_broken_records_are_refused_and_not_followed(broken: list[Any]) -> None:
    live = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "managedFields": broken}}
    sent = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    with pytest.raises(ApiError, match="managedFields"):
        apply(live, sent, "one")


@pytest.mark.parametrize("broken", [[{"manager": "x", "fieldsV1": {"f:a": 1}}], [{"manager": [], "fieldsV1": 1}]])
def test_a_plain_write_that_sends_broken_records_keeps_the_old_ones(broken: list[Any]) -> None:
    sent = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"hostname": "a"}}
    live = apply(None, sent, "one")
    written = {**sent, "metadata": {"name": "p", "managedFields": broken}}
    track_update(live, written, EDITOR, "t2")
    assert written["metadata"]["managedFields"] == live["metadata"]["managedFields"]
