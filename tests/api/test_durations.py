"""Durations mean what Go's `time.ParseDuration` says they mean; what is none is None."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from placewright.api.durations import PATTERN, seconds

IN_NANOSECONDS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("0s", 0), ("5s", 5), ("30s", 30), ("1m30s", 90), ("1h2m3s", 3723), ("1.5h", 5400), ("39h9m14.425s", 140954.425),
        ("250ms", 0.25), ("100us", 1e-4), ("100µs", 1e-4), ("100μs", 1e-4), ("1ns", 1e-9), (".5s", 0.5), ("1.s", 1), ("10.5s4m", 250.5),
        ("1s1s", 2), ("00002s", 2), ("0.100000000000000000000h", 360),
    ],
)  # fmt: skip
def test_a_duration_is_worth_what_go_says(text: str, worth: float) -> None:
    assert seconds(text) == worth
    assert re.search(PATTERN, text), "a schema lets it pass, too"


@pytest.mark.parametrize(
    "text",
    ["", " ", "5", "s", ".s", "5 s", " 5s", "5s ", "5s\n", "\n5s", "5S", "5d", "1e3s", "0x5s", "1_0s", "-5s", "+5s", "5s-3s", "1,5s",
     "1..5s", "1.5.5s", "٣s", "5sm", "ms", "five seconds", "inf", "nans", "1h2"],
)  # fmt: skip
def test_what_is_no_duration_of_zero_or_more_is_none(text: str) -> None:
    assert seconds(text) is None


@pytest.mark.parametrize(("length", "read"), [(64, True), (65, False), (10**6, False)])
def test_a_text_longer_than_anybody_writes_is_none_and_takes_no_time(length: int, *, read: bool) -> None:
    assert (seconds("0" * (length - 2) + "7s") == 7) is read
    assert (seconds("0" * (length - 2) + "7s") is None) is not read


PARTS = st.lists(st.tuples(st.integers(0, 9999), st.integers(0, 999), st.sampled_from(sorted(IN_NANOSECONDS))), min_size=1, max_size=4)


@given(PARTS)
@example([(0, 1, "ns"), (0, 1, "ns")])
def test_the_parts_of_a_duration_are_summed_exactly_and_rounded_once(parts: list[tuple[int, int, str]]) -> None:
    text = "".join(f"{whole}.{fraction:03}{unit}" for whole, fraction, unit in parts)
    exact = sum((Fraction(1000 * whole + fraction, 1000) * IN_NANOSECONDS[unit] for whole, fraction, unit in parts), Fraction())
    assert seconds(text) == float(exact / 10**9)
