"""Edits ResourceClaims in protobuf, the API server's own form. Every byte outside of one list stays as it is.

An API server keeps a driver's parameters as text, as they were sent, and refuses any change of that text. In JSON it shows the text
compacted, and applies a patch to that form. If the text has a blank or a `<`, every patch of the claim looks like a change. The
server refuses such a patch (422). Protobuf carries the text itself; kube-scheduler reads and writes claims in it.

Field numbers are those of the published `generated.proto` files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from placewright.api.devices import ConsumerReference

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
#: Field numbers: of the envelope, of the object, of its metadata, of its status, and of a consumer.
_RAW: Final = 2
_METADATA, _STATUS = 1, 3
_UID, _RESOURCE_VERSION, _FINALIZERS = 5, 6, 14
_RESERVED_FOR: Final = 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10


class WireError(ValueError):
    """The answer is no object in protobuf."""


class _Field(NamedTuple):
    """A field of a message: `text` is all of its bytes, `value` the bytes that it holds (texts and messages only)."""

    number: int
    text: bytes
    value: bytes


def identity_of(claim: bytes) -> tuple[str, str]:
    """Read uid and resourceVersion of a claim.

    Raises:
        WireError: the bytes are no object in protobuf.
    """
    metadata = _one(_one(_unwrapped(claim), _RAW), _METADATA)
    return _one(metadata, _UID).decode("utf-8", "replace"), _one(metadata, _RESOURCE_VERSION).decode("utf-8", "replace")


def with_finalizers(claim: bytes, finalizers: Iterable[str]) -> bytes:
    """Replace a claim's finalizers.

    Raises:
        WireError: the bytes are no object in protobuf.
    """
    return _edited(claim, _METADATA, _FINALIZERS, [each.encode() for each in finalizers])


def with_consumers(claim: bytes, consumers: Iterable[ConsumerReference]) -> bytes:
    """Replace a claim's `status.reservedFor`.

    Raises:
        WireError: the bytes are no object in protobuf.
    """
    return _edited(claim, _STATUS, _RESERVED_FOR, [_reference(each) for each in consumers])


def _edited(claim: bytes, part: int, number: int, values: Sequence[bytes]) -> bytes:
    envelope = _unwrapped(claim)
    whole = _one(envelope, _RAW)
    inside = _replaced(_one(whole, part), number, values)
    return _MAGIC + _replaced(envelope, _RAW, [_replaced(whole, part, [inside])])


def _reference(consumer: ConsumerReference) -> bytes:
    fields = {1: consumer.api_group, 3: consumer.resource, 4: consumer.name, 5: consumer.uid}
    return b"".join(_field(number, text.encode()) for number, text in fields.items())


# --- messages ----------------------------------------------------------------------------------------------------------------


def _unwrapped(claim: bytes) -> bytes:
    if not claim.startswith(_MAGIC):
        raise WireError("the answer is not protobuf")
    return claim[len(_MAGIC) :]


def _one(message: bytes, number: int) -> bytes:
    """Return the last value of a field; empty if it is missing, because protobuf leaves empty fields out."""
    found = b""
    for field in _fields(message):
        if field.number == number:
            found = field.value
    return found


def _replaced(message: bytes, number: int, values: Sequence[bytes]) -> bytes:
    """Put these values where the field stood first, or at the end."""
    before, after = b"", b""
    found = False
    for field in _fields(message):
        if field.number == number:
            found = True
        elif found:
            after += field.text
        else:
            before += field.text
    return before + b"".join(_field(number, value) for value in values) + after


def _field(number: int, value: bytes) -> bytes:
    return _number(number << 3 | _BYTES) + _number(len(value)) + value


def _fields(message: bytes) -> Iterator[_Field]:
    at = 0
    while at < len(message):
        tag, begin = _read_number(message, at)
        kind, value_at = tag & 7, begin
        if kind == _BYTES:
            length, value_at = _read_number(message, begin)
            end = value_at + length
        elif kind == _VARINT:
            end = _read_number(message, begin)[1]
        elif kind in (_FIXED64, _FIXED32):
            end = begin + (8 if kind == _FIXED64 else 4)
        else:
            raise WireError(f"the answer has a field of kind {kind}")
        if end > len(message):
            raise WireError("the answer ends in the middle of a field")
        yield _Field(tag >> 3, message[at:end], message[value_at:end])
        at = end


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_number(message: bytes, at: int) -> tuple[int, int]:
    """Read a varint: (value, where it ends)."""
    value = 0
    for place in range(_LONGEST_VARINT):
        if at + place >= len(message):
            break
        byte = message[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise WireError("the answer ends in the middle of a number")
