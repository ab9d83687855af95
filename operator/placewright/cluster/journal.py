"""Which rows changed since when: the reason that a decision costs what changed and not what exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

E = TypeVar("E")


class Log(Generic[E]):
    """An append-only list of what changed, trimmed at the front.

    A reader remembers `position` and later asks `since(position)`.
    """

    def __init__(self, keep: int = 65536) -> None:
        """Keep at least `keep` entries; a reader further behind must recompute everything."""
        self._entries: list[E] = []
        self._base = 0
        self._keep = keep

    @property
    def position(self) -> int:
        """Where the log stands now."""
        return self._base + len(self._entries)

    def append(self, entry: E) -> None:
        """Note that this changed."""
        self._entries.append(entry)
        if len(self._entries) > 2 * self._keep:
            del self._entries[: self._keep]
            self._base += self._keep

    def since(self, position: int) -> Sequence[E] | None:
        """What changed since that position (with repeats), or None when that is longer ago than the log remembers."""
        if position < self._base:
            return None
        return self._entries[position - self._base :]


#: From one entry for so many rows of the table on it is cheaper to mark rows than to sort entries.
_WORTH_MARKING: Final = 512
_FIRST_ROOM: Final = 256


class Journal(Log[int]):
    """The log of changed rows, kept as an array, because readers come for thousands at a time."""

    def __init__(self, keep: int = 65536) -> None:
        """Keep at least `keep` entries; a reader further behind must recompute everything."""
        super().__init__(keep)
        self._rows = np.zeros(min(_FIRST_ROOM, 2 * keep), np.intp)
        self._count = 0

    @property
    def position(self) -> int:
        """Where the log stands now."""
        return self._base + self._count

    def append(self, entry: int) -> None:
        """Note that this row changed."""
        if self._count == len(self._rows):
            self._make_room()
        self._rows[self._count] = entry
        self._count += 1

    def _make_room(self) -> None:
        """Take more memory; from twice as many entries as are to be kept on, forget the oldest instead."""
        if self._count < 2 * self._keep:
            room = min(2 * self._count, 2 * self._keep)
            self._rows = np.concatenate([self._rows, np.zeros(room - self._count, np.intp)])
        else:
            self._rows[: self._count - self._keep] = self._rows[self._keep : self._count]
            self._count -= self._keep
            self._base += self._keep

    def since(self, position: int) -> Sequence[int] | None:
        """Rows that changed since that position (with repeats), or None when that is longer ago than the log remembers."""
        entries = self.entries_since(position)
        return None if entries is None else cast("list[int]", entries.tolist())

    def entries_since(self, position: int) -> NDArray[np.intp] | None:
        """The same as an array that is read at once, and not written: it is the log's own."""
        if position < self._base:
            return None
        return self._rows[position - self._base : self._count]


def distinct(*changes: Sequence[int]) -> NDArray[np.intp]:
    """The distinct rows of several change lists, ascending, as an index array."""
    rows = set().union(*changes)
    return np.fromiter(sorted(rows), np.intp, len(rows))


def distinct_rows(entries: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """The distinct rows among entries, each below `size`, ascending."""
    if len(entries) * _WORTH_MARKING < size:
        return np.unique(entries) if len(entries) > 1 else entries.copy()
    marked = np.zeros(size, np.bool_)
    marked[entries] = True
    return np.flatnonzero(marked)
