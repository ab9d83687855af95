"""Evaluates one pod on all nodes: the feasible rows, their scores, and on request the reasons of the others.

`Evaluator` belongs to one profile runtime and keeps the columns of recent signatures. `Evaluation` is one pod's answer; it is valid
until the cluster changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.podextent import SMALL, estimated_work
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    Diagnosis,
    FilterPlugin,
    IntColumn,
    Reads,
    Rejection,
    Rows,
    ScorePlugin,
)
from placewright.framework.ports import Nominations
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.keptcolumn import KeptColumn
from placewright.framework.runtime.keptshapes import KeptShapes
from placewright.framework.runtime.nodesample import SampledColumns, Sampler, candidate_count, nodes_to_find, passing
from placewright.framework.runtime.podcolumns import NOTHING_SCORED, PodColumns, Summaries, Totals, check_range, pre_filter, rows_named
from placewright.framework.runtime.profileruntime import POD_LIMITS, ProfileRuntime
from placewright.framework.runtime.rowchecks import NoNominations, RowChecker
from placewright.framework.runtime.rowrejections import RowRejections, outside
from placewright.framework.runtime.scoreimpact import ScoreImpact
from placewright.framework.status import NODES_ARE_KEPT, SUCCESS, Code, Status, unresolvable
from placewright.framework.steps import FILTER, PRE_FILTER, PRE_SCORE, SCORE, Steps

#: A decision that looks at more things than this is prepared; some milliseconds' work.
_LONG_WORK: Final = 1_000_000


NO_ROWS: Final[Rows] = np.zeros(0, np.intp)


class PluginScore(NamedTuple):
    """One plugin's part in one node's total."""

    raw: int
    normalised: int
    weight: int

    @property
    def product(self) -> int:
        """Weight times score, which is added to the total."""
        return self.normalised * self.weight


@dataclass(slots=True)
class Evaluation:
    """The profile's answer for one pod, on the cluster as it stands.

    Attributes:
        pod: the pod that was asked about.
        state: values that plugins keep during this attempt.
        columns: the kept columns that it was read from.
        feasible: rows that can hold the pod; shape (size,).
        count: number of these rows.
        refusal: set when PreFilter refused the pod on every node.
        totals: weighted sum of scores, shape (size,), `NOT_FEASIBLE` elsewhere; filled by `Evaluator.score`; not to be written.
        candidates: names of the only nodes that PreFilter left; None for all.
        narrowed_by: the plugins that named candidates.
    """

    pod: PodInfo
    state: CycleState
    columns: PodColumns
    feasible: BoolColumn
    count: int
    refusal: Status | None = None
    totals: Totals | None = None
    candidates: frozenset[NodeName] | None = None
    narrowed_by: tuple[str, ...] = ()
    #: Whether rows were looked at until enough were found, so that `feasible` is what the profile wants scored.
    sampled: bool = False
    #: Rows on which the pod does not fit beside the pods nominated there.
    with_nominated_pods: RowRejections | None = None
    #: Rows among these that could hold the pod if no pod were nominated there.
    held_off: BoolColumn | None = None
    #: Filled by `Evaluator.score`: the feasible rows, what normalisation knew of them, and the scores of plugins that read the cluster.
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    summaries: Summaries = field(default_factory=dict)
    cluster_scores: dict[str, tuple[IntColumn, IntColumn]] = field(default_factory=dict)


class Evaluator:
    """Evaluates pods under one profile runtime, on one cluster.

    Attributes:
        runtime: the profile's plugins.
        checker: checks single rows.
        impact: counts of decisions that the score plugins changed; the scheduling cycle counts.
        kept: the columns of recent shapes of pods.
        cluster: the cluster on which pods are evaluated.
    """

    def __init__(
        self, runtime: ProfileRuntime, cluster: Cluster, nominations: Nominations | None = None, budget: ColumnBudget | None = None
    ) -> None:
        """`budget`: memory for kept columns, shared with others; one of its own if it is None."""
        self.runtime = runtime
        self.checker = RowChecker(runtime, cluster, NoNominations() if nominations is None else nominations)  # an empty one is false
        self.impact = ScoreImpact(plugin.name for plugin in runtime.score)
        self.cluster = self._cluster = cluster
        self.kept = KeptShapes(runtime, budget or ColumnBudget())

    def prepares(self, pod: PodInfo) -> bool:
        """Judge whether deciding a pod takes so long that it is prepared.

        Returns:
            True for few pods: those with much to look at, on a large cluster.
        """
        return not pod.extent.excess and pod.extent is not SMALL and estimated_work(pod.extent, self._cluster.node_count) > _LONG_WORK

    def preparation(self, pod: PodInfo) -> Iterator[None]:
        """Make ready what deciding a pod will need, piece by piece.

        Yields:
            After each piece.
        """
        for plugin in self.runtime.preparing:
            if self.prepares(pod):
                yield from plugin.prepare(pod, self._cluster)

    # --- filtering -----------------------------------------------------------------------------------------------------------

    def evaluate(self, pod: PodInfo, steps: Steps | None = None, sampler: Sampler | None = None) -> Evaluation:
        """Run PreFilter and Filter over all nodes.

        Returns:
            The rows that can hold the pod; valid until the cluster changes.

        Raises:
            CycleError: a plugin broke.
        """
        if pod.extent.excess:
            return self._beyond_limits(pod)
        columns = self.kept.columns(self.runtime.sign(pod))
        steps = steps or Steps()
        state = CycleState(dict(columns.data), steps=steps)  # a copy: plugins with `Reads.CLUSTER` write into it for this pod alone
        steps.skip_filter, steps.skip_score = state.skip_filter, state.skip_score
        try:
            refusal, candidates, narrowed_by = pre_filter(self.runtime, state, pod, self._cluster, columns)
        except CycleError:
            steps.end(PRE_FILTER, Code.ERROR)
            raise
        steps.end(PRE_FILTER, Code.SUCCESS if refusal is None else refusal.code)
        if refusal is not None:
            nowhere = np.zeros(self._cluster.size, np.bool_)
            return Evaluation(pod, state, columns, nowhere, 0, refusal, None, candidates, narrowed_by)
        percentage = self.runtime.profile.settings.percentage_of_nodes_to_score
        if sampler is not None and percentage is not None:
            unseen = Evaluation(pod, state, columns, columns.fits, 0, candidates=candidates, narrowed_by=narrowed_by)
            evaluation = self._sample(sampler, percentage, unseen)
            if evaluation is not None:
                steps.end(FILTER)
                return evaluation
        columns.refresh_filters(state, pod, self._cluster)
        feasible = columns.fits if candidates is None else columns.fits & rows_named(self._cluster, candidates)
        looking = [plugin for plugin in self.runtime.filter if plugin.reads is Reads.CLUSTER and plugin.name not in state.skip_filter]
        passes = [columns.cluster_filter(plugin, state, pod, self._cluster) for plugin in looking]
        self._end_where_one_fails(state, pod, feasible, list(zip(looking, passes, strict=True)))
        for passed in passes:
            if passed.only != 1:
                feasible = feasible & passed.column()
        evaluation = Evaluation(pod, state, columns, feasible, 0, None, None, candidates, narrowed_by)
        self._respect_nominations(evaluation)
        evaluation.count = int(np.count_nonzero(evaluation.feasible))
        steps.end(FILTER, Code.SUCCESS if evaluation.count else Code.UNSCHEDULABLE)
        return evaluation

    def _beyond_limits(self, pod: PodInfo) -> Evaluation:
        """Refuse a pod beyond the limits of a pod before any plugin is asked."""
        nowhere, refusal = np.zeros(self._cluster.size, np.bool_), unresolvable(pod.extent.excess).by(POD_LIMITS)
        return Evaluation(pod, CycleState(), PodColumns(self.runtime), nowhere, 0, refusal)

    def _sample(self, sampler: Sampler, percentage: int, evaluation: Evaluation) -> Evaluation | None:
        """Evaluate as many nodes as are enough; None if all nodes are needed, or no node was found."""
        state, pod, cluster, columns = evaluation.state, evaluation.pod, self._cluster, evaluation.columns
        nodes = candidate_count(cluster, evaluation.candidates)
        wanted = nodes_to_find(nodes, percentage)
        plugins = [plugin for plugin in self.runtime.filter if plugin.name not in state.skip_filter]
        ends_where_one_fails = any(type(plugin).failure is not FilterPlugin.failure for plugin in plugins)
        if wanted >= nodes or ends_where_one_fails or self.checker.nominations.nodes() or columns.asked_again(cluster, wanted):
            return None
        among = cluster.present if evaluation.candidates is None else rows_named(cluster, evaluation.candidates)
        rows = sampler.search(lambda rows: passing(plugins, state, pod, cluster, rows[among[rows]]), cluster.size, wanted)
        evaluation.columns = SampledColumns(self.runtime, columns, rows, cluster.size)
        evaluation.feasible, evaluation.count, evaluation.sampled = evaluation.columns.fits, len(rows), True
        return evaluation if len(rows) else None

    def _end_where_one_fails(
        self, state: CycleState, pod: PodInfo, feasible: BoolColumn, passes: Sequence[tuple[FilterPlugin, KeptColumn[np.bool_]]]
    ) -> None:
        """Raise `CycleError` where a plugin reports an error for a row that all others let the pod onto."""
        for plugin, passed in passes:
            if type(plugin).failure is FilterPlugin.failure:
                continue
            alone = feasible & ~passed.column()
            for other, let in passes:
                alone = alone if other is plugin else alone & let.column()
            rows = np.flatnonzero(alone)
            status = plugin.failure(state, pod, self._cluster, rows) if len(rows) else SUCCESS
            if not status.ok:
                state.steps.end(FILTER, Code.ERROR)
                raise CycleError(f'running "{plugin.name}" filter plugin: {status.message}')

    # --- nominated pods --------------------------------------------------------------------------------------------------------

    def _respect_nominations(self, evaluation: Evaluation) -> None:
        if not self.checker.nominations.nodes():  # nearly always: a look at an empty map
            return
        rejections = self.checker.rejected_with_nominated_pods(evaluation.pod, evaluation.candidates, evaluation.state)
        rejected = rejections.rejected()
        if rejected.any():
            evaluation.with_nominated_pods = rejections
        held_off = evaluation.feasible & rejected
        if held_off.any():  # else it stays the columns' own, with which more is kept
            evaluation.held_off, evaluation.feasible = held_off, evaluation.feasible & ~rejected

    # --- scoring -------------------------------------------------------------------------------------------------------------

    def score(self, evaluation: Evaluation) -> Totals:
        """Run PreScore and Score, and fill `totals`.

        Returns:
            The totals, shape (size,); not to be written.

        Raises:
            CycleError: a plugin broke.
            InvalidScoreError: a score is outside 0 to 100.
        """
        state, pod, columns = evaluation.state, evaluation.pod, evaluation.columns
        # The same object: nothing narrowed this pod's nodes, so the kept totals are its own.
        alike = evaluation.feasible is columns.fits
        rows = evaluation.rows = columns.fitting_rows() if alike else np.flatnonzero(evaluation.feasible)
        state.steps.begin()
        self._pre_score(state, pod, columns, rows)
        state.steps.end(PRE_SCORE)
        columns.refresh_scores(state, pod, self._cluster)
        if alike:
            totals, evaluation.summaries = columns.totals, columns.summaries
        else:
            totals, evaluation.summaries = columns.totals_among(state, evaluation.feasible)
        for plugin in self._cluster_scores(state):
            raw, scores = evaluation.cluster_scores[plugin.name] = self._cluster_score(plugin, evaluation)
            if raw is not NOTHING_SCORED:
                totals = totals.copy() if totals is columns.totals else totals  # kept totals belong to all pods of the signature
                points = (self.runtime.weight(plugin) * scores).astype(totals.dtype)
                if len(rows) == len(totals):  # all of them: adding a column is several times as fast as picking rows
                    totals += points
                else:
                    totals[rows] += points
        evaluation.totals = totals
        state.steps.end(SCORE)
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
        check_range(plugin, scores, self.runtime.failures)
        return raw, scores

    def _pre_score(self, state: CycleState, pod: PodInfo, columns: PodColumns, feasible: Rows) -> None:
        for plugin in self.runtime.pre_score:
            status = columns.pre_score_results.get(plugin.name)
            if status is None:
                told_once = plugin.name in self.runtime.told_once
                known = set(state.data) if told_once else set()
                status = state.steps.ask(plugin.name, PRE_SCORE, plugin.pre_score, state, pod, self._cluster, feasible)
                if told_once and (status.ok or status.code is Code.SKIP):
                    columns.pre_score_results[plugin.name] = status
                    columns.data.update((key, state.data[key]) for key in state.data.keys() - known)
            if status.code is Code.SKIP:
                state.skip_score.add(plugin.name)
            elif not status.ok:
                raise CycleError(f'running PreScore plugin "{plugin.name}": {status.message}')

    def breakdown(self, evaluation: Evaluation, rows: Rows) -> dict[str, list[PluginScore]]:
        """Take totals apart. `score` comes first.

        Args:
            evaluation: scored.
            rows: feasible rows, shape (k,).

        Returns:
            By plugin, its part in the total of each of the rows.
        """
        parts: dict[str, list[PluginScore]] = {}
        for plugin, raw, scores in self._scored(evaluation, rows):
            weight = self.runtime.weight(plugin)
            if raw is NOTHING_SCORED:
                parts[plugin.name] = [PluginScore(0, 0, weight)] * len(rows)
            else:
                parts[plugin.name] = [PluginScore(r, s, weight) for r, s in zip(raw.tolist(), scores.tolist(), strict=True)]
        return parts

    def parts(self, evaluation: Evaluation) -> dict[str, IntColumn]:
        """Return what each plugin put into the totals. `score` comes first.

        Returns:
            By plugin, weight times score of the feasible rows, shape (feasible,); plugins with nothing to score are left out.
        """
        scored = self._scored(evaluation, evaluation.rows)
        return {plugin.name: self.runtime.weight(plugin) * scores for plugin, _, scores in scored if scores is not NOTHING_SCORED}

    def _scored(self, evaluation: Evaluation, rows: Rows) -> Iterator[tuple[ScorePlugin, IntColumn, IntColumn]]:
        """Yield each plugin with its raw and its normalised scores of feasible rows; `NOTHING_SCORED` twice for zeros."""
        at = np.searchsorted(evaluation.rows, rows)
        for plugin in self.runtime.score:
            if plugin.name in evaluation.state.skip_score:
                continue
            if plugin.reads is not Reads.CLUSTER:
                raw, scores = evaluation.columns.local_score(plugin, evaluation.state, rows, evaluation.summaries[plugin.name])
            else:
                raw, scores = evaluation.cluster_scores[plugin.name]
                if raw is not NOTHING_SCORED:
                    raw, scores = raw[at], scores[at]
            yield plugin, raw, scores

    # --- explaining ----------------------------------------------------------------------------------------------------------

    def diagnose(self, evaluation: Evaluation) -> Diagnosis:
        """Say why the infeasible nodes are infeasible.

        Returns:
            Each row with the first filter that rejected it, and its reason.
        """
        diagnosis = Diagnosis(self._cluster.node_count)
        if evaluation.refusal is not None:
            diagnosis.absent = evaluation.refusal
            diagnosis.prefilter_message = evaluation.refusal.message
            _blame(diagnosis, evaluation.refusal)
            if evaluation.candidates is not None and not evaluation.candidates:
                diagnosis.unschedulable_plugins.update(evaluation.narrowed_by)  # each of them could leave another node
            return diagnosis
        # Each row is explained by the first filter that rejects it, as kube-scheduler stops at the first.
        remaining = self._cluster.present.copy()
        if evaluation.with_nominated_pods is not None:
            for rejection in evaluation.with_nominated_pods.grouped():
                for told in self._with_kept_nodes(evaluation, rejection):
                    self._reject(diagnosis, told)
                remaining[rejection.rows] = False
        if evaluation.candidates is not None:
            elsewhere = remaining & ~rows_named(self._cluster, evaluation.candidates)
            if elsewhere.any():
                diagnosis.rejections.append(Rejection(outside(evaluation.narrowed_by), np.flatnonzero(elsewhere)))
            # Nodes outside of them have a status of no plugin, and yet an event of these plugins helps.
            diagnosis.unschedulable_plugins.update(evaluation.narrowed_by)  # they may name a node that is yet to come
            remaining &= ~elsewhere
        for plugin in self.runtime.filter:
            if plugin.name not in evaluation.state.skip_filter:
                self._explain(diagnosis, plugin, evaluation, remaining)
        return diagnosis

    def _with_kept_nodes(self, evaluation: Evaluation, rejection: Rejection) -> Iterator[Rejection]:
        """Split a rejection, so that nodes which only a reservation keeps from the pod name its group."""
        kept: dict[str, list[int]] = {}
        if evaluation.held_off is not None and self.checker.nominations.kept_for:
            for row in rejection.rows[evaluation.held_off[rejection.rows]].tolist():
                kept_for = self.checker.kept_for(evaluation.pod, row)
                if kept_for is not None:
                    kept.setdefault(kept_for.told, []).append(row)
        for told, rows in kept.items():
            status = replace(rejection.status, reasons=(f"{NODES_ARE_KEPT} for {told}",))
            yield Rejection(status, np.array(rows, np.intp))
        rest = np.setdiff1d(rejection.rows, np.array([row for rows in kept.values() for row in rows], np.intp)) if kept else rejection.rows
        if len(rest):
            yield Rejection(rejection.status, rest)

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
