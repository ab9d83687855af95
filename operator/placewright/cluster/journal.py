"""Which rows changed since when: the reason that a decision costs what changed and not what exists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Journal:
    """An append-only list of changed rows, trimmed at the front.

    A reader remembers `position` and later asks `since(position)`.
    """

    def __init__(self, keep: int = 65536) -> None:
        """Keep at least `keep` entries; a reader further behind must recompute everything."""
        self._rows: list[int] = []
        self._base = 0
        self._keep = keep

    @property
    def position(self) -> int:
        """Where the journal stands now."""
        return self._base + len(self._rows)

    def append(self, row: int) -> None:
        """Note that this row changed."""
        self._rows.append(row)
        if len(self._rows) > 2 * self._keep:
            del self._rows[: self._keep]
            self._base += self._keep

    def since(self, position: int) -> Sequence[int] | None:
        """Rows changed since that position (with repeats), or None when that is longer ago than the journal remembers."""
        if position < self._base:
            return None
        return self._rows[position - self._base :]


def distinct(*changes: Sequence[int]) -> NDArray[np.intp]:
    """The distinct rows of several change lists, ascending, as an index array."""
    rows = set().union(*changes)
    return np.fromiter(sorted(rows), np.intp, len(rows))
