"""Decoding: a struct, or one error whatever the bytes are."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api import decode as decoding
from placewright.api.decode import DecodeError, convert, decode, shallow
from placewright.api.devices import ResourceClaim
from placewright.api.objects import LabelSelector, Pod


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"null", b"[1]", b"\xff", b'{"metadata":{"name":"\xff"}}', b"[" * 100_000, b'{"unknown":' + b"[" * 100_000],
    ids=["nothing", "half", "null", "a list", "no text", "no text inside", "nesting", "nesting in what is passed over"],
)
def test_what_is_no_pod_is_a_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^Pod: "):
        decode(raw, Pod)


# --- texts that nest more deeply than a decoder goes ---------------------------------------------------------------------------------

NAMES = st.text(st.sampled_from('ab"\\{}[]\n\u00e9'), max_size=4)
SHAPES = st.recursive(
    st.none() | st.integers() | NAMES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=30
)


def cut(value: Any, levels: int) -> Any:
    """The value without lists and objects that are deeper, by recursion."""
    if not isinstance(value, (list, dict)):
        return value
    if levels == 0:
        return None
    return [cut(each, levels - 1) for each in value] if isinstance(value, list) else {k: cut(v, levels - 1) for k, v in value.items()}


@given(value=SHAPES, levels=st.integers(1, 4), indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_a_shallow_text_has_all_but_what_is_deep(value: Any, levels: int, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decoding, "MOST_NESTED", levels)
        assert json.loads(shallow(text)) == cut(value, levels)


@given(text=st.binary() | st.text(st.sampled_from('a"\\{}[],:1')).map(str.encode))
def test_the_shallow_form_of_any_bytes_is_no_longer_and_has_no_other_form(text: bytes) -> None:
    found = shallow(text)
    assert len(found) <= max(len(text), len(text) // 2 * 4), "at most null for each empty pair of brackets"
    assert shallow(found) == found


@pytest.mark.parametrize("levels", [200, 1500, 9000])
def test_a_pod_that_nests_deeply_where_nothing_is_read_is_a_pod(levels: int) -> None:
    deep = b'{"f:a":' * levels + b"{}" + b"}" * levels
    found = decode(b'{"metadata":{"managedFields":[{"fieldsV1":%b}],"name":"web"},"spec":{"nodeName":"a"}}' % deep, Pod)
    assert (found.metadata.name, found.spec.node_name) == ("web", "a")


def test_an_error_names_the_kind_the_place_what_was_expected_and_what_was_found() -> None:
    said = "Pod: Expected `str`, got `int` - at `$.metadata.name`"
    for read in (lambda: decode(b'{"metadata": {"name": 7}}', Pod), lambda: convert({"metadata": {"name": 7}}, Pod)):
        with pytest.raises(DecodeError) as refused:
            read()
        assert str(refused.value) == said


def test_a_mapping_of_another_shape_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match=r"^Pod: Expected `object`, got `int` - at `\$.spec`"):
        convert({"spec": 3}, Pod)


# --- parts that are kept as they are written -----------------------------------------------------------------------------------------


def configured(config: Any) -> dict[str, Any]:
    return {"spec": {"devices": {"config": config}}}


def test_a_mapping_may_hold_what_is_kept_as_text() -> None:
    """A claim template from a file has a driver's configuration, which the claims that are made of it hand on."""
    claim = convert(configured([{"opaque": {"driver": "d", "parameters": {"é": [1, None, 1.5]}}}]), ResourceClaim)
    (kept,) = claim.spec.devices.config or ()
    assert msgspec.json.decode(kept) == {"opaque": {"driver": "d", "parameters": {"é": [1, None, 1.5]}}}


def in_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ([object()], "Encoding objects of type object is unsupported"), ([{(1, 2): 3}], "Only dicts with str-like or number-like keys"),
        (["\ud800"], "surrogates not allowed"), ([10**5000], "Exceeds the limit"), (in_itself(), "recursion"),
        (3, r"\$.spec.devices.config"),
    ],
    ids=["no JSON", "no key of JSON", "half a surrogate", "a number without end", "a list in itself", "another type"],
)  # fmt: skip
def test_what_cannot_be_kept_as_text_is_a_decode_error(config: Any, said: str) -> None:
    with pytest.raises(DecodeError, match=rf"^ResourceClaim: .*{said}"):
        convert(configured(config), ResourceClaim)


@pytest.mark.parametrize("body", [{"matchLabels": {1: "x"}}, {"matchExpressions": ({"key": "k"} for _ in "a")}, {1: 2}])
def test_a_mapping_of_what_json_has_not_is_a_decode_error(body: Any) -> None:
    with pytest.raises(DecodeError, match=r"^LabelSelector: Expected `"):
        convert(body, LabelSelector)


def test_an_error_has_no_other_error_behind_it() -> None:
    """What the decoder raised is in the message; a traceback of both would be the same thing twice."""
    for read in (lambda: decode(b"{", Pod), lambda: convert({"spec": 3}, Pod), lambda: convert(configured([object()]), ResourceClaim)):
        with pytest.raises(DecodeError) as refused:
            read()
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__
