"""Structural schemas and definitions: pruning, defaults, faults."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesandbox.definitions.customresources import CustomResource, establish
from kubesandbox.definitions.schemas import fill_defaults, prune, unknown_fields, validate
from kubesandbox.status import ApiError

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "free"]), below),
    max_leaves=10,
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "object", "properties": {"a": NUMBER, "b": {"type": "string", "default": "d"}}},
        "b": {"type": "array", "items": {"type": "object", "properties": {"a": NUMBER}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def faults(value: Any, schema: dict[str, Any]) -> list[str]:
    return [f"{path}: {what}" for path, what in validate(value, schema, "spec")]


@given(values)
def test_after_pruning_nothing_is_unknown(value: Any) -> None:
    value = {"a": value, "b": value, "free": value, "x": value}
    prune(value, SCHEMA)
    assert list(unknown_fields(value, SCHEMA)) == []
    assert "x" not in value


@given(values)
def test_filling_in_defaults_twice_is_filling_them_in_once(value: Any) -> None:
    once = {"a": value}
    fill_defaults(once, SCHEMA)
    twice = copy.deepcopy(once)
    fill_defaults(twice, SCHEMA)
    assert twice == once


@given(values)
def test_validation_of_anything_ends_in_faults_and_never_in_an_error(value: Any) -> None:
    assert all(what.startswith("Invalid value: ") for _, what in validate(value, SCHEMA))


def test_a_fraction_is_no_integer_and_items_are_named_by_their_place() -> None:
    assert faults(1.5, NUMBER) == ['spec: Invalid value: "number": spec in body must be of type integer: "number"']
    said = faults([{}, 1], {"type": "array", "items": {"type": "object"}})
    assert said == ['spec[1]: Invalid value: "integer": spec[1] in body must be of type object: "integer"']


def test_one_of_several_schemas_is_enough() -> None:
    schema = {"x-kubernetes-int-or-string": True, "anyOf": [TEXT]}
    assert faults(1, schema) == ["spec: Invalid value: 1: spec in body must validate at least one schema (anyOf)"]
    assert faults("1", schema) == []


def test_an_embedded_resource_keeps_what_every_resource_has() -> None:
    schema = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}, "other": 1}
    prune(value, schema)
    assert value.keys() == {"apiVersion", "kind", "metadata", "spec"}


def definition(**changes: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    spec = {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "boxes", "kind": "Box"},
        "versions": [version],
        **changes,
    }
    return {"metadata": {"name": "boxes.example.com"}, "spec": spec}


def test_admitting_leaves_what_was_sent_alone() -> None:
    sent = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b"}, "a": {}, "x": 1}
    before = copy.deepcopy(sent)
    admitted = CustomResource(definition()).admit(sent, None)
    assert sent == before
    assert admitted["a"] == {"b": "d"}
    assert "x" not in admitted


def test_all_faults_of_an_object_are_in_one_refusal() -> None:
    sent = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b"}, "a": {"a": "x"}, "b": {}}
    with pytest.raises(ApiError) as refused:
        CustomResource(definition()).admit(sent, None)
    assert [cause["field"] for cause in refused.value.details["causes"]] == ["a.a", "b"]
    assert str(refused.value).startswith('Box.example.com "b" is invalid: [a.a: Invalid value')


def test_a_definition_gets_names_and_conditions_once() -> None:
    crd = definition()
    establish(crd, "t1")
    establish(crd, "t2")
    assert crd["status"]["acceptedNames"] == {
        "plural": "boxes",
        "kind": "Box",
        "singular": "box",
        "listKind": "BoxList",
    }
    conditions = {each["type"]: each for each in crd["status"]["conditions"]}
    assert {kind: each["status"] for kind, each in conditions.items()} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert {each["lastTransitionTime"] for each in conditions.values()} == {"t1"}


def versions(schema: Any, **more: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}
    return {"versions": [version]}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"group": ""}, "spec.group"),
        ({"scope": "Galaxy"}, "spec.scope"),
        ({"names": None}, "spec.names"),
        ({"names": {"plural": "Boxes", "kind": "Box"}}, "spec.names.plural"),
        ({"names": {"plural": "crates", "kind": "Crate"}}, "metadata.name"),
        ({"versions": []}, "spec.versions"),
        ({"versions": [1]}, "spec.versions"),
        (versions(SCHEMA, storage=False), "spec.versions"),
        (versions(None), "spec.versions[0].schema.openAPIV3Schema"),
        (versions({"type": "string"}), "spec.versions[0].schema.openAPIV3Schema.type"),
        (versions({"type": "object", "properties": {"a": {}}}), "spec.versions[0].schema.openAPIV3Schema.properties[a].type"),
        (
            versions({"type": "object", "properties": {"a": {"type": "array"}}}),
            "spec.versions[0].schema.openAPIV3Schema.properties[a].items",
        ),
        (
            versions({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
            "spec.versions[0].schema.openAPIV3Schema.properties[a].pattern",
        ),
        (
            versions({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
            "spec.versions[0].schema.openAPIV3Schema.properties[a].default",
        ),
        (versions({"type": "object", "properties": 1}), "spec.versions[0].schema.openAPIV3Schema.properties"),
    ],
)
def test_a_definition_that_is_not_sound_is_refused_with_the_place(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiError) as refused:
        establish(definition(**changes), "t1")
    assert field in [cause["field"] for cause in refused.value.details["causes"]]
