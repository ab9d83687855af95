"""Whatever an extender answers, it is understood or called a bad answer: no other exception, and no crash."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.kube.extenders.messages import (
    AnswerRoom,
    BadAnswer,
    read_error,
    read_filter,
    read_scores,
    read_victims,
)

READERS: dict[str, Callable[..., Any]] = {
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


# --- as many elements as there are nodes ----------------------------------------------------------------------------------------

QUESTION = json.dumps({"Pod": {"metadata": {"name": "p"}}, "NodeNames": ["a", "b"]}).encode()


def scores(count: int) -> bytes:
    return json.dumps([{"Host": f"n{i}", "Score": 1} for i in range(count)]).encode()


def kept(count: int) -> bytes:
    return json.dumps({"NodeNames": [f"n{i}" for i in range(count)]}).encode()


def kept_whole(count: int) -> bytes:
    return json.dumps({"Nodes": {"items": [{"metadata": {"name": f"n{i}"}} for i in range(count)]}}).encode()


def kept_without_names(count: int) -> bytes:
    return json.dumps({"Nodes": {"Items": [{} for _ in range(count)]}}).encode()


def failed(count: int) -> bytes:
    return json.dumps({"FailedNodes": {f"n{i}": "full, and broken" for i in range(count)}}).encode()


def given_up(count: int) -> bytes:
    return json.dumps({"NodeNameToMetaVictims": {f"n{i}": {"Pods": [{"UID": "u"}]} for i in range(count)}}).encode()


ABOUT_NODES = [("prioritize", scores), ("filter", kept), ("filter", kept_whole), ("filter", kept_without_names), ("filter", failed),
               ("preempt", given_up)]  # fmt: skip


@pytest.mark.parametrize(("verb", "answer"), ABOUT_NODES)
@settings(max_examples=25)
@given(nodes=st.integers(0, 3000), more=st.integers(1, 3000), share=st.floats(0, 1))
def test_an_answer_has_as_many_entries_as_there_are_nodes_and_some_and_no_more(
    verb: str, answer: Callable[[int], bytes], nodes: int, more: int, share: float
) -> None:
    room = AnswerRoom.beside(QUESTION, nodes)
    assert room.entries >= 2 * nodes
    READERS[verb](answer(int(share * room.entries)), room)
    with pytest.raises(BadAnswer, match="for as many nodes as there are"):
        READERS[verb](answer(room.entries + more), room)


ELEMENTS = ["{}", "[]", "null", "0", '""', '{"Host":"a"}', "[[]]", '{"metadata":{"name":"a"}}']
PLACES = ["[%s]", '{"Nodes":{"items":[%s]}}', '{"NodeNames":[%s]}', '{"Unknown":[%s]}', '{"NodeNameToMetaVictims":{"a":{"Pods":[%s]}}}',
          '[{"Host":"a","Unknown":[%s]}]', '{"Error":[%s]}']  # fmt: skip


@pytest.mark.parametrize("verb", READERS)
@settings(max_examples=30)
@given(
    element=st.sampled_from(ELEMENTS), place=st.sampled_from(PLACES), count=st.integers(150_000, 400_000), tail=st.sampled_from(["", "x"])
)
def test_what_has_more_elements_than_the_nodes_account_for_is_refused_before_any_is_made(
    verb: str, element: str, place: str, count: int, tail: str
) -> None:
    body = ((place % ",".join([element] * count)) + tail).encode()
    tracemalloc.start()
    try:
        with pytest.raises(BadAnswer, match="an answer of up to"):
            READERS[verb](body, AnswerRoom.beside(QUESTION, 100))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@settings(max_examples=30)
@given(nodes=st.integers(1, 300), fields=st.integers(0, 300))
def test_nodes_that_come_back_in_full_have_room_for_all_that_was_sent(nodes: int, fields: int) -> None:
    items = [{"metadata": {"name": f"n{i}", "labels": {f"k{j}": "v" for j in range(fields)}}} for i in range(nodes)]
    question = json.dumps({"Pod": {}, "Nodes": {"items": items}}).encode()
    longer = [{**item, "status": {"nodeInfo": {}}} for item in items]
    body = json.dumps({"Nodes": {"items": longer}, "FailedNodes": {f"n{i}": "no" for i in range(nodes)}, "Error": ""}).encode()
    assert len(read_filter(body, AnswerRoom.beside(question, nodes)).nodes or ()) == nodes


def test_a_reason_is_no_longer_than_a_condition() -> None:
    text = "x" * 2**20
    answer = read_filter(json.dumps({"FailedNodes": {"a": text}, "FailedAndUnresolvableNodes": {"b": text}, "Error": text}).encode())
    assert {len(each) for each in (answer.failed["a"], answer.unresolvable["b"], answer.error)} == {2**15}  # type: ignore[index]
