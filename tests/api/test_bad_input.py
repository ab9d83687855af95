"""Values and text of other people, as one line that a terminal and a log can bear."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.bad_input import printable, shown


def test_values_are_shown_in_one_short_line() -> None:
    assert [shown(value) for value in (None, "a\nb", 3, [1, "x"], ("a",), {"k": None})] == [
        "nothing", "'a\\nb'", "3", "[1, 'x']", "['a']", "{'k': None}",
    ]  # fmt: skip
    assert shown("x" * 100) == "'" + "x" * 79 + "... (102 characters)"


def multiplied(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value] * 10
    return value


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"k": value}
    return value


def in_itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


ENDLESS = {
    "ten to the power of thirty": multiplied(30),
    "deeper than Python recurses": nested(100_000),
    "a number without end": 10**100_000,
    "such a number in a list": [10**100_000],
}


@pytest.mark.parametrize("case", ENDLESS)
def test_a_value_without_end_is_shown_as_what_it_is(case: str) -> None:
    assert shown(ENDLESS[case]) == f"{type(ENDLESS[case]).__name__} with too much in it to be shown"


def test_a_value_in_itself_is_shown() -> None:
    assert "too much" in shown(in_itself())


@given(st.text(st.characters()))
def test_no_printable_text_has_a_character_that_a_terminal_obeys(text: str) -> None:
    # Cc: control, Cf: format, such as overrides of direction; Cs: half surrogates; Zl and Zp: line and paragraph separators.
    assert not {unicodedata.category(char) for char in printable(text)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert printable(text) == text or not text.isprintable()
