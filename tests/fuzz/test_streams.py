"""Lists, watches and refusals of an API server, or of something in its place: cut anywhere, garbled, without end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from fuzz.effort import bounded, fuzz, outcome
from fuzz.mutants import ANY_JSON, Document, as_json, mutants, torn
from fuzz.seeds import DOCUMENTS, NODE, POD
from placewright.api.objects import Node, Pod
from placewright.kube.errors import ApiError, error_from_answer
from placewright.kube.listwatch import Event, LineSplitter, LineTooLong, Malformed, Page, UndecodableObject, Wire

PAGES: tuple[Document, ...] = (
    {"metadata": {"resourceVersion": "5", "continue": "x"}, "items": [POD, NODE, *DOCUMENTS[2:5]]},
    {"metadata": {}, "items": None},
)
EVENTS: tuple[Document, ...] = (
    {"type": "ADDED", "object": POD},
    {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}},
    {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}},
)
HEADERS = ("5", "\u00b2", "\u0663", "-1", "1e9", "9" * 10_000, " 3 ", "Wed, 21 Oct 2026 07:28:00 GMT")
STATUS: Document = {"kind": "Status", "reason": "Conflict", "message": "no", "code": 409, "details": {"retryAfterSeconds": 3}}


@fuzz(100, stream=st.binary(max_size=80) | st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\xff", b"{}"])).map(b"".join), data=st.data())
def test_lines_are_the_same_wherever_the_stream_is_cut(stream: bytes, data: Any) -> None:
    splitter = LineSplitter()
    found, rest = [], stream
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        found += splitter.feed(rest[:size])
        rest = rest[size:]
    *complete, last = stream.split(b"\n")
    assert found == [line for line in complete if line]
    assert splitter.feed(b"\n") == [last] * bool(last)


@pytest.mark.parametrize("piece", [1, 7, 2**16])
def test_a_line_without_end_is_refused_at_its_limit(piece: int) -> None:
    limit = 2**17
    splitter = LineSplitter(limit)
    fed = 0
    refusal: list[LineSplitter] | Exception = []
    with bounded(limit + piece):
        while fed <= 2 * limit and not isinstance(refusal, LineTooLong):
            refusal = outcome(lambda: splitter.feed(b"x" * piece), LineTooLong)  # type: ignore[assignment]
            fed += piece
    assert isinstance(refusal, LineTooLong)
    assert limit - piece <= fed <= limit + piece


@fuzz(100, value=ANY_JSON)
def test_any_json_is_a_page_and_an_event_or_malformed(value: Any) -> None:
    raw = as_json(value)
    with bounded(len(raw)):
        for kind in (Pod, Node):
            page = outcome(lambda kind=kind: Wire(kind).page(raw), Malformed)  # type: ignore[misc]
            event = outcome(lambda kind=kind: Wire(kind).event(raw), Malformed, ApiError)  # type: ignore[misc]
            assert isinstance(page, Page | Malformed)
            assert isinstance(event, Event | ApiError | Malformed)


@fuzz(120, page=mutants(PAGES), event=mutants(EVENTS))
def test_what_is_wrong_with_one_object_costs_that_object(page: Document, event: Document) -> None:
    found = outcome(lambda: Wire(Pod).page(as_json(page)), Malformed)
    if isinstance(found, Page):
        assert len(found.items) == len(page.get("items") or ())
        assert all(isinstance(one, Pod | UndecodableObject) for one in found.items)
    told = outcome(lambda: Wire(Pod).event(as_json(event)), Malformed, ApiError)
    assert isinstance(told, Event | ApiError | Malformed)


@fuzz(120, raw=torn((*PAGES, *EVENTS)))
def test_torn_bytes_are_a_page_and_an_event_or_malformed(raw: bytes) -> None:
    with bounded(len(raw)):
        assert isinstance(outcome(lambda: Wire(Node).page(raw), Malformed), Page | Malformed)
        assert isinstance(outcome(lambda: Wire(Node).event(raw), Malformed, ApiError), Event | ApiError | Malformed)


@fuzz(
    120,
    status=st.sampled_from([0, 200, 400, 409, 429, 500, 599]),
    body=torn((STATUS,)) | mutants((STATUS,)).map(as_json),
    header=st.none() | st.text(max_size=6) | st.sampled_from(HEADERS),
)
def test_every_refusal_is_one_short_error_with_a_wait_within_reason(status: int, body: bytes, header: str | None) -> None:
    with bounded(len(body)):
        found = error_from_answer(status, body, header)
    assert isinstance(found, ApiError)
    assert 0 <= found.retry_after <= 300
    assert len(found.message) <= 2000


def test_a_page_of_bad_objects_costs_in_proportion() -> None:
    raw = json.dumps({"items": [{"metadata": {"name": f"p{i}"}, "spec": {"priority": "high"}} for i in range(20_000)]}).encode()
    with bounded(len(raw)):
        page = Wire(Pod).page(raw)
    assert all(isinstance(one, UndecodableObject) for one in page.items)
    assert len(page.items) == 20_000
