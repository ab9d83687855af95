"""Decoding: a struct, or one error whatever the bytes are."""

from __future__ import annotations

import pytest

from placewright.api.decode import DecodeError, convert, decode
from placewright.api.objects import Pod


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"null", b"[1]", b"\xff", b'{"metadata":{"name":"\xff"}}', b"[" * 100_000, b'{"unknown":' + b"[" * 100_000],
    ids=["nothing", "half", "null", "a list", "no text", "no text inside", "nesting", "nesting in what is passed over"],
)
def test_what_is_no_pod_is_a_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^Pod: "):
        decode(raw, Pod)


def test_a_mapping_of_another_shape_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match=r"^Pod: Expected `object`, got `int` - at `\$.spec`"):
        convert({"spec": 3}, Pod)
