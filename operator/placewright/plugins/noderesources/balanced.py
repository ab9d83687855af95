"""NodeResourcesBalancedAllocation: prefer nodes that the pod leaves more evenly used. Implements PreScore, Score.

S = 100·(1 − standard deviation of the used fractions); score = 50 + (50 + S with the pod − S without)/2, integer division.
Source: kube-scheduler 1.36 `balanced_allocation.go`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import PodInfo
from placewright.api.requests import is_scalar_resource
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    IntColumn,
    PreScorePlugin,
    Reads,
    Rows,
    ScorePlugin,
)
from placewright.framework.status import SKIP, SUCCESS, Status
from placewright.plugins.noderesources.args import BalancedAllocationArgs

NAME: Final = "NodeResourcesBalancedAllocation"
Fractions = NDArray[np.float64]
_HALF: Final = MAX_NODE_SCORE // 2


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Scores how evenly CPU, memory and whatever else is configured are used."""

    name = NAME
    Args = BalancedAllocationArgs
    reads = Reads.NODE_AND_ITS_PODS

    def sign(self, pod: PodInfo) -> Hashable:
        """What the pod really requests."""
        return frozenset(pod.requests.items())

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Skip pods that request none of the resources."""
        return SUCCESS if any(pod.requests.get(spec.name, 0) for spec in self.args.resources) else SKIP

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """50..100; 75 where the pod changes nothing."""
        with_pod, without, counted = [], [], []
        for spec in self.args.resources:
            own = pod.requests.get(spec.name, 0)
            if own == 0 and is_scalar_resource(spec.name):
                continue
            column = cluster.resources.column(spec.name)
            allocatable, requested = column.allocatable[rows], column.requested[rows]
            divisor = np.maximum(allocatable, 1)
            with_pod.append(np.minimum((requested + own) / divisor, 1.0))
            without.append(np.minimum(requested / divisor, 1.0))
            counted.append(allocatable > 0)
        if not counted:
            return np.full(len(rows), _HALF + _HALF // 2, np.int64)
        return _HALF + (_HALF + evenness(with_pod, counted) - evenness(without, counted)) // 2


def evenness(fractions: list[Fractions], counted: list[BoolColumn]) -> IntColumn:
    """100·(1 − standard deviation) over the counted fractions of each row; shape (rows,) int64.

    Summed resource by resource, in order, as upstream does: another order could round differently.
    """
    if len(fractions) == 2 and bool((counted[0] & counted[1]).all()):
        return ((1 - np.abs((fractions[0] - fractions[1]) / 2)) * MAX_NODE_SCORE).astype(np.int64)
    number = np.sum(counted, axis=0)
    divisor = np.maximum(number, 1)
    used = [np.where(c, f, 0.0) for f, c in zip(fractions, counted, strict=True)]
    mean = sum(used, np.zeros(len(number))) / divisor
    squares = sum((np.where(c, (f - mean) ** 2, 0.0) for f, c in zip(used, counted, strict=True)), np.zeros(len(number)))
    deviation = np.sqrt(squares / divisor)
    highest = np.max([np.where(c, f, -np.inf) for f, c in zip(fractions, counted, strict=True)], axis=0)
    lowest = np.min([np.where(c, f, np.inf) for f, c in zip(fractions, counted, strict=True)], axis=0)
    halves = np.abs((highest - lowest) / 2)
    deviation = np.select([number == 2, number > 2], [halves, deviation], 0.0)
    scores: IntColumn = ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)
    return scores
