"""The three scoring strategies of NodeResourcesFit, on columns.

`requested` includes the incoming pod; `capacity` is allocatable. Both shape (rows,) int64, capacity > 0 where `counted`. All divisions
truncate, as upstream's integer arithmetic does. Source: kube-scheduler `noderesources/{least,most}_allocated.go,
requested_to_capacity_ratio.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.framework.interface import MAX_NODE_SCORE, BoolColumn, IntColumn
from placewright.plugins.noderesources.args import ScoringStrategy, ShapePoint


class Load(NamedTuple):
    """One resource as the pod would leave it."""

    requested: IntColumn
    capacity: IntColumn
    counted: BoolColumn
    weight: int


def strategy_score(strategy: ScoringStrategy, loads: Sequence[Load], rows: int) -> IntColumn:
    """The strategy's score a row, 0..100; rows where no resource counts get 0."""
    if strategy.type == "RequestedToCapacityRatio":
        shape = strategy.requested_to_capacity_ratio
        return _ratio_score(shape.shape if shape else (), loads, rows)
    most = strategy.type == "MostAllocated"
    total = np.zeros(rows, np.int64)
    weights = np.zeros(rows, np.int64)
    for load in loads:
        capacity = np.maximum(load.capacity, 1)
        used = np.minimum(load.requested, capacity)
        score = (used if most else capacity - used) * MAX_NODE_SCORE // capacity
        total += np.where(load.counted, score * load.weight, 0)
        weights += np.where(load.counted, load.weight, 0)
    return total // np.maximum(weights, 1)


def _ratio_score(shape: Sequence[ShapePoint], loads: Sequence[Load], rows: int) -> IntColumn:
    total = np.zeros(rows, np.int64)
    weights = np.zeros(rows, np.int64)
    for load in loads:
        capacity = np.maximum(load.capacity, 1)
        percent = np.where(load.requested > capacity, 100, load.requested * 100 // capacity)
        score = broken_linear(shape, percent)
        counted = load.counted & (score > 0)
        total += np.where(counted, score * load.weight, 0)
        weights += np.where(counted, load.weight, 0)
    ratio: NDArray[np.float64] = total / np.maximum(weights, 1)
    return np.floor(ratio + 0.5).astype(np.int64)


def broken_linear(shape: Sequence[ShapePoint], percent: IntColumn) -> IntColumn:
    """Piecewise linear through the points (scores times 10, so 0..100), flat outside them; shape like `percent`."""
    scores = [point.score * (MAX_NODE_SCORE // 10) for point in shape]
    result = np.full_like(percent, scores[-1])
    # From the last segment to the first, so that each row ends with the first segment that reaches it.
    for i in range(len(shape) - 1, 0, -1):
        x0, x1 = shape[i - 1].utilization, shape[i].utilization
        rise = (scores[i] - scores[i - 1]) * (percent - x0)
        truncated = np.sign(rise) * (np.abs(rise) // (x1 - x0))
        result = np.where(percent <= x1, scores[i - 1] + truncated, result)
    return np.where(percent <= shape[0].utilization, scores[0], result)
