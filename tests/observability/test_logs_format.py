"""How records read, whatever is in them: one record stays one record, and JSON stays JSON."""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from observability.logging_makers import hostile, raised, record
from placewright.observability.logformat import (
    LONGEST_EXCEPTION,
    LONGEST_FIELD,
    LONGEST_MESSAGE,
    JsonFormatter,
    TextFormatter,
)

text = TextFormatter()
as_json = JsonFormatter()
plain = hostile | st.none() | st.booleans() | st.integers() | st.floats()
values = plain | st.lists(hostile, max_size=3) | st.dictionaries(hostile, hostile, max_size=3)


def test_a_line_has_time_level_logger_message_and_fields() -> None:
    fields = {"pod": "shop/web-1", "score": 412, "runner_up": None, "took_ms": 0.25, "plugins": ["A", "B"], "why": "no room", "last": False}
    line = text.format(record("pod %s", "placed", level=logging.WARNING, name="a.b", fields=fields))
    assert line == (
        "2023-11-14T22:13:20.123Z WARNING a.b: pod placed "
        'pod=shop/web-1 score=412 runner_up=none took_ms=0.25 plugins=A,B why="no room" last=false'
    )


def test_a_json_line_has_the_same_as_an_object() -> None:
    fields = {"pod": "shop/web-1", "runner_up": None, "took_ms": 0.25, "plugins": ["A", "B"], "steps": {"Filter": 1.23456}}
    line = as_json.format(record("pod %s", "placed", level=logging.WARNING, name="a.b", fields=fields))
    assert json.loads(line) == {
        "ts": "2023-11-14T22:13:20.123456Z", "level": "warning", "logger": "a.b", "msg": "pod placed",
        "pod": "shop/web-1", "runner_up": None, "took_ms": 0.25, "plugins": ["A", "B"], "steps": {"Filter": 1.235},
    }  # fmt: skip


@given(message=hostile, name=hostile, key=hostile, value=values)
def test_no_text_begins_a_line_or_moves_a_terminal(message: str, name: str, key: str, value: object) -> None:
    line = text.format(record("%s", message, name=name, fields={key: value}))
    assert [character for character in line if unicodedata.category(character)[0] in "CZ" and character != " "] == []


@given(message=hostile, name=hostile, key=hostile, value=values)
def test_every_json_line_is_one_for_strict_readers_too(message: str, name: str, key: str, value: object) -> None:
    line = as_json.format(record("%s", message, name=name, fields={key: value}))
    assert "\n" not in line
    assert line.isascii()
    read = msgspec.json.decode(line.encode(), type=dict[str, object])
    assert read == json.loads(line)
    assert datetime.fromisoformat(str(read["ts"])) == datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)


@given(seconds=st.integers(0, 2**32), micros=st.integers(0, 999_999))
def test_a_lines_time_is_when_it_was_logged(seconds: int, micros: int) -> None:
    logged = record("said")
    logged.created = seconds + micros / 1_000_000
    when = datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)
    assert json.loads(as_json.format(logged))["ts"] == when.isoformat(timespec="microseconds").replace("+00:00", "Z")
    assert text.format(logged).split()[0] == when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@given(message=st.text(max_size=100), value=st.text(max_size=100))
def test_what_is_text_comes_back_from_json_as_it_was(message: str, value: str) -> None:
    read = json.loads(as_json.format(record(message, fields={"said": value})))
    assert (read["msg"], read["said"]) == (message, value)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_has_not_are_text(odd: float) -> None:
    assert json.loads(as_json.format(record("said", fields={"share": odd})))["share"] == str(odd)
    assert text.format(record("said", fields={"share": odd})).endswith(f"share={odd}")


def test_a_field_cannot_take_the_place_of_the_line_s_own() -> None:
    read = json.loads(as_json.format(record("said", fields={"msg": "forged", "level": "forged"})))
    assert (read["msg"], read["level"], read["field_msg"], read["field_level"]) == ("said", "info", "forged", "forged")


def test_a_field_s_value_cannot_pass_for_another_field() -> None:
    line = text.format(record("said", fields={"pod": 'x" node=evil', "dir": "a\\"}))
    assert line.endswith(r'said pod="x\" node=evil" dir="a\\"')


def test_what_is_huge_is_cut_and_its_length_told() -> None:
    made = record("m" * 1_000_000, fields={"note": "f" * 1_000_000, "many": list(range(1_000_000))})
    for line in (text.format(made), as_json.format(made)):
        assert len(line) < LONGEST_MESSAGE + 2 * LONGEST_FIELD
        assert line.count("(1000000 characters)") == 2


def test_no_line_of_a_traceback_passes_for_a_record_but_its_beginning_is_found() -> None:
    forged = "2023-11-14T22:13:20.123Z CRITICAL kopf: all is lost"
    with raised(ValueError(f"bad\n{forged}\n\x1b[2J")) as info:
        lines = text.format(record("broke", exc_info=info)).splitlines()
    assert lines[1] == "Traceback (most recent call last):"
    assert [line for line in lines if re.match(r"\d{4}-", line)] == lines[:1]
    assert f"  {forged}" in lines
    assert lines[-1] == "  \\x1b[2J"


def test_in_json_a_traceback_is_a_field() -> None:
    with raised(ValueError("bad\nworse")) as info:
        read = json.loads(as_json.format(record("broke", exc_info=info)))
    assert read["exception"].startswith("Traceback (most recent call last):\n")
    assert read["exception"].endswith("ValueError: bad\nworse")


def test_of_a_huge_traceback_the_end_is_kept() -> None:
    with raised(ValueError("x" * 1_000_000 + " at last")) as info:
        exception = json.loads(as_json.format(record("broke", exc_info=info)))["exception"]
    assert exception.endswith(" at last")
    assert len(exception) < LONGEST_EXCEPTION + 200


def test_a_stack_is_shown_like_a_traceback() -> None:
    lines = text.format(record("stuck", stack_info="File a\nFile b")).splitlines()
    assert lines[1:] == ["  File a", "  File b"]


def test_arguments_that_do_not_fit_lose_nothing() -> None:
    line = text.format(record("pod %s on %d", "web"))
    assert "pod %s on %d" in line
    assert "'web'" in line


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


@pytest.mark.parametrize("formatter", [text, as_json])
def test_an_object_that_cannot_be_written_costs_only_itself(formatter: logging.Formatter) -> None:
    line = formatter.format(record("%s", Unspeakable(), fields={"odd": Unspeakable(), "pod": "web"}))
    assert "Unspeakable" in line
    assert "web" in line


def test_a_line_of_kopf_s_names_its_object() -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "shop", "uid": "1"}
    assert text.format(record("Handler failed", k8s_ref=reference)).endswith("Handler failed kind=Pod object=shop/web")


def test_only_levels_that_matter_have_colours_and_only_where_they_are_asked_for() -> None:
    coloured = TextFormatter(colours=True)
    assert "\x1b[31mERROR\x1b[0m" in coloured.format(record(level=logging.ERROR))
    assert "\x1b" not in coloured.format(record(level=logging.INFO))
    assert "\x1b" not in text.format(record(level=logging.ERROR))
