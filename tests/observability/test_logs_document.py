"""docs/logs.md and docs/tracing.md name exactly the fields, messages and attributes that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

import placewright
from observability.test_tracing import traced
from placewright.observability import decisionlog, logformat, logs, tracingexport
from placewright.observability.decisionlog import DecisionLog
from placewright.scheduler.attempts import Attempt
from scheduler.makers import REFUSED, World, node, pod
from scheduler.scripted import room_maker

DOCS = Path(placewright.__file__).parents[2] / "docs"
LOGS = (DOCS / "logs.md").read_text()
TRACING = (DOCS / "tracing.md").read_text()


def first_cells(document: str, header: str) -> set[str]:
    """What stands in code in the first column of the table with this header."""
    rows = document.partition(f"| {header} |")[2].splitlines()[2:]
    table = rows[: next((at for at, row in enumerate(rows) if not row.startswith("|")), len(rows))]
    return {word for row in table for word in re.findall(r"`([^`]+)`", row.split("|")[1])}


async def attempts() -> list[Attempt]:
    """One that is placed, one that fits nowhere, one that breaks, one that makes room, and a slow one."""
    world = World().nodes(node("a"), node("b")).pods(pod("web"), pod("huge").requests(cpu="900"), pod("unlucky"))
    world.binder.answers["uid-unlucky"] = REFUSED
    for _ in range(3):
        await world.attempt()
    victim = pod("victim").on("a").build()
    pushing = World(room_maker("a", victim).kind).nodes(node("a")).pods(pod("vip").requests(cpu="900"))
    await pushing.attempt()
    slow = World().nodes(node("a"), node("b")).pods(pod("slow"))
    await slow.attempt()
    slow.log.attempts[0].started -= 10
    return world.log.attempts + pushing.log.attempts + slow.log.attempts


async def test_every_field_and_message_of_a_decision_is_in_the_tables_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", decisionlog.LOGGER)
    for attempt in await attempts():
        DecisionLog().attempt_ended(attempt)
        DecisionLog(lambda: False).attempt_ended(attempt)
        attempt.ended = (attempt.decided or 0) + 10
        DecisionLog().attempt_ended(attempt)
    records = [record for record in caplog.records if record.name == decisionlog.LOGGER]
    assert {record.getMessage() for record in records} == first_cells(LOGS, "message")
    assert {field for record in records for field in record.__dict__["fields"]} == first_cells(LOGS, "field")


async def test_every_attribute_of_a_span_is_in_the_table_and_no_other() -> None:
    world = World().nodes(node("a"), node("b")).pods(pod("web"), pod("huge").requests(cpu="900"))
    spans = await traced(world, ALWAYS_ON) + await traced(world, ALWAYS_ON)
    assert {attribute for span in spans for attribute in span.attributes or ()} == first_cells(TRACING, "attribute")


def test_the_numbers_are_those_of_the_code() -> None:
    for number in (logformat.LONGEST_MESSAGE, logformat.LONGEST_FIELD, logformat.LONGEST_EXCEPTION, f"{logs.MOST_WAITING:,}"):
        assert f" {number}" in LOGS
    assert (logs.FEW, logs.SECONDS, logs.END_SECONDS, logs.LAST_WORDS_SECONDS) == (3, 60, 2, 1)
    assert (decisionlog.SLOW_DECISION_SECONDS, decisionlog.SLOW_BINDING_SECONDS) == (0.1, 1.0)
    assert f"beyond {tracingexport.MOST_WAITING} " in TRACING
    assert tracingexport.END_SECONDS == 2
