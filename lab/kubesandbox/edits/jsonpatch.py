"""JSON Patch as API servers take it: a list of operations on a document, all applied or none.

The library implements RFC 6902. API servers accept more, so each operation is first translated to the standard's form:

- A missing key of an object may be replaced or copied.
- A missing value counts as null, and a test for null passes if the key is missing.
- A negative index counts from the end of a list.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointer, JsonPointerException

from kubesandbox.status import ApiError, bad_request, unprocessable

#: Operations that an API server accepts in one patch.
MAX_OPERATIONS: Final = 10_000
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_NEGATIVE: Final = re.compile(r"-[1-9][0-9]{0,17}")

_Operation = dict[str, Any]


def apply_json_patch(document: Any, operations: object) -> Any:
    """Return a patched deep copy of `document`. Null counts as an empty list of operations. Raises ApiError 400, 413 and 422."""
    operations = [] if operations is None else operations
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", message)
    result = copy.deepcopy(document)
    for operation in operations:
        result = _apply(result, operation)
    return result


def _apply(document: Any, operation: object) -> Any:
    if not isinstance(operation, dict):
        raise bad_request(f"not an operation: {operation!r}")
    if operation.get("op") not in _OPERATIONS:
        raise unprocessable(f"Unexpected kind: {operation.get('op')}")
    for name in ("path", "from") if operation["op"] in ("move", "copy") else ("path",):
        if not isinstance(operation.get(name), str):
            raise unprocessable(f"{operation['op']} operation needs {name!r}, a JSON pointer")
    try:
        for step in _standard(document, copy.deepcopy(operation)):
            document = JsonPatch([step]).apply(document, in_place=True)
    except (JsonPatchException, JsonPointerException, TypeError, ValueError, LookupError) as error:
        raise unprocessable(f"{operation['op']} {operation['path']}: {error}") from error
    return document


def _standard(document: Any, operation: _Operation) -> Iterator[_Operation]:
    """Yield the operation in the form of RFC 6902.

    A move becomes two operations, because an index may count from the end of the list that the removal leaves.
    """
    name, path = operation["op"], operation["path"]
    value = operation.get("value")
    if name in ("move", "copy"):
        source = _counted(document, operation["from"])
        if name == "move" and path.startswith(f"{operation['from']}/"):
            raise unprocessable(f"cannot move {operation['from']} into itself")
        value = None if name == "copy" and _is_free(document, source) else copy.deepcopy(JsonPointer(source).resolve(document))
        if name == "move":
            yield {"op": "remove", "path": source}
    inserts = name in ("add", "move", "copy")
    path = _counted(document, path, inserts=inserts)
    if name == "remove":
        yield {"op": "remove", "path": path}
    elif inserts or (name == "replace" and _is_free(document, path)):
        yield {"op": "add", "path": path, "value": value}
    elif name == "replace" or value is not None or not _is_free(document, path):
        yield {"op": name, "path": path, "value": value}


def _counted(document: Any, path: str, *, inserts: bool = False) -> str:
    """Return the path with indexes that count from the front. An operation that inserts may name the place after the last item."""
    parts, found = JsonPointer(path).parts, document
    for at, part in enumerate(parts):
        is_last = at == len(parts) - 1
        if isinstance(found, list) and _NEGATIVE.fullmatch(part):
            parts[at] = str(len(found) + (inserts and is_last) + int(part))
        if not is_last:
            found = JsonPointer.from_parts([parts[at]]).resolve(found)
    return str(JsonPointer.from_parts(parts).path)


def _is_free(document: Any, path: str) -> bool:
    """Return whether the path leads to a key that its object does not have."""
    holder, key = JsonPointer(path).to_last(document)
    return bool(path) and isinstance(holder, dict) and key not in holder
