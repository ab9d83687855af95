"""Decodes JSON (bytes or plain dicts) into the structs of this room, with errors that name the field.

An API server stores objects that nest up to 10,000 levels deep. A tenant can make such `managedFields`. A decoder in Python goes about
1,000 levels deep, so one such object would spoil its whole list or watch. `decoded` reads it without its deep parts.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec
import numpy as np

T = TypeVar("T")
#: Errors of the decoder: text that is no JSON, a wrong shape, bytes that are no UTF-8, and endless nesting.
DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


#: Levels that are read of a text that nests deeper than a decoder goes: several times more than any field that is used.
MOST_NESTED: Final = 100
_ESCAPE: Final = re.compile(rb"\\.", re.DOTALL)
_QUOTE: Final = ord('"')
#: Steps by byte: 1 for a bracket that opens, -1 for a bracket that closes.
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[list(b"{[")], _STEPS[list(b"}]")] = 1, -1


class DecodeError(ValueError):
    """The object does not have the shape of its kind. The message names the field, the value found and the values allowed."""


def shallow(text: bytes) -> bytes:
    """Replace each list and object of a JSON text that is more than `MOST_NESTED` levels deep by `null`. O(bytes).

    Returns:
        The text without them. A text that is no JSON may come back as it is.
    """
    codes = np.frombuffer(_ESCAPE.sub(b"__", text), np.uint8)
    outside = ~np.logical_xor.accumulate(codes == _QUOTE)
    steps = _STEPS[codes]
    at = np.flatnonzero((steps != 0) & outside)
    opens, depth = steps[at] > 0, np.cumsum(steps[at], dtype=np.int64)
    begins, ends = at[opens & (depth == MOST_NESTED + 1)], at[~opens & (depth == MOST_NESTED)]
    if len(begins) != len(ends):
        return text
    kept = zip([0, *(ends + 1).tolist()], [*begins.tolist(), len(text)], strict=True)
    return b"null".join([text[begin:end] for begin, end in kept])


def decoded(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw) -> T:
    """Decode JSON text, without what nests deeper than the decoder goes.

    Raises:
        Exception: one of `DECODE_ERRORS`.
    """
    try:
        return decoder.decode(raw)
    except RecursionError:
        return decoder.decode(shallow(bytes(raw)))


@cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cast(type[Any], kind))


def decode(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode JSON text.

    Raises:
        DecodeError: the text is no JSON, or has another shape.
    """
    try:
        value: T = decoded(_decoder(cast(Hashable, kind)), raw)
    except DECODE_ERRORS as error:
        raise DecodeError(f"{kind.__name__}: {error}") from None
    return value


def convert(body: Mapping[str, Any], kind: type[T]) -> T:
    """Convert an already parsed mapping (from Kopf or YAML).

    Raises:
        DecodeError: the mapping has another shape.
    """
    if _keeps_text(cast(Hashable, kind)):  # a parsed mapping has lost its text, so it is written and read again
        return decode(_written(body, kind), kind)
    try:
        return msgspec.convert(body, kind, from_attributes=False)
    except DECODE_ERRORS as error:
        raise DecodeError(f"{kind.__name__}: {error}") from None


def _written(body: Mapping[str, Any], kind: type[T]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:  # values of YAML need not be valid in JSON
        raise DecodeError(f"{kind.__name__}: {error}") from None


@cache
def _keeps_text(kind: Hashable) -> bool:
    """Return whether a kind keeps a part of its JSON as text, such as the configuration of devices."""
    return "RawType(" in repr(msgspec.inspect.type_info(kind))
