"""Columns worked out value by value instead of row by row: thousands of nodes share a handful of scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from placewright.framework.interface import IntColumn, Rows

D = TypeVar("D", bound=np.generic)

#: A table pays where it has at most a row for so many.
_ROWS_PER_VALUE: Final = 4


def at(column: NDArray[D], rows: Rows) -> NDArray[D]:
    """A column's values in these rows, shape (len(rows),); not to be written, as it is the column itself where they are all rows.

    Args:
        column: shape (size,).
        rows: ascending, each once, as feasible rows are.
    """
    return column if len(rows) == len(column) else column[rows]


def value_by_value(raw: IntColumn, low: int, high: int, formula: Callable[[IntColumn], IntColumn]) -> IntColumn:
    """`formula` of each value of a column, where that depends on the value alone; shape of `raw`.

    Where few values are possible each is worked out once and looked up.

    Args:
        raw: all within `low` and `high`.
        low: the lowest value.
        high: the highest value.
        formula: takes values of any shape (k,), returns as many.
    """
    if (high - low) * _ROWS_PER_VALUE > len(raw):
        return formula(raw)
    table = formula(np.arange(low, high + 1))
    return table.take(raw if low == 0 else raw - low, mode="clip")  # nothing is to be clipped: numpy need not look, in half the time
