"""How many pods that somebody selects stand on each row.

Most selections pick the pods of one workload, which stand on few of many rows. So the counts are a dictionary as long as few rows have
any, and a column from then on.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.journal import Log
from placewright.cluster.resources import grown

Counts = NDArray[np.signedinteger[Any]]

#: Rows in a dictionary, beside a share of all rows: as long as it is read about as fast as a column is searched for what is not 0.
_FEW: Final = 32
_ROWS_PER_ENTRY: Final = 64
#: Changes that are remembered for readers that keep sums; one that is further behind adds up anew.
_CHANGES: Final = 16
_SMALL: Final = np.iinfo(np.int8)
#: What Python's integers and the tally itself take, about.
_ENTRY_BYTES: Final = 32
_OWN_BYTES: Final = 1024


class CountedIn(Protocol):
    """Where a group's pods are counted."""

    @property
    def tally(self) -> Tally:
        """The tally that has the sum."""

    def add(self, row: int, delta: int) -> None:
        """Count `delta` pods more on a row."""


class TakenRows(NamedTuple):
    """Rows that have pods, and how many each; both shape (taken,), in no order."""

    rows: NDArray[np.intp]
    counts: NDArray[np.int64]


class Tally:
    """Pods per row that one selection picks.

    Invariant: exactly one of `_few` and `_column` holds the counts. `_few` has no zeros; `_column` may be shorter than the cluster, and
    what is beyond its end is 0.

    Attributes:
        serial, version: equal pairs promise equal counts.
    """

    __slots__ = ("__weakref__", "_changes", "_column", "_few", "_taken", "serial", "version")

    def __init__(self, serial: int) -> None:
        self.serial = serial
        self.version = 0
        self._few: dict[int, int] = {}
        self._column: Counts | None = None
        self._taken = 0
        self._changes: Log[tuple[int, int]] | None = None

    @property
    def tally(self) -> Tally:
        """Itself, as a `CountedIn`."""
        return self

    def weighing(self, weight: int) -> CountedIn:
        """Where pods are counted of which each counts for so many."""
        return self if weight == 1 else _Weighing(self, weight)

    @property
    def nbytes(self) -> int:
        """What it takes, about."""
        if self._column is not None:
            return _OWN_BYTES + self._column.nbytes
        return _OWN_BYTES + sys.getsizeof(self._few) + _ENTRY_BYTES * len(self._few)

    def begin(self, groups: Sequence[Mapping[int, int]]) -> None:
        """Count these pods by row, more than 0 on each, of groups of which there may be tens of thousands; for a tally without any yet."""
        if len(groups) == 1:
            self._few = dict(groups[0])
            return
        rows = np.fromiter(chain.from_iterable(groups), np.intp)
        counts = np.fromiter(chain.from_iterable([group.values() for group in groups]), np.int64)
        sums = np.bincount(rows, weights=counts).astype(np.int64)
        taken = np.flatnonzero(sums)
        self._few = dict(zip(taken.tolist(), sums[taken].tolist(), strict=True))

    # --- writing -------------------------------------------------------------------------------------------------------------

    def add(self, row: int, delta: int) -> None:
        """Count `delta` pods more on a row."""
        self.version += 1
        if self._changes is not None:
            self._changes.append((row, delta))
        if self._column is not None:
            self._add_to_column(self._column, row, delta)
            return
        count = self._few.get(row, 0) + delta
        if count:
            self._few[row] = count
        else:
            self._few.pop(row, None)

    def _add_to_column(self, column: Counts, row: int, delta: int) -> None:
        if row >= len(column):
            column = self._column = grown(column, max(row + 1, 2 * len(column)))
        before = int(column[row])
        after = before + delta
        if not _SMALL.min <= after <= _SMALL.max and column.dtype == np.int8:
            column = self._column = column.astype(np.int32)
        column[row] = after
        self._taken += bool(after) - bool(before)

    def fit(self, size: int) -> None:
        """Change between dictionary and column where the other suits a cluster of so many rows better."""
        most = _FEW + size // _ROWS_PER_ENTRY
        if self._column is None:
            if len(self._few) > most:
                rows, counts = self.taken()
                small = _SMALL.min <= counts.min() and counts.max() <= _SMALL.max
                self._column = np.zeros(max(size, int(rows.max()) + 1), np.int8 if small else np.int32)
                self._column[rows] = counts
                self._taken, self._few = len(rows), {}
        elif self._taken < most // 2:
            rows, counts = self.taken()
            self._few = dict(zip(rows.tolist(), counts.tolist(), strict=True))
            self._column = None

    # --- reading -------------------------------------------------------------------------------------------------------------

    def __getitem__(self, row: int) -> int:
        """Pods on one row."""
        if self._column is None:
            return self._few.get(row, 0)
        return int(self._column[row]) if row < len(self._column) else 0

    def taken(self) -> TakenRows:
        """The rows that have pods."""
        if self._column is not None:
            rows = np.flatnonzero(self._column != 0)  # twice as fast as without the comparison
            return TakenRows(rows, self._column[rows].astype(np.int64))
        few = self._few
        return TakenRows(np.fromiter(few.keys(), np.intp, len(few)), np.fromiter(few.values(), np.int64, len(few)))

    def by_row(self, size: int) -> NDArray[np.int32]:
        """A count for each of so many rows, which are all that have any; shape (size,)."""
        counts = np.zeros(size, np.int32)
        if self._column is not None:
            length = min(size, len(self._column))
            counts[:length] = self._column[:length]
        elif self._few:
            rows, found = self.taken()
            counts[rows] = found
        return counts

    def add_to(self, sums: NDArray[np.int64], weight: int) -> bool:
        """Add each row's count, times a weight, to a column that has all of these rows; False where there is nothing to add."""
        column = self._column
        if column is None:
            if self._few:
                rows, counts = self.taken()
                sums[rows] += weight * counts
            return bool(self._few)
        length = min(len(sums), len(column))
        sums[:length] += column[:length] * np.int64(weight)
        return self._taken > 0

    def changes_since(self, position: int) -> Sequence[tuple[int, int]] | None:
        """(row, pods more), in order, since `follow` returned this; None when that is longer ago than is remembered."""
        return None if self._changes is None else self._changes.since(position)

    def follow(self) -> int:
        """Where the changes stand now; from the first call on they are noted."""
        if self._changes is None:
            self._changes = Log(_CHANGES)
        return self._changes.position


class _Weighing(NamedTuple):
    """Implements `CountedIn`: each pod counts for so many in a tally."""

    tally: Tally
    weight: int

    def add(self, row: int, delta: int) -> None:
        """`CountedIn.add`."""
        self.tally.add(row, self.weight * delta)
