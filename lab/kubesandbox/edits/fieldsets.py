"""Sets of an object's fields that a manager owns, in memory and in the FieldsV1 format of `managedFields`.

A field is a path of encoded elements:

- `f:name` for a key of a map
- `k:{"name":"web"}` for an element of a keyed list
- `v:"a"` for an element of a set

A set of fields is a plain set of such paths. So union, intersection and difference compute owners.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kubesandbox.edits.shapes import PLAIN, Shape
from kubesandbox.resources import Object

FieldPath = tuple[str, ...]
FieldSet = frozenset[FieldPath]

_UNOWNED_METADATA: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_UNOWNED: Final[FieldSet] = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",), *((("f:metadata", f"f:{name}")) for name in _UNOWNED_METADATA)}
)


def encode(fields: Iterable[FieldPath]) -> Object:
    """Return the FieldsV1 tree of a set."""
    tree: Object = {}
    paths = sorted(fields)
    inner = {path[:depth] for path in paths for depth in range(1, len(path))}
    for path in paths:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        if path in inner:
            node["."] = {}
    return tree


def decode(tree: Object) -> FieldSet:
    """Return the set of a FieldsV1 tree. Raises ValueError for other data."""
    return frozenset(_decode(tree, ()))


def _decode(tree: object, path: FieldPath) -> Iterator[FieldPath]:
    if not isinstance(tree, dict):
        raise ValueError(f"FieldsV1 holds objects only, found {tree!r}")  # noqa: TRY004 - bad input, not a bad call
    if path and (not tree or "." in tree):
        yield path
    for element, below in tree.items():
        if element != ".":
            yield from _decode(below, (*path, element))


def prefixes(fields: Iterable[FieldPath]) -> set[FieldPath]:
    """Return all fields and everything that contains them."""
    return {path[:depth] for path in fields for depth in range(1, len(path) + 1)}


def fields_of(value: Object, shape: Shape) -> FieldSet:
    """Return the fields that a manager owns by sending `value`."""
    return frozenset(_fields(value, shape, ())) - _UNOWNED


def _parts(value: Any, shape: Shape) -> dict[str, tuple[Any, Shape]]:
    """Return the parts of a value with their shapes, by path element. A value in one piece has none."""
    if isinstance(value, dict) and not shape.atomic:
        return {f"f:{name}": (below, shape.child(name)) for name, below in value.items()}
    if isinstance(value, list) and (shape.keys or shape.is_set):
        return {element_name(item, shape): (item, shape.element if shape.keys else PLAIN) for item in value}
    return {}


def _fields(value: Any, shape: Shape, path: FieldPath, *, holders: bool = False) -> Iterator[FieldPath]:
    """Yield the fields inside `value`. With `holders`, also yield the nested objects that contain them."""
    parts = _parts(value, shape)
    # The parts of built-in objects (spec, metadata) are always there. Deeper parts are mostly optional.
    if not parts or (holders and isinstance(value, dict) and path[-1].startswith("f:") and (shape.optional or len(path) > 1)):
        yield path
    for element, (below, child) in parts.items():
        inner = (*path, element)
        if isinstance(value, list) or (shape.free and isinstance(below, dict) and not holders):
            yield inner
        if isinstance(value, dict) or shape.keys:
            yield from _fields(below, child, inner, holders=holders)


def element_name(item: Any, shape: Shape) -> str:
    """Return the path element of one element of a keyed list (`k:…`) or a set (`v:…`)."""
    if shape.keys and isinstance(item, dict):
        found = {key: value for key, value in zip(shape.keys, shape.key_of(item), strict=True) if value is not None}
        return "k:" + json.dumps(found, sort_keys=True, separators=(",", ":"))
    return "v:" + json.dumps(item, separators=(",", ":"))


def compare(old: Object, new: Object, shape: Shape) -> tuple[FieldSet, FieldSet]:
    """Return the fields with another value in `new`, and the fields that `new` lacks. Metadata of the server is left out."""
    written: set[FieldPath] = set()
    removed: set[FieldPath] = set()
    _compare(old, new, shape, (), (written, removed))
    return frozenset(written - _UNOWNED), frozenset(removed - _UNOWNED)


def _compare(old: Any, new: Any, shape: Shape, path: FieldPath, found: tuple[set[FieldPath], set[FieldPath]]) -> None:
    written, removed = found
    before, after = _parts(old, shape), _parts(new, shape)
    if type(old) is not type(new) or not (before or after):
        written.add(path)
        return
    for element in before | after:
        inner = (*path, element)
        if element.startswith("k:") and (element not in before or element not in after):
            (removed if element in before else written).add(inner)
        if element not in before:
            written.update(_fields(*after[element], inner, holders=True))
        elif element not in after:
            removed.update(_fields(*before[element], inner, holders=True))
        elif before[element][0] != after[element][0]:
            _compare(before[element][0], *after[element], inner, found)


def text(path: FieldPath) -> str:
    """Return a path in the form for messages: `.spec.containers[name="web"].image`."""
    shown = ""
    for element in path:
        kind, value = element[:2], element[2:]
        if kind == "f:":
            shown += f".{value}"
        elif kind == "k:":
            keys = json.loads(value)
            shown += "[" + ",".join(f"{key}={json.dumps(keys[key])}" for key in sorted(keys)) + "]"
        else:
            shown += f"[={value}]"
    return shown
