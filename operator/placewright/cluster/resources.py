"""Resource columns: the amounts that nodes offer and that their pods request; int64 in milli-CPU, bytes or counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from placewright.api.counts import add_count

Int64Column = NDArray[np.int64]
D = TypeVar("D", bound=np.generic)


class ResourceColumn:
    """One resource over all rows.

    Invariant: `free` is `allocatable` - `requested`, below 0 where pods request more than the node offers.

    Args:
        capacity: rows that have room.

    Attributes:
        allocatable: amount that each row's node offers; shape (capacity,) int64.
        requested: amount that each row's pods request; shape (capacity,) int64.
        free: the difference; shape (capacity,) int64.
        largest: an amount that no row exceeds. It does not fall when a row offers less, because finding the
            new maximum would read all rows.
    """

    __slots__ = ("_offering", "allocatable", "free", "largest", "requested")

    def __init__(self, capacity: int) -> None:
        self._offering = 0
        self.allocatable: Int64Column = np.zeros(capacity, np.int64)
        self.requested: Int64Column = np.zeros(capacity, np.int64)
        # Kept beside the other two, because filters read it for every pod: a subtraction of whole columns each time would cost
        # as much as the comparison itself.
        self.free: Int64Column = np.zeros(capacity, np.int64)
        self.largest = 0

    def offer(self, row: int, amount: int) -> bool:
        """Set the amount that a row offers.

        Args:
            row: the node's row.
            amount: 0 for a node that does not offer the resource.

        Returns:
            True when this was the last row to offer any.
        """
        before, self.allocatable[row] = int(self.allocatable[row]), amount
        self.free[row] += amount - before
        self.largest = max(self.largest, amount)
        self._offering += bool(amount) - bool(before)
        return bool(before) and not self._offering

    def ask(self, row: int, amount: int) -> None:
        """Add an amount, negative to subtract, to the requests on a row."""
        self.requested[row] += amount
        self.free[row] -= amount

    def grow(self, capacity: int) -> None:
        """Make room for rows up to `capacity`."""
        self.allocatable = grown(self.allocatable, capacity)
        self.requested = grown(self.requested, capacity)
        self.free = grown(self.free, capacity)


class Resources:
    """All resource columns, one for each resource that a node offers.

    A pod may request many resources of any name. A resource that no node offers fits nowhere, so it needs no column: its
    requests are kept by row while the pods are there, in case a node begins to offer it. So tenants cannot make columns by
    inventing names.

    Args:
        capacity: rows that have room.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, ResourceColumn] = {}
        self._nothing: Final = ResourceColumn(capacity)
        #: Requests for resources that no node offers, by name and row; never 0.
        self._not_offered: dict[str, dict[int, int]] = {}

    def __contains__(self, name: object) -> bool:
        """Return whether any node offers the resource."""
        return name in self._columns

    def column(self, name: str) -> ResourceColumn:
        """Return the column of a resource. Read it at once and do not write: it may be replaced later.

        Returns:
            The column; one of zeros when no node offers the resource.
        """
        return self._columns.get(name, self._nothing)

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        """Replace the amounts that a node offers. An amount of 0 is no offer."""
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
        """Add a pod's requests to a row, or subtract them."""
        for name, amount in amounts.items():
            column = self._columns.get(name)
            if column is None:
                self._add_not_offered(name, row, sign * amount)
            else:
                column.ask(row, sign * amount)

    def add_all(self, rows: NDArray[np.intp], requests: Sequence[Mapping[str, int]], sign: int) -> None:
        """Add the requests of many pods, or subtract them, one column at a time."""
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
                # Not `column[rows] += …`, which counts a row once that occurs twice.
                np.add.at(column.requested, rows[which], np.array(how_much, np.int64))
                np.subtract.at(column.free, rows[which], np.array(how_much, np.int64))

    def _add_not_offered(self, name: str, row: int, amount: int) -> None:
        by_row = self._not_offered.setdefault(name, {})
        if not add_count(by_row, row, amount) and not by_row:
            del self._not_offered[name]

    def names(self) -> tuple[str, ...]:
        """Return the resources that some node offers."""
        return tuple(self._columns)

    def requested_without_offer(self) -> int:
        """Return how many requests for resources that no node offers are kept, one for each name and row."""
        return sum(map(len, self._not_offered.values()))

    def grow(self, capacity: int) -> None:
        """Make room for rows up to `capacity`."""
        self._capacity = capacity
        for column in (*self._columns.values(), self._nothing):
            column.grow(capacity)


def grown(column: NDArray[D], capacity: int) -> NDArray[D]:
    """Return a copy of a column with room for `capacity` rows, shape (capacity,); new rows are 0."""
    return np.concatenate([column, np.zeros(capacity - len(column), column.dtype)])
