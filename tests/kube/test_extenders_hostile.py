"""Whatever an extender answers, it is understood or called a bad answer: no other exception, and no crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.kube.extenders.messages import BadAnswer, read_error, read_filter, read_scores, read_victims

READERS: dict[str, Callable[[bytes], Any]] = {
    "filter": read_filter, "prioritize": read_scores, "preempt": read_victims, "bind": read_error
}  # fmt: skip

NAMES = st.sampled_from([
    "Nodes", "nodenames", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error", "error", "items", "metadata", "name",
    "Host", "Score", "NodeNameToMetaVictims", "Pods", "UID", "NumPDBViolations", "a",
])  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20)


def is_understood_or_refused(read: Callable[[bytes], Any], body: bytes) -> bool:
    """Anything but `BadAnswer` passes through and fails the test."""
    try:
        read(body)
    except BadAnswer as problem:
        return "\n" not in str(problem) and len(str(problem)) < 400
    return True


def who_stumbles(body: bytes) -> list[str]:
    """The verbs whose reader neither understands this nor refuses it as one should; what is drawn is read for all of them."""
    return [verb for verb, read in READERS.items() if not is_understood_or_refused(read, body)]


@settings(max_examples=400)
@given(said=ANYTHING)
def test_any_json_is_understood_or_refused(said: Any) -> None:
    assert who_stumbles(json.dumps(said).encode()) == []


@settings(max_examples=300)
@given(said=ANYTHING, cut=st.integers(0, 200), tail=st.binary(max_size=8))
def test_an_answer_that_breaks_off_or_goes_on_is_understood_or_refused(said: Any, cut: int, tail: bytes) -> None:
    assert who_stumbles(json.dumps(said).encode()[:cut] + tail) == []


@settings(max_examples=300)
@given(body=st.binary(max_size=50))
def test_any_bytes_are_understood_or_refused(body: bytes) -> None:
    assert who_stumbles(body) == []


@pytest.mark.parametrize("verb", READERS)
@pytest.mark.parametrize("opening", [b"[", b'{"Nodes":', b'{"Error":[', b'{"NodeNameToMetaVictims":{"a":'])
def test_nesting_without_end_is_refused(verb: str, opening: bytes) -> None:
    with pytest.raises(BadAnswer):
        READERS[verb](opening * 50_000)


@pytest.mark.parametrize("text", ['"\\ud800"', '"\\udc00x"', '"\\u0000"'])
def test_text_that_is_half_a_character_is_no_crash(text: str) -> None:
    assert is_understood_or_refused(read_error, b'{"Error": ' + text.encode() + b"}")


@settings(max_examples=300)
@given(
    names=st.lists(st.text("abc", min_size=1, max_size=3), max_size=6),
    failed=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3),
    change=st.sampled_from([str.upper, str.lower, str.title, str]),
)
def test_names_and_reasons_survive_whatever_the_case_of_the_fields(
    names: list[str], failed: dict[str, str], change: Callable[[str], str]
) -> None:
    nodes = {change("items"): [{change("metadata"): {change("name"): name}} for name in names]}
    said = {change("NodeNames"): names, change("Nodes"): nodes, change("FailedNodes"): failed}
    answer = read_filter(json.dumps(said).encode())
    assert (answer.node_names, answer.nodes, answer.failed) == (tuple(names), tuple(names), failed)
