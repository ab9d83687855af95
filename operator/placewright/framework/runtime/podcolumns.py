"""Columns shared by all pods that look alike to a profile, kept up to date row by row.

For one signature: which rows pass the filters, and what the scores are, for those plugins whose columns depend only on the pod, a node and
the pods on that node. A placement changes one row, so one row is recomputed. Plugins that read more (`Reads.CLUSTER`) keep a whole
column here for as long as their fingerprint stays the same. PreFilter comes before any node is looked at: what it says of the pod alone is
kept likewise.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    FilterPlugin,
    IntColumn,
    PreFilterResult,
    Reads,
    Rows,
    ScorePlugin,
)
from placewright.framework.runtime.failures import PluginFailures
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.status import Code, Status, unresolvable
from placewright.framework.steps import FILTER, PRE_FILTER, SCORE


class PreFiltered(NamedTuple):
    """The outcome of all PreFilter plugins.

    Attributes:
        refusal: set when the pod is refused on every node.
        candidates: the nodes to look at; None for all.
        narrowed_by: the plugins that named candidates, in run order.
    """

    refusal: Status | None
    candidates: frozenset[NodeName] | None
    narrowed_by: tuple[str, ...]


def pre_filter(runtime: ProfileRuntime, state: CycleState, pod: PodInfo, cluster: Cluster, columns: PodColumns) -> PreFiltered:
    """Run the plugins in order; what local ones say is kept in `columns` for pods that look alike. Raises `CycleError`."""
    candidates: frozenset[NodeName] | None = None
    narrowed_by: list[str] = []
    refusal: Status | None = None
    state.steps.plugin_begins()
    for plugin in runtime.pre_filter:
        result = columns.pre_filter_results.get(plugin.name)
        if result is None:
            told_once = plugin.name in runtime.told_once
            known = set(state.data) if told_once else set()
            result = plugin.pre_filter(state, pod, cluster)
            state.steps.plugin_ended(plugin.name, PRE_FILTER, result.status.code)
            if told_once and result.status.code is not Code.ERROR:  # what broke may be mended by the next pod
                columns.pre_filter_results[plugin.name] = result
                columns.data.update((key, state.data[key]) for key in state.data.keys() - known)
        code = result.status.code
        if code is Code.ERROR:
            raise CycleError(f'running PreFilter plugin "{plugin.name}": {result.status.message}')
        if code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            refusal = result.status.by(plugin.name)
            break
        if code is Code.SKIP:
            state.skip_filter.add(plugin.name)
        elif not result.status.ok:
            refusal = result.status.by(plugin.name)
        elif result.nodes is not None:
            narrowed_by.append(plugin.name)
            candidates = result.nodes if candidates is None else candidates & result.nodes
            if not candidates:
                return PreFiltered(_nothing_left(narrowed_by), candidates, tuple(narrowed_by))
    return PreFiltered(refusal, candidates, tuple(narrowed_by))


def rows_named(cluster: Cluster, names: Iterable[NodeName]) -> BoolColumn:
    """True in the rows of these nodes; shape (size,). Names of nodes that are not there are passed over."""
    mask = np.zeros(cluster.size, np.bool_)
    for name in names:
        row = cluster.row(name)
        if row is not None:
            mask[row] = True
    return mask


def outside(narrowed_by: Sequence[str]) -> Status:
    """The verdict on nodes that are no candidates."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}]")


def _nothing_left(narrowed_by: list[str]) -> Status:
    if len(narrowed_by) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {narrowed_by[0]}").by(narrowed_by[0])
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}] simultaneously").by(narrowed_by[0])


#: What normalisation knows of all feasible rows, by plugin; None for plugins without normalisation.
Summaries = dict[str, Hashable | None]
#: Stands for a column of zeros, which need not be added to anything.
NOTHING_SCORED: Final[IntColumn] = np.zeros(0, np.int64)
#: Up to so many scores are looked at one by one: cheaper than two reductions.
_FEW: Final = 16


