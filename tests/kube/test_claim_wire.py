"""Claims in the API server's own form, edited: what a real one answered, with one list replaced and nothing else."""

from __future__ import annotations

import pytest

from placewright.api.devices import ConsumerReference
from placewright.kube.writers.claimprotobuf import WireError, identity_of, with_consumers, with_finalizers

#: As kube-apiserver 1.36.2 answered, without managedFields.
SPEC = b'\x12A\n?\n\x18\n\x01r\x12\x13\n\x03gpu\x1a\nExactCount \x01\x1a#\x12!\n\x1f\n\rd.example.com\x12\x0e\n\x0c{"b": "<1>"}'
NAMED = b'\n\x04mine\x12\x00\x1a\x07default"\x00*$07563b51-d20b-4615-a87a-76ee316808132\x034438\x00B\x08\x08\xc2\xef\x8c\xd8\x06\x10\x00'
THEIRS = b"r\x12them.example.com/x"
ALLOCATION = b'\n\x1c\n\x1a\n\x18\n\x01r\x12\rd.example.com\x1a\x01p"\x01x'
A = b'\x12\x10\n\x00\x1a\x04pods"\x01a*\x03u-a'
B = b'\x12\x10\n\x00\x1a\x04pods"\x01b*\x03u-b'
WHO = ConsumerReference(resource="pods", name="a", uid="u-a")
ANOTHER = ConsumerReference(resource="pods", name="b", uid="u-b")


def part(number: int, text: bytes) -> bytes:
    """A message within another one, of up to 16,383 bytes."""
    size = len(text)
    return bytes([number << 3 | 2]) + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + text


def claim_bytes(metadata: bytes = NAMED + THEIRS, status: bytes = ALLOCATION + A) -> bytes:
    envelope = b"\n#\n\x12resource.k8s.io/v1\x12\rResourceClaim"
    return b"k8s\x00" + envelope + part(2, part(1, metadata) + SPEC + part(3, status)) + b'\x1a\x00"\x00'


def fields(message: bytes) -> set[bytes]:
    """The parts of a claim that are looked for, wherever they stand: their order says nothing."""
    return {each for each in (SPEC, NAMED, THEIRS, ALLOCATION, A, B, b"r\x01x", b"r\x02yz") if each in message}


def test_it_says_which_claim_it_is() -> None:
    assert identity_of(claim_bytes()) == ("07563b51-d20b-4615-a87a-76ee31680813", "443")


def test_finalizers_are_replaced_and_all_else_is_as_it_was() -> None:
    edited = with_finalizers(claim_bytes(), ["x", "yz"])
    assert fields(edited) == {SPEC, NAMED, ALLOCATION, A, b"r\x01x", b"r\x02yz"}
    assert len(edited) == len(claim_bytes(NAMED + b"r\x01xr\x02yz"))
    assert with_finalizers(edited, ["them.example.com/x"]) == with_finalizers(claim_bytes(), ["them.example.com/x"])
    assert fields(with_finalizers(claim_bytes(), [])) == {SPEC, NAMED, ALLOCATION, A}


def test_users_are_replaced_and_all_else_is_as_it_was() -> None:
    edited = with_consumers(claim_bytes(), [WHO, ANOTHER])
    assert fields(edited) == {SPEC, NAMED, THEIRS, ALLOCATION, A, B}
    assert edited.index(A) < edited.index(B)
    assert len(edited) == len(claim_bytes(status=ALLOCATION + A + B))
    assert fields(with_consumers(edited, [])) == {SPEC, NAMED, THEIRS, ALLOCATION}


def test_a_part_that_grows_beyond_127_bytes_says_so() -> None:
    many = [f"finalizer.example.com/{number}" for number in range(20)]
    edited = with_finalizers(claim_bytes(), many)
    assert identity_of(edited) == identity_of(claim_bytes())
    assert all(part(14, each.encode()) in edited for each in many)


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"k8s\x00\xff", b"k8s\x00\x12\x05ab", b"k8s\x00\x12\x80", b"k8s\x00\x0b", b"k8s\x00" + b"\xff" * 20],
)
def test_what_is_no_claim_is_refused(text: bytes) -> None:
    with pytest.raises(WireError):
        identity_of(text)


def test_no_cut_of_a_claim_is_taken_for_a_claim_with_other_parameters() -> None:
    whole = claim_bytes()
    for length in range(len(whole) - 4):
        try:
            edited = with_finalizers(whole[:length], [])
        except WireError:
            continue
        assert SPEC not in edited or len(edited) >= whole.index(SPEC)
