"""How much of each resource is taken on a node, in floats that are exact.

Division of int64 columns is slow in numpy (some 15 ns a row); of floats it is one instruction for several rows. It is exact for what is
rounded down or up afterwards: let a, b be integers with 0 <= a < 2^53 and 0 < b. Where a/b is no integer, it is at least 1/b away from the
next integer k. Rounding a/b to a float could only reach k from within k·2^-53, and k·2^-53 < 1/b as k·b <= a + b, which is below 2^53 for
amounts that a node has (`exact`). So floor and ceil of the rounded quotient are those of a/b.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.requests import CPU, MEMORY
from placewright.cluster.cluster import Cluster
from placewright.cluster.resources import ResourceColumn
from placewright.framework.interface import MAX_NODE_SCORE, BoolColumn, IntColumn, Rows
from placewright.plugins.shared.rowtable import RowTable

#: Up to so many rows are worked out one by one, in whole numbers, which takes 2 µs a row; a column of any length takes 60 µs and more.
FEW_ROWS: Final = 32
Floats = NDArray[np.floating[Any]]
#: Up to this much of a resource a hundredfold, and one node's capacity beside it, are exact in 53 bits: 45 TB of memory.
_EXACT: Final = 2**53 // (2 * MAX_NODE_SCORE)


def exact(column: ResourceColumn) -> type[np.floating[Any]]:
    """Floats in which a hundredfold of what nodes have of a resource is exact."""
    return np.float64 if column.largest <= _EXACT else np.longdouble


class Load(NamedTuple):
    """One resource as the pod would leave it.

    Attributes:
        used: a hundred times what is asked for on a node then.
        capacity: what the node has; infinity where it has none.
        counted: where it has any; None for everywhere.
    """

    used: Floats
    capacity: Floats
    counted: BoolColumn | None
    weight: int


class WholeNumbers(NamedTuple):
    """One resource by row, without the pod."""

    taken: IntColumn
    allocatable: IntColumn


class LoadTable(RowTable):
    """One resource without the pod, as scores count it."""

    def __init__(self, resource: str) -> None:
        super().__init__()
        self._resource = resource

    def whole(self, cluster: Cluster) -> WholeNumbers:
        """Requested amounts, as scores count them, and the offered amounts."""
        column = cluster.resources.column(self._resource)
        if self._resource == CPU:
            return WholeNumbers(cluster.scoring_cpu, column.allocatable)
        return WholeNumbers(cluster.scoring_memory if self._resource == MEMORY else column.requested, column.allocatable)

    def compute(self, cluster: Cluster, index: Rows | slice) -> Sequence[NDArray[Any]]:
        """Implements `RowTable.compute`: `used`, `capacity` and `counted` of a load that no pod is added to."""
        kind = exact(cluster.resources.column(self._resource))
        taken, allocatable = self.whole(cluster)
        offered = allocatable[index]
        counted = offered > 0
        capacity = offered.astype(kind)
        if not counted.all():
            capacity[~counted] = np.inf
        return taken[index].astype(kind) * MAX_NODE_SCORE, capacity, counted

    def load(self, cluster: Cluster, rows: Rows, own: int, weight: int) -> Load:
        """Add a pod to the load of rows.

        Args:
            cluster: as it stands.
            rows: shape (k,); all rows of the cluster are read from the kept table.
            own: the pod's request of this resource: milli-CPU, bytes, or a count.
            weight: of the resource in the score.

        Returns:
            Columns of shape (len(rows),). Only `used` is a new array: the others may be those of the kept table.
        """
        used, capacity, counted = self.current(cluster) if rows is cluster.all_rows else self.compute(cluster, rows)
        return Load(used + used.dtype.type(MAX_NODE_SCORE * own), capacity, None if counted.all() else counted, weight)
