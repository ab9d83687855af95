"""A tally: how many of the pods that a selection picks stand on each row.

Most selections pick the pods of one workload, which stand on few of many rows. So the counts are a dictionary while few rows
have any, and a column from then on.
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

#: Rows in a dictionary, at most, plus a share of all rows: up to there it is read about as fast as a column is searched for counts above 0.
_FEW: Final = 32
_ROWS_PER_ENTRY: Final = 64
#: Changes that are remembered for readers that keep sums; a reader that is further behind adds all counts up.
_CHANGES: Final = 16
_SMALL: Final = np.iinfo(np.int8)
#: Bytes of a dictionary entry's integers, and of the tally itself, estimated.
_ENTRY_BYTES: Final = 32
_OWN_BYTES: Final = 1024


class CountedIn(Protocol):
    """A place where a group's pods are counted."""

    @property
    def tally(self) -> Tally:
        """The tally that holds the sum."""

    def add(self, row: int, delta: int) -> None:
        """Add pods to a row; a negative `delta` takes pods off it."""


class TakenRows(NamedTuple):
    """Rows that have pods, with the number of pods on each.

    Attributes:
        rows: rows with pods, in no order; shape (taken,).
        counts: shape (taken,).
    """

    rows: NDArray[np.intp]
    counts: NDArray[np.int64]


class Tally:
    """The number of pods on each row, of the pods that one selection picks.

    Invariant: exactly one of `_few` and `_column` holds the counts. `_few` has no zeros. `_column` may be shorter than the
    cluster, and rows beyond its end have 0 pods.

    Args:
        serial: never used for another tally.

    Attributes:
        serial: number of the tally. If it and `version` are equal, the counts are.
        version: grows with every change.
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
        """This tally, as a `CountedIn`."""
        return self

    def weighing(self, weight: int) -> CountedIn:
        """Return a place where each pod counts `weight` times; the weight is not 0.

        Returns:
            This tally for a weight of 1, else a `CountedIn` that multiplies.
        """
        return self if weight == 1 else _Weighing(self, weight)

    @property
    def nbytes(self) -> int:
        """Bytes that the tally needs, estimated."""
        if self._column is not None:
            return _OWN_BYTES + self._column.nbytes
        return _OWN_BYTES + sys.getsizeof(self._few) + _ENTRY_BYTES * len(self._few)

    def begin(self, groups: Sequence[Mapping[int, int]]) -> None:
        """Set the counts of a tally that has none, from the pods of up to tens of thousands of groups.

        Args:
            groups: number of pods by row, above 0, of each group.
        """
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
        """Add pods to a row; a negative `delta` takes pods off it."""
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
        # Few rows hold more than 127 pods of a workload: a column of int8 is a quarter of the memory and of the time to read
        # it.
        if not _SMALL.min <= after <= _SMALL.max and column.dtype == np.int8:
            column = self._column = column.astype(np.int32)
        column[row] = after
        self._taken += bool(after) - bool(before)

    def fit(self, size: int) -> None:
        """Change between dictionary and column if the other one suits a cluster of `size` rows better."""
        most = _FEW + size // _ROWS_PER_ENTRY
        if self._column is None:
            if len(self._few) > most:
                rows, counts = self.taken()
                small = _SMALL.min <= counts.min() and counts.max() <= _SMALL.max
                self._column = np.zeros(max(size, int(rows.max()) + 1), np.int8 if small else np.int32)
                self._column[rows] = counts
                self._taken, self._few = len(rows), {}
        elif self._taken < most // 2:
            # Half of the limit, so that a tally near the limit does not change its form with every pod.
            rows, counts = self.taken()
            self._few = dict(zip(rows.tolist(), counts.tolist(), strict=True))
            self._column = None

    # --- reading -------------------------------------------------------------------------------------------------------------

    def __getitem__(self, row: int) -> int:
        """Return the number of pods on one row."""
        if self._column is None:
            return self._few.get(row, 0)
        return int(self._column[row]) if row < len(self._column) else 0

    def taken(self) -> TakenRows:
        """Return the rows that have pods."""
        if self._column is not None:
            rows = np.flatnonzero(self._column != 0)  # numpy finds non-zero bools twice as fast as non-zero integers
            return TakenRows(rows, self._column[rows].astype(np.int64))
        few = self._few
        return TakenRows(np.fromiter(few.keys(), np.intp, len(few)), np.fromiter(few.values(), np.int64, len(few)))

    def by_row(self, size: int) -> NDArray[np.int32]:
        """Return the pods on each row, shape (size,) int32."""
        counts = np.zeros(size, np.int32)
        if self._column is not None:
            length = min(size, len(self._column))
            counts[:length] = self._column[:length]
        elif self._few:
            rows, found = self.taken()
            counts[rows] = found
        return counts

    def add_to(self, sums: NDArray[np.int64], weight: int) -> bool:
        """Add each row's count times a weight to a column.

        Args:
            sums: changed in place; shape (size,) for all rows that have pods.
            weight: times each pod.

        Returns:
            False when no row has pods.
        """
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
        """Return the changes since `follow` returned a position.

        Returns:
            (row, pods added), in order; None when the tally no longer has them all.
        """
        return None if self._changes is None else self._changes.since(position)

    def follow(self) -> int:
        """Return the position after the latest change.

        Changes are noted from the first call on, because most tallies have no reader that follows.
        """
        if self._changes is None:
            self._changes = Log(_CHANGES)
        return self._changes.position


class _Weighing(NamedTuple):
    """Implements `CountedIn` with a weight for each pod."""

    tally: Tally
    weight: int

    def add(self, row: int, delta: int) -> None:
        """Add `delta` times the weight to the count of a row."""
        self.tally.add(row, self.weight * delta)
