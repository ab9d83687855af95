"""Dictionary encoding: each distinct value is stored once, and each row holds a small integer.

Nodes repeat their labels, taints and features. So a test is asked once for each distinct value and gathered by row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V", bound=Hashable)
D = TypeVar("D", bound=np.generic)


class EncodedColumn(Generic[V]):
    """One value for each row, stored as a code into `values`.

    Args:
        capacity: rows that have room.
        default: the value of rows that were never set.

    Attributes:
        values: distinct values by code; code 0 is the default. Values that no row has are dropped when they outnumber the rows.
            Otherwise the list would grow forever while nodes come and go.
    """

    def __init__(self, capacity: int, default: V) -> None:
        self.values: list[V] = [default]
        self._codes_of: dict[V, int] = {default: 0}
        self._codes = np.zeros(capacity, np.int32)

    def set(self, row: int, value: V) -> None:
        """Set the value of a row."""
        code = self._codes_of.get(value)
        if code is None:
            # Collecting at every new value would read all rows each time; at twice the rows it is O(1) amortised.
            if len(self.values) > 2 * len(self._codes) + 16:
                self._drop_unused()
            code = self._codes_of[value] = len(self.values)
            self.values.append(value)
        self._codes[row] = code

    def get(self, row: int) -> V:
        """Return the value of a row."""
        return self.values[int(self._codes[row])]

    def code(self, value: V) -> int | None:
        """Return the code of a value.

        Returns:
            An index into `values`; None when no row ever had the value.
        """
        return self._codes_of.get(value)

    def codes(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the codes of rows, shape (len(rows),) int32, without a call for each value."""
        return self._codes[rows]

    def grow(self, capacity: int) -> None:
        """Make room for rows up to `capacity`."""
        self._codes = np.concatenate([self._codes, np.zeros(capacity - len(self._codes), np.int32)])

    def where(self, rows: NDArray[np.intp], test: Callable[[V], bool]) -> NDArray[np.bool_]:
        """Ask `test` once for each distinct value and gather the answers, shape (len(rows),).

        Example:
            cluster.taints.where(rows, lambda taints: tolerated(taints, pod))   # 3 calls for 5,000 nodes with 3 sets of taints
        """
        return self._apply(rows, test, np.bool_)

    def gather(self, rows: NDArray[np.intp], number: Callable[[V], int]) -> NDArray[np.int64]:
        """Compute `number` once for each distinct value and gather the results, shape (len(rows),) int64."""
        return self._apply(rows, number, np.int64)

    def _apply(self, rows: NDArray[np.intp], function: Callable[[V], Any], dtype: type[D]) -> NDArray[D]:
        if len(self.values) == 1:
            return np.full(len(rows), function(self.values[0]), dtype)
        if len(rows) < len(self.values):  # a few rows of many values: asking the rows is cheaper
            return np.fromiter((function(self.values[code]) for code in self._codes[rows]), dtype, len(rows))
        return np.fromiter((function(v) for v in self.values), dtype, len(self.values))[self._codes[rows]]

    def _drop_unused(self) -> None:
        used, codes = np.unique(np.append(self._codes, 0), return_inverse=True)
        self.values = [self.values[code] for code in used]
        self._codes_of = {value: code for code, value in enumerate(self.values)}
        self._codes = codes[:-1].astype(np.int32)
