"""Hard constraints with one row changed, and the skew that results."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.cluster import Cluster
from placewright.framework.filters import RowwiseCounts
from placewright.framework.interface import BoolColumn, Rows
from placewright.framework.status import Status
from placewright.framework.topology import MISSING, Codes
from placewright.plugins.podtopologyspread.constraints import Constraint
from placewright.plugins.podtopologyspread.layout import Field

_UNLIMITED: Final = np.iinfo(np.int64).max


class RowwiseSkew:
    """One hard constraint as a `topology.Rule`. A row that the inclusion policies exclude changes no count."""

    def __init__(self, constraint: Constraint, field: Field, cluster: Cluster, denied: Status, missing: Status) -> None:
        self.codes: Codes = field.codes
        self.denied = denied
        self.missing = missing
        self._constraint = constraint
        self._counts_in_domain: BoolColumn = field.counting.codes != field.count
        self._counts = RowwiseCounts(cluster, constraint.counted, field.counting.codes, field.count + 1)
        self._enough = len(field.recorded) >= max(constraint.min_domains, 1)
        self._least_elsewhere = _least_of_others(self._counts.before, field)
        self._recorded = np.zeros(field.count, np.bool_)
        self._recorded[field.recorded] = True

    def allows(self, rows: Rows) -> BoolColumn:
        """Allow rows where the pod added would not exceed the skew."""
        codes, counting = self.codes[rows], self._counts_in_domain[rows]
        here = self._counts.before[codes] + np.where(counting, self._counts.change(rows), 0)
        skew = here + self._constraint.counts_itself
        if self._enough:
            skew -= np.minimum(self._least_elsewhere[codes], np.where(self._recorded[codes], here, _UNLIMITED))
        allowed: BoolColumn = (skew <= self._constraint.max_skew) & (codes != MISSING)
        return allowed


def _least_of_others(counts: NDArray[np.int64], field: Field) -> NDArray[np.int64]:
    """Return by code the lowest count of all other recorded domains; shape (field.count,)."""
    recorded = field.recorded
    if len(recorded) == 0:
        return np.full(field.count, _UNLIMITED)
    order = recorded[np.argsort(counts[recorded], kind="stable")]
    least = np.full(field.count, counts[order[0]])
    least[order[0]] = counts[order[1]] if len(order) > 1 else _UNLIMITED
    return least
