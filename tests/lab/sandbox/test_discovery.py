"""Discovery and OpenAPI documents, and when they are made anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kubesandbox.resources import ResourceRegistry, ResourceType
from kubesandbox.web.discovery import AGGREGATED, Discovery
from kubesandbox.web.openapi_proto import ANSWERED_AS, ASKED_AS

BOX = ResourceType("example.com", "v1", "boxes", "box", "Box", True, short_names=("bx",), custom=True)
SCHEMA = {
    "type": "object",
    "description": "A box.",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "port": {"x-kubernetes-int-or-string": True},
                "note": {"type": "string", "nullable": True},
                "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
                "weights": {"type": "object", "additionalProperties": {"type": "integer"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}


def schemas(resource: ResourceType) -> Mapping[str, Any] | None:
    return SCHEMA if resource.custom else None


def with_box() -> Discovery:
    registry = ResourceRegistry()
    registry.add(BOX)
    return Discovery(registry, schemas)


def fields(data: bytes) -> dict[int, list[Any]]:
    """Return the fields of a protobuf message: number to values, messages as bytes."""
    found: dict[int, list[Any]] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = number()
        value: Any = number()
        if tag & 7 == 2:
            at, value = at + value, data[at : at + value]
        found.setdefault(tag >> 3, []).append(value)
    return found


def named(pairs: list[bytes]) -> dict[str, bytes]:
    return {fields(pair)[1][0].decode(): fields(pair)[2][0] for pair in pairs}


def test_a_new_type_appears_in_documents_that_were_already_asked_for() -> None:
    registry = ResourceRegistry()
    discovery = Discovery(registry, schemas)
    assert discovery.answer("/apis/example.com/v1", "") is None
    index = discovery.answer("/openapi/v3", "")
    registry.add(BOX)
    answer = discovery.answer("/apis/example.com/v1", "")
    assert answer is not None
    assert json.loads(answer.body)["resources"][0]["shortNames"] == ["bx"]
    assert discovery.answer("/openapi/v3", "") != index
    registry.remove("example.com", "v1", "boxes")
    assert discovery.answer("/apis/example.com/v1", "") is None


def test_the_aggregated_form_is_only_for_those_who_ask_for_this_version_of_it() -> None:
    discovery = with_box()
    newer, older = (discovery.answer("/apis", accept) for accept in (AGGREGATED, "application/json"))
    assert newer is not None
    assert older is not None
    assert newer.content_type == AGGREGATED
    assert older.content_type == "application/json"
    beta = AGGREGATED.replace("v=v2", "v=v2beta1")
    answer = discovery.answer("/apis", beta)
    assert answer is not None
    assert json.loads(answer.body)["kind"] == "APIGroupList"
    both = discovery.answer("/apis", f"{AGGREGATED},{beta},application/json")
    assert both == newer


@pytest.mark.parametrize("path", ["", "/", "/ap", "/apis/apps/v9", "/api/v1/pods", "/openapi/v4", "/openapi/v3/x", "/version/x"])
def test_other_paths_have_no_document(path: str) -> None:
    assert with_box().document(path) is None


def test_a_custom_type_has_its_schema_in_both_openapi_documents() -> None:
    discovery = with_box()
    third, second = discovery.document("/openapi/v3/apis/example.com/v1"), discovery.document("/openapi/v2")
    assert third is not None
    assert second is not None
    new = third["components"]["schemas"]["com.example.v1.Box"]
    old = second["definitions"]["com.example.v1.Box"]
    kind = [{"group": "example.com", "version": "v1", "kind": "Box"}]
    assert new["x-kubernetes-group-version-kind"] == old["x-kubernetes-group-version-kind"] == kind
    assert new["properties"]["spec"]["properties"]["port"] == {"x-kubernetes-int-or-string": True}
    spec = old["properties"]["spec"]["properties"]
    assert spec["port"] == {}  # the older format has no words for it, and says nothing rather than something wrong
    assert "type" not in spec["note"]
    assert spec["size"] == {"type": "integer", "minimum": 1}


def test_builtin_types_have_paths_and_no_schemas() -> None:
    document = with_box().document("/openapi/v3/api/v1")
    assert document is not None
    operation = document["paths"]["/api/v1/nodes/{name}"]["patch"]
    assert {"dryRun", "fieldManager", "fieldValidation"} <= {each["name"] for each in operation["parameters"]}
    assert all("x-kubernetes-group-version-kind" not in schema for schema in document["components"]["schemas"].values())


@pytest.mark.parametrize("accept", ASKED_AS)
def test_the_protobuf_form_says_the_same(accept: str) -> None:
    answer = with_box().answer("/openapi/v2", accept)
    assert answer is not None
    assert answer.content_type == ANSWERED_AS
    document = fields(answer.body)
    assert document[1] == [b"2.0"]
    box = fields(named(fields(document[9][0])[1])["com.example.v1.Box"])
    assert box[4] == [b"A box."]
    spec = fields(named(fields(box[25][0])[1])["spec"])
    assert spec[19] == [b"size"]
    parts = named(fields(spec[25][0])[1])
    assert fields(fields(parts["size"])[22][0])[1] == [b"integer"]
    assert fields(fields(fields(parts["weights"])[21][0])[1][0])[22]
    item = fields(fields(fields(parts["tags"])[23][0])[1][0])
    assert [fields(value)[2] for value in item[20]] == [[b'"a"'], [b'"b"']]
    extensions = named(box[31])
    assert b"example.com" in extensions["x-kubernetes-group-version-kind"]
    path = fields(named(fields(document[8][0])[2])["/api/v1/nodes/{name}"])
    assert 8 in path
