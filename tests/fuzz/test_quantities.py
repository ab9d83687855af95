"""Quantities against a plain reading of the grammar that Kubernetes documents, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import strategies as st

from fuzz.effort import bounded, fuzz, outcome
from placewright.api.quantity import LARGEST_AMOUNT, QuantityError, ceil_milli, ceil_units, nano

_SUFFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)},
}
_DIGITS = frozenset("0123456789")


def plain_quantity(text: str) -> Fraction | None:
    """<signedNumber><suffix>, where the suffix is binary SI, decimal SI or a decimal exponent; None for anything else."""
    sign, rest = (-1 if text[:1] == "-" else 1), text[1:] if text[:1] in ("+", "-") else text
    end = 0
    while end < len(rest) and (rest[end] in _DIGITS or rest[end] == "."):
        end += 1
    number, suffix = rest[:end], rest[end:]
    if number.count(".") > 1 or not set(number) & _DIGITS:
        return None
    whole, _, fraction = number.partition(".")
    value = Fraction(int(whole or "0")) + (Fraction(int(fraction), 10 ** len(fraction)) if fraction else 0)
    if suffix in _SUFFIXES:
        return sign * value * Fraction(_SUFFIXES[suffix])
    exponent = suffix[1:]
    digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
    if suffix[:1] not in ("e", "E") or not digits or not set(digits) <= _DIGITS or len(digits) > 3:
        return None
    return sign * value * Fraction(10) ** int(exponent)


def up_in_size(value: Fraction) -> int:
    """Away from zero, as `resource.Quantity` rounds what is finer than it can keep."""
    return math.ceil(value) if value >= 0 else math.floor(value)


_NUMBER = st.from_regex(r"\A[+-]?[0-9]{0,25}(\.[0-9]{0,12})?\Z")
_SUFFIX = st.sampled_from([*_SUFFIXES, "e3", "E-5", "e+12", "e999", "E-999", "e1000", "Ei", "ki", "mi", "K", "e", "Em", "x", " "])
_QUANTITIES = st.builds(lambda number, suffix: number + suffix, _NUMBER, _SUFFIX)
_TEXTS = _QUANTITIES | st.text("0123456789.+-eEkKMGTPEinum \n\u0663\u00b2_x", max_size=12) | st.text(max_size=10)


@fuzz(800, text=_TEXTS)
def test_a_quantity_is_what_the_grammar_says_or_refused(text: str) -> None:
    expected = plain_quantity(text)
    found = outcome(lambda: nano(text), QuantityError)
    if expected is None:
        assert isinstance(found, QuantityError)
        assert str(found).isprintable()
    else:
        assert found == up_in_size(expected * 10**9)


@fuzz(100, text=_QUANTITIES)
def test_amounts_of_any_size_fit_the_columns(text: str) -> None:
    found = outcome(lambda: nano(text), QuantityError)
    if isinstance(found, int):
        exact = Fraction(found, 10**9)
        for amount, scale in ((ceil_units(found), 1), (ceil_milli(found), 1000)):
            assert amount == max(-LARGEST_AMOUNT, min(math.ceil(exact * scale), LARGEST_AMOUNT))


@fuzz(200, number=st.integers() | st.floats() | st.sampled_from([10**30, -(10**400), 1e308, 5e-324, 0.1]))
def test_numbers_of_hand_written_yaml_are_read_as_their_text(number: float) -> None:
    found = outcome(lambda: nano(number), QuantityError)
    expected = plain_quantity(str(number))
    assert isinstance(found, QuantityError) if expected is None else found == up_in_size(expected * 10**9)


@fuzz(50, unit=st.sampled_from(["9", "0", ".", "e", "-", "Ki", "1e9", "\x1b", "\n"]), length=st.sampled_from([10**3, 10**5, 10**6]))
def test_long_text_is_refused_at_once(unit: str, length: int) -> None:
    text = unit * length
    with bounded(len(text)):
        found = outcome(lambda: nano(text), QuantityError)
    assert isinstance(found, QuantityError) or length <= 1000
    assert len(str(found)) < 5000
