"""Fields of API objects, one at a time: which differ between two pods, a pod with one field of another, and objects with less in them.

`check_plugin` looks for pairs of pods that differ in one field. It makes the example of an error smaller field by field.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from placewright.api.objects import Pod

S = TypeVar("S", bound=msgspec.Struct)
#: The way to a field: `("spec", "priority")`. After `containers` comes a field of the first container.
Path = tuple[str, ...]

#: Structs whose fields count one by one. Any other struct counts as one field.
_TAKEN_APART: Final = frozenset({(), ("metadata",), ("spec",), ("status",), ("spec", "affinity")})
_CONTAINERS: Final[Path] = ("spec", "containers")
#: Fields that identify an object, or the state of its life. A pod that differs in one of these is another pod.
_IDENTITY: Final = frozenset({
    ("metadata", "name"), ("metadata", "uid"), ("metadata", "resource_version"), ("metadata", "generation"),
    ("metadata", "creation_timestamp"), ("metadata", "deletion_timestamp"), ("spec", "scheduler_name"), ("status", "phase"),
    ("spec", "containers", "name"),
})  # fmt: skip
#: Fields that every simpler object keeps: without them it would be another object, or stand elsewhere.
_KEPT: Final = frozenset({"name", "namespace", "uid", "node_name", "scheduler_name", "resource_version"})
#: Parts of an object that hold what is kept, so that only what is in them goes.
_PARTS: Final = frozenset({"metadata", "spec"})


def differing_fields(one: Pod, other: Pod) -> list[Path]:
    """Return the fields in which two pods differ, without the fields that only say which pod it is.

    Args:
        one: a pod.
        other: a pod; the order of the two does not matter.

    Returns:
        Paths for `with_field_of`, in the order of the structs' fields. A list that differs is one field, except the containers of two pods
        with one container each.
    """
    return list(_differing(one, other, ()))


def _differing(one: Any, other: Any, path: Path) -> Iterator[Path]:
    if path in _IDENTITY or one == other:
        return
    # As one field, `containers` would hide whether two pods differ in requests, in ports or in images.
    if path == _CONTAINERS and one and other and len(one) == len(other) == 1:
        one, other = one[0], other[0]
    elif path not in _TAKEN_APART or one is None or other is None:
        yield path
        return
    for field in one.__struct_fields__:
        yield from _differing(getattr(one, field), getattr(other, field), (*path, field))


def with_one_field_of(pod: Pod, other: Pod, dice: random.Random) -> Pod | None:
    """Copy one of the fields that differ from another pod, drawn at random.

    Args:
        pod: all other fields are its.
        other: the source of the field.
        dice: draws the field; each differing field is equally likely.

    Returns:
        A new pod; None if the pods differ in no field.
    """
    fields = differing_fields(pod, other)
    return _put(pod, other, dice.choice(fields)) if fields else None


def with_field_of(item: S, other: S, path: Path) -> S:
    """Copy one field from another object of the same kind.

    Args:
        item: all other fields are its.
        other: the source of the field.
        path: the field, as `differing_fields` returns it. After `containers` only the first container is changed.

    Returns:
        A new object. Where one of the two lacks a part on the way, such as `spec.affinity`, that whole part is copied.
    """
    changed: S = _put(item, other, path)
    return changed


def _put(item: Any, other: Any, path: Path) -> Any:
    if isinstance(item, tuple):
        return (_put(item[0], other[0], path), *item[1:])
    first, rest = path[0], path[1:]
    given = getattr(other, first)
    kept = getattr(item, first)
    if rest and kept is not None and given is not None:
        given = _put(kept, given, rest)
    return replace(item, **{first: given})


def in_words(path: Path) -> str:
    """Return a field as manifests spell it: `spec.nodeSelector`."""
    return ".".join(_camel(part) for part in path)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)


def simpler(item: S) -> Iterator[S]:
    """Yield the object with less in it, one thing at a time: a field at its default, a list without an entry, a map without a key."""
    for field in msgspec.structs.fields(type(item)):
        value, default = getattr(item, field.name), _default(field)
        # A field without a default cannot be left out: the object would not decode.
        if field.name in _KEPT or default is msgspec.NODEFAULT or value == default:
            continue
        if field.name not in _PARTS:
            yield replace(item, **{field.name: default})
        for part in _simpler_value(value):
            yield replace(item, **{field.name: part})


def _simpler_value(value: Any) -> Iterator[Any]:
    if isinstance(value, msgspec.Struct):
        yield from simpler(value)
    # An empty map or list says no more than an absent one, and `simpler` tries that already.
    elif isinstance(value, dict) and len(value) > 1:
        for key in value:
            yield {other: kept for other, kept in value.items() if other != key}
    elif isinstance(value, tuple):
        for at, entry in enumerate(value):
            if len(value) > 1:
                yield (*value[:at], *value[at + 1 :])
            for part in _simpler_value(entry):
                yield (*value[:at], part, *value[at + 1 :])


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def copied(item: S) -> S:
    """Return an equal object that shares nothing with this one, so that a plugin may write into it."""
    # Through JSON, because a copy of a struct shares the struct's lists and maps.
    found: S = msgspec.json.decode(msgspec.json.encode(item), type=type(item))
    return found


def shown(item: msgspec.Struct) -> str:
    """Return an object as one line of JSON, without defaults and without the fields that identify it."""
    # The sentence around this line names the object and its node.
    body = msgspec.to_builtins(item)
    for name in ("name", "uid", "namespace", "resourceVersion"):
        body.get("metadata", {}).pop(name, None)
    for name in ("nodeName", "schedulerName"):
        body.get("spec", {}).pop(name, None)
    return msgspec.json.encode({part: fields for part, fields in body.items() if fields != {}}).decode()
