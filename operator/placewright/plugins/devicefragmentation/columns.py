"""Columns of the measure: where pods of a mix may go, and what amount they can use. A change updates single rows.

They do not depend on the pod to be placed, so they are computed once for each change.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct
from placewright.framework.interface import IntColumn, Rows
from placewright.plugins.devicefragmentation.measure import BoolTable, FragmentationMeasure
from placewright.plugins.devicefragmentation.mix import ANY_NODE, demand_of


class UsefulColumn:
    """One number for each row; only changed rows are computed again."""

    def __init__(self) -> None:
        self._column: IntColumn = np.zeros(0, np.int64)
        self._positions = (-1, -1)

    def at(self, cluster: Cluster, rows: Rows, work_out: Callable[[Rows], IntColumn]) -> IntColumn:
        """Return the numbers of these rows. `work_out` computes any rows, and must be the same function each time."""
        if cluster.dry_run_rows():
            return work_out(rows)
        changed = self._changed(cluster)
        if len(changed):
            self._column[changed] = work_out(changed)
        return self._column[rows]

    def _changed(self, cluster: Cluster) -> Rows:
        nodes, pods = cluster.node_journal.since(self._positions[0]), cluster.pod_journal.since(self._positions[1])
        anew = nodes is None or pods is None or self._positions[0] < 0 or len(self._column) < cluster.size
        self._positions = (cluster.node_journal.position, cluster.pod_journal.position)
        if anew or nodes is None or pods is None:
            self._column = np.zeros(cluster.size, np.int64)
            return np.arange(cluster.size)
        return distinct(nodes, pods)


class SelectionTables:
    """Tables by row and distinct selection, True where the node matches. A changed node updates its row."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[FragmentationMeasure, _Table] = WeakKeyDictionary()

    def of(self, workload: FragmentationMeasure, cluster: Cluster) -> BoolTable:
        """Return the current table; shape (cluster.size or more, selections)."""
        table = self._kept.get(workload)
        if table is None:
            table = self._kept[workload] = _Table(workload)
        return table.current(cluster)


class _Table:
    def __init__(self, workload: FragmentationMeasure) -> None:
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
