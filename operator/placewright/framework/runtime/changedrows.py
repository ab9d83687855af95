"""Finds the rows whose columns are out of date: each row that changed since the columns were read last, once.

Parts of columns that were read at the same time ask for the same rows. So answers are kept until the next change.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct_rows
from placewright.framework.interface import Reads, Rows

#: If more than one row in four changed, computing the whole column is cheaper than picking rows.
_ONE_IN: Final = 4
#: Rows from which on that holds; smaller columns are mended in any case.
_SMALL: Final = 1024


class Positions(NamedTuple):
    """Where a reader stopped in the journals of nodes and of pods."""

    nodes: int
    pods: int


#: The positions of a reader that has read nothing yet.
NOTHING_READ: Final = Positions(-1, -1)


class ChangedRows:
    """The rows of one cluster that changed since a reader stopped.

    Attributes:
        now: positions of the journals at the last `look`; the same object as long as nothing changes.
    """

    def __init__(self) -> None:
        self.now = NOTHING_READ
        self._known: dict[tuple[int, int], Rows | None] = {}

    def look(self, cluster: Cluster) -> Positions:
        """Note where the journals stand. Called before anything is asked for one pod, so that all its columns see the same changes.

        Returns:
            The positions; the same object as long as nothing changed.
        """
        nodes, pods = cluster.node_journal.position, cluster.pod_journal.position
        if self.now != (nodes, pods):
            self._move_on(Positions(nodes, pods))
        return self.now

    def _move_on(self, now: Positions) -> None:
        self.now = now
        self._known.clear()

    def since(self, cluster: Cluster, read: Positions, reads: Reads = Reads.NODE_AND_ITS_PODS) -> Rows | None:
        """Find the rows that changed since a reader stopped.

        Args:
            cluster: the cluster, as for `look`.
            read: positions where the reader stopped.
            reads: the reader's `Reads`; changes of pods are passed over for `NODE`.

        Returns:
            Rows, ascending, shape (k,); None if all rows are to be asked about, because the journal forgot or most rows changed.
        """
        # Who reads nodes alone has read all changes of pods.
        asked = (read.nodes, self.now.pods if reads is Reads.NODE else read.pods)
        # Some twenty parts of a column ask for the same rows after each placement.
        if asked not in self._known:
            self._known[asked] = _rows_since(cluster, *asked)
        return self._known[asked]


def _rows_since(cluster: Cluster, node_position: int, pod_position: int) -> Rows | None:
    nodes, pods = cluster.node_journal.entries_since(node_position), cluster.pod_journal.entries_since(pod_position)
    if nodes is None or pods is None:
        return None
    rows = distinct_rows(np.concatenate([nodes, pods]) if len(nodes) else pods, cluster.size)
    return None if len(rows) * _ONE_IN > cluster.size >= _SMALL else rows
