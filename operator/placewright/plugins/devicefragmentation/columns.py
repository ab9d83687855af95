"""Columns of the measure: where pods of a mix may go, and what amount they can use. A change updates single rows.

They do not depend on the pod to be placed, so they are computed once for each change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from placewright.cluster.cluster import Cluster
from placewright.framework.interface import IntColumn, Reads, Rows
from placewright.plugins.devicefragmentation.mix import ANY_NODE, BoolTable, demand_of
from placewright.plugins.nodeaffinity import RequiredNodeAffinity
from placewright.plugins.shared.rowtable import RowTable


class UsefulColumn(RowTable):
    """The usable amount of each row."""

    def __init__(self, work_out: Callable[[Cluster, Rows], IntColumn]) -> None:
        super().__init__()
        self._work_out = work_out

    def compute(self, cluster: Cluster, index: Rows | slice) -> Sequence[IntColumn]:
        """Compute the amounts of these rows."""
        return (self._work_out(cluster, cluster.all_rows[index]),)


class SelectionTable(RowTable):
    """A table by row and distinct selection, True where the node matches."""

    reads = Reads.NODE

    def __init__(self, selections: Sequence[bytes]) -> None:
        super().__init__()
        self._selections = selections

    @cached_property
    def _demands(self) -> list[RequiredNodeAffinity | None]:
        return [None if selection == ANY_NODE else demand_of(selection) for selection in self._selections]

    def compute(self, cluster: Cluster, index: Rows | slice) -> Sequence[BoolTable]:
        """Match these rows; shape (rows, selections)."""
        rows = cluster.all_rows[index]
        selected = np.ones((len(rows), len(self._demands)), np.bool_)
        for column, demand in enumerate(self._demands):
            if demand is not None:
                selected[:, column] = demand.column(cluster, rows)
        return (selected,)
