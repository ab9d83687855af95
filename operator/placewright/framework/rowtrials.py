"""Many rows, each changed hypothetically, checked together: what preemption's trials ask, hundreds of nodes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState, FilterPlugin, Reads, Rejection, RowChecks, Rows
from placewright.framework.prefiltering import PreFiltered, outside, pre_filter, rows_named
from placewright.framework.rowwise import FilterAsJudge, Judge, JudgesApart
from placewright.framework.runtime.podcolumns import PodColumns
from placewright.framework.runtime.profileruntime import ProfileRuntime

_NO_ROWS: Final[Rows] = np.zeros(0, np.intp)


class _Named(NamedTuple):
    """A filter's judge, under the filter's name."""

    plugin: str
    judge: Judge


class _Verdict(NamedTuple):
    """Rows that no judge rejects, and the others with why."""

    passing: Rows
    rejections: list[Rejection]


class TrialsOfRows:
    """Implements `interface.RowTrials` for one pod. As upstream, PreFilter is run once, before anything is changed.

    A filter that reads the cluster and cannot judge rows apart is left out, with all filters after it: then no row is settled that passes
    those before it.
    """

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, pod: PodInfo, nominated: Mapping[int, Sequence[PodInfo]]) -> None:
        """`nominated`: by row, pods of at least this pod's priority that are nominated to that node. Raises `CycleError`."""
        self._runtime = runtime
        self._cluster = cluster
        self._pod = pod
        self._nominated = nominated
        beside_nominated = self._filters_beside_nominated() if nominated else None  # first, so that what these pods carry is known
        state = CycleState()
        refusal, candidates, self._narrowed_by = self._pre_filter(state)
        self._candidates = None if candidates is None else rows_named(cluster, candidates)
        filters = [] if refusal is not None else self._filters(state)
        self._judges = list(self._willing(filters, state))
        self.rows_are_apart = all(plugin.reads is not Reads.CLUSTER for plugin in filters)
        self._complete = refusal is None and len(self._judges) == len(filters)
        self._beside_nominated = self._complete and beside_nominated == filters
        self._carriers_version = cluster.pairwise_counts.carriers_version

    def check(self, rows: Rows) -> RowChecks:
        """The verdict on these rows as the columns stand; raises `CycleError`."""
        inside = rows if self._candidates is None else rows[self._candidates[rows]]
        rejections = [] if len(inside) == len(rows) else [Rejection(outside(self._narrowed_by), np.setdiff1d(rows, inside))]
        beside = RowChecks([], _NO_ROWS)
        if self._nominated:
            beside = self.check_beside_nominated(np.array([row for row in inside.tolist() if row in self._nominated], np.intp))
            inside = np.setdiff1d(inside, np.concatenate([beside.unsettled, *(rejected for _, rejected in beside.rejections)]))
        passing, rejected = self._check(inside)
        unsettled = beside.unsettled if self._complete else np.concatenate([beside.unsettled, passing])
        return RowChecks([*rejections, *beside.rejections, *rejected], unsettled)

    def check_beside_nominated(self, rows: Rows) -> RowChecks:
        """The verdict on these rows with the pods that are nominated to them; raises `CycleError`."""
        if not self._beside_nominated or not len(rows):
            return RowChecks([], rows)
        with self._cluster.supposing() as supposition:
            supposition.add([(row, pod) for row in rows.tolist() for pod in self._nominated[row]])
            # The judges were made without some of these pods' terms.
            if self._cluster.pairwise_counts.carriers_version != self._carriers_version:
                return RowChecks([], rows)
            return RowChecks(self._check(rows).rejections, _NO_ROWS)

    def _check(self, rows: Rows) -> _Verdict:
        rejections: list[Rejection] = []
        for plugin, judge in self._judges:
            passes = judge.passes(rows)
            if not passes.all():
                rejections += [Rejection(status.by(plugin), rejected) for status, rejected in judge.explain(rows[~passes])]
                rows = rows[passes]
        return _Verdict(rows, rejections)

    # --- before anything is changed --------------------------------------------------------------------------------------------

    def _pre_filter(self, state: CycleState) -> PreFiltered:
        return pre_filter(self._runtime, state, self._pod, self._cluster, PodColumns(self._runtime))

    def _filters(self, state: CycleState) -> list[FilterPlugin]:
        return [plugin for plugin in self._runtime.filter if plugin.name not in state.skip_filter]

    def _willing(self, filters: Sequence[FilterPlugin], state: CycleState) -> Iterator[_Named]:
        """The judges of these filters, up to the first that has none."""
        for plugin in filters:
            judge = self._judge(plugin, state)
            if judge is None:
                return
            yield _Named(plugin.name, judge)

    def _judge(self, plugin: FilterPlugin, state: CycleState) -> Judge | None:
        if plugin.reads is not Reads.CLUSTER:
            return FilterAsJudge(plugin, state, self._pod, self._cluster)
        return plugin.judge(state, self._pod, self._cluster) if isinstance(plugin, JudgesApart) else None

    def _filters_beside_nominated(self) -> list[FilterPlugin] | None:
        """The filters that have something to say once the nominated pods are there; None where the pod is refused then."""
        with self._cluster.supposing() as supposition:
            supposition.add([(row, pod) for row, pods in self._nominated.items() for pod in pods])
            state = CycleState()
            return self._filters(state) if self._pre_filter(state).refusal is None else None
