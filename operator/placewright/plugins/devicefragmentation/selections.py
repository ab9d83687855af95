"""Which nodes the pods of a workload may go to, by their node selectors and required node affinity."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct
from placewright.framework.interface import Rows
from placewright.plugins.devicefragmentation.shapes import ANY_NODE, demand_of
from placewright.plugins.devicefragmentation.workload import BoolTable, Workload


class Selections:
    """By row and distinct selection, kept up to date row by row; only nodes' labels matter."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Workload, _Table] = WeakKeyDictionary()

    def of(self, workload: Workload, cluster: Cluster) -> BoolTable:
        """Shape (cluster.size or more, selections)."""
        table = self._kept.get(workload)
        if table is None:
            table = self._kept[workload] = _Table(workload)
        return table.current(cluster)


class _Table:
    def __init__(self, workload: Workload) -> None:
        self._demands = [demand_of(selection) for selection in workload.selections]
        self._unselective = set(workload.selections) <= {ANY_NODE}
        self._selected: BoolTable = np.zeros((0, len(self._demands)), np.bool_)
        self._position = -1

    def current(self, cluster: Cluster) -> BoolTable:
        position = cluster.node_journal.position
        if position == self._position:
            return self._selected
        changed = cluster.node_journal.since(self._position) if self._position >= 0 else None
        self._position = position
        if changed is None or len(self._selected) < cluster.size:
            self._selected = np.ones((cluster.size, len(self._demands)), np.bool_)
            self._fill(cluster, np.arange(cluster.size))
        else:
            self._fill(cluster, distinct(changed))
        return self._selected

    def _fill(self, cluster: Cluster, rows: Rows) -> None:
        if not self._unselective:
            for index, demand in enumerate(self._demands):
                self._selected[rows, index] = demand.column(cluster, rows)
