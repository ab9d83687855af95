"""Decodes JSON (bytes or plain dicts) into the structs of this room, with errors that name the field."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec

T = TypeVar("T")
#: Errors of the decoder: text that is no JSON, a wrong shape, bytes that are no UTF-8, and endless nesting.
DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class DecodeError(ValueError):
    """The object does not have the shape of its kind. The message names the field, the value found and the values allowed."""


@cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cast(type[Any], kind))


def decode(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode JSON text.

    Args:
        raw: the text.
        kind: type of the result.

    Returns:
        The object.

    Raises:
        DecodeError: the text is no JSON, or has another shape.
    """
    try:
        value: T = _decoder(cast(Hashable, kind)).decode(raw)
    except DECODE_ERRORS as error:
        raise DecodeError(f"{kind.__name__}: {error}") from None
    return value


def convert(body: Mapping[str, Any], kind: type[T]) -> T:
    """Convert an already parsed mapping (from Kopf or YAML).

    Args:
        body: the mapping.
        kind: type of the result.

    Returns:
        The object.

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
    """True for kinds that keep a part of their JSON as text, such as the configuration of devices."""
    return _has_raw(msgspec.inspect.type_info(kind))


def _has_raw(info: Any) -> bool:
    if isinstance(info, msgspec.inspect.RawType):
        return True
    parts = [field.type for field in getattr(info, "fields", ())] + [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
    parts += [part for name in ("item_type", "value_type") if (part := getattr(info, name, None)) is not None]
    return any(map(_has_raw, parts))
