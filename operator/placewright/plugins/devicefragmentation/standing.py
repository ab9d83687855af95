"""What a workload finds of use on each row as it stands: the same for every pod that is to be placed, so worked out once a change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct
from placewright.framework.interface import IntColumn, Rows


class Standing:
    """One number a row, kept up to date row by row."""

    def __init__(self) -> None:
        self._column: IntColumn = np.zeros(0, np.int64)
        self._positions = (-1, -1)

    def at(self, cluster: Cluster, rows: Rows, work_out: Callable[[Rows], IntColumn]) -> IntColumn:
        """The numbers of these rows; `work_out` gives those of any rows, and must be the same function each time."""
        if cluster.supposed_rows():
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
