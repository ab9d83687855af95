"""JSON Patch as API servers take it: a list of operations on a document, all applied or none.

That is RFC 6902 but for what their library lets pass: a key of an object may be replaced or copied that is not there, a value left
out is null, a test for null passes where nothing is, and a negative index counts from the end of a list.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

MAX_OPERATIONS = 10_000
"""What an API server takes in one patch."""

_MOST_DIGITS = 18


class JsonPatchError(Exception):
    """The patch is not one (`code` 400), has too many operations (413), or does not fit the document (422)."""

    def __init__(self, message: str, *, code: int = 422) -> None:
        super().__init__(message)
        self.code = code


def apply_json_patch(document: Any, operations: object) -> Any:
    """A patched deep copy of `document`; null is a list of none. Raises `JsonPatchError` and leaves `document` alone."""
    operations = [] if operations is None else operations
    if not isinstance(operations, list):
        raise JsonPatchError("a JSON patch is a list of operations", code=400)
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise JsonPatchError(message, code=413)
    result = copy.deepcopy(document)
    for operation in operations:
        result = _apply(result, operation)
    return result


def _apply(document: Any, operation: object) -> Any:
    if not isinstance(operation, dict):
        raise JsonPatchError(f"not an operation: {operation!r}", code=400)
    handler = _OPERATIONS.get(str(operation.get("op")))
    if handler is None:
        raise JsonPatchError(f"Unexpected kind: {operation.get('op')}")
    return handler(document, operation)


def _add(document: Any, operation: dict[str, Any]) -> Any:
    return _put(document, _path(operation, "path"), copy.deepcopy(operation.get("value")))


def _remove(document: Any, operation: dict[str, Any]) -> Any:
    return _take(document, _path(operation, "path"))[0]


def _replace(document: Any, operation: dict[str, Any]) -> Any:
    path, value = _path(operation, "path"), copy.deepcopy(operation.get("value"))
    if not path:
        return value
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        parent[_index(path[-1], len(parent) - 1, path)] = value
        return document
    return _put(document, path, value)


def _move(document: Any, operation: dict[str, Any]) -> Any:
    source, target = _path(operation, "from"), _path(operation, "path")
    if target[: len(source)] == source and len(target) > len(source):
        raise JsonPatchError(f"cannot move {_text(source)} into itself")
    document, value = _take(document, source)
    return _put(document, target, value)


def _copy(document: Any, operation: dict[str, Any]) -> Any:
    return _put(document, _path(operation, "path"), copy.deepcopy(_get_or_null(document, _path(operation, "from"))))


def _test(document: Any, operation: dict[str, Any]) -> Any:
    path = _path(operation, "path")
    if not _same(_get_or_null(document, path), operation.get("value")):
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


def _path(operation: dict[str, Any], name: str) -> list[str]:
    pointer = operation.get(name)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise JsonPatchError(f"{operation['op']} operation needs {name!r}, a JSON pointer")
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


def _get_or_null(document: Any, path: list[str]) -> Any:
    """The value at `path`; null for a key that its object does not have."""
    parent = _get(document, path[:-1]) if path else None
    if isinstance(parent, dict) and path[-1] not in parent:
        return None
    return _get(document, path)


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
    del parent[path[-1] if isinstance(parent, dict) else _index(path[-1], len(parent) - 1, path)]
    return document, value


def _index(part: str, highest: int, path: list[str]) -> int:
    """The place in a list that `part` names, at most `highest`; -1 names the highest."""
    sign, digits = (-1, part[1:]) if part.startswith("-") else (1, part)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
        raise JsonPatchError(f"unable to access invalid index: {_text(path)}")
    index = sign * int(digits)
    if not -(highest + 1) <= index <= highest:
        raise JsonPatchError(f"unable to access invalid index: {_text(path)}")
    return index if index >= 0 else index + highest + 1
