"""Resource columns: what nodes offer and what their pods have asked for, int64, milli-CPU or whole units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Int64Column = NDArray[np.int64]
D = TypeVar("D", bound=np.generic)


class ResourceColumn:
    """One resource over all rows: `allocatable` and `requested`, each shape (capacity,) int64."""

    __slots__ = ("allocatable", "requested")

    def __init__(self, capacity: int) -> None:
        self.allocatable: Int64Column = np.zeros(capacity, np.int64)
        self.requested: Int64Column = np.zeros(capacity, np.int64)

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self.allocatable = grown(self.allocatable, capacity)
        self.requested = grown(self.requested, capacity)


class Resources:
    """All resource columns, by resource name; a name gets its column when a node offers or a pod asks for it."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, ResourceColumn] = {}
        self._nothing: Final = ResourceColumn(capacity)

    def column(self, name: str) -> ResourceColumn:
        """The column of a resource; all zeros (not to be written) for one that nobody has."""
        return self._columns.get(name, self._nothing)

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        """Replace what a node offers."""
        for name in amounts.keys() - self._columns.keys():
            self._columns[name] = ResourceColumn(self._capacity)
        for name, column in self._columns.items():
            column.allocatable[row] = amounts.get(name, 0)

    def add_requests(self, row: int, amounts: Mapping[str, int], sign: int) -> None:
        """Add (`sign` 1) or take away (-1) a pod's requests."""
        for name, amount in amounts.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = ResourceColumn(self._capacity)
            column.requested[row] += sign * amount

    def add_all(self, rows: NDArray[np.intp], requests: Sequence[Mapping[str, int]], sign: int) -> None:
        """The same for one pod a row; rows may repeat."""
        asking: dict[str, tuple[list[int], list[int]]] = {}
        for index, amounts in enumerate(requests):
            for name, amount in amounts.items():
                which, how_much = asking.get(name) or asking.setdefault(name, ([], []))
                which.append(index)
                how_much.append(sign * amount)
        for name, (which, how_much) in asking.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = ResourceColumn(self._capacity)
            np.add.at(column.requested, rows[which], np.array(how_much, np.int64))

    def names(self) -> tuple[str, ...]:
        """Every resource that has a column."""
        return tuple(self._columns)

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self._capacity = capacity
        for column in (*self._columns.values(), self._nothing):
            column.grow(capacity)


def grown(column: NDArray[D], capacity: int) -> NDArray[D]:
    """A copy with room for `capacity` rows, new rows zero."""
    return np.concatenate([column, np.zeros(capacity - len(column), column.dtype)])
