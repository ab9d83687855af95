"""Quantities mean what the official client says they mean, rounded up; what is none is refused in one line."""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from placewright.api.quantity import LARGEST_AMOUNT, NANO, QuantityError, ceil_milli, ceil_units, nano

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


# --- the limits --------------------------------------------------------------------------------------------------------------------

WORTH = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(10**3), "M": Fraction(10**6),
    "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18), "Ki": Fraction(2**10), "Mi": Fraction(2**20),
    "Gi": Fraction(2**30), "Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_is_worth_what_its_name_says(suffix: str) -> None:
    assert nano(f"1{suffix}") == WORTH[suffix] * 10**9
    assert nano(f"+0.5{suffix}") == math.ceil(WORTH[suffix] * 10**9 / 2)
    assert nano(f"-3{suffix}") == -3 * WORTH[suffix] * 10**9


@given(st.integers(0, 10**6), st.integers(0, 12), st.sampled_from(SUFFIXES), st.booleans())
def test_what_is_finer_than_a_billionth_is_rounded_away_from_zero(digits: int, places: int, suffix: str, negative: bool) -> None:
    """As the API server does: who asks for a little gets a little, and not nothing."""
    text = f"{digits:0{places + 1}}"
    text = f"{'-' if negative else ''}{text[: len(text) - places]}.{text[len(text) - places :]}{suffix}"
    exact = Fraction(digits, 10**places) * WORTH[suffix] * 10**9
    assert nano(text) == (-math.ceil(exact) if negative else math.ceil(exact))


@given(st.integers(-(10**30), 10**30))
def test_whole_and_thousandth_units_are_rounded_up_between_the_bounds_of_a_column(nanos: int) -> None:
    for found, step in ((ceil_units(nanos), 10**9), (ceil_milli(nanos), 10**6)):
        assert found == max(-(2**53), min(math.ceil(Fraction(nanos, step)), 2**53))


@pytest.mark.parametrize("step", [10**9, 10**6])
def test_the_bounds_of_a_column_can_be_reached_and_not_passed(step: int) -> None:
    ceiled = ceil_units if step == 10**9 else ceil_milli
    assert LARGEST_AMOUNT == 2**53
    assert [ceiled(LARGEST_AMOUNT * step + by) for by in (-step, -1, 0, 1, step)] == [2**53 - 1, *[2**53] * 4]
    assert [ceiled(-LARGEST_AMOUNT * step + by) for by in (-step, 0, 1, step)] == [-(2**53), -(2**53), 1 - 2**53, 1 - 2**53]
    assert float(LARGEST_AMOUNT - 1) + 1 == LARGEST_AMOUNT, "exact as a float"


@pytest.mark.parametrize(("text", "read"), [("1" * 1000, True), ("1" * 1001, False), ("0." + "0" * 998, True), ("0." + "0" * 999, False)])
def test_a_quantity_has_a_thousand_characters_at_most(text: str, *, read: bool) -> None:
    if read:
        assert nano(text) == int(text.replace(".", "")) * 10**9
    else:
        with pytest.raises(QuantityError, match=r"characters\) is not a quantity"):
            nano(text)


@pytest.mark.parametrize(
    ("text", "nanos"), [("1e999", 10**1008), ("1e-999", 1), ("0e999", 0), ("-1e-999", -1), ("1E3", 10**12), ("1E", 10**27)]
)
def test_exponents_have_three_digits_and_a_bare_e_is_exa(text: str, nanos: int) -> None:
    assert nano(text) == nanos


@pytest.mark.parametrize("number", [16**5000, -(16**5000)], ids=["above", "below"])
def test_a_number_that_python_refuses_to_write_is_refused_as_a_quantity(number: int) -> None:
    """YAML has hexadecimal numbers, which Python reads however long they are."""
    with pytest.raises(QuantityError, match=r"^int with too much in it to be shown is not a quantity; "):
        nano(number)


def test_the_refusal_names_what_was_found_and_says_what_is_expected() -> None:
    with pytest.raises(QuantityError) as refused:
        nano("plenty")
    assert str(refused.value) == "'plenty' is not a quantity; expected a number with an optional suffix such as 250m, 2, 1.5Gi or 1e3"
    assert str(QuantityError(None)).startswith("nothing is not a quantity; ")
    assert NANO == 10**9


@given(st.text(st.sampled_from("0123456789.+-eEmkKiMGn "), max_size=7))
def test_any_text_of_a_quantitys_characters_is_one_of_the_grammar_or_refused(text: str) -> None:
    """The grammar of `quantity.go`, which is stricter than what it happens to let pass, such as a lone sign."""
    grammar = re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]{1,3})", text)
    if grammar is None:
        with pytest.raises(QuantityError):
            nano(text)
    else:
        assert (nano(text) == 0) is (Decimal(re.split("[a-zA-Z]", text, maxsplit=1)[0]) == 0)
