"""The three scoring strategies of NodeResourcesFit, on columns.

All divisions truncate, as upstream's integer arithmetic does; see `loads` for why floats may be divided. Source: kube-scheduler
`noderesources/{least,most}_allocated.go, requested_to_capacity_ratio.go`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placewright.framework.interface import MAX_NODE_SCORE, IntColumn
from placewright.plugins.noderesources.args import ScoringStrategy, ShapePoint
from placewright.plugins.noderesources.loads import Floats, Load

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
