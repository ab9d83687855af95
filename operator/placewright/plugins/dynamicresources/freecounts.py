"""Simple demands, answered for all rows at once: how many devices that a pattern selects are free on each row.

Counts are kept by pattern and brought up to date row by row, so that a decision costs what changed since the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.journal import Journal
from placewright.plugins.dynamicresources.demands import ClaimDemand, Demand, DemandError
from placewright.plugins.dynamicresources.outlook import Outlook
from placewright.plugins.dynamicresources.usage import Usage

_MOST_PATTERNS: Final = 64
#: The count of a row on which only a search can tell: devices with counters, shares or rules, or a selector without an answer.
SEARCH: Final = -1


def simple_demand(claims: Sequence[ClaimDemand]) -> tuple[Demand, int] | None:
    """The one pattern that all these claims ask for, as a demand, and how many devices; None where it takes more to tell."""
    if any(claim.claim.spec.devices.constraints for claim in claims):
        return None
    requests = [request for claim in claims for request in claim.requests]
    demands = [request[0] for request in requests if len(request) == 1]
    if not demands or len(demands) < len(requests) or demands[0].pattern is None:
        return None
    if any(demand.pattern != demands[0].pattern for demand in demands):
        return None
    return demands[0], sum(demand.count for demand in demands)


def count_free(demand: Demand, outlook: Outlook, usage: Usage) -> int:
    """Free devices for this demand, or `SEARCH`."""
    free = 0
    for _, offer in outlook.offers:
        if usage.owned(offer.id) or (usage.shared(offer.id) and not offer.shared):
            continue
        try:
            if not demand.selects(offer):
                continue
        except DemandError:
            return SEARCH
        if not offer.plain:
            return SEARCH
        free += demand.tolerates(offer)
    return free


class FreeCounts:
    """Counts by pattern, for the patterns asked for most recently."""

    def __init__(self, journal: Journal) -> None:
        """Keep up with the rows that `journal` names."""
        self._journal = journal
        self._columns: dict[object, _Column] = {}

    def forget(self) -> None:
        """Everything has changed."""
        self._columns.clear()

    def ask(self, demand: Demand, size: int, count: Callable[[int], int]) -> NDArray[np.int64]:
        """Counts of this demand's pattern, shape (size,); `count` is asked for rows that changed."""
        column = self._columns.pop(demand.pattern, None) or _Column()
        self._columns[demand.pattern] = column  # at the end: the first ones were asked for longest ago
        if len(self._columns) > _MOST_PATTERNS:
            del self._columns[next(iter(self._columns))]
        changed = None if column.position < 0 else self._journal.since(column.position)
        column.grow(size)
        for row in range(size) if changed is None else {row for row in changed if row < size}:
            column.counts[row] = count(row)
        column.position = self._journal.position  # at last: `count` may fail
        return column.counts[:size]


class _Column:
    __slots__ = ("counts", "position")

    def __init__(self) -> None:
        self.counts = np.zeros(0, np.int64)
        self.position = -1

    def grow(self, size: int) -> None:
        if len(self.counts) < size:
            self.counts = np.concatenate([self.counts, np.zeros(2 * size - len(self.counts), np.int64)])
