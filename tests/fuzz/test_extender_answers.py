"""What extenders answer: an answer of the agreed shape, or `BadAnswer` naming the field; read as Go reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from fuzz.effort import bounded, fuzz, outcome
from fuzz.mutants import ANY_JSON, Document, as_json, mutants, torn
from placewright.kube.extenders.messages import (
    AnswerRoom,
    BadAnswer,
    FilterAnswer,
    read_error,
    read_filter,
    read_scores,
    read_victims,
)

ANSWERS: tuple[Document, ...] = (
    {
        "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]},
        "NodeNames": ["a", "b"],
        "FailedNodes": {"c": "full"},
        "FailedAndUnresolvableNodes": {"d": "never"},
        "Error": "",
    },
    {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}},
    {"Error": "no"},
    {"scores": [{"Host": "a", "Score": 5}, {"Host": "b", "Score": -1}]},
)
READERS: tuple[Callable[[bytes], Any], ...] = (read_filter, read_scores, read_victims, read_error)


def unclear(body: bytes) -> list[Any]:
    """What readers make of it that is neither an answer nor a refusal in a few words; they raise nothing else."""
    with bounded(len(body)):
        found = [outcome(lambda read=read: read(body), BadAnswer) for read in READERS]  # type: ignore[misc]
    return [
        each
        for each in found
        if not isinstance(each, FilterAnswer | list | dict | str | BadAnswer) or (isinstance(each, BadAnswer) and len(str(each)) >= 2000)
    ]


@fuzz(100, value=ANY_JSON)
def test_any_json_is_an_answer_or_a_bad_one(value: Any) -> None:
    assert unclear(as_json(value)) == []


@fuzz(120, document=mutants(ANSWERS))
def test_a_changed_answer_is_an_answer_or_a_bad_one(document: Document) -> None:
    assert unclear(as_json(document)) == []
    assert unclear(as_json(document.get("scores"))) == []


@fuzz(100, body=torn(ANSWERS) | st.binary(max_size=30))
def test_torn_answers_are_answers_or_bad_ones(body: bytes) -> None:
    assert unclear(body) == []


@fuzz(200, names=st.lists(st.text(max_size=6), max_size=4), score=st.integers(), cased=st.randoms(use_true_random=False))
def test_what_was_sent_is_what_is_read_whatever_the_case_of_the_fields(names: list[str], score: int, cased: Any) -> None:
    def spelt(name: str) -> str:
        return "".join(cased.choice((char.lower(), char.upper())) for char in name)

    sent = [name.encode("utf-8", "replace").decode() for name in names]
    assert read_filter(as_json({spelt("NodeNames"): sent})).node_names == tuple(sent)
    found = outcome(lambda: read_scores(as_json([{spelt("Host"): name, spelt("Score"): score} for name in sent])), BadAnswer)
    if -(2**63) <= score < 2**63 or not sent:
        assert found == [(name, score) for name in sent]
    else:
        assert isinstance(found, BadAnswer)
        assert "[0].Score: found" in str(found)


def test_bombs_are_bad_answers() -> None:
    long = (b"[" * 10**6, b"9" * 10**6, b" " * 10**6, b'{"Nodes":' * 10**5, b'[{"Score":' + b"9" * 10**6 + b"}]")
    for body in (*long, b'{"Error":"' + b"\\u0000" * 10**5):
        with bounded(len(body)):
            for read in READERS:
                assert isinstance(outcome(lambda read=read, body=body: read(body), BadAnswer), BadAnswer)  # type: ignore[misc]


def test_an_answer_of_a_hundred_thousand_nodes_costs_in_proportion() -> None:
    body = json.dumps({"Nodes": {"items": [{"metadata": {"name": f"node-{i}", "labels": {"a": "b"}}} for i in range(100_000)]}}).encode()
    with bounded(len(body)):
        found = read_filter(body, AnswerRoom.beside(b"{}", 100_000))
    assert len(found.nodes or ()) == 100_000
