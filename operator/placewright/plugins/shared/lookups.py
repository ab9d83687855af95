"""Columns computed value by value instead of row by row, because thousands of nodes share a handful of scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from placewright.framework.interface import IntColumn, Rows

D = TypeVar("D", bound=np.generic)

#: A table pays if it has at most one row for this many values.
_ROWS_PER_VALUE: Final = 4


def at(column: NDArray[D], rows: Rows) -> NDArray[D]:
    """Return a column's values in these ascending rows; not to be written, because all rows give the column itself."""
    return column if len(rows) == len(column) else column[rows]


def value_by_value(raw: IntColumn, low: int, high: int, formula: Callable[[IntColumn], IntColumn]) -> IntColumn:
    """Apply `formula` to a column whose values lie between `low` and `high`.

    If few values are possible, the formula is applied once to each, and rows look the result up.
    """
    if (high - low) * _ROWS_PER_VALUE > len(raw):
        return formula(raw)
    table = formula(np.arange(low, high + 1))
    return table.take(raw if low == 0 else raw - low, mode="clip")  # no value is clipped; without a check numpy takes half the time
