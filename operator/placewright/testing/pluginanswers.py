"""All answers of one plugin about one pod, in the order of the scheduling cycle, each held against the contract.

`PluginQuestions.answers` asks about all nodes at once, then about each alone, and compares. What depends on more than one moment (kept
columns, hints) or more than one pod (signatures) is compared by `plugintrial`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from textwrap import shorten
from time import perf_counter
from typing import Any, Final, TypeVar

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import PluginError
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    FilterPlugin,
    IntColumn,
    PreFilterPlugin,
    PreScorePlugin,
    Reads,
    Rejection,
    Rows,
    ScorePlugin,
)
from placewright.framework.remedies import RemedyPlugin
from placewright.framework.rowwise import RowwiseFilter
from placewright.framework.runtime.guard import PluginWroteError
from placewright.framework.status import Code, Status, unresolvable
from placewright.testing.movedclock import MovedClock
from placewright.testing.pluginreport import BreachError, CaseCounts, Promise

T = TypeVar("T")
_DAY_SECONDS: Final = 86_400
#: Characters of an answer in a message.
_MOST_SHOWN: Final = 120
#: Hours of a day, days of a week and seasons all differ within this time.
_MOST_DAYS: Final = 400.0
#: The methods of the points, by which their author knows them.
_METHODS: Final = {
    "Sign": "sign", "PreFilter": "pre_filter", "Filter": "filter", "PreScore": "pre_score", "Score": "score", "NormalizeScore": "normalise"
}  # fmt: skip
#: The status of nodes that PreFilter does not name.
_NOT_NAMED: Final = unresolvable("is none of the nodes that PreFilter names")


@dataclass
class PodAnswers:
    """A plugin's answers about one pod.

    Attributes:
        state: values that the plugin keeps during this cycle.
        again: the same of a cycle in which each question is asked a second time.
        moved: the same of a cycle at another time of day.
        error: text of an ERROR status; empty without one. Nothing was asked after it.
        refused: PreFilter's rejection of the pod as a whole.
        skipped: PreFilter or PreScore said SKIP.
        rejected: reasons why the pod cannot go to a node, by node.
        accepted: the other nodes.
        scores: scores from 0 to 100, by accepted node; empty if there was nothing to score.
    """

    state: CycleState
    again: CycleState = field(default_factory=CycleState)
    moved: CycleState = field(default_factory=CycleState)
    error: str = ""
    refused: Status | None = None
    skipped: bool = False
    rejected: dict[NodeName, Status] = field(default_factory=dict)
    accepted: set[NodeName] = field(default_factory=set)
    scores: dict[NodeName, int] = field(default_factory=dict)

    def same_columns(self, other: PodAnswers) -> bool:
        """Return whether both give the same columns; reasons are not compared."""
        return self.rejected.keys() == other.rejected.keys() and self.accepted == other.accepted and self.scores == other.scores


class PluginQuestions:
    """Asks one plugin, whose calls are guarded, about pods on one cluster.

    Args:
        plugin: the plugin that `ProfileRuntime` built.
        cluster: the plugin's.
        tally: counts what was asked and how long it took.
        alone: ask about each node alone, too.
        repeat: number of times that each question is asked again, before it is asked once more with the clock moved; 0: neither.
    """

    def __init__(self, plugin: Any, cluster: Cluster, tally: CaseCounts, *, alone: bool = True, repeat: int = 1) -> None:
        self._plugin = plugin
        self._cluster = cluster
        self._tally = tally
        self._alone = alone
        self._repeat = repeat
        self._clock = MovedClock(type(plugin))
        self._dice = random.Random(tally.cases[Promise.REPEATS])  # other draws at each moment, the same in each run
        #: Days by which the clock is moved for the pod that is asked about.
        self._days = 0.0

    def answers(self, pod: PodInfo) -> PodAnswers:
        """Ask for the signature, then PreFilter, Filter, explain, PreScore, Score and normalise.

        Args:
            pod: waits.

        Returns:
            The plugin's answers. With `alone`, each was found to be equal for a node by itself and among all.

        Raises:
            BreachError: an answer breaks `ANSWERS`, `ROWS`, `EXPLAIN`, `RANGE` or `UNTOUCHED`. No question follows the first breach.
        """
        found = PodAnswers(CycleState())
        self._days = self._dice.uniform(1.0, _MOST_DAYS)
        if isinstance(self._plugin, FilterPlugin | ScorePlugin):
            self._timed("Sign", found, lambda _state: self._plugin.sign(pod))
        rows = self._pre_filter(pod, found)
        if found.error or found.refused is not None:
            return found
        rows = self._filter(pod, found, rows)
        found.accepted = {self._name(row) for row in rows.tolist()}
        if len(rows) and isinstance(self._plugin, ScorePlugin) and not found.error:
            self._score(pod, found, rows)
        return found

    def _pre_filter(self, pod: PodInfo, found: PodAnswers) -> Rows:
        """Return the rows that PreFilter leaves; all rows if the plugin has no PreFilter."""
        rows = self._cluster.rows()
        if not isinstance(self._plugin, PreFilterPlugin):
            return rows
        result = self._timed("PreFilter", found, lambda state: self._plugin.pre_filter(state, pod, self._cluster))
        code = result.status.code
        if code is Code.ERROR:
            found.error = result.status.message
        elif code is Code.SKIP:
            # The framework remembers SKIP here, and asks neither `filter` nor `explain` of this cycle.
            found.state.skip_filter.add(self._plugin.name)
            found.skipped = True
        elif not result.status.ok:
            found.refused = result.status
            found.rejected = {self._name(row): result.status for row in rows.tolist()}
            self._tally.rejected += len(rows)
        elif result.nodes is not None:
            found.rejected = {self._name(row): _NOT_NAMED for row in rows.tolist() if self._name(row) not in result.nodes}
            self._tally.rejected += len(found.rejected)
            return np.array([row for row in rows.tolist() if self._name(row) in result.nodes], np.intp)
        return rows

    # --- filter ----------------------------------------------------------------------------------------------------------------------

    def _filter(self, pod: PodInfo, found: PodAnswers, rows: Rows) -> Rows:
        """Return the rows that can hold the pod."""
        plugin, state, cluster = self._plugin, found.state, self._cluster
        if not isinstance(plugin, FilterPlugin) or plugin.name in state.skip_filter:
            self._tally.accepted += len(rows)
            return rows
        passes: BoolColumn = self._timed("Filter", found, lambda state: plugin.filter(state, pod, cluster, cluster.all_rows))[rows]
        self._tally.accepted += int(np.count_nonzero(passes))
        self._tally.rejected += int(np.count_nonzero(~passes))
        if self._alone:
            # The framework keeps a column and later asks about single rows of it again: both answers must be equal.
            for row, passed in zip(rows.tolist(), passes.tolist(), strict=True):
                alone = bool(self._checked(partial(plugin.filter, state, pod, cluster, _only(row)))[0])
                self._same(alone, passed, f"filter says {passed} for node {self._name(row)} among all nodes and {alone} for it alone")
        rejected = rows[~passes]
        if len(rejected):
            self._explain(pod, found, rejected)
            # A column holds no statuses. `failure` tells an error about a node apart from a rejection.
            status: Status = self._checked(partial(plugin.failure, state, pod, cluster, rejected))
            found.error = status.message
        if self._alone and isinstance(plugin, RowwiseFilter):
            self._judge(plugin, pod, found, rows, passes)
        return rows[passes]

    def _explain(self, pod: PodInfo, found: PodAnswers, rejected: Rows) -> None:
        plugin, state, cluster = self._plugin, found.state, self._cluster
        groups: list[Rejection] = self._timed(
            "explain", found, lambda state: plugin.explain(state, pod, cluster, rejected), promise=Promise.EXPLAIN
        )
        self._tally.saw(Promise.EXPLAIN)
        for status, rows in groups:
            found.rejected |= {self._name(row): status for row in rows.tolist()}
        for row in rejected.tolist() if self._alone else ():
            [alone] = self._checked(partial(plugin.explain, state, pod, cluster, _only(row)), promise=Promise.EXPLAIN)
            among = found.rejected[self._name(row)]
            if alone.status != among:
                words = f'explain says "{among.message}" of node {self._name(row)} among others and "{alone.status.message}" of it alone'
                raise BreachError(Promise.ROWS, "Filter", words)
        if isinstance(plugin, RemedyPlugin):
            self._checked(lambda: plugin.nearest_first(state, pod, cluster, rejected))
            self._checked(lambda: plugin.remedies(state, pod, cluster, int(rejected[0])))

    def _judge(self, plugin: RowwiseFilter, pod: PodInfo, found: PodAnswers, rows: Rows, passes: BoolColumn) -> None:
        """Preemption's questions: a judge says of a row what the filter says, with its pods and without one of them."""
        judge = self._checked(lambda: plugin.judge(found.state, pod, self._cluster))
        if judge is None:
            return
        judged: BoolColumn = self._checked(lambda: judge.passes(rows))
        for row, passed, verdict in zip(rows.tolist(), passes.tolist(), judged.tolist(), strict=True):
            self._same(verdict, passed, f"filter says {passed} for node {self._name(row)} and the judge says {verdict}")
            leaving = next(iter(self._cluster.pods_on(self._name(row))), None)
            if leaving is None:
                continue
            # Preemption takes victims off a row and asks the same judge again, instead of making one for each victim.
            with self._cluster.dry_run_on_row(remove=[leaving], row=row):
                without = bool(self._checked(partial(judge.passes, _only(row)))[0])
                afresh = self._passes_alone(plugin, pod, row)
            words = f"without pod {leaving.key} filter says {afresh} for node {self._name(row)}, and an earlier judge says {without}"
            self._same(without, afresh, words)

    def _passes_alone(self, plugin: RowwiseFilter, pod: PodInfo, row: int) -> bool:
        """PreFilter and Filter on one row, in a cycle of their own."""
        state = CycleState()
        if isinstance(plugin, PreFilterPlugin):
            status = self._checked(lambda: plugin.pre_filter(state, pod, self._cluster)).status
            if not status.ok:
                # SKIP rejects no node. Any other status here rejects all of them.
                return status.code is Code.SKIP
        return bool(self._checked(lambda: plugin.filter(state, pod, self._cluster, _only(row)))[0])

    # --- score -----------------------------------------------------------------------------------------------------------------------

    def _score(self, pod: PodInfo, found: PodAnswers, feasible: Rows) -> None:
        plugin, state, cluster = self._plugin, found.state, self._cluster
        if isinstance(plugin, PreScorePlugin):
            status = self._timed("PreScore", found, lambda state: plugin.pre_score(state, pod, cluster, feasible))
            if status.code is Code.SKIP:
                found.skipped = True
                return
            if not status.ok:
                found.error = status.message
                return
        whole = plugin.reads is not Reads.CLUSTER or self._checked(lambda: plugin.fingerprint(state, cluster)) is not None
        asked = cluster.all_rows if whole else feasible
        answered: IntColumn = self._timed("Score", found, lambda state: plugin.score(state, pod, cluster, asked))
        raw = answered[feasible] if whole else answered
        # Without a fingerprint the framework asks about all feasible rows together, and never about one of them.
        for row, score in zip(feasible.tolist(), raw.tolist(), strict=True) if self._alone and whole else ():
            alone = int(self._checked(partial(plugin.score, state, pod, cluster, _only(row)))[0])
            words = f"score gives node {self._name(row)} {score} among all nodes and {alone} alone"
            self._same(alone, score, words, "Score")
        final = self._normalised(found, raw, feasible)
        self._in_range(final, feasible)
        found.scores = {self._name(row): score for row, score in zip(feasible.tolist(), final.tolist(), strict=True)}
        self._tally.scored += 1
        self._tally.told_apart += len(set(final.tolist())) > 1

    def _normalised(self, found: PodAnswers, raw: IntColumn, feasible: Rows) -> IntColumn:
        plugin, state = self._plugin, found.state
        summary = self._checked(lambda: plugin.summarise(state, raw))
        if summary is None:
            return raw
        final: IntColumn = self._timed("NormalizeScore", found, lambda state: plugin.normalise(state, raw, summary))
        for at, score in enumerate(final.tolist()) if self._alone else ():
            alone = int(self._checked(partial(plugin.normalise, state, raw[at : at + 1], summary))[0])
            words = f"normalise gives node {self._name(int(feasible[at]))} {score} among all nodes and {alone} alone"
            self._same(alone, score, words, "NormalizeScore")
        return final

    def _in_range(self, scores: IntColumn, rows: Rows) -> None:
        self._tally.saw(Promise.RANGE)
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            if not 0 <= score <= MAX_NODE_SCORE:
                raise BreachError(Promise.RANGE, "Score", f"node {self._name(row)} gets {score}")

    # --- calls -----------------------------------------------------------------------------------------------------------------------

    def _timed(self, point: str, found: PodAnswers, call: Callable[[CycleState], T], promise: Promise = Promise.ANSWERS) -> T:
        began = perf_counter()
        answer = self._checked(partial(call, found.state), promise)
        self._tally.took(point, perf_counter() - began)
        if self._repeat:
            self._repeated(point, answer, partial(call, found.again), partial(call, found.moved))
        return answer

    def _repeated(self, point: str, answer: Any, again: Callable[[], Any], moved: Callable[[], Any]) -> None:
        """Ask again, and at another time of day: both in cycles of their own."""
        self._tally.saw(Promise.REPEATS)
        method = _METHODS.get(point, point)
        named = "Filter" if point == "explain" else point
        for _ in range(self._repeat):
            self._equal(named, answer, self._checked(again, Promise.REPEATS), f"{method} gives two answers when it is asked twice")
        with self._clock.by(self._days * _DAY_SECONDS):
            later = self._checked(moved, Promise.REPEATS)
        why = f"{method} gives another answer {self._days:.1f} days later, so it reads a clock; self.handle.now() is the time of day"
        self._equal(named, answer, later, why)

    @staticmethod
    def _equal(point: str, one: Any, other: Any, says: str) -> None:
        first, second = _plain(one), _plain(other)
        if first != second:
            raise BreachError(Promise.REPEATS, point, f"{says}: {_short(first)}, then {_short(second)}")

    def _checked(self, call: Callable[[], T], promise: Promise = Promise.ANSWERS) -> T:
        with checked(promise):
            answer = call()
        self._tally.saw(Promise.ANSWERS)
        return answer

    def _same(self, one: object, other: object, words: str, point: str = "Filter") -> None:
        self._tally.saw(Promise.ROWS)
        if one != other:
            raise BreachError(Promise.ROWS, point, words)

    def _name(self, row: int) -> NodeName:
        return NodeName(self._cluster.node(row).metadata.name)


@contextmanager
def checked(promise: Promise = Promise.ANSWERS) -> Iterator[None]:
    """Turn an error that the guard finds in a call into a breach.

    Args:
        promise: the broken promise, unless the plugin wrote into an object that it was shown: then it is `UNTOUCHED`.

    Raises:
        BreachError: the call raised `PluginError`; with the extension point that the guard names.

    Example:
        with checked(Promise.UNRESERVE):
            plugin.unreserve(state, pod, node)
    """
    try:
        yield
    except PluginError as problem:
        broken = Promise.UNTOUCHED if isinstance(problem.__cause__, PluginWroteError) else promise
        raise BreachError(broken, problem.point, problem.problem) from problem


def _plain(answer: Any) -> Any:
    """Return the answer with lists in place of arrays, whose `==` gives an array."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    return [(status, rows.tolist()) for status, rows in answer] if isinstance(answer, list) else answer


def _short(answer: Any) -> str:
    return shorten(repr(answer), _MOST_SHOWN, placeholder=" …")


def _only(row: int) -> Rows:
    return np.array([row], np.intp)
