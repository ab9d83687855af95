"""A percentage of nodes: filters are asked, from where the last pod stopped, until enough nodes are found, and scores of these alone.

Columns that pods which look alike share are not touched: a pod that is the only one of its kind needs no columns of all nodes.
Source: kube-scheduler `schedule_one.go`, `findNodesThatPassFilters` and `numFeasibleNodesToFind`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, CycleState, FilterPlugin, IntColumn, Rows, ScorePlugin
from placewright.framework.runtime.podcolumns import (
    NOT_FEASIBLE,
    NOTHING_SCORED,
    PodColumns,
    Summaries,
    Totals,
    check_range,
)
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.steps import FILTER, SCORE

_MIN_FEASIBLE_TO_FIND: Final = 100
#: Rows of the first window beyond the wanted number, in case some cannot hold the pod.
_SPARE: Final = 64


def nodes_to_find(nodes: int, percentage: int) -> int:
    """Say how many feasible nodes are enough; kube-scheduler's `numFeasibleNodesToFind` with a percentage set.

    Args:
        nodes: number of nodes to look at.
        percentage: 1 to 100, the profile's.

    Returns:
        All of fewer than 100 nodes; else the percentage, and at least 100.
    """
    if nodes < _MIN_FEASIBLE_TO_FIND:
        return nodes
    return max(nodes * percentage // 100, _MIN_FEASIBLE_TO_FIND)


def candidate_count(cluster: Cluster, candidates: frozenset[NodeName] | None) -> int:
    """Count the nodes that there are to look at.

    Args:
        cluster: the cluster as it stands.
        candidates: names of nodes; None: all nodes.
    """
    return cluster.node_count if candidates is None else sum(cluster.row(name) is not None for name in candidates)


class Sampler:
    """Narrows feasible rows to the first k in rotation, so that successive pods look at different nodes."""

    def __init__(self) -> None:
        self._start = 0

    def narrow(self, feasible: BoolColumn, nodes: int, percentage: int) -> BoolColumn:
        """Keep the first feasible rows from where the last pod stopped.

        Args:
            feasible: a mask, shape (size,).
            nodes: number of nodes that were looked at.
            percentage: the profile's.

        Returns:
            A mask with at most `nodes_to_find` rows; shape (size,).
        """
        wanted, size = nodes_to_find(nodes, percentage), len(feasible)
        rows = np.flatnonzero(feasible)
        rows = np.roll(rows, -int(np.searchsorted(rows, self._start % max(size, 1))))
        narrowed = np.zeros(size, np.bool_)
        narrowed[self._stop(rows, wanted)] = True
        return narrowed

    def _stop(self, found: Rows, wanted: int) -> Rows:
        """Take the first of these rows, which are in the order of rotation. The next pod begins behind them."""
        if len(found) > wanted:
            self._start = int(found[wanted])
        return found[:wanted]

    def search(self, passing: Callable[[Rows], Rows], size: int, wanted: int) -> Rows:
        """Look at rows from where the last pod stopped, until enough pass.

        Args:
            passing: takes rows and returns those of them that pass, in their order.
            size: number of rows.
            wanted: number of rows that are enough.

        Returns:
            The rows that pass, ascending; `wanted` at most.
        """
        found: list[Rows] = []
        number = 0
        for rows in self._windows(size, wanted):
            left = passing(rows)
            found.append(left)
            number += len(left)
            # One more than wanted, because the next pod begins at the first row that was left over.
            if number > wanted:
                break
        return np.sort(self._stop(np.concatenate(found), wanted))

    def _windows(self, size: int, wanted: int) -> Iterator[Rows]:
        """All rows once, in the order of rotation, piece by piece."""
        length = wanted + wanted // 16 + _SPARE
        start = self._start % size
        for begin, end in ((start, size), (0, start)):
            for at in range(begin, end, length):
                yield np.arange(at, min(at + length, end))


def passing(plugins: Sequence[FilterPlugin], state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Rows:
    """Filter rows, each plugin asked about what those before it left.

    Args:
        plugins: filters in run order.
        state: the state that PreFilter left.
        pod: the pod of the attempt.
        cluster: the cluster as it stands.
        rows: shape (k,).

    Returns:
        The rows that pass all filters, in their order.
    """
    for plugin in plugins:
        if not len(rows):
            break
        passes = state.steps.ask(plugin.name, FILTER, plugin.filter, state, pod, cluster, rows)
        if not passes.all():
            rows = rows[passes]
    return rows


class SampledColumns(PodColumns):
    """The scores of a few rows, for one pod.

    Nothing about rows is kept. What plugins say of the pod alone is shared with the kept columns.
    """

    def __init__(self, runtime: ProfileRuntime, kept: PodColumns, rows: Rows, size: int) -> None:
        super().__init__(runtime)
        self.data, self.pre_filter_results, self.pre_score_results = kept.data, kept.pre_filter_results, kept.pre_score_results
        self.fits = np.zeros(size, np.bool_)
        self.fits[rows] = True
        self._fitting_rows = rows
        self._rows = rows
        self._sampled: dict[str, IntColumn] = {}

    def refresh_scores(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        """Score the rows that were found."""
        for plugin in self._local_scores(state):
            self._sampled[plugin.name] = state.steps.ask(plugin.name, SCORE, plugin.score, state, pod, cluster, self._rows)
        self.totals, self.summaries = self.totals_among(state, self.fits)

    def totals_among(self, state: CycleState, feasible: BoolColumn) -> tuple[Totals, Summaries]:
        """Sum the scores of the rows that were found."""
        among = feasible[self._rows]
        summaries: Summaries = {}
        total = np.zeros(int(np.count_nonzero(among)), np.int64)
        for plugin in self._local_scores(state):
            raw = self._sampled[plugin.name][among]
            summary = summaries[plugin.name] = plugin.summarise(state, raw) if plugin.normalised else None
            scores = raw if summary is None else plugin.normalise(state, raw, summary)
            check_range(plugin, scores, self._runtime.failures)
            total += self._runtime.weight(plugin) * scores
        totals: Totals = np.full(len(feasible), NOT_FEASIBLE, self._runtime.totals_kind)
        totals[self._rows[among]] = total
        return totals, summaries

    def local_score(self, plugin: ScorePlugin, state: CycleState, rows: Rows, summary: object) -> tuple[IntColumn, IntColumn]:
        """Return a plugin's scores of rows that were found."""
        raw = self._sampled[plugin.name][np.searchsorted(self._rows, rows)]
        return raw, raw if summary is None else plugin.normalise(state, raw, summary)

    def cluster_score(self, plugin: ScorePlugin, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> IntColumn:
        """Score these rows alone, because no other row is asked about."""
        scores = state.steps.ask(plugin.name, SCORE, plugin.score, state, pod, cluster, feasible)
        return scores if plugin.normalised or scores.any() else NOTHING_SCORED
