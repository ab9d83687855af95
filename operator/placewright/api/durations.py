"""Durations as Go writes them: `5s`, `1m30s`, `250ms`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_NUMBER: Final = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_UNIT: Final = r"(?:ns|us|µs|μs|ms|s|m|h)"
#: One or more numbers with units, as a pattern for a JSON schema.
PATTERN: Final = rf"^(?:{_NUMBER}{_UNIT})+$"
_WHOLE: Final = re.compile(PATTERN)
_PART: Final = re.compile(rf"({_NUMBER})({_UNIT})")
_SECONDS: Final = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600),
}  # fmt: skip
#: Characters of a duration; the time to read one grows with its length, and no real one is longer.
_LONGEST: Final = 64


def seconds(text: str) -> float | None:
    """Parse a duration.

    Returns:
        Seconds, 0 or more; None when the text is no duration.
    """
    if len(text) > _LONGEST or _WHOLE.fullmatch(text) is None:
        return None
    return float(sum((Fraction(number) * _SECONDS[unit] for number, unit in _PART.findall(text)), Fraction()))
