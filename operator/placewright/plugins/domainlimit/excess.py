"""Scores of preferred limits: by how many pods a node's domains would exceed them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.framework.topology import Domains, tally_of
from placewright.plugins.domainlimit.limits import Limit
from placewright.plugins.domainlimit.rules import LimitedPlace
from placewright.plugins.shared.lookups import at

#: Raw score of nodes that lack the label of a limit; normalised to 0.
IGNORED: Final = -1


class Excess:
    """Pods in excess of all preferred limits, by row.

    Attributes:
        matters: whether any node is better than another.
        lowest: lowest raw score of a node: `IGNORED` if some node lacks a label, else 0.
    """

    def __init__(self, limits: Iterable[tuple[Limit, LimitedPlace]], cluster: Cluster) -> None:
        """Count the pods as they are now, with the pod to be placed added."""
        self._by_row: IntColumn | None = None
        self._lacking: BoolColumn | None = None
        for limit, place in limits:
            self._add(limit, place.domains, cluster)
            if not place.everywhere:
                lacking = ~place.domains.labelled
                self._lacking = lacking if self._lacking is None else self._lacking | lacking
        self.matters = self._by_row is not None or self._lacking is not None
        self.lowest = 0 if self._lacking is None else IGNORED
        self._size = cluster.size

    def of(self, rows: Rows) -> IntColumn:
        """Return the raw score of these rows, which ascend; shape (len(rows),)."""
        raw = np.zeros(self._size, np.int64) if self._by_row is None else self._by_row
        if self._lacking is not None:
            raw = np.where(self._lacking, IGNORED, raw)
        return at(raw, rows)

    def _add(self, limit: Limit, place: Domains, cluster: Cluster) -> None:
        tally = tally_of(cluster, limit.pods)
        room = limit.most - 1
        if place.single:
            if len(place.full_rows(tally, limit.most)):
                rows, counts = place.rows_with(tally)
                self._total(cluster.size)[rows] += np.maximum(counts - room, 0)
            return
        by_code = np.maximum(place.pods(tally) - room, 0)
        if by_code.any():
            self._total(cluster.size)[:] += by_code[place.codes]

    def _total(self, size: int) -> IntColumn:
        if self._by_row is None:
            self._by_row = np.zeros(size, np.int64)
        return self._by_row
