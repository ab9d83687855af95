"""Node labels as columns: one column for each key that a pod asks for and some node has.

Pods name keys as they please, in spread constraints and affinity. A key that no node has needs no memory, so tenants cannot
fill it with invented keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import KeysView, Mapping

import numpy as np
from numpy.typing import NDArray

from placewright.api.counts import add_count
from placewright.api.selectors import parse_int64
from placewright.cluster.encoding import EncodedColumn

Labels = Mapping[str, str]
Int64s = NDArray[np.int64]


class LabelColumn(EncodedColumn[str | None]):
    """One label by row; None if a node does not have it.

    Args:
        capacity: rows that have room.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, None)
        self._numbers: tuple[list[str | None], int, Int64s, NDArray[np.bool_]] | None = None

    def compared(self, rows: NDArray[np.intp], bound: int, *, above: bool) -> NDArray[np.bool_]:
        """Return True for rows whose label is a number above or below a bound, as Gt and Lt ask; shape (len(rows),)."""
        numbers, are_numbers = self._as_numbers()
        # Compared once for each distinct value, then gathered by row.
        return (are_numbers & (numbers > bound if above else numbers < bound))[self.codes(rows)]

    def _as_numbers(self) -> tuple[Int64s, NDArray[np.bool_]]:
        """Return the values as numbers, by code, and whether each is one; parsed once until a value is added."""
        values, known = self.values, self._numbers
        if known is None or known[0] is not values or known[1] != len(values):
            read = [parse_int64(value) for value in values]
            numbers = np.array([number or 0 for number in read], np.int64)
            known = self._numbers = (values, len(values), numbers, np.array([number is not None for number in read], np.bool_))
        return known[2], known[3]


class LabelColumns:
    """The labels of the node on each row.

    Args:
        capacity: rows that have room.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: dict[int, Labels] = {}
        self._nodes_with: Counter[str] = Counter()
        self._columns: dict[str, LabelColumn] = {}
        #: The column of every key that no node has.
        self._nowhere: LabelColumn = LabelColumn(capacity)

    def set_row(self, row: int, labels: Labels) -> None:
        """Replace the labels of a row."""
        before = self._rows.get(row, {})
        if labels == before:
            return
        self._rows[row] = labels
        self._nodes_with.update(labels.keys() - before.keys())
        for key in before.keys() - labels.keys():
            if not add_count(self._nodes_with, key, -1):
                self._columns.pop(key, None)
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    @property
    def keys(self) -> KeysView[str]:
        """The keys that some node has."""
        return self._nodes_with.keys()

    def column(self, key: str) -> LabelColumn:
        """Return the column of a label. Read it at once: the column of a key may be replaced later.

        Returns:
            Each row's value; None if the node does not have the label.
        """
        column = self._columns.get(key)
        if column is not None:
            return column
        if key not in self._nodes_with:
            return self._nowhere
        column = self._columns[key] = LabelColumn(self._capacity)
        for row, labels in self._rows.items():
            column.set(row, labels.get(key))
        return column

    def grow(self, capacity: int) -> None:
        """Make room for rows up to `capacity`."""
        self._capacity = capacity
        for column in (*self._columns.values(), self._nowhere):
            column.grow(capacity)
