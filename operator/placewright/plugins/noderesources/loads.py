"""The used part of each resource on a node, in floats that are exact.

Division of int64 columns is slow in numpy (about 15 ns a row). Floats are divided several rows an instruction. The result is exact if it is
rounded down or up afterwards. Let a, b be integers with 0 <= a < 2^53 and 0 < b. If a/b is no integer, it is at least 1/b away from the
next integer k. Rounding a/b to a float could reach k only from within k·2^-53. For amounts of a node k·b <= a + b < 2^53 holds (`exact`),
and so k·2^-53 < 1/b. So floor and ceil of the rounded quotient are those of a/b.
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

#: Most rows that are computed one by one in integers, 2 µs a row; a column of any length takes 60 µs and more.
FEW_ROWS: Final = 32
Floats = NDArray[np.floating[Any]]
#: A hundred times this amount, and one node's capacity in addition, are exact in 53 bits: 45 TB of memory.
_EXACT: Final = 2**53 // (2 * MAX_NODE_SCORE)


def exact(column: ResourceColumn) -> type[np.floating[Any]]:
    """Return floats in which a hundred times any node's amount of a resource is exact."""
    return np.float64 if column.largest <= _EXACT else np.longdouble


class Load(NamedTuple):
    """One resource with the pod added.

    Attributes:
        used: a hundred times the requested amount on a node.
        capacity: amount that the node has; infinity if it has none.
        counted: whether the node has any; None if all nodes do.
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
        """Return requested amounts, as scores count them, and allocatable amounts."""
        column = cluster.resources.column(self._resource)
        if self._resource == CPU:
            return WholeNumbers(cluster.scoring_cpu, column.allocatable)
        return WholeNumbers(cluster.scoring_memory if self._resource == MEMORY else column.requested, column.allocatable)

    def compute(self, cluster: Cluster, index: Rows | slice) -> Sequence[NDArray[Any]]:
        """Compute `used`, `capacity` and `counted` of a load without a pod."""
        kind = exact(cluster.resources.column(self._resource))
        taken, allocatable = self.whole(cluster)
        offered = allocatable[index]
        counted = offered > 0
        capacity = offered.astype(kind)
        if not counted.all():
            capacity[~counted] = np.inf
        return taken[index].astype(kind) * MAX_NODE_SCORE, capacity, counted

    def load(self, cluster: Cluster, rows: Rows, own: int, weight: int) -> Load:
        """Add a pod's request of milli-CPU, bytes or a count to the load of rows.

        Columns have shape (len(rows),). Only `used` is a new array; the others may belong to the kept table.
        """
        used, capacity, counted = self.current(cluster) if rows is cluster.all_rows else self.compute(cluster, rows)
        return Load(used + used.dtype.type(MAX_NODE_SCORE * own), capacity, None if counted.all() else counted, weight)
