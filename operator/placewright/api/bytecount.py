"""How many bytes of memory a value takes, with all that it holds: what caches of somebody's objects are bounded by.

Rows, entries and objects say nothing about size where a tenant decides how large each of them is. The count is about right for what
caches hold here (texts, numbers, containers, arrays, objects of the API, data classes), and is told only for what a value holds by itself:
objects of other classes, such as a cluster that a compiled term reads, count as themselves, without what they refer to. Whoever defines
such a class and keeps much in it says so in `__sizeof__`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

import msgspec

#: Where a count ends: nothing that is kept is larger, so how much larger something is does not matter.
COUNTED: Final = 1 << 20
#: Of an object of the API in memory, for each byte of its JSON: up to 12 where it is all short texts, 2 where it is long ones.
_BYTES_A_CHARACTER: Final = 8
#: And for what is derived from it once (`PodInfo`).
_DERIVED_BYTES: Final = 1024
#: What may stand for itself as a key; something longer is kept as its digest. Constraints and terms of usual pods are shorter, and a digest
#: costs each of their decisions a microsecond.
LONGEST_KEY: Final = 512
_DIGEST_BYTES: Final = 16
#: What Python keeps once, however many refer to it.
_SHARED: Final = frozenset({type(None), bool, type, type(...)})
_WHOLE: Final = frozenset({str, bytes, int, float, complex, bytearray})
_encoder: Final = msgspec.json.Encoder()

_Parts = Callable[[Any], Iterable[Any]]


def bytes_of(value: object, most: int = COUNTED) -> int:
    """Bytes that a value takes with its parts; one above `most` may be said to take any number above it.

    A part that is there twice counts twice, and one that somebody else keeps anyway counts too.
    """
    total = 0
    waiting = [value]
    while waiting and total <= most:
        each = waiting.pop()
        kind = type(each)
        if kind in _SHARED:
            continue
        total += sys.getsizeof(each)
        if kind not in _WHOLE:
            parts = _PARTS.get(kind) or _parts_of(kind)
            waiting.extend(parts(each))
    return total


def object_bytes(item: msgspec.Struct) -> int:
    """About the bytes of an object of the API in memory. Cheap enough for each that comes: under a microsecond for a usual pod."""
    return _DERIVED_BYTES + _BYTES_A_CHARACTER * len(_encoder.encode(item))


def short_key(text: bytes) -> bytes:
    """The text itself, or a digest of it where it is long: equal keys stand for equal texts, and none is longer than `LONGEST_KEY`."""
    return text if len(text) <= LONGEST_KEY else hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def _nothing(_value: object) -> Iterable[Any]:
    return ()


def _entries(value: Mapping[Any, Any]) -> Iterator[Any]:
    yield from value.keys()
    yield from value.values()


def _themselves(value: Iterable[Any]) -> Iterable[Any]:
    return value


def _fields(names: tuple[str, ...]) -> _Parts:
    return lambda value: [getattr(value, name, None) for name in names]


#: By type, what a value of it holds; filled as types are met.
_PARTS: Final[dict[type, _Parts]] = {tuple: _themselves, list: _themselves, frozenset: _themselves, set: _themselves, dict: _entries}


def _parts_of(kind: type) -> _Parts:
    parts: _Parts = _nothing
    if issubclass(kind, Enum):
        parts = _nothing
    elif issubclass(kind, msgspec.Struct):
        parts = _fields(kind.__struct_fields__)
    elif issubclass(kind, Mapping):
        parts = _entries
    elif issubclass(kind, (tuple, list, AbstractSet)):
        parts = _themselves
    elif dataclasses.is_dataclass(kind):
        parts = _fields(tuple([field.name for field in dataclasses.fields(kind)]))
    _PARTS[kind] = parts
    return parts
