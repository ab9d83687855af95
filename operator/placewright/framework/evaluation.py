"""One pod against all nodes: which fit, which is best, and, when somebody asks, why.

`Evaluator` belongs to one profile runtime and keeps the columns of recent signatures. `Evaluation` is one pod's answer; it is valid
until the cluster changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple, Protocol

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    Diagnosis,
    FilterPlugin,
    IntColumn,
    Reads,
    Rejection,
    RowChecks,
    Rows,
    ScorePlugin,
)
from placewright.framework.podcolumns import NOTHING_SCORED, PodColumns, Summaries, check_range
from placewright.framework.runtime import ProfileRuntime, reads_of
from placewright.framework.status import SUCCESS, Code, Status, unresolvable

#: Columns of at most this many rows in total are kept, over all signatures (a row costs some 50 bytes).
MAX_KEPT_ROWS: Final = 2_000_000
NOT_FEASIBLE: Final = -1
NO_ROWS: Final[Rows] = np.zeros(0, np.intp)


class Nominations(Protocol):
    """Pods that preemption made room for and that are not placed yet; the queue's nominator."""

    def nodes(self) -> Collection[NodeName]:
        """Nodes that have nominated pods."""

    def pods_on(self, node: NodeName) -> Collection[PodInfo]:
        """Pods nominated to this node."""


class NoNominations:
    """For evaluations outside a running scheduler."""

    def nodes(self) -> Collection[NodeName]:
        """None."""
        return ()

    def pods_on(self, node: NodeName) -> Collection[PodInfo]:
        """None."""
        return ()


class CycleError(Exception):
    """A plugin broke: the cycle fails, the pod comes back after its error backoff."""


class PluginScore(NamedTuple):
    """One plugin's part in one node's total."""

    raw: int
    normalised: int
    weight: int

    @property
    def product(self) -> int:
        """What is added to the total."""
        return self.normalised * self.weight


@dataclass(slots=True)
class Evaluation:
    """What the profile says of one pod on the cluster as it stands.

    Attributes:
        state: what plugins remember of this cycle.
        feasible: rows that can hold the pod; shape (size,).
        count: how many.
        refusal: set when PreFilter refused the pod on every node.
        totals: weighted sum of scores, shape (size,), `NOT_FEASIBLE` elsewhere; filled by `Evaluator.score`.
    """

    pod: PodInfo
    state: CycleState
    columns: PodColumns
    feasible: BoolColumn
    count: int
    refusal: Status | None = None
    totals: IntColumn | None = None
    candidates: frozenset[NodeName] | None = None
    narrowed_by: tuple[str, ...] = ()
    #: Rows that fit as they stand but not beside the pods nominated there, with the verdict.
    beside_nominated: dict[int, Status] | None = None
    #: Filled by `Evaluator.score`: the feasible rows, what normalisation knew of them, and the scores of plugins that read the cluster.
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    summaries: Summaries = field(default_factory=dict)
    cluster_scores: dict[str, tuple[IntColumn, IntColumn]] = field(default_factory=dict)


