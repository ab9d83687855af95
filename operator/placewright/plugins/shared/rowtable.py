"""Columns that do not depend on the pod to be placed: filled once, then updated in rows that changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Reads, Rows
from placewright.framework.runtime.changedrows import NOTHING_READ, ChangedRows


class RowTable(ABC):
    """Some columns over all rows.

    `reads` says whether they depend on the pods of a row, too.

    They follow the journals, which do not have the changes of a dry run. Callers that ask about single rows read the cluster itself.
    """

    reads: ClassVar[Reads] = Reads.NODE_AND_ITS_PODS

    def __init__(self) -> None:
        self._changes = ChangedRows()
        self._read = NOTHING_READ
        self._cluster: Cluster | None = None
        self._size = -1
        self._columns: Sequence[NDArray[Any]] = ()

    @abstractmethod
    def compute(self, cluster: Cluster, index: Rows | slice) -> Sequence[NDArray[Any]]:
        """Compute the columns of these rows, each a new array."""

    def current(self, cluster: Cluster) -> Sequence[NDArray[Any]]:
        """Return the current columns, each of shape (size,); not to be written."""
        now = self._changes.look(cluster)
        if self._read is not now or cluster is not self._cluster:
            alike = cluster is self._cluster and cluster.size == self._size
            self._follow(cluster, self._changes.since(cluster, self._read, self.reads) if alike else None)
            self._read, self._cluster, self._size = now, cluster, cluster.size
        return self._columns

    def _follow(self, cluster: Cluster, rows: Rows | None) -> None:
        if rows is not None and not len(rows):
            return
        mended = () if rows is None else self.compute(cluster, rows)
        if rows is None or any(column.dtype != values.dtype for column, values in zip(self._columns, mended, strict=True)):
            self._columns = self.compute(cluster, slice(0, cluster.size))
            return
        for column, values in zip(self._columns, mended, strict=True):
            column[rows] = values
