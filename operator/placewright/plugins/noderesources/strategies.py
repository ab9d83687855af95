"""The three scoring strategies of NodeResourcesFit, on columns.

All divisions truncate, as upstream's integer arithmetic does; the end says why floats may be divided. Source: kube-scheduler
`noderesources/{least,most}_allocated.go, requested_to_capacity_ratio.go`.

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
from placewright.plugins.noderesources.args import ScoringStrategy, ShapePoint
from placewright.plugins.noderesources.served import WholeNumbers
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


def load_of(amounts: WholeNumbers, rows: Rows, own: int, weight: int) -> Load:
    """Add a pod's request to a load of counts, which are exact in floats."""
    capacity = amounts.allocatable[rows].astype(np.float64)
    counted = capacity > 0
    capacity[~counted] = np.inf
    used = (amounts.taken[rows] + own).astype(np.float64) * MAX_NODE_SCORE
    return Load(used, capacity, None if counted.all() else counted, weight)


_PERCENTS = np.arange(101)


def strategy_score(strategy: ScoringStrategy, loads: Sequence[Load], rows: int) -> IntColumn:
    """Score rows from 0 to 100 by a strategy; shape (rows,) int64. All divisions truncate.

    `loads` have the pod added. Rows without a resource that counts get 0.
    """
    if strategy.type == "RequestedToCapacityRatio":
        shape = strategy.requested_to_capacity_ratio
        return _ratio_score(shape.shape if shape else (), loads, rows)
    if not loads:
        return np.zeros(rows, np.int64)
    rate = _most if strategy.type == "MostAllocated" else _least
    parts = [_weighted(rate(load), load.weight) for load in loads]
    for part in parts[1:]:
        parts[0] += part
    weights = sum(load.weight if load.counted is None else load.weight * load.counted for load in loads)
    parts[0] /= np.maximum(weights, 1)
    return parts[0].astype(np.int64)


def score_of_row(strategy: ScoringStrategy, loads: Sequence[tuple[int, int, int]]) -> int:
    """Score one row as `strategy_score` does, for the strategies without a shape.

    `loads` has (used with the pod, capacity, weight) of each resource. A capacity of 0 does not count.
    """
    most = strategy.type == "MostAllocated"
    total = weights = 0
    for used, capacity, weight in loads:
        if capacity:
            taken = min(used, capacity)
            total += weight * ((taken if most else capacity - taken) * MAX_NODE_SCORE // capacity)
            weights += weight
    return total // weights if weights else 0


def _weighted(score: Floats, weight: int) -> Floats:
    if weight != 1:
        score *= weight
    return score


def _most(load: Load) -> Floats:
    """Compute ⌊100·used/capacity⌋, at most 100."""
    share = load.used / load.capacity
    np.floor(share, out=share)
    return np.minimum(share, MAX_NODE_SCORE, out=share)


def _least(load: Load) -> Floats:
    """Compute ⌊100·(capacity - used)/capacity⌋ = 100 - ⌈100·used/capacity⌉, at least 0."""
    share = load.used / load.capacity
    np.ceil(share, out=share)
    np.subtract(MAX_NODE_SCORE, share, out=share)
    np.maximum(share, 0, out=share)
    if load.counted is not None:
        share *= load.counted
    return share


def _ratio_score(shape: Sequence[ShapePoint], loads: Sequence[Load], rows: int) -> IntColumn:
    total = np.zeros(rows, np.int64)
    weights = np.zeros(rows, np.int64)
    by_percent = broken_linear(shape, _PERCENTS)
    for load in loads:
        score = by_percent[_most(load).astype(np.intp)]
        counted = score > 0 if load.counted is None else load.counted & (score > 0)
        total += np.where(counted, score * load.weight, 0)
        weights += np.where(counted, load.weight, 0)
    ratio: NDArray[np.float64] = total / np.maximum(weights, 1)
    return np.floor(ratio + 0.5).astype(np.int64)


def broken_linear(shape: Sequence[ShapePoint], percent: IntColumn) -> IntColumn:
    """Evaluate a shape at `percent`, 0 to 100: linear between its points and flat outside them.

    Return scores times 10, so 0 to 100, truncated toward the score of the segment's left end.
    """
    scores = [point.score * (MAX_NODE_SCORE // 10) for point in shape]
    result = np.full_like(percent, scores[-1])
    # The loop ends with the first segment, because the first segment that reaches a row decides.
    for i in range(len(shape) - 1, 0, -1):
        x0, x1 = shape[i - 1].utilization, shape[i].utilization
        rise = (scores[i] - scores[i - 1]) * (percent - x0)
        truncated = np.sign(rise) * (np.abs(rise) // (x1 - x0))
        result = np.where(percent <= x1, scores[i - 1] + truncated, result)
    return np.where(percent <= shape[0].utilization, scores[0], result)
