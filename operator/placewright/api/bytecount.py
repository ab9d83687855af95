"""Counts the memory that a value takes with everything in it. Caches of tenants' objects are bounded by this count.

A number of rows or objects tells nothing about memory where a tenant decides the size of each. Caches here hold texts,
numbers, containers, arrays, objects of the API and data classes, whose count is about right. An object of another class counts as itself,
without the objects that it refers to. A class that holds much defines `__sizeof__`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import accumulate
from typing import Any, Final, TypeVar

import msgspec

#: A count ends here: no cache keeps a larger value, so its exact size does not matter.
COUNTED: Final = 1 << 20
#: Bytes in memory for each byte of an object's JSON: up to 12 if it is all short texts, 2 if it is long ones.
_BYTES_A_CHARACTER: Final = 8
#: Bytes of the values that are derived from an object once (`PodInfo`).
DERIVED_BYTES: Final = 1024
#: Bytes of a key that is kept as it is; a longer one is kept as its digest. Constraints and terms of usual pods are shorter: a digest would
#: cost each of their decisions a microsecond.
LONGEST_KEY: Final = 512
_DIGEST_BYTES: Final = 16
#: Values of a collection that are counted. One takes 80 microseconds, or some milliseconds if it is as large as it may be.
_SAMPLE: Final = 24
#: More bytes than any value has.
UNENDING: Final = 1 << 40
#: Types whose values Python keeps once, however many references there are.
_SHARED: Final = frozenset({type(None), bool, type, type(...)})
_WHOLE: Final = frozenset({str, bytes, int, float, complex, bytearray})
_encoder: Final = msgspec.json.Encoder()
_sizeof: Final = sys.getsizeof

_Parts = Callable[[Any], Iterable[Any]]
T = TypeVar("T")


def bytes_of(value: object, most: int = COUNTED) -> int:
    """Count the bytes of a value with its parts.

    A part that occurs twice counts twice, and so does a part that another object keeps alive anyway.

    Returns:
        Bytes; above `most`, any number above it.
    """
    total = 0
    found = [value]
    for each in found:  # it grows meanwhile
        kind = type(each)
        if kind in _SHARED:
            continue
        total += _sizeof(each)
        if total > most:
            break
        if kind not in _WHOLE:
            found += (_PARTS.get(kind) or _parts_of(kind))(each)
    return total


def object_bytes(item: msgspec.Struct) -> int:
    """Estimate the bytes of an object of the API in memory. It takes less than a microsecond for a usual pod."""
    return DERIVED_BYTES + _BYTES_A_CHARACTER * len(_encoder.encode(item))


def sample(items: Sequence[T], sizes: Sequence[int] | None = None) -> list[tuple[T, float]]:
    """Draw `_SAMPLE` values, from which a sum over all is estimated. Large values are drawn in proportion to their size.

    Args:
        items: such as the objects of a collection.
        sizes: numbers above 0, one for each item and about proportional to its bytes; None if all items are about alike.

    Returns:
        Values, each with the number of values that it stands for; all values if there are no more than that.
    """
    if len(items) <= _SAMPLE:
        return [(item, 1.0) for item in items]
    if sizes is None:
        return [(items[int((number + 0.5) * len(items) / _SAMPLE)], len(items) / _SAMPLE) for number in range(_SAMPLE)]
    ends = list(accumulate(sizes))
    step = ends[-1] / _SAMPLE
    drawn = [bisect_right(ends, step * (number + 0.5)) for number in range(_SAMPLE)]
    return [(items[at], step / sizes[at]) for at in drawn]


def estimate_bytes(items: Sequence[object], sizes: Sequence[int] | None = None) -> int:
    """Estimate the bytes of many values.

    Returns:
        Bytes; exact as `bytes_of` if there are no more items than the sample has.
    """
    return round(sum([number * bytes_of(item, UNENDING) for item, number in sample(items, sizes)]))


def short_key(text: bytes) -> bytes:
    """Shorten a key: equal keys stand for equal texts.

    Returns:
        The text; its digest if it is longer than `LONGEST_KEY`.
    """
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


#: Functions that list the parts of a value, by its type; filled as types are met.
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
