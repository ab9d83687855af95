"""Columns shared by all pods that look alike to a profile, kept up to date row by row.

For one signature they hold the rows that pass the local filters, and the sums of the weighted local scores. A local plugin's column
depends only on the pod, a node and the pods on that node. Both are put together from parts, which signatures share (`columnparts`). A
placement changes one row, so one row is recomputed. Plugins that read more (`Reads.CLUSTER`) keep a whole column here for as long as their
fingerprint stays the same. PreFilter comes before any node is looked at: its answer about the pod alone is kept likewise.

The range of scores: after normalisation 0 to 100, as kube-scheduler demands. A score outside ends the attempt as an error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.bytecount import bytes_of
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    FilterPlugin,
    IntColumn,
    MaxNormalised,
    PreFilterResult,
    Reads,
    Rows,
    ScorePlugin,
)
from placewright.framework.runtime.changedrows import NOTHING_READ
from placewright.framework.runtime.columnparts import ColumnPart, ColumnParts
from placewright.framework.runtime.guard import PluginFailures
from placewright.framework.runtime.keptcolumn import KeptColumn, V
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.runtime.rowrejections import nothing_left
from placewright.framework.status import Code, Status
from placewright.framework.steps import FILTER, PRE_FILTER, SCORE

#: Number of scores up to which they are compared one by one: cheaper than two reductions.
_FEW: Final = 16


def check_range(plugin: ScorePlugin, scores: NDArray[np.signedinteger[Any]], failures: PluginFailures) -> None:
    """Refuse scores outside 0 to 100, and count the failure.

    The message is kube-scheduler's, word for word.

    Args:
        plugin: the plugin that gave them.
        scores: scores of feasible rows, after normalisation; any shape (k,).
        failures: counts the failure.

    Raises:
        InvalidScoreError: a score is outside.
    """
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
    """Run the PreFilter plugins in order. Answers of local ones are kept in `columns` for pods that look alike.

    Args:
        runtime: the profile's plugins.
        state: a new attempt's state, with the values that `columns` keeps.
        pod: the pod of the attempt.
        cluster: the cluster as it stands.
        columns: the columns of the pod's signature.

    Returns:
        Whether the pod is refused on every node, else the nodes to look at.

    Raises:
        CycleError: a plugin answered ERROR.
    """
    candidates: frozenset[NodeName] | None = None
    narrowed_by: list[str] = []
    refusal: Status | None = None
    for plugin in runtime.pre_filter:
        result = columns.pre_filter_results.get(plugin.name)
        if result is None:
            told_once = plugin.name in runtime.told_once
            known = set(state.data) if told_once else set()
            result = state.steps.ask(plugin.name, PRE_FILTER, plugin.pre_filter, state, pod, cluster)
            if told_once and result.status.code is not Code.ERROR:  # the next pod may find the error gone
                columns.pre_filter_results[plugin.name] = result
                columns.data.update((key, state.data[key]) for key in state.data.keys() - known)
        code = result.status.code
        if code is Code.ERROR:
            raise CycleError(f'running PreFilter plugin "{plugin.name}": {result.status.message}')
        if code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            refusal = result.status.by(plugin.name)
            break  # eviction cannot help, so no other reason matters
        if code is Code.SKIP:
            state.skip_filter.add(plugin.name)
        elif not result.status.ok:
            # The others are asked all the same: one of them may know that eviction cannot help.
            refusal = result.status.by(plugin.name)
        elif result.nodes is not None:
            narrowed_by.append(plugin.name)
            candidates = result.nodes if candidates is None else candidates & result.nodes
            if not candidates:  # as upstream, which ends here and blames the plugins that named nodes
                return PreFiltered(nothing_left(narrowed_by), candidates, tuple(narrowed_by))
    return PreFiltered(refusal, candidates, tuple(narrowed_by))


def rows_named(cluster: Cluster, names: Iterable[NodeName]) -> BoolColumn:
    """Find the rows of nodes."""
    mask = np.zeros(cluster.size, np.bool_)
    for name in names:
        row = cluster.row(name)
        if row is not None:
            mask[row] = True
    return mask


#: The summary of all feasible rows by plugin; None for plugins without normalisation.
Summaries = dict[str, Hashable | None]
#: Totals or scores in the width in which they are kept, shape (size,).
Totals = NDArray[np.signedinteger[Any]]
#: Bytes of a signature, and of what plugins said of its pods, that are kept. A count of them may end here.
LARGEST_TEXT: Final = 64 * 1024
#: The total of a row that cannot hold the pod.
NOT_FEASIBLE: Final = -1
#: Stands for a column of zeros, which need not be added to anything.
NOTHING_SCORED: Final[IntColumn] = np.zeros(0, np.int64)


class PodColumns:
    """The kept columns of one signature.

    Invariant: each row of `fits` holds the parts' answer at the positions `_read`, and the row has not changed since. The same holds for
    `totals` and `_totals_read`. Parts may be ahead, because other signatures mend them, too.

    Attributes:
        data, pre_filter_results, pre_score_results: answers of local plugins about the pod; the same for every pod of this signature.
        fits: rows that hold a node and pass all local filters; shape (size,).
        totals: sum of weighted local scores, `NOT_FEASIBLE` where not `fits`; shape (size,); not to be written.
        summaries: summaries by which `totals` was normalised.
        asked_since_beat: whether a pod of this signature came since unasked shapes were last dropped.
    """

    def __init__(self, runtime: ProfileRuntime, parts: ColumnParts | None = None, signature: tuple[Hashable, ...] = ()) -> None:
        """Make columns without values.

        Args:
            runtime: the profile's plugins.
            parts: shared with other signatures; None for a pod that shares its columns with no other.
            signature: signature of the pods; empty for such a pod.
        """
        self.data: dict[str, Any] = {}
        self.pre_filter_results: dict[str, PreFilterResult] = {}
        self.pre_score_results: dict[str, Status] = {}
        self.fits: BoolColumn = np.zeros(0, np.bool_)
        self.totals: Totals = np.zeros(0, np.int64)
        self.summaries: Summaries = {}
        self.asked_since_beat = False
        self._runtime = runtime
        self._parts = ColumnParts() if parts is None else parts
        self._changes = self._parts.changes
        self._fragments = runtime.fragments(signature) if signature else {}
        self._filters: dict[str, ColumnPart] | None = None
        self._scores: dict[str, ColumnPart] | None = None
        self._summaries_hold = False
        self._fingerprints: dict[tuple[str, str], tuple[Hashable, int]] = {}
        self._fitting_rows: Rows | None = None
        self._cluster_filters: dict[str, KeptColumn[np.bool_]] = {}
        self._cluster_scores: dict[str, KeptColumn[np.int64]] = {}
        self._read = self._totals_read = NOTHING_READ
        self._held = self._said = 0
        self._said_in = [0, 0, 0, 0]
        self._given_back = False
        self._asked = False

    def give_back(self) -> None:
        """Leave the parts, because this signature is dropped; a part that no other signature uses is dropped, too."""
        self.count()
        self._given_back = True  # an evaluation that is not over may still write here; its bytes would be counted for ever
        self._parts.held -= self._held
        self._parts.said -= self._said
        for part in (*(self._filters or {}).values(), *(self._scores or {}).values()):
            self._parts.leave(part)
        self._parts = ColumnParts()  # for an evaluation that is not over

    def asked_again(self, cluster: Cluster, wanted: int) -> bool:
        """Judge whether columns of all nodes pay for a pod that is content with a part of them.

        They pay if pods like it come again, and not too much has changed since. The first pod of its kind does without.

        Returns:
            True if the columns are to be brought up to date.
        """
        again, self._asked = self._asked, True
        if not again or len(self.fits) != cluster.size:
            return again
        self._changes.look(cluster)
        rows = self._changes.since(cluster, self._read)
        return rows is not None and len(rows) <= wanted

    def forget_rows(self) -> None:
        """Drop what is quickly found again, because pods of another signature come now."""
        self._fitting_rows = None

    def count(self) -> int:
        """Bring the profile's count of bytes up to date with what is kept here, besides the parts.

        Returns:
            Bytes of what plugins said of the pod, without columns; above `LARGEST_TEXT`, any number above it.
        """
        if self._given_back:
            return 0
        kept: list[KeptColumn[Any]] = [*self._cluster_filters.values(), *self._cluster_scores.values()]
        said_before, said = self._said, self._bytes_said()
        held = self.fits.nbytes + self.totals.nbytes + sum(column.nbytes for column in kept) + said
        self._parts.held += held - self._held
        self._parts.said += said - said_before
        self._held = held
        return said

    def _bytes_said(self) -> int:
        """Bytes of the plugins' answers about the pod and of fingerprints. Each is counted once, when it is new."""
        tables: tuple[Mapping[Any, Any], ...] = (self.data, self.pre_filter_results, self.pre_score_results, self._fingerprints)
        for index, table in enumerate(tables):
            counted = self._said_in[index]
            if len(table) > counted:
                self._said += bytes_of(list(islice(table.items(), counted, None)), LARGEST_TEXT)
                self._said_in[index] = len(table)
        return self._said

    # --- filters -----------------------------------------------------------------------------------------------------------

    def refresh_filters(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        """Bring `fits` up to date with everything that changed since the last call."""
        if self._filters is None:
            filters = [p for p in self._runtime.filter if p.reads is not Reads.CLUSTER and p.name not in state.skip_filter]
            self._filters = {plugin.name: self._part(plugin, FILTER) for plugin in filters}
        changes = self._changes
        now = changes.look(cluster)
        if self._read is now:  # the same object while no journal moved: the whole cost of a pod after one like it
            return
        columns = self._refreshed(self._filters, state, pod, cluster, nodes_read=self._read.nodes)
        rows = changes.since(cluster, self._read) if len(self.fits) == cluster.size else None
        if rows is None:
            self.fits = _all_pass(columns, cluster, None)
            self._fits_changed()
            self._totals_read = NOTHING_READ  # totals were made for other rows
            self.count()
        elif len(rows):
            fits = _all_pass(columns, cluster, rows)
            # A node that takes another's row may fit as that one did; the normalisation over feasible nodes must see it all the same.
            if self._read.nodes != now.nodes or not np.array_equal(fits, self.fits[rows]):
                self._fits_changed()
            self.fits[rows] = fits
        self._read = now

    def _part(self, plugin: FilterPlugin | ScorePlugin, point: str) -> ColumnPart:
        return self._parts.use(plugin, point, self._fragments.get(plugin.name, ()))

    def _refreshed(
        self, parts: Mapping[str, ColumnPart], state: CycleState, pod: PodInfo, cluster: Cluster, *, nodes_read: int
    ) -> list[KeptColumn[Any]]:
        """Return the parts' columns as they stand. A column that reads nodes alone holds while no node has changed since."""
        changes = self._changes
        same_nodes = nodes_read == changes.now.nodes
        return [
            part.column if same_nodes and part.of_nodes_alone and part.column is not None
            else part.refreshed(state, pod, cluster, changes)
            for part in parts.values()
        ]  # fmt: skip

    def _fits_changed(self) -> None:
        self._summaries_hold = False
        self._fitting_rows = None

    def fitting_rows(self) -> Rows:
        """Return the rows where `fits` is true, ascending; not to be written."""
        if self._fitting_rows is None:
            self._fitting_rows = np.flatnonzero(self.fits)
        return self._fitting_rows

    def passes(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, cluster: Cluster) -> BoolColumn:
        """Return the column of one filter, local or not. `refresh_filters` comes first.

        Returns:
            True if it lets the pod pass; shape (size,), not to be written.
        """
        if plugin.reads is Reads.CLUSTER:
            return self.cluster_filter(plugin, state, pod, cluster).column()
        column = (self._filters or {})[plugin.name].column
        assert column is not None  # `refresh_filters` comes first
        return column.column()

    def cluster_filter(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, cluster: Cluster) -> KeptColumn[np.bool_]:
        """Return the column of a filter with `Reads.CLUSTER`; the kept one if the filter's fingerprint promises that it holds."""
        state.steps.plugin_begins()
        return self._whole(self._cluster_filters, plugin, FILTER, plugin.fingerprint(state, cluster), plugin.filter, (state, pod, cluster))

    def _whole(
        self, columns: dict[str, KeptColumn[V]], plugin: FilterPlugin | ScorePlugin, point: str, fingerprint: Hashable | None,
        ask: Callable[..., NDArray[V]], asked: tuple[CycleState, PodInfo, Cluster],
    ) -> KeptColumn[V]:  # fmt: skip
        """Return a column over all rows: the kept one if the fingerprint promises that it holds."""
        state, _, cluster = asked
        # The size counts, too: a fingerprint of a plugin may say nothing of rows that were added.
        key, promise = (point, plugin.name), (fingerprint, cluster.size)
        kept = columns.get(plugin.name)
        if kept is None or fingerprint is None or self._fingerprints.get(key) != promise:
            kept = columns[plugin.name] = KeptColumn(ask(*asked, cluster.all_rows))
            state.steps.plugin_ended(plugin.name, point)
            self._fingerprints[key] = promise
            self.count()
        return kept

    # --- scores ------------------------------------------------------------------------------------------------------------

    def refresh_scores(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        """Bring raw scores and `totals` up to date. `refresh_filters` comes first."""
        if self._scores is None:
            self._scores = {plugin.name: self._part(plugin, SCORE) for plugin in self._local_scores(state)}
        changes = self._changes
        now = changes.look(cluster)
        if self._totals_read is now:
            return
        self._refreshed(self._scores, state, pod, cluster, nodes_read=self._totals_read.nodes)
        plugins = self._local_scores(state)
        rows = changes.since(cluster, self._totals_read) if len(self.totals) == cluster.size else None
        if rows is None:
            self._weigh_all(plugins, state, self.summarise(plugins, state, self.fits))
        else:
            self._mend_totals(plugins, state, rows)
        self._totals_read = now

    def _local_scores(self, state: CycleState) -> list[ScorePlugin]:
        return [p for p in self._runtime.score if p.reads is not Reads.CLUSTER and p.name not in state.skip_score]

    def _mend_totals(self, plugins: Sequence[ScorePlugin], state: CycleState, rows: Rows) -> None:
        # A pod that comes or goes may change the highest raw score, and with it the scores of all rows.
        moved = any(plugin.reads is Reads.NODE_AND_ITS_PODS and self.summaries[plugin.name] is not None for plugin in plugins)
        if not self._summaries_hold or moved:
            summaries = self.summarise(plugins, state, self.fits)
            if summaries != self.summaries:
                self._weigh_all(plugins, state, summaries)
                return
            self._summaries_hold = True
        if len(rows):
            self.totals[rows] = self._weigh(plugins, state, rows, self.summaries, self.fits[rows])

    def _weigh_all(self, plugins: Sequence[ScorePlugin], state: CycleState, summaries: Summaries) -> None:
        # In this order: where scores are out of range, the old totals stay beside the summaries they were made with.
        self.totals = self._weigh(plugins, state, None, summaries, self.fits)
        self.summaries, self._summaries_hold = summaries, True
        self.count()

    def _raw(self, plugin: ScorePlugin) -> KeptColumn[np.int64]:
        column = (self._scores or {})[plugin.name].column
        assert column is not None  # `refresh_scores` comes first
        return column

    def summarise(self, plugins: Sequence[ScorePlugin], state: CycleState, feasible: BoolColumn) -> Summaries:
        """Return what each plugin's normalisation needs to know of the feasible rows.

        Args:
            plugins: local ones.
            state: the state that PreScore left.
            feasible: a mask, shape (size,).

        Returns:
            By plugin, its summary; None if it has no normalisation.
        """
        return {plugin.name: self._summary(plugin, state, feasible) if plugin.normalised else None for plugin in plugins}

    def _summary(self, plugin: ScorePlugin, state: CycleState, feasible: BoolColumn) -> Hashable | None:
        raw = self._raw(plugin).at(None)
        by_maximum = type(plugin).summarise is MaxNormalised.summarise
        if isinstance(raw, int):
            if by_maximum:
                return max(raw, 0) if feasible.any() else 0
            return plugin.summarise(state, np.full(np.count_nonzero(feasible), raw, np.int64))
        if by_maximum:  # the same, without the raw scores in a plugin's width
            return int(raw.max(initial=0, where=feasible))
        return plugin.summarise(state, raw[feasible].astype(np.int64, copy=False))

    def totals_among(self, state: CycleState, feasible: BoolColumn) -> tuple[Totals, Summaries]:
        """Return totals and summaries if fewer rows are feasible than `fits` says: local scores, normalised over those alone.

        Args:
            state: the state that PreScore left.
            feasible: a mask, shape (size,); the totals have the same shape.
        """
        plugins = self._local_scores(state)
        summaries = self.summarise(plugins, state, feasible)
        if summaries == self.summaries:
            return self.totals | (feasible.view(np.int8) - np.int8(1)), summaries  # twice as fast as `np.where`: all bits of -1 are set
        return self._weigh(plugins, state, None, summaries, feasible), summaries

    def _weigh(
        self, plugins: Sequence[ScorePlugin], state: CycleState, rows: Rows | None, summaries: Summaries, feasible: BoolColumn
    ) -> Totals:
        """Totals of these rows, or of all; `NOT_FEASIBLE` where they are not `feasible`, of the same shape."""
        kind = self._runtime.totals_kind
        total, alike = np.zeros(len(feasible), kind), 0
        for plugin in plugins:
            weight, scores = self._runtime.weight(plugin), self._normalised(plugin, state, rows, summaries[plugin.name], feasible)
            if isinstance(scores, int):
                alike += weight * scores
            else:  # what is too wide for a total belongs to a row that is not feasible
                np.add(total, scores if weight == 1 else scores.astype(kind) * kind.type(weight), out=total, casting="unsafe")
        total += kind.type(alike)
        total[~feasible] = NOT_FEASIBLE
        return total

    def _normalised(
        self, plugin: ScorePlugin, state: CycleState, rows: Rows | None, summary: Hashable | None, feasible: BoolColumn
    ) -> Totals | int:
        """Return the plugin's scores in these rows; one number if all rows have the same. Raises `InvalidScoreError`."""
        column = self._raw(plugin)
        raw = column.at(rows)
        if summary is None:
            if column.low >= 0 and column.high <= MAX_NODE_SCORE:
                return raw
            scores: Totals = np.full(len(feasible), raw, np.int64) if isinstance(raw, int) else raw
        elif isinstance(raw, int):
            one = plugin.normalise(state, np.array([raw], np.int64), summary)
            check_range(plugin, one[: np.count_nonzero(feasible)], self._runtime.failures)
            return int(one[0])
        else:
            scores = plugin.normalise(state, raw.astype(np.int64, copy=False), summary)
        check_range(plugin, scores[feasible], self._runtime.failures)
        return scores

    def local_score(self, plugin: ScorePlugin, state: CycleState, rows: Rows, summary: Hashable | None) -> tuple[IntColumn, IntColumn]:
        """Return the scores of one local plugin.

        Args:
            plugin: the plugin.
            state: the state that PreScore left.
            rows: shape (k,).
            summary: the plugin's summary; None: it has no normalisation.

        Returns:
            Raw and normalised scores, shape (k,) each.
        """
        raw = self._raw(plugin).column(rows)
        return raw, raw if summary is None else plugin.normalise(state, raw, summary)

    def cluster_score(self, plugin: ScorePlugin, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> IntColumn:
        """Return the raw scores of a plugin that reads the cluster; kept ones if its fingerprint promises that they hold.

        Args:
            plugin: a plugin with `Reads.CLUSTER`.
            state: the state that PreScore left.
            pod: one of this signature.
            cluster: the cluster as it stands.
            feasible: rows, shape (k,).

        Returns:
            Scores of the rows `feasible`, shape (k,); `NOTHING_SCORED` where all of them are 0.
        """
        state.steps.plugin_begins()
        fingerprint = plugin.fingerprint(state, cluster)
        if fingerprint is None:
            scores = plugin.score(state, pod, cluster, feasible)
            state.steps.plugin_ended(plugin.name, SCORE)
            return scores
        kept = self._whole(self._cluster_scores, plugin, SCORE, fingerprint, plugin.score, (state, pod, cluster))
        return NOTHING_SCORED if kept.only == 0 and not plugin.normalised else kept.column(feasible)


def _all_pass(columns: Sequence[KeptColumn[np.bool_]], cluster: Cluster, rows: Rows | None) -> BoolColumn:
    """Rows that hold a node and pass in all of the columns: of these rows, or of all. A new array."""
    fits = cluster.present.copy() if rows is None else cluster.present[rows]
    for column in columns:
        if column.only != 1:
            fits &= column.column(rows)
    return fits
