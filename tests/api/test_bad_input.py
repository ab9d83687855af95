"""Values and text of other people, as one line that a terminal and a log can bear."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.bad_input import in_json, printable, shown


def test_values_are_shown_in_one_short_line() -> None:
    assert [shown(value) for value in (None, "a\nb", 3, [1, "x"], ("a",), {"k": None})] == [
        "nothing", "'a\\nb'", "3", "[1, 'x']", "['a']", "{'k': None}",
    ]  # fmt: skip
    assert shown("x" * 100) == "'" + "x" * 79 + "... (100 characters)"


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


# --- how much is shown ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "whole"), [(78, True), (79, False)])
def test_eighty_characters_are_shown_with_their_quotes_and_not_one_more(length: int, *, whole: bool) -> None:
    cut = "x" * 79 + f"... ({length} characters)"
    assert shown("x" * length) == ("'" + "x" * length + "'" if whole else "'" + cut)
    assert in_json("x" * length) == ('"' + "x" * length + '"' if whole else '"' + cut)


@pytest.mark.parametrize(("count", "written"), [(1000, True), (1001, False)])
def test_a_value_with_a_thousand_values_in_it_is_written_and_with_one_more_it_is_not(count: int, *, written: bool) -> None:
    for value in ([0] * count, dict.fromkeys(range(count), 0), set(range(count)), [[0] * (count - 1)], (0,) * count):
        assert ("too much" not in shown(value)) is written
        assert ("too much" not in in_json(value)) is written


@pytest.mark.parametrize(("levels", "written"), [(49, True), (50, False)])
def test_forty_nine_levels_are_written_and_fifty_are_not(levels: int, *, written: bool) -> None:
    assert ("too much" not in shown(nested(levels))) is written
    keys: Any = "x"
    for _ in range(levels):
        keys = (keys,)
    assert ("too much" not in shown({keys: 1})) is (levels < 49), "what is a key is looked at, too"


@pytest.mark.parametrize(("bits", "written"), [(10_000, True), (10_001, False)])
def test_a_number_is_written_as_far_as_python_can_write_it(bits: int, *, written: bool) -> None:
    for number in (2**bits - 1, -(2**bits) + 1, {"k": [2**bits - 1]}, {2**bits - 1: "k"}):
        assert ("too much" not in shown(number)) is written
    assert "too much" not in shown("9" * 5000)


def test_what_is_too_much_is_named_by_its_type() -> None:
    assert shown(10**100_000) == "int with too much in it to be shown"
    assert shown({"k": multiplied(30)}) == "dict with too much in it to be shown"
    assert shown(tuple(range(2000))) == "list with too much in it to be shown"
    assert in_json(multiplied(30)) == "list with too much in it to be shown"


# --- as documents are written ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "nothing"), ("5", '"5"'), (5, "5"), (True, "true"), (False, "false"), (10.0, "10"), (1.5, "1.5"), ("é", '"é"'),
        ([1.0, None, (2.0,)], "[1, null, [2]]"), ({"a": {1: 3.0}}, '{"a": {"1": 3}}'), ({7.0}, "[7]"), (frozenset({"x"}), '["x"]'),
        ("a\nb", '"a\\nb"'), ("\u202e", '"\\u202e"'), (float("nan"), "NaN"), (float("inf"), "Infinity"), (-0.5, "-0.5"),
        (complex(1, 2), '"(1+2j)"'), ("", '""'), ([], "[]"), ({}, "{}"),
    ],
)  # fmt: skip
def test_a_value_of_a_document_is_shown_as_documents_are_written(value: Any, written: str) -> None:
    assert in_json(value) == written


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(st.characters(min_codepoint=97, max_codepoint=122), max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


@given(PLAIN)
def test_what_is_short_and_plain_is_shown_whole_and_may_be_copied_back(value: Any) -> None:
    text = in_json(value)
    assert text == "nothing" if value is None else text.endswith("characters)") or json.loads(text) == value


@given(st.text(max_size=30))
def test_the_same_is_one_printable_line_whichever_way_it_is_shown(text: str) -> None:
    for value in (text, [text], {text: text}):
        assert shown(value).isprintable()
        assert in_json(value).isprintable()


def test_printable_text_is_left_as_it_is_and_only_what_is_not_is_escaped() -> None:
    assert printable("naïve 日本 ~") == "naïve 日本 ~"
    assert printable("a\tb\x1b[31m") == "a\\tb\\x1b[31m"
    assert printable("\ud800é\x00") == "\\ud800é\\x00"
    assert printable("") == ""
