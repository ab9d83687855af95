"""From JSON (bytes or plain dicts) to the structs of this room, with errors that name the field."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec

T = TypeVar("T")
#: What the decoder raises: text that is no JSON, a wrong shape, bytes that are no UTF-8, and nesting without end.
DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class DecodeError(ValueError):
    """The object does not have the shape of its kind; the message names the field, what was found and what is allowed."""


@cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cast(type[Any], kind))


def decode(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode JSON text into `kind`; raise `DecodeError`."""
    try:
        value: T = _decoder(cast(Hashable, kind)).decode(raw)
    except DECODE_ERRORS as error:
        raise DecodeError(f"{kind.__name__}: {error}") from None
    return value


def convert(body: Mapping[str, Any], kind: type[T]) -> T:
    """Turn an already parsed mapping (from Kopf or YAML) into `kind`; raise `DecodeError`."""
    if _keeps_text(cast(Hashable, kind)):  # a mapping has none
        return decode(_written(body, kind), kind)
    try:
        return msgspec.convert(body, kind, from_attributes=False)
    except DECODE_ERRORS as error:
        raise DecodeError(f"{kind.__name__}: {error}") from None


def _written(body: Mapping[str, Any], kind: type[T]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:  # what came from YAML need not be JSON
        raise DecodeError(f"{kind.__name__}: {error}") from None


@cache
def _keeps_text(kind: Hashable) -> bool:
    """True for kinds that keep a part of their JSON as it is written, such as the configuration of devices."""
    return _has_raw(msgspec.inspect.type_info(kind))


def _has_raw(info: Any) -> bool:
    if isinstance(info, msgspec.inspect.RawType):
        return True
    parts = [field.type for field in getattr(info, "fields", ())] + [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
    parts += [part for name in ("item_type", "value_type") if (part := getattr(info, name, None)) is not None]
    return any(map(_has_raw, parts))
