"""Bounds what an object of a tenant's keeps in memory: a field of more bytes than its bound is not kept.

Pods are not bounded here: a pod beyond a limit still takes its room on its node, and is refused when it is decided (`api.podextent`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, cast, get_type_hints

import msgspec

from placewright.api.writers import FIELD_BYTES, Counted, WithinBytes, Writer

T = TypeVar("T")

_encode: Final = msgspec.json.Encoder().encode


class FieldBound(NamedTuple):
    """The bound of one field.

    Attributes:
        section: top-level field of the object.
        field: field of the section.
        path: both, as JSON names them.
        most: bytes of JSON.
    """

    section: str
    field: str
    path: str
    most: int


def bounded(item: T) -> T:
    """Leave out the fields that are larger than their bound.

    Returns:
        The object itself if it is within all bounds. Otherwise a copy without the fields that are not, and with a sentence about the first
        of them in `metadata.excess`.
    """
    bounds = field_bounds(cast(Hashable, type(item)))
    if not bounds or len(_encode(item)) <= FIELD_BYTES:
        return item
    within: Any = item
    excess = ""
    for bound in bounds:
        section = getattr(within, bound.section)
        value = getattr(section, bound.field)
        nbytes = len(_encode(value)) if value else 0
        if nbytes > bound.most:
            excess = excess or f"{bound.path}: {nbytes} bytes of JSON; this scheduler reads at most {bound.most}"
            within = _with(within, bound.section, _with(section, bound.field, _default(type(section), bound.field)))
    if not excess:
        return item
    bounded_item: T = _with(within, "metadata", _with(within.metadata, "excess", excess))
    return bounded_item


@cache
def field_bounds(kind: Hashable) -> tuple[FieldBound, ...]:
    """List the bounds of a kind.

    Returns:
        A bound for each field of each section that a tenant may write, except texts that identify the object.
    """
    return tuple(_bounds(cast(type[Any], kind)))


def _bounds(kind: type[Any]) -> Iterator[FieldBound]:
    sections = {field.name: field for field in msgspec.structs.fields(kind)}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        declared = getattr(hint, "__metadata__", ())
        if Writer.TENANT not in declared or any(isinstance(each, Counted) for each in declared):
            continue
        section: Any = hint.__origin__
        hints = get_type_hints(section, include_extras=True)
        for field in msgspec.structs.fields(section):
            own = getattr(hints[field.name], "__metadata__", ())
            most = next((each.most for each in own if isinstance(each, WithinBytes)), FIELD_BYTES)
            # `Meta` bounds the texts that identify an object when it is decoded: without them it is no object.
            if not any(isinstance(each, (msgspec.Meta, Writer)) for each in own):
                yield FieldBound(name, field.name, f"{sections[name].encode_name}.{field.encode_name}", most)


def _default(kind: type[Any], name: str) -> object:
    return next(field.default for field in msgspec.structs.fields(kind) if field.name == name)


def _with(item: Any, name: str, value: object) -> Any:
    return msgspec.structs.replace(item, **{name: value})
