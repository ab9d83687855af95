"""Which rows changed since when: the reason that a decision costs what changed and not what exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

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


class Journal(Log[int]):
    """The log of changed rows."""


def distinct(*changes: Sequence[int]) -> NDArray[np.intp]:
    """The distinct rows of several change lists, ascending, as an index array."""
    rows = set().union(*changes)
    return np.fromiter(sorted(rows), np.intp, len(rows))
