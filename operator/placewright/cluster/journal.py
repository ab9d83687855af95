"""Logs of changes, read from a remembered position: the reason that a decision costs what changed and not what exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

E = TypeVar("E")


class Log(Generic[E]):
    """An append-only list of changes, trimmed at the front. A reader remembers `position` and later asks `since(position)`.

    Example:
        position = log.position
        ...                             # changes happen
        changes = log.since(position)   # None: too long ago, so everything is computed anew
    """

    def __init__(self, keep: int = 65536) -> None:
        """Start empty.

        Args:
            keep: entries that are kept at least. A reader that is further behind has to compute everything anew.
        """
        self._entries: list[E] = []
        self._base = 0
        self._keep = keep

    @property
    def position(self) -> int:
        """The position after the latest entry."""
        return self._base + len(self._entries)

    def append(self, entry: E) -> None:
        """Add a change."""
        self._entries.append(entry)
        # Trimmed by half: dropping one entry at a time would move the whole list each time.
        if len(self._entries) > 2 * self._keep:
            del self._entries[: self._keep]
            self._base += self._keep

    def since(self, position: int) -> Sequence[E] | None:
        """Return the changes after a position.

        Returns:
            The changes in order, with repeats; None when the log no longer has them all.
        """
        if position < self._base:
            return None
        return self._entries[position - self._base :]


#: Marking rows is cheaper than sorting entries from one entry for this many rows of the table on.
_WORTH_MARKING: Final = 512
_FIRST_ROOM: Final = 256


class Journal(Log[int]):
    """A log of changed rows in one array, because readers take thousands of entries at a time."""

    def __init__(self, keep: int = 65536) -> None:
        """Start empty.

        Args:
            keep: entries that are kept at least. A reader that is further behind has to compute everything anew.
        """
        super().__init__(keep)
        self._rows = np.zeros(min(_FIRST_ROOM, 2 * keep), np.intp)
        self._count = 0

    @property
    def position(self) -> int:
        """The position after the latest entry."""
        return self._base + self._count

    def append(self, entry: int) -> None:
        """Add a changed row."""
        if self._count == len(self._rows):
            self._make_room()
        self._rows[self._count] = entry
        self._count += 1

    def _make_room(self) -> None:
        """Double the array, up to twice the entries to be kept; from then on drop the oldest entries instead."""
        if self._count < 2 * self._keep:
            room = min(2 * self._count, 2 * self._keep)
            self._rows = np.concatenate([self._rows, np.zeros(room - self._count, np.intp)])
        else:
            # Moved within the array: in a ring buffer, the slice of a reader would be two pieces.
            self._rows[: self._count - self._keep] = self._rows[self._keep : self._count]
            self._count -= self._keep
            self._base += self._keep

    def since(self, position: int) -> Sequence[int] | None:
        """Return the rows that changed after a position.

        Returns:
            Rows in order, with repeats; None when the journal no longer has them all.
        """
        entries = self.entries_since(position)
        return None if entries is None else cast("list[int]", entries.tolist())

    def entries_since(self, position: int) -> NDArray[np.intp] | None:
        """Return the rows that changed after a position, without a copy.

        The array is read at once and never written: the next `append` may change it.

        Returns:
            Rows in order, with repeats; None when the journal no longer has them all.
        """
        if position < self._base:
            return None
        return self._rows[position - self._base : self._count]


def distinct(*changes: Sequence[int]) -> NDArray[np.intp]:
    """Return the distinct rows of several change lists, ascending, as an index array."""
    rows = set().union(*changes)
    return np.fromiter(sorted(rows), np.intp, len(rows))


def distinct_rows(entries: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Return the distinct rows among entries, ascending."""
    if len(entries) * _WORTH_MARKING < size:
        return np.unique(entries) if len(entries) > 1 else entries.copy()
    marked = np.zeros(size, np.bool_)
    marked[entries] = True
    return np.flatnonzero(marked)
