"""Quantities mean what the official client says they mean, rounded up; what is none is refused in one line."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from placewright.api.quantity import LARGEST_AMOUNT, QuantityError, ceil_milli, ceil_units, nano

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
NUMBERS = st.from_regex(r"[+-]?([0-9]{1,9}(\.[0-9]{0,6})?|\.[0-9]{1,6})", fullmatch=True)


def exact(text: str) -> Decimal:
    with localcontext() as context:
        context.prec = 200
        return Decimal(parse_quantity(text)) * 10**9


@given(NUMBERS, st.sampled_from(SUFFIXES))
@example("-87000000.01", "Ei")  # more digits than Decimal's own minus keeps
def test_a_quantity_is_worth_what_the_official_client_says(number: str, suffix: str) -> None:
    value = exact(number + suffix)
    expected = math.ceil(value) if value >= 0 else -math.ceil(value.copy_negate())
    assert nano(number + suffix) == expected


@given(NUMBERS, st.integers(-12, 30), st.sampled_from("eE"))
def test_an_exponent_shifts_the_point(number: str, exponent: int, letter: str) -> None:
    value = Decimal(number).scaleb(exponent + 9)
    expected = math.ceil(value) if value >= 0 else -math.ceil(value.copy_negate())
    assert nano(f"{number}{letter}{exponent}") == expected


@pytest.mark.parametrize(
    ("text", "milli", "units"),
    [
        ("100m", 100, 1),
        ("0.1", 100, 1),
        ("1500m", 1500, 2),
        ("1n", 1, 1),
        ("1.0000000001", 1001, 2),
        ("0", 0, 0),
        ("1E", 10**21, 10**18),
        ("1e3", 10**6, 1000),
        ("1.5Gi", 1610612736000, 1610612736),
        ("-1500m", -1500, -1),
        (".5", 500, 1),
        ("2.", 2000, 2),
    ],
)
def test_amounts_are_rounded_up_once(text: str, milli: int, units: int) -> None:
    assert ceil_milli(nano(text)) == min(milli, LARGEST_AMOUNT)
    assert ceil_units(nano(text)) == min(units, LARGEST_AMOUNT)


@pytest.mark.parametrize("number", [2, 1.5, 1e-7, 0.1])
def test_bare_numbers_of_hand_written_yaml_are_quantities(number: float) -> None:
    assert nano(number) == math.ceil(Decimal(str(number)) * 10**9)


@pytest.mark.parametrize("text", ["9" * 300, "1e300", "9" * 40 + "Ei"])
def test_no_amount_counts_for_more_than_the_columns_can_sum(text: str) -> None:
    assert ceil_units(nano(text)) == LARGEST_AMOUNT
    assert ceil_milli(nano(text)) == LARGEST_AMOUNT
    assert ceil_units(nano(f"-{text}")) == -LARGEST_AMOUNT
    assert ceil_milli(nano(f"-{text}")) == -LARGEST_AMOUNT


@pytest.mark.parametrize(
    "junk",
    ["", " ", "1 ", " 1", "1\n", "one", "1.2.3", "--1", "+-1", "1e", "1e1000", "1e+", "1Kib", "1ki", "1K", "Gi", ".", "1,5", "0x10",
     "1_000", "\u0663", "\u00b2", "1\u0661", "nan", "inf", "1e3m", True, None, "9" * 5000, "1\x1b[2J"],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_in_one_printable_line(junk: str) -> None:
    with pytest.raises(QuantityError) as refused:
        nano(junk)
    assert "is not a quantity; expected a number with an optional suffix" in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


class _Unasked:
    """A pattern that nobody may ask."""

    def fullmatch(self, text: str) -> None:
        raise AssertionError(f"a text of {len(text)} characters was matched")


def test_a_text_that_is_too_long_is_refused_without_being_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright.api.quantity._PATTERN", _Unasked())
    with pytest.raises(QuantityError):
        nano("1" * 1001)


def test_true_is_no_quantity_though_one_is() -> None:
    assert nano(1) == nano("1")
    with pytest.raises(QuantityError):
        nano(True)
