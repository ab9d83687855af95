"""Resource columns: what nodes offer and what their pods have asked for, int64, milli-CPU or whole units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Int64Column = NDArray[np.int64]
D = TypeVar("D", bound=np.generic)


class ResourceColumn:
    """One resource over all rows, each column of shape (capacity,) int64.

    Invariant: `free` is `allocatable` - `requested`, below 0 where more is asked for than there is.

    Attributes:
        largest: no row offers, or has offered, more.
    """

    __slots__ = ("_offering", "allocatable", "free", "largest", "requested")

    def __init__(self, capacity: int) -> None:
        self._offering = 0
        self.allocatable: Int64Column = np.zeros(capacity, np.int64)
        self.requested: Int64Column = np.zeros(capacity, np.int64)
        self.free: Int64Column = np.zeros(capacity, np.int64)
        self.largest = 0

    def offer(self, row: int, amount: int) -> bool:
        """Set what a row offers. Returns True if that was the last row to offer anything."""
        before, self.allocatable[row] = int(self.allocatable[row]), amount
        self.free[row] += amount - before
        self.largest = max(self.largest, amount)
        self._offering += bool(amount) - bool(before)
        return bool(before) and not self._offering

    def ask(self, row: int, amount: int) -> None:
        """Pods on a row ask for so much more."""
        self.requested[row] += amount
        self.free[row] -= amount

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self.allocatable = grown(self.allocatable, capacity)
        self.requested = grown(self.requested, capacity)
        self.free = grown(self.free, capacity)


class Resources:
    """All resource columns, by resource name: one for each name that a node offers.

    A pod may request any name, and many of them. A name that no node offers fits nowhere, so it needs no column: its requests are
    kept by row, as long as the pods are there, for the day when a node begins to offer it.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, ResourceColumn] = {}
        self._nothing: Final = ResourceColumn(capacity)
        #: Requests, by name and row, for names that no node offers; never zero.
        self._not_offered: dict[str, dict[int, int]] = {}

    def __contains__(self, name: str) -> bool:
        """Whether any node offers the resource."""
        return name in self._columns

    def column(self, name: str) -> ResourceColumn:
        """The column of a resource; all zeros (not to be written) for one that no node offers. Not to be kept: it comes and goes."""
        return self._columns.get(name, self._nothing)

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        """Replace what a node offers; to offer 0 of something is not to offer it."""
        offered = {name: amount for name, amount in amounts.items() if amount > 0}
        for name in offered.keys() - self._columns.keys():
            self._open(name)
        ceased = [name for name, column in self._columns.items() if column.offer(row, offered.get(name, 0))]
        for name in ceased:
            self._close(name)

    def _open(self, name: str) -> None:
        column = self._columns[name] = ResourceColumn(self._capacity)
        for row, amount in self._not_offered.pop(name, {}).items():
            column.ask(row, amount)

    def _close(self, name: str) -> None:
        requested = self._columns.pop(name).requested
        rows = np.flatnonzero(requested)
        if len(rows):
            self._not_offered[name] = dict(zip(rows.tolist(), requested[rows].tolist(), strict=True))

    def add_requests(self, row: int, amounts: Mapping[str, int], sign: int) -> None:
        """Add (`sign` 1) or take away (-1) a pod's requests."""
        for name, amount in amounts.items():
            column = self._columns.get(name)
            if column is None:
                self._add_not_offered(name, row, sign * amount)
            else:
                column.ask(row, sign * amount)

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
                for row, amount in zip(rows[which].tolist(), how_much, strict=True):
                    self._add_not_offered(name, row, amount)
            else:
                np.add.at(column.requested, rows[which], np.array(how_much, np.int64))
                np.subtract.at(column.free, rows[which], np.array(how_much, np.int64))

    def _add_not_offered(self, name: str, row: int, amount: int) -> None:
        by_row = self._not_offered.setdefault(name, {})
        total = by_row.pop(row, 0) + amount
        if total:
            by_row[row] = total
        elif not by_row:
            del self._not_offered[name]

    def names(self) -> tuple[str, ...]:
        """Every resource that has a column: that a node offers."""
        return tuple(self._columns)

    def requested_without_offer(self) -> int:
        """How many requests are kept for names that no node offers, a pair of name and row each."""
        return sum(map(len, self._not_offered.values()))

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self._capacity = capacity
        for column in (*self._columns.values(), self._nothing):
            column.grow(capacity)


def grown(column: NDArray[D], capacity: int) -> NDArray[D]:
    """A copy with room for `capacity` rows, new rows zero."""
    return np.concatenate([column, np.zeros(capacity - len(column), column.dtype)])