class PodColumns:
    """The kept columns of one signature.

    Attributes:
        data, pre_filter_results, pre_score_results: what local plugins said of the pod; the same for every pod of this signature.
        fits: rows that hold a node and pass all local filters; shape (size,).
        totals: sum of weighted local scores; shape (size,); meaningful where `fits`.
        summaries: what `totals` was normalised by.
    """

    def __init__(self, runtime: ProfileRuntime) -> None:
        self.data: dict[str, Any] = {}
        self.pre_filter_results: dict[str, PreFilterResult] = {}
        self.pre_score_results: dict[str, Status] = {}
        self.fits: BoolColumn = np.zeros(0, np.bool_)
        self.totals: IntColumn = np.zeros(0, np.int64)
        self._runtime = runtime
        self._passes: dict[str, BoolColumn] = {}
        self._raw: dict[str, IntColumn] = {}
        self.summaries: Summaries = {}
        self._summaries_hold = False
        self._fingerprints: dict[tuple[str, str], tuple[Hashable, int]] = {}
        self._fitting_rows: Rows | None = None
        self._cluster_filters: dict[str, BoolColumn] = {}
        self._cluster_scores: dict[str, IntColumn] = {}
        self._node_position = self._pod_position = -1
        self._score_positions = (-1, -1)

    # --- filters -----------------------------------------------------------------------------------------------------------

    def refresh_filters(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        """Bring `fits` up to date with everything that changed since the last call."""
        filters = [p for p in self._runtime.filter if p.reads is not Reads.CLUSTER and p.name not in state.skip_filter]
        nodes = cluster.node_journal.since(self._node_position) if len(self.fits) == cluster.size else None
        pods = cluster.pod_journal.since(self._pod_position)
        if nodes is None or pods is None or self._node_position < 0:
            self._fill_filters(filters, state, pod, cluster)
        elif nodes or pods:
            self._mend_filters(filters, state, pod, cluster, nodes, pods)
        self._node_position, self._pod_position = cluster.node_journal.position, cluster.pod_journal.position

    def _fill_filters(self, filters: Sequence[FilterPlugin], state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        rows = np.arange(cluster.size)
        fits, passes = cluster.present.copy(), dict[str, BoolColumn]()
        state.steps.plugin_begins()
        for plugin in filters:
            column = passes[plugin.name] = plugin.filter(state, pod, cluster, rows)
            state.steps.plugin_ended(plugin.name, FILTER)
            fits &= column
        self.fits, self._passes = fits, passes  # only now: a filter that raised must leave the columns of the old size together
        self._fits_changed()

    def _mend_filters(
        self, filters: Sequence[FilterPlugin], state: CycleState, pod: PodInfo, cluster: Cluster, nodes: Sequence[int], pods: Sequence[int]
    ) -> None:
        changed = distinct(nodes, pods)
        node_rows = distinct(nodes) if nodes else None
        fits = cluster.present[changed]
        state.steps.plugin_begins()
        for plugin in filters:
            passes = self._passes[plugin.name]
            if plugin.reads is Reads.NODE_AND_ITS_PODS:
                passes[changed] = plugin.filter(state, pod, cluster, changed)
                state.steps.plugin_ended(plugin.name, FILTER)
            elif node_rows is not None:
                passes[node_rows] = plugin.filter(state, pod, cluster, node_rows)
                state.steps.plugin_ended(plugin.name, FILTER)
            fits &= passes[changed]
        if node_rows is not None or not np.array_equal(fits, self.fits[changed]):
            self._fits_changed()
        self.fits[changed] = fits

    def _fits_changed(self) -> None:
        self._summaries_hold = False
        self._fitting_rows = None

    def fitting_rows(self) -> Rows:
        """The rows where `fits` is true, ascending; not to be written."""
        if self._fitting_rows is None:
            self._fitting_rows = np.flatnonzero(self.fits)
        return self._fitting_rows

    def passes(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, cluster: Cluster) -> BoolColumn:
        """The column of one filter, local or not, over all rows."""
        if plugin.reads is not Reads.CLUSTER:
            return self._passes[plugin.name]
        state.steps.plugin_begins()
        fingerprint = plugin.fingerprint(state, cluster)
        key, promise = ("filter", plugin.name), (fingerprint, cluster.size)
        kept = self._cluster_filters.get(plugin.name)
        if kept is None or fingerprint is None or self._fingerprints.get(key) != promise:
            kept = self._cluster_filters[plugin.name] = plugin.filter(state, pod, cluster, np.arange(cluster.size))
            state.steps.plugin_ended(plugin.name, FILTER)
            self._fingerprints[key] = promise
        return kept

    # --- scores ------------------------------------------------------------------------------------------------------------

    def refresh_scores(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        """Bring raw scores and `totals` up to date; `refresh_filters` comes first."""
        plugins = self._local_scores(state)
        node_position, pod_position = self._score_positions
        nodes = cluster.node_journal.since(node_position) if len(self.totals) == cluster.size else None
        pods = cluster.pod_journal.since(pod_position)
        if nodes is None or pods is None or node_position < 0:
            self._fill_scores(plugins, state, pod, cluster)
        else:
            self._mend_scores(plugins, state, pod, cluster, nodes, pods)
        self._score_positions = (cluster.node_journal.position, cluster.pod_journal.position)

    def _local_scores(self, state: CycleState) -> list[ScorePlugin]:
        return [p for p in self._runtime.score if p.reads is not Reads.CLUSTER and p.name not in state.skip_score]

    def _fill_scores(self, plugins: Sequence[ScorePlugin], state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        rows = np.arange(cluster.size)
        state.steps.plugin_begins()
        for plugin in plugins:
            self._raw[plugin.name] = plugin.score(state, pod, cluster, rows)
            state.steps.plugin_ended(plugin.name, SCORE)
        self.summaries = self.summarise(plugins, state, self.fits)
        self._summaries_hold = True
        self.totals = self._weigh(plugins, state, rows, self.summaries, self.fits)

    def _mend_scores(
        self, plugins: Sequence[ScorePlugin], state: CycleState, pod: PodInfo, cluster: Cluster, nodes: Sequence[int], pods: Sequence[int]
    ) -> None:
        changed = distinct(nodes, pods) if nodes or pods else None
        if changed is not None:
            node_rows = distinct(nodes) if nodes else None
            state.steps.plugin_begins()
            for plugin in plugins:
                rows = changed if plugin.reads is Reads.NODE_AND_ITS_PODS else node_rows
                if rows is not None:
                    self._raw[plugin.name][rows] = plugin.score(state, pod, cluster, rows)
                    state.steps.plugin_ended(plugin.name, SCORE)
        moved = any(plugin.reads is Reads.NODE_AND_ITS_PODS and self.summaries[plugin.name] is not None for plugin in plugins)
        if not self._summaries_hold or moved:
            summaries = self.summarise(plugins, state, self.fits)
            if summaries != self.summaries:
                # In this order: where scores are out of range, the old totals stay beside the summaries they were made with.
                self.totals = self._weigh(plugins, state, np.arange(cluster.size), summaries, self.fits)
                self.summaries, self._summaries_hold = summaries, True
                return
            self._summaries_hold = True
        if changed is not None:
            self.totals[changed] = self._weigh(plugins, state, changed, self.summaries, self.fits[changed])

    def summarise(self, plugins: Sequence[ScorePlugin], state: CycleState, feasible: BoolColumn) -> Summaries:
        """What each plugin's normalisation needs to know of the feasible rows."""
        return {
            plugin.name: plugin.summarise(state, self._raw[plugin.name][feasible]) if plugin.normalised else None for plugin in plugins
        }

    def totals_among(self, state: CycleState, feasible: BoolColumn) -> tuple[IntColumn, Summaries]:
        """Weighted local totals when fewer rows are feasible than `fits` says, normalised over those alone; shape (size,)."""
        plugins = self._local_scores(state)
        summaries = self.summarise(plugins, state, feasible)
        if summaries == self.summaries:
            return self.totals, summaries
        return self._weigh(plugins, state, np.arange(len(feasible)), summaries, feasible), summaries

    def _weigh(
        self, plugins: Sequence[ScorePlugin], state: CycleState, rows: Rows, summaries: Summaries, feasible: BoolColumn
    ) -> IntColumn:
        total = np.zeros(len(rows), np.int64)
        for plugin in plugins:
            total += self._runtime.weight(plugin) * self._normalised(plugin, state, rows, summaries[plugin.name], feasible)
        return total

    def _normalised(
        self, plugin: ScorePlugin, state: CycleState, rows: Rows, summary: Hashable | None, feasible: BoolColumn
    ) -> IntColumn:
        raw = self._raw[plugin.name][rows]
        scores = raw if summary is None else plugin.normalise(state, raw, summary)
        check_range(plugin, scores[feasible], self._runtime.failures)
        return scores

    def local_score(
        self, plugin: ScorePlugin, state: CycleState, rows: Rows, summary: Hashable | None
    ) -> tuple[IntColumn, IntColumn]:
        """(raw, normalised) of one local plugin in these rows; each shape (len(rows),)."""
        raw = self._raw[plugin.name][rows]
        return raw, raw if summary is None else plugin.normalise(state, raw, summary)

    def cluster_score(self, plugin: ScorePlugin, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> IntColumn:
        """Raw scores of a plugin that reads the cluster, in the feasible rows, shape (len(feasible),); or `NOTHING_SCORED`."""
        state.steps.plugin_begins()
        fingerprint = plugin.fingerprint(state, cluster)
        if fingerprint is None:
            scores = plugin.score(state, pod, cluster, feasible)
            state.steps.plugin_ended(plugin.name, SCORE)
            return scores
        key, promise = ("score", plugin.name), (fingerprint, cluster.size)  # also a column of zeros is of so many rows
        kept = self._cluster_scores.get(plugin.name)
        if kept is None or self._fingerprints.get(key) != promise:
            kept = plugin.score(state, pod, cluster, np.arange(cluster.size))
            state.steps.plugin_ended(plugin.name, SCORE)
            if not plugin.normalised and not kept.any():
                kept = NOTHING_SCORED
            self._cluster_scores[plugin.name] = kept
            self._fingerprints[key] = promise
        return kept if kept is NOTHING_SCORED else kept[feasible]


def check_range(plugin: ScorePlugin, scores: IntColumn, failures: PluginFailures) -> None:
    """Raise `InvalidScoreError` for a score outside 0..100, and count it."""
    if len(scores) == 0:
        return
    values = scores.tolist() if len(scores) <= _FEW else (scores.min(), scores.max())
    low, high = min(values), max(values)
    if low < 0 or high > MAX_NODE_SCORE:
        wrong = low if low < 0 else high
        failures.note(plugin.name, SCORE, f"found score {wrong}; allowed 0 to {MAX_NODE_SCORE}")
        raise InvalidScoreError(
            f'plugin "{plugin.name}" returns an invalid score {wrong}, it should in the range of [0, {MAX_NODE_SCORE}] after normalizing'
        )
