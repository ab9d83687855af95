"""JSON Patch as RFC 6902 has it, and where API servers take more."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.sandbox.jsonpatch import MAX_OPERATIONS, JsonPatchError, apply_json_patch


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({"a": 1}, op("add", "/b", value=2), {"a": 1, "b": 2}),
        ({"a": 1}, op("add", "/a", value=2), {"a": 2}),
        ({"a": [1, 3]}, op("add", "/a/1", value=2), {"a": [1, 2, 3]}),
        ({"a": [1]}, op("add", "/a/-", value=2), {"a": [1, 2]}),
        ({"a": [1]}, op("add", "/a/1", value=2), {"a": [1, 2]}),
        ({"a": 1}, op("add", "", value={"b": 2}), {"b": 2}),
        ({"a": 1, "b": 2}, op("remove", "/b"), {"a": 1}),
        ({"a": [1, 2, 3]}, op("remove", "/a/1"), {"a": [1, 3]}),
        ({"a": [1, 2]}, op("replace", "/a/0", value=9), {"a": [9, 2]}),
        ({"a": None}, op("replace", "/a", value=1), {"a": 1}),
        ({"a": {"x": 1}, "b": {}}, {"op": "move", "from": "/a/x", "path": "/b/y"}, {"a": {}, "b": {"y": 1}}),
        ({"a": [1, 2, 3]}, {"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}),
        ({"a": {"x": 1}}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": {"x": 1}, "b": {"x": 1}}),
        ({"a/b": 1, "m~n": 2}, op("remove", "/a~1b"), {"m~n": 2}),
        ({"a/b": 1, "m~n": 2}, op("remove", "/m~0n"), {"a/b": 1}),
        ({"": 1}, op("replace", "/", value=2), {"": 2}),
        ({"a": {"b": [1]}}, op("test", "/a", value={"b": [1]}), {"a": {"b": [1]}}),
        ({}, op("test", "/a", value=None), {}),
    ],
)
def test_an_operation_does_what_the_standard_says(document: Any, operation: Any, expected: Any) -> None:
    assert apply_json_patch(document, [operation]) == expected


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({}, op("replace", "/a", value=1), {"a": 1}),
        ({"a": 1}, op("replace", "", value={"b": 2}), {"b": 2}),
        ({"a": 1}, op("add", "/b"), {"a": 1, "b": None}),
        ({"a": 1}, op("replace", "/a"), {"a": None}),
        ({"a": 1}, {"op": "copy", "from": "/x", "path": "/b"}, {"a": 1, "b": None}),
        ({"a": 1}, op("test", "/x"), {"a": 1}),
        ({"a": [1, 2]}, op("replace", "/a/-1", value=9), {"a": [1, 9]}),
        ({"a": [1, 2]}, op("remove", "/a/-2"), {"a": [2]}),
        ({"a": [1, 2]}, op("add", "/a/-1", value=9), {"a": [1, 2, 9]}),
        ({"a": [1, 2]}, op("add", "/a/-3", value=9), {"a": [9, 1, 2]}),
    ],
)
def test_an_operation_is_taken_that_the_standard_would_refuse(document: Any, operation: Any, expected: Any) -> None:
    assert apply_json_patch(document, [operation]) == expected


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({}, op("remove", "/a")),
        ({}, op("replace", "/a/b", value=1)),
        ({}, op("test", "/a/b", value=None)),
        ({"a": [1]}, op("test", "/a/1", value=None)),
        ({"a": [1]}, op("replace", "/a/1", value=2)),
        ({"a": [1]}, op("replace", "/a/-", value=2)),
        ({}, {"op": "move", "from": "/a", "path": "/b"}),
        ({}, {"op": "copy", "from": "/a/b", "path": "/b"}),
        ({}, op("add", "/a/b", value=1)),
        ({"a": 1}, op("add", "/a/b", value=1)),
        ({"a": []}, op("add", "/a/1", value=1)),
        ({"a": [1]}, op("remove", "/a/-")),
        ({"a": [1]}, op("remove", "/a/-2")),
        ({"a": [1]}, op("add", "/a/-3", value=1)),
        ({"a": [1]}, op("remove", "/a/" + "1" * 5000)),
        ({"a": [1]}, op("remove", "/a/x")),
        ({"a": {"b": 1}}, {"op": "move", "from": "/a", "path": "/a/b/c"}),
        ({"a": 1}, op("test", "/a", value=True)),
        ({"a": [1]}, op("test", "/a", value=[1.5])),
        ({"a": 1}, op("test", "/b", value=1)),
        ({"a": 1}, op("increment", "/a")),
        ({"a": 1}, {"path": "/a"}),
        ({"a": 1}, {"op": "remove"}),
        ({"a": 1}, op("remove", "a")),
    ],
)
def test_an_operation_that_does_not_fit_is_refused(document: Any, operation: Any) -> None:
    with pytest.raises(JsonPatchError) as refused:
        apply_json_patch(document, [operation])
    assert not refused.value.malformed


@pytest.mark.parametrize(
    "operations", [None, {}, "x", [1]]
)
def test_what_is_no_patch_is_called_malformed(operations: object) -> None:
    with pytest.raises(JsonPatchError) as refused:
        apply_json_patch({"a": 1}, operations)
    assert refused.value.malformed


def test_a_patch_that_fails_half_way_leaves_the_document_alone() -> None:
    document = {"a": [1]}
    with pytest.raises(JsonPatchError):
        apply_json_patch(document, [op("add", "/a/-", value=2), op("remove", "/b")])
    assert document == {"a": [1]}


def test_a_copied_value_is_no_longer_tied_to_its_origin() -> None:
    operations = [{"op": "copy", "from": "/a", "path": "/b"}, op("add", "/b/x", value=1)]
    assert apply_json_patch({"a": {}}, operations) == {"a": {}, "b": {"x": 1}}


def test_a_flood_of_operations_is_refused() -> None:
    with pytest.raises(JsonPatchError, match="maximum operations"):
        apply_json_patch({}, [op("add", "/a", value=1)] * (MAX_OPERATIONS + 1))
