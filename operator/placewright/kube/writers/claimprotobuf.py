"""Claims in the API server's own form (protobuf), edited so that every byte but those of one list stays as it is.

An API server keeps the parameters of a driver as the very text in which somebody sent them, and holds that text to be immutable. In JSON
it shows them compacted, and that is what a patch is applied to. So every patch of a claim whose parameters were sent with a blank, or with
a `<` in them, looks like a change of them and is refused (422). Protobuf carries the text itself, as kube-scheduler reads and writes it.

Field numbers are those of the published `generated.proto` files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from placewright.api.devices import ConsumerReference

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
#: Of the envelope, of the object, of its metadata, of its status, and of who uses it.
_RAW: Final = 2
_METADATA, _STATUS = 1, 3
_UID, _RESOURCE_VERSION, _FINALIZERS = 5, 6, 14
_RESERVED_FOR: Final = 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10


class WireError(ValueError):
    """What was answered is not an object in this form."""


class _Field(NamedTuple):
    """A field as it lies in a message: `text` is all of it, `value` what it holds, for texts and messages."""

    number: int
    text: bytes
    value: bytes


def identity_of(claim: bytes) -> tuple[str, str]:
    """(uid, resourceVersion). Raises `WireError`."""
    metadata = _one(_one(_unwrapped(claim), _RAW), _METADATA)
    return _one(metadata, _UID).decode("utf-8", "replace"), _one(metadata, _RESOURCE_VERSION).decode("utf-8", "replace")


def with_finalizers(claim: bytes, finalizers: Iterable[str]) -> bytes:
    """The claim with these finalizers instead of those it has. Raises `WireError`."""
    return _edited(claim, _METADATA, _FINALIZERS, [each.encode() for each in finalizers])


def with_consumers(claim: bytes, consumers: Iterable[ConsumerReference]) -> bytes:
    """The claim with these in `status.reservedFor` instead of those it has. Raises `WireError`."""
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
    """The last value of a field that is there once; empty where it is not there, as in that form nothing is."""
    found = b""
    for field in _fields(message):
        if field.number == number:
            found = field.value
    return found


def _replaced(message: bytes, number: int, values: Sequence[bytes]) -> bytes:
    """These values where the field stood first, or at the end."""
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
    """(value, where it ends)."""
    value = 0
    for place in range(_LONGEST_VARINT):
        if at + place >= len(message):
            break
        byte = message[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise WireError("the answer ends in the middle of a number")
