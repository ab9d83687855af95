"""Columns computed value by value instead of row by row, because thousands of nodes share a handful of scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from placewright.framework.interface import BoolColumn, IntColumn, Rows

D = TypeVar("D", bound=np.generic)

#: Bits of an int64 that hold flags; the others number up to 2^31 combinations of earlier flags.
_FLAGS_AT_ONCE: Final = 31

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


def combinations(flags: Sequence[BoolColumn], rows: int) -> IntColumn:
    """Return a number for each row, equal for rows with equal flags; shape (rows,)."""
    numbers = np.zeros(rows, np.int64)
    for begin in range(0, len(flags), _FLAGS_AT_ONCE):
        for bit, flag in enumerate(flags[begin : begin + _FLAGS_AT_ONCE]):
            numbers |= flag.astype(np.int64) << bit
        if begin + _FLAGS_AT_ONCE < len(flags):  # number the combinations anew, from 0, and leave the low bits to the next flags
            numbers = np.unique(numbers, return_inverse=True)[1].astype(np.int64) << _FLAGS_AT_ONCE
    return numbers
