"""NodeResourcesBalancedAllocation: prefers nodes that the pod leaves more evenly used. Implements PreScore, Score.

S = 100·(1 − standard deviation of the used fractions); score = 50 + (50 + S with the pod − S without)/2, integer division.
Source: kube-scheduler 1.36 `balanced_allocation.go`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import PodInfo
from placewright.api.requests import is_scalar_resource
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    Handle,
    IntColumn,
    PreScorePlugin,
    Reads,
    Rows,
    ScorePlugin,
)
from placewright.framework.status import SKIP, SUCCESS, Status
from placewright.plugins.noderesources.args import BalancedAllocationArgs
from placewright.plugins.noderesources.served import DeviceBackedResources, WholeNumbers
from placewright.plugins.noderesources.strategies import FEW_ROWS
from placewright.plugins.shared.rowtable import RowTable

Fractions = NDArray[np.float64]
_HALF: Final = MAX_NODE_SCORE // 2
_A_PAIR: Final = 2


class NodeResourcesBalancedAllocation(PreScorePlugin[BalancedAllocationArgs], ScorePlugin):
    """Scores how evenly CPU, memory and other configured resources are used."""

    name = "NodeResourcesBalancedAllocation"
    reads = Reads.NODE_AND_ITS_PODS

    @classmethod
    def counted_resources(cls, args: BalancedAllocationArgs) -> tuple[str, ...]:
        """Name the resources that are balanced."""
        return tuple(each.name for each in args.resources)

    def __init__(self, args: BalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        #: Tables by the resources that count for a pod: one for each combination of the profile's resources at most.
        self._served = DeviceBackedResources(handle, self.counted_resources(args))
        self._tables: dict[tuple[str, ...], _BalanceTable] = {}

    def sign(self, pod: PodInfo) -> Hashable | None:
        """Sign the pod by its requests, without defaults; None if devices serve any that is scored."""
        return None if self._served.of(pod) else frozenset(pod.requests.items())

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Skip pods that request none of the resources."""
        return SUCCESS if any(pod.requests.get(spec.name, 0) for spec in self.args.resources) else SKIP

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Score rows from 50 to 100; 75 if the pod changes nothing."""
        own = {spec.name: pod.requests.get(spec.name, 0) for spec in self.args.resources}
        counting = tuple([name for name, amount in own.items() if amount or not is_scalar_resource(name)])
        if not counting:
            return np.full(len(rows), _HALF + _HALF // 2, np.int64)
        served = self._served.of(pod)
        if served:
            amounts = {name: self._served.amounts(each, cluster, _offered(cluster, name)) for name, each in served.items()}
            return _BalanceTable(counting, amounts).scores(cluster, rows, [own[name] for name in counting])
        table = self._tables.get(counting) or self._tables.setdefault(counting, _BalanceTable(counting))
        return table.scores(cluster, rows, [own[name] for name in counting])


def _offered(cluster: Cluster, name: str) -> WholeNumbers:
    column = cluster.resources.column(name)
    return WholeNumbers(column.requested, column.allocatable)


class _Balance(NamedTuple):
    """The resources that count for a pod, by node: requested amounts, divisors (at least 1), and whether the node has any.

    `counted` is None if all nodes have all of them.
    """

    requested: Sequence[Fractions]
    divisors: Sequence[Fractions]
    counted: Sequence[BoolColumn] | None


class _BalanceTable(RowTable):
    """A balance without the pod: its columns one after the other, and last the evenness.

    `amounts` has resources that devices serve.
    """

    def __init__(self, resources: Sequence[str], amounts: Mapping[str, WholeNumbers] | None = None) -> None:
        super().__init__()
        self._resources = resources
        self._amounts = amounts or {}

    def compute(self, cluster: Cluster, index: Rows | slice) -> Sequence[NDArray[Any]]:
        """Return requested, divisor and counted of each resource, and last 100·(1 - standard deviation), truncated, in floats."""
        found: list[NDArray[Any]] = []
        for name in self._resources:
            taken, offered = self._amounts.get(name) or _offered(cluster, name)
            allocatable = offered[index]
            found += [taken[index].astype(np.float64), np.maximum(allocatable, 1).astype(np.float64), allocatable > 0]
        return [*found, _evenness_with(self._balance(found), [0.0] * len(self._resources))]

    def scores(self, cluster: Cluster, rows: Rows, own: Sequence[int]) -> IntColumn:
        """Score rows with a pod that requests these amounts."""
        if len(rows) <= FEW_ROWS:
            return np.array([self._score_of_row(cluster, row, own) for row in rows.tolist()], np.int64)
        *columns, before = self.current(cluster) if rows is cluster.all_rows else self.compute(cluster, rows)
        gained = _evenness_with(self._balance(columns), [float(amount) for amount in own])
        gained -= before
        gained += _HALF
        gained *= 0.5
        np.floor(gained, out=gained)
        gained += _HALF
        return gained.astype(np.int64)

    def _score_of_row(self, cluster: Cluster, row: int, own: Sequence[int]) -> int:
        with_pod, without = [], []
        for name, amount in zip(self._resources, own, strict=True):
            taken, offered = self._amounts.get(name) or _offered(cluster, name)
            allocatable = offered.item(row)
            if allocatable:
                requested = taken.item(row)
                with_pod.append(min((requested + amount) / allocatable, 1.0))
                without.append(min(requested / allocatable, 1.0))
        return _HALF + (_HALF + _evenness_of_row(with_pod) - _evenness_of_row(without)) // 2

    @staticmethod
    def _balance(columns: Sequence[NDArray[Any]]) -> _Balance:
        counted = columns[2::3]
        return _Balance(columns[0::3], columns[1::3], None if all(each.all() for each in counted) else counted)


def _evenness_with(balance: _Balance, own: Sequence[float]) -> Fractions:
    fractions = []
    for requested, divisor, more in zip(balance.requested, balance.divisors, own, strict=True):
        share = requested + more
        share /= divisor
        fractions.append(np.minimum(share, 1.0, out=share))
    if len(fractions) == _A_PAIR and balance.counted is None:
        return _evenness_of_two(*fractions)
    counted = balance.counted or [np.ones(len(each), np.bool_) for each in fractions]
    return evenness(fractions, counted).astype(np.float64)


def _evenness_of_row(fractions: Sequence[float]) -> int:
    """Compute `evenness` of one row from the fractions that count there."""
    if len(fractions) < _A_PAIR:
        return MAX_NODE_SCORE
    if len(fractions) == _A_PAIR:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    else:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum([(fraction - mean) * (fraction - mean) for fraction in fractions]) / len(fractions))
    return int((1 - deviation) * MAX_NODE_SCORE)


def _evenness_of_two(one: Fractions, other: Fractions) -> Fractions:
    """Compute `evenness` of two fractions that count everywhere, in upstream's order of operations; changes its arguments."""
    one -= other
    np.abs(one, out=one)
    one /= 2
    np.subtract(1, one, out=one)
    one *= MAX_NODE_SCORE
    return np.floor(one, out=one)


def evenness(fractions: Sequence[Fractions], counted: Sequence[BoolColumn]) -> IntColumn:
    """Score how evenly the resources of each row are used: 100·(1 - standard deviation) over the fractions that count.

    Fractions are summed resource by resource, in order, as kube-scheduler does, because another order could round differently. Rows with
    fewer than two counted fractions get 100. All shapes are (rows,), the result is int64.
    """
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
