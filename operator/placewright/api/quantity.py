"""Kubernetes quantities as integers.

A quantity (`100m`, `1.5Gi`, `2e3`) is held in nano-units, the finest step that the API server keeps. So sums are exact, and an amount is
rounded once, at the end and upwards, as ``resource.Quantity`` does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from placewright.api.bad_input import shown
from placewright.api.boundedcache import cleared_at_beats

NANO: Final = 10**9

_PATTERN: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>\d+(?:\.\d*)?|\.\d+)(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exponent>[+-]?\d{1,3}))", re.ASCII
)
_SCALES: Final = {
    "n": 1, "u": 10**3, "m": 10**6, "": NANO,
    "k": NANO * 10**3, "M": NANO * 10**6, "G": NANO * 10**9, "T": NANO * 10**12, "P": NANO * 10**15, "E": NANO * 10**18,
    "Ki": NANO << 10, "Mi": NANO << 20, "Gi": NANO << 30, "Ti": NANO << 40, "Pi": NANO << 50, "Ei": NANO << 60,
}  # fmt: skip
#: Largest amount that counts (9 PB, 9·10¹² CPUs). Sums and products with a score fit in int64. Amounts are exact as floats.
LARGEST_AMOUNT: Final = 2**53
#: Characters of a quantity; Python itself refuses to convert some thousand digits into a number.
LONGEST_QUANTITY: Final = 1000
#: Characters of a quantity that is cached, so that the cache takes 8 MiB at most.
_LONGEST_KEPT: Final = 40


class QuantityError(ValueError):
    """The text is not a Kubernetes quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(f"{shown(text)} is not a quantity; expected a number with an optional suffix such as 250m, 2, 1.5Gi or 1e3")


def nano(text: str | float) -> int:
    """Parse a quantity.

    Args:
        text: such as `250m` or `1.5Gi`; a number from hand-written YAML.

    Returns:
        Nano-units, rounded up: `nano("250m") == 250_000_000`.

    Raises:
        QuantityError: the text is no quantity.
    """
    return _known_nano(text) if type(text) is str and len(text) <= _LONGEST_KEPT else _nano(text)


@cleared_at_beats
@lru_cache(maxsize=32768)
def _known_nano(text: str) -> int:
    return _nano(text)


def _nano(text: str | float) -> int:
    try:
        spelt = str(text)
    except ValueError:  # an integer of so many digits that Python refuses to write it
        raise QuantityError(text) from None
    match = _PATTERN.fullmatch(spelt) if len(spelt) <= LONGEST_QUANTITY else None
    if match is None:
        raise QuantityError(text)
    whole, _, fraction = match["digits"].partition(".")
    exponent = match["exponent"]
    if exponent is None:
        scale = _SCALES[match["suffix"]]
        shift = 0
    else:
        scale, shift = NANO, int(exponent)
    numerator: int = int((whole or "0") + fraction) * scale * 10 ** max(shift, 0)
    denominator: int = 10 ** (len(fraction) + max(-shift, 0))
    magnitude = -(-numerator // denominator)
    return -magnitude if match["sign"] == "-" else magnitude


def ceil_units(nanos: int) -> int:
    """Convert nano-units to whole units (bytes, counts).

    Returns:
        Units, rounded up, between plus and minus `LARGEST_AMOUNT`.
    """
    return max(-LARGEST_AMOUNT, min(-(-nanos // NANO), LARGEST_AMOUNT))


def ceil_milli(nanos: int) -> int:
    """Convert nano-units to milli-units (milli-CPU).

    Returns:
        Milli-units, rounded up, between plus and minus `LARGEST_AMOUNT`.
    """
    return max(-LARGEST_AMOUNT, min(-(-nanos // 10**6), LARGEST_AMOUNT))