class Evaluator:
    """Evaluates pods under one profile runtime, on one cluster."""

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, nominations: Nominations | None = None) -> None:
        self.runtime = runtime
        self._cluster = cluster
        self._nominations = NoNominations() if nominations is None else nominations  # an empty nominator is false
        self._checked: tuple[PodInfo, PodColumns] | None = None
        self._kept: OrderedDict[Hashable, PodColumns] = OrderedDict()

    # --- filtering -----------------------------------------------------------------------------------------------------------

    def evaluate(self, pod: PodInfo) -> Evaluation:
        """PreFilter and Filter over all nodes; raise `CycleError` when a plugin reports an error."""
        columns = self._columns(pod)
        state = CycleState(dict(columns.data))
        refusal, candidates, narrowed_by = self._pre_filter(state, pod, columns)
        if refusal is not None:
            nowhere = np.zeros(self._cluster.size, np.bool_)
            return Evaluation(pod, state, columns, nowhere, 0, refusal, None, candidates, narrowed_by)
        columns.refresh_filters(state, pod, self._cluster)
        feasible = columns.fits
        for plugin in self.runtime.filter:
            if plugin.reads is Reads.CLUSTER and plugin.name not in state.skip_filter:
                feasible = feasible & columns.passes(plugin, state, pod, self._cluster)
        if candidates is not None:
            feasible = feasible & self._rows_named(candidates)
        evaluation = Evaluation(pod, state, columns, feasible, 0, None, None, candidates, narrowed_by)
        self._respect_nominations(evaluation)
        evaluation.count = int(np.count_nonzero(evaluation.feasible))
        return evaluation

    def _columns(self, pod: PodInfo) -> PodColumns:
        signature = self.runtime.sign(pod)
        if signature is None:
            return PodColumns(self.runtime)
        columns = self._kept.get(signature)
        if columns is None:
            columns = self._kept[signature] = PodColumns(self.runtime)
            while len(self._kept) * max(self._cluster.size, 1) > MAX_KEPT_ROWS and len(self._kept) > 1:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(signature)
        return columns

    def _pre_filter(
        self, state: CycleState, pod: PodInfo, columns: PodColumns
    ) -> tuple[Status | None, frozenset[NodeName] | None, tuple[str, ...]]:
        """(refusal on every node, candidate nodes or None for all, plugins that narrowed them)."""
        candidates: frozenset[NodeName] | None = None
        narrowed_by: list[str] = []
        refusal: Status | None = None
        for plugin in self.runtime.pre_filter:
            result = columns.pre_filter_results.get(plugin.name)
            if result is None:
                known = set(state.data)
                result = plugin.pre_filter(state, pod, self._cluster)
                if reads_of(plugin) is not Reads.CLUSTER:
                    columns.pre_filter_results[plugin.name] = result
                    columns.data.update((key, state.data[key]) for key in state.data.keys() - known)
            code = result.status.code
            if code is Code.SKIP:
                state.skip_filter.add(plugin.name)
            elif code is Code.ERROR:
                raise CycleError(f'running PreFilter plugin "{plugin.name}": {result.status.message}')
            elif not result.status.ok:
                refusal = result.status.by(plugin.name)
                if code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    break
            if result.nodes is not None:
                narrowed_by.append(plugin.name)
                candidates = result.nodes if candidates is None else candidates & result.nodes
                if not candidates:
                    return _nothing_left(narrowed_by), candidates, tuple(narrowed_by)
        return refusal, candidates, tuple(narrowed_by)

    def _rows_named(self, names: Iterable[NodeName]) -> BoolColumn:
        mask = np.zeros(self._cluster.size, np.bool_)
        for name in names:
            row = self._cluster.row(name)
            if row is not None:
                mask[row] = True
        return mask

    # --- nominated pods --------------------------------------------------------------------------------------------------------

    def _respect_nominations(self, evaluation: Evaluation) -> None:
        verdicts: dict[int, Status] = {}
        for name in self._nominations.nodes():
            row = self._cluster.row(name)
            if row is None or (evaluation.candidates is not None and name not in evaluation.candidates):
                continue
            status = self._check_beside_nominated(evaluation.pod, row)
            if status is not None and not status.ok:
                verdicts[row] = status
        if verdicts:
            evaluation.feasible = evaluation.feasible.copy()
            evaluation.feasible[list(verdicts)] = False
            evaluation.beside_nominated = verdicts

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """`Handle.check_row`: PreFilter and Filter on one row, with and without the pods nominated there."""
        status = self._check_beside_nominated(pod, row)
        if status is not None and not status.ok:
            return status
        return self._check_as_it_stands(pod, row)

    def _check_beside_nominated(self, pod: PodInfo, row: int) -> Status | None:
        """The verdict with nominated pods of at least this priority added; None when there are none."""
        name = self._cluster.names[row]
        if name is None:
            return None
        others = [p for p in self._nominations.pods_on(name) if p.priority >= pod.priority and p.uid != pod.uid]
        if not others:
            return None
        with self._cluster.hypothetically(add=others, row=row):
            return self._check_as_it_stands(pod, row)

    def _checked_columns(self, pod: PodInfo) -> PodColumns:
        """What local plugins said of the pod that is being checked row after row: preemption asks thousands of times for one pod."""
        if self._checked is None or self._checked[0] is not pod:
            self._checked = (pod, PodColumns(self.runtime))
        return self._checked[1]

    def _check_as_it_stands(self, pod: PodInfo, row: int) -> Status:
        columns = self._checked_columns(pod)
        state = CycleState(dict(columns.data))
        refusal, candidates, narrowed_by = self._pre_filter(state, pod, columns)
        if refusal is not None:
            return refusal
        if candidates is not None and self._cluster.names[row] not in candidates:
            return _outside(narrowed_by)
        rows = np.array([row], np.intp)
        for plugin in self.runtime.filter:
            if plugin.name in state.skip_filter or plugin.filter(state, pod, self._cluster, rows)[0]:
                continue
            return plugin.explain(state, pod, self._cluster, rows)[0].status.by(plugin.name)
        return SUCCESS

    def check_rows(self, pod: PodInfo, rows: Rows) -> RowChecks:
        """`Handle.check_rows`: as `check_row`, for many rows at once, up to the first filter through which rows see each other."""
        columns = self._checked_columns(pod)
        state = CycleState(dict(columns.data))
        refusal, candidates, narrowed_by = self._pre_filter(state, pod, columns)
        if refusal is not None:
            return RowChecks([], complete=False)
        filters = [plugin for plugin in self.runtime.filter if plugin.name not in state.skip_filter]
        local = list(takewhile(lambda plugin: plugin.reads is not Reads.CLUSTER, filters))
        checks = RowChecks([], complete=len(local) == len(filters))
        remaining = rows
        if candidates is not None:
            inside = self._rows_named(candidates)[rows]
            checks.rejections.append(Rejection(_outside(narrowed_by), rows[~inside]))
            remaining = rows[inside]
        remaining = self._without_crowded(pod, remaining, checks)
        for plugin in local:
            passes = plugin.filter(state, pod, self._cluster, remaining)
            if not passes.all():
                explained = plugin.explain(state, pod, self._cluster, remaining[~passes])
                checks.rejections.extend(Rejection(status.by(plugin.name), rejected) for status, rejected in explained)
                remaining = remaining[passes]
        return checks

    def _without_crowded(self, pod: PodInfo, rows: Rows, checks: RowChecks) -> Rows:
        """The rows whose nominated pods leave room for the pod; the others are added to the rejections, or left for a check alone."""
        nominated = {row for name in self._nominations.nodes() if (row := self._cluster.row(name)) is not None}
        crowded: set[int] = set()
        for row in nominated.intersection(rows.tolist()) if nominated else ():
            status = self._check_beside_nominated(pod, row) if checks.complete else None
            if status is not None and not status.ok:
                checks.rejections.append(Rejection(status, np.array([row], np.intp)))
            if not checks.complete or (status is not None and not status.ok):
                crowded.add(row)
        return rows[~np.isin(rows, list(crowded))] if crowded else rows

    # --- scoring -------------------------------------------------------------------------------------------------------------

    def score(self, evaluation: Evaluation) -> IntColumn:
        """Fill and return `totals`; raise `CycleError` or `InvalidScoreError`."""
        state, pod, columns = evaluation.state, evaluation.pod, evaluation.columns
        alike = evaluation.feasible is columns.fits
        rows = evaluation.rows = columns.fitting_rows() if alike else np.flatnonzero(evaluation.feasible)
        self._pre_score(state, pod, columns, rows)
        columns.refresh_scores(state, pod, self._cluster)
        if alike:
            local, evaluation.summaries = columns.totals, columns.summaries
        else:
            local, evaluation.summaries = columns.totals_among(state, evaluation.feasible)
        totals = np.where(evaluation.feasible, local, NOT_FEASIBLE)
        for plugin in self._cluster_scores(state):
            raw, scores = evaluation.cluster_scores[plugin.name] = self._cluster_score(plugin, evaluation)
            if raw is not NOTHING_SCORED:
                totals[rows] += self.runtime.weight(plugin) * scores
        evaluation.totals = totals
        return totals

    def _cluster_scores(self, state: CycleState) -> list[ScorePlugin]:
        return [p for p in self.runtime.score if p.reads is Reads.CLUSTER and p.name not in state.skip_score]

    def _cluster_score(self, plugin: ScorePlugin, evaluation: Evaluation) -> tuple[IntColumn, IntColumn]:
        """(raw, normalised) in the feasible rows."""
        state = evaluation.state
        raw = evaluation.columns.cluster_score(plugin, state, evaluation.pod, self._cluster, evaluation.rows)
        if raw is NOTHING_SCORED:
            return raw, raw
        summary = plugin.summarise(state, raw) if plugin.normalised else None
        scores = raw if summary is None else plugin.normalise(state, raw, summary)
        check_range(plugin, scores)
        return raw, scores

    def _pre_score(self, state: CycleState, pod: PodInfo, columns: PodColumns, feasible: Rows) -> None:
        for plugin in self.runtime.pre_score:
            status = columns.pre_score_results.get(plugin.name)
            if status is None:
                known = set(state.data)
                status = plugin.pre_score(state, pod, self._cluster, feasible)
                if reads_of(plugin) is not Reads.CLUSTER:
                    columns.pre_score_results[plugin.name] = status
                    columns.data.update((key, state.data[key]) for key in state.data.keys() - known)
            if status.code is Code.SKIP:
                state.skip_score.add(plugin.name)
            elif not status.ok:
                raise CycleError(f'running PreScore plugin "{plugin.name}": {status.message}')

    def breakdown(self, evaluation: Evaluation, rows: Rows) -> dict[str, list[PluginScore]]:
        """By plugin, its part in the totals of these feasible rows; `score` comes first."""
        at = np.searchsorted(evaluation.rows, rows)
        parts: dict[str, list[PluginScore]] = {}
        for plugin in self.runtime.score:
            if plugin.name in evaluation.state.skip_score:
                continue
            weight = self.runtime.weight(plugin)
            if plugin.reads is not Reads.CLUSTER:
                raw, scores = evaluation.columns.local_score(plugin, evaluation.state, rows, evaluation.summaries[plugin.name])
            elif (kept := evaluation.cluster_scores[plugin.name])[0] is NOTHING_SCORED:
                parts[plugin.name] = [PluginScore(0, 0, weight)] * len(rows)
                continue
            else:
                raw, scores = kept[0][at], kept[1][at]
            parts[plugin.name] = [PluginScore(r, s, weight) for r, s in zip(raw.tolist(), scores.tolist(), strict=True)]
        return parts

    # --- explaining ----------------------------------------------------------------------------------------------------------

    def diagnose(self, evaluation: Evaluation) -> Diagnosis:
        """Why the infeasible nodes are infeasible: each row with the first filter that rejected it."""
        diagnosis = Diagnosis(self._cluster.node_count)
        if evaluation.refusal is not None:
            diagnosis.absent = evaluation.refusal
            diagnosis.prefilter_message = evaluation.refusal.message
            _blame(diagnosis, evaluation.refusal)
            if evaluation.candidates is not None and not evaluation.candidates:
                diagnosis.unschedulable_plugins.update(evaluation.narrowed_by)  # each of them could leave another node
            return diagnosis
        remaining = self._cluster.present.copy()
        for row, status in (evaluation.beside_nominated or {}).items():
            self._reject(diagnosis, Rejection(status, np.array([row], np.intp)))
            remaining[row] = False
        if evaluation.candidates is not None:
            outside = remaining & ~self._rows_named(evaluation.candidates)
            if outside.any():
                diagnosis.rejections.append(Rejection(_outside(evaluation.narrowed_by), np.flatnonzero(outside)))
                diagnosis.unschedulable_plugins.update(evaluation.narrowed_by)
            remaining &= ~outside
        for plugin in self.runtime.filter:
            if plugin.name not in evaluation.state.skip_filter:
                self._explain(diagnosis, plugin, evaluation, remaining)
        return diagnosis

    def _explain(self, diagnosis: Diagnosis, plugin: FilterPlugin, evaluation: Evaluation, remaining: BoolColumn) -> None:
        """Add what this filter says of the remaining rows, and take those it rejects out of them."""
        passes = evaluation.columns.passes(plugin, evaluation.state, evaluation.pod, self._cluster)
        rejected = np.flatnonzero(remaining & ~passes)
        if len(rejected) == 0:
            return
        remaining[rejected] = False
        for status, rows in plugin.explain(evaluation.state, evaluation.pod, self._cluster, rejected):
            self._reject(diagnosis, Rejection(status.by(plugin.name), rows))

    @staticmethod
    def _reject(diagnosis: Diagnosis, rejection: Rejection) -> None:
        diagnosis.rejections.append(rejection)
        _blame(diagnosis, rejection.status)


def _blame(diagnosis: Diagnosis, status: Status) -> None:
    if status.plugin:
        diagnosis.unschedulable_plugins.add(status.plugin)
        if status.code is Code.PENDING:
            diagnosis.pending_plugins.add(status.plugin)


def _nothing_left(narrowed_by: list[str]) -> Status:
    if len(narrowed_by) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {narrowed_by[0]}").by(narrowed_by[0])
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}] simultaneously").by(narrowed_by[0])


def _outside(narrowed_by: tuple[str, ...]) -> Status:
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}]")
