"""JSON Patch (RFC 6902): a list of operations on a document, all applied or none."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

MAX_OPERATIONS = 10_000
"""What an API server takes in one patch."""


class JsonPatchError(Exception):
    """The patch is not one (`malformed`), or does not fit the document."""

    def __init__(self, message: str, *, malformed: bool = False) -> None:
        super().__init__(message)
        self.malformed = malformed


def apply_json_patch(document: Any, operations: object) -> Any:
    """A patched deep copy of `document`; raises `JsonPatchError` and leaves `document` alone."""
    if not isinstance(operations, list):
        raise JsonPatchError("a JSON patch is a list of operations", malformed=True)
    if len(operations) > MAX_OPERATIONS:
        raise JsonPatchError(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    result = copy.deepcopy(document)
    for operation in operations:
        result = _apply(result, operation)
    return result


def _apply(document: Any, operation: object) -> Any:
    if not isinstance(operation, dict) or not isinstance(operation.get("op"), str):
        raise JsonPatchError(f"not an operation: {operation!r}", malformed=True)
    handler = _OPERATIONS.get(operation["op"])
    if handler is None:
        raise JsonPatchError(f"Unexpected kind: {operation['op']}")
    return handler(document, operation)


def _add(document: Any, operation: dict[str, Any]) -> Any:
    return _put(document, _path(operation, "path"), copy.deepcopy(_value(operation)))


def _remove(document: Any, operation: dict[str, Any]) -> Any:
    return _take(document, _path(operation, "path"))[0]


def _replace(document: Any, operation: dict[str, Any]) -> Any:
    path = _path(operation, "path")
    document, _ = _take(document, path)
    return _put(document, path, copy.deepcopy(_value(operation)))


def _move(document: Any, operation: dict[str, Any]) -> Any:
    source, target = _path(operation, "from"), _path(operation, "path")
    if target[: len(source)] == source and len(target) > len(source):
        raise JsonPatchError(f"cannot move {_text(source)} into itself")
    document, value = _take(document, source)
    return _put(document, target, value)


def _copy(document: Any, operation: dict[str, Any]) -> Any:
    return _put(document, _path(operation, "path"), copy.deepcopy(_get(document, _path(operation, "from"))))


def _test(document: Any, operation: dict[str, Any]) -> Any:
    path, wanted = _path(operation, "path"), operation.get("value")
    try:
        found = _get(document, path)
    except JsonPatchError:
        # A test for null passes where there is nothing: the Go library that API servers use says so.
        if wanted is not None:
            raise
        found = None
    if not _same(found, wanted):
        raise JsonPatchError(f"testing path {_text(path)} value failed")
    return document


_OPERATIONS: Mapping[str, Callable[[Any, dict[str, Any]], Any]] = MappingProxyType(
    {
        "add": _add,
        "remove": _remove,
        "replace": _replace,
        "move": _move,
        "copy": _copy,
        "test": _test,
    }
)


def _same(left: Any, right: Any) -> bool:
    """Equality of JSON values, where true is not 1."""
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise JsonPatchError(f"{operation['op']} operation missing value", malformed=True)
    return operation["value"]


def _path(operation: dict[str, Any], name: str) -> list[str]:
    pointer = operation.get(name)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise JsonPatchError(f"{operation['op']} operation needs {name!r}, a JSON pointer", malformed=True)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _text(path: list[str]) -> str:
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)


def _get(document: Any, path: list[str]) -> Any:
    for depth, part in enumerate(path):
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(part, len(document) - 1, path)]
        else:
            raise JsonPatchError(f"doc is missing path: {_text(path[: depth + 1])}")
    return document


def _put(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(document, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if path[-1] == "-" else _index(path[-1], len(parent), path), value)
    else:
        raise JsonPatchError(f"doc is missing path: {_text(path)}")
    return document


def _take(document: Any, path: list[str]) -> tuple[Any, Any]:
    value = _get(document, path)
    if not path:
        return None, value
    parent = _get(document, path[:-1])
    del parent[path[-1] if isinstance(parent, dict) else int(path[-1])]
    return document, value


def _index(part: str, highest: int, path: list[str]) -> int:
    if not (part.isascii() and part.isdigit()) or (part != "0" and part.startswith("0")) or int(part) > highest:
        raise JsonPatchError(f"unable to access invalid index: {_text(path)}")
    return int(part)
