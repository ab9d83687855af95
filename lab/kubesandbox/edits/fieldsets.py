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
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The differences between two states of an object."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def written(self) -> FieldSet:
        """Fields that have a new value."""
        return self.added | self.modified


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


def _fields(value: Any, shape: Shape, path: FieldPath, *, holders: bool = False) -> Iterator[FieldPath]:
    """Yield the fields inside `value`. With `holders`, also yield the nested objects that contain them."""
    if isinstance(value, dict) and value and not shape.atomic:
        # The parts of built-in objects (spec, metadata) are always there. Deeper parts are mostly optional.
        if holders and path[-1].startswith("f:") and (shape.optional or len(path) > 1):
            yield path
        for name, below in value.items():
            inner = (*path, f"f:{name}")
            if shape.free and isinstance(below, dict) and not holders:
                yield inner
            yield from _fields(below, shape.child(name), inner, holders=holders)
    elif isinstance(value, list) and value and (shape.keys or shape.is_set):
        for element, below in elements(value, shape):
            yield (*path, element)
            if shape.keys:
                yield from _fields(below, shape.element, (*path, element), holders=holders)
    else:
        yield path


def elements(items: list[Any], shape: Shape) -> Iterator[tuple[str, Any]]:
    """Yield the elements of a keyed list or a set with their encoded path elements."""
    for item in items:
        yield element_name(item, shape), item


def element_name(item: Any, shape: Shape) -> str:
    """Return the path element of one element of a keyed list (`k:…`) or a set (`v:…`)."""
    if shape.keys and isinstance(item, dict):
        found = {key: value for key, value in zip(shape.keys, shape.key_of(item), strict=True) if value is not None}
        return "k:" + json.dumps(found, sort_keys=True, separators=(",", ":"))
    return "v:" + json.dumps(item, separators=(",", ":"))


def compare(old: Object, new: Object, shape: Shape) -> FieldChange:
    """Return the fields that differ between `old` and `new`, without metadata that the server owns."""
    added: set[FieldPath] = set()
    modified: set[FieldPath] = set()
    removed: set[FieldPath] = set()
    _compare(old, new, shape, (), (added, modified, removed))
    return FieldChange(frozenset(added - _UNOWNED), frozenset(modified - _UNOWNED), frozenset(removed - _UNOWNED))


_Sets = tuple[set[FieldPath], set[FieldPath], set[FieldPath]]


def _compare(old: Any, new: Any, shape: Shape, path: FieldPath, found: _Sets) -> None:
    if isinstance(old, dict) and isinstance(new, dict) and not shape.atomic and (old or new):
        _compare_children(old, new, path, found, {name: (f"f:{name}", shape.child(name)) for name in old | new})
    elif isinstance(old, list) and isinstance(new, list) and (shape.keys or shape.is_set) and (old or new):
        left, right = dict(elements(old, shape)), dict(elements(new, shape))
        element = shape.element if shape.keys else PLAIN
        _compare_children(left, right, path, found, {name: (name, element) for name in left | right})
    else:
        found[1].add(path)


def _compare_children(old: Object, new: Object, path: FieldPath, found: _Sets, names: dict[str, tuple[str, Shape]]) -> None:
    for name, (element, child) in names.items():
        inner = (*path, element)
        if element.startswith("k:") and (name not in old or name not in new):
            found[2 if name in old else 0].add(inner)
        if name not in old:
            found[0].update(_fields(new[name], child, inner, holders=True))
        elif name not in new:
            found[2].update(_fields(old[name], child, inner, holders=True))
        elif old[name] != new[name]:
            _compare(old[name], new[name], child, inner, found)


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
