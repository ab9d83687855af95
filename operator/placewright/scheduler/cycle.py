"""The scheduling cycle: one pod, all nodes, one decision. It never awaits and changes nothing: the caller assumes and binds.

PreFilter · Filter · (nothing fits: PostFilter) · PreScore · Score · choose.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.interface import (
    CycleState,
    Diagnosis,
    IntColumn,
    PodGroupPlugin,
    PostFilterResult,
    Rows,
)
from placewright.framework.runtime.evaluation import Evaluation, Evaluator, PluginScore
from placewright.framework.runtime.nodesample import Sampler, candidate_count
from placewright.framework.runtime.podcolumns import Totals, rows_named
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.status import Code, Status
from placewright.framework.steps import POST_FILTER, Steps
from placewright.queue.nominator import Nominator
from placewright.scheduler.decisiondetail import NO_NODE_REFUSED, Choice, DecisionDetail, Refused
from placewright.scheduler.messages import NO_NODES, fit_error

#: Withdraws an earlier nomination.
NO_NOMINATION: Final = NodeName("")
NOTHING_EXTRA: Final[Mapping[str, IntColumn]] = {}
#: The outcome of PostFilter where it was not run.
NOTHING_TRIED: Final = PostFilterResult(Status(Code.UNSCHEDULABLE))


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """A decision: this pod goes to that node.

    Attributes:
        runtime: the profile generation that decided.
        feasible: how many nodes could have held the pod.
        nodes: how many there were.
        score, runner_up: totals of the chosen and of the best other node (None: there was no other, or nothing was scored).
        plugins: each plugin's weighted part of `score`.
        ties: how many nodes shared the highest score.
        best: the chosen node, and after it the next best ones where the decision tells them.
        parts: by plugin, its part in the total of each node in `best`; empty where nothing was scored.
    """

    pod: PodInfo
    node: NodeName
    runtime: ProfileRuntime
    state: CycleState
    feasible: int
    score: int = 0
    runner_up: int | None = None
    plugins: dict[str, int] = field(default_factory=dict)
    ties: int = 1
    best: tuple[NodeName, ...] = ()
    parts: dict[str, list[PluginScore]] = field(default_factory=dict)
    nodes: int = 0


class FitError(Exception):
    """The pod cannot be placed now.

    Attributes:
        message: what the pod's event and condition say.
        internal: True when something broke, False when plugins rejected the pod.
        unschedulable_plugins, pending_plugins: who rejected it; empty when something broke.
        nominated_node: node that preemption made room on; "" clears an earlier nomination, None leaves it.
        victims: pods to evict from the nominated node.
        refused: who rejected how many nodes.
        diagnosis: the whole of why no node fits; None where it did not come to that.
    """

    def __init__(
        self,
        message: str,
        *,
        internal: bool = False,
        unschedulable_plugins: frozenset[str] = frozenset(),
        pending_plugins: frozenset[str] = frozenset(),
        nominated_node: NodeName | None = None,
        victims: tuple[PodInfo, ...] = (),
        refused: Refused = NO_NODE_REFUSED,
    ) -> None:
        super().__init__(message)
        self.diagnosis: Diagnosis | None = None
        self.message = message
        self.internal = internal
        self.unschedulable_plugins = unschedulable_plugins
        self.pending_plugins = pending_plugins
        self.nominated_node = nominated_node
        self.victims = victims
        self.refused = refused


def broken(message: str) -> FitError:
    """Something broke, and no plugin is to blame; as upstream, an earlier nomination goes."""
    return FitError(message, internal=True, nominated_node=NO_NOMINATION)


class SchedulingCycle:
    """Decides pods on one cluster. One object serves all profiles; each profile's evaluator comes with the call.

    Attributes:
        detail: what decisions tell about themselves.
    """

    def __init__(self, cluster: Cluster, nominator: Nominator, rng: random.Random, detail: DecisionDetail | None = None) -> None:
        self.detail = detail or DecisionDetail(lambda: 0.0)
        self._cluster = cluster
        self._nominator = nominator
        self._rng = rng
        self._sampler = Sampler()

    def place(
        self, evaluator: Evaluator, pod: PodInfo, steps: Steps | None = None, within: frozenset[NodeName] | None = None
    ) -> ScheduleResult:
        """Choose a node; raise `FitError` when there is none. `steps`: where the time it takes is noted. `within`: see `evaluate`."""
        alone = within is None and self._nominator.node_of(pod.uid) is None
        evaluation = self.evaluate(evaluator, pod, steps, within, self._sampler if alone else None)
        if evaluation.count == 0:
            diagnosis = evaluator.diagnose(evaluation)
            refused = self.detail.refused(self._cluster, diagnosis)
            raise no_placement(diagnosis, make_room(evaluator.runtime, evaluation, diagnosis), refused)
        return self.chosen(evaluator, evaluation)

    def refusal(self, evaluator: Evaluator, evaluation: Evaluation) -> FitError:
        """Why no node can hold the pod, where nobody is to make room for it alone."""
        diagnosis = evaluator.diagnose(evaluation)
        return no_placement(diagnosis, NOTHING_TRIED, self.detail.refused(self._cluster, diagnosis))

    # --- its steps, for whoever has something to ask in between -----------------------------------------------------------------

    def evaluate(
        self,
        evaluator: Evaluator,
        pod: PodInfo,
        steps: Steps | None = None,
        within: frozenset[NodeName] | None = None,
        sampler: Sampler | None = None,
    ) -> Evaluation:
        """Which nodes can hold the pod; raise `FitError` when there are no nodes at all, or something broke.

        `within`: only these nodes are candidates, because the pod's group is to stand in one place. `sampler`: as many nodes are enough as
        the profile wants scored.
        """
        if self._cluster.node_count == 0:
            raise FitError(NO_NODES, nominated_node=NO_NOMINATION)
        try:
            evaluation = evaluator.evaluate(pod, steps, sampler)
        except CycleError as problem:
            raise broken(str(problem)) from problem
        return evaluation if within is None else self._narrowed(evaluation, within, evaluator.runtime.pod_groups)

    def _narrowed(self, evaluation: Evaluation, within: frozenset[NodeName], by: PodGroupPlugin | None) -> Evaluation:
        evaluation.feasible = evaluation.feasible & rows_named(self._cluster, within)
        evaluation.count = int(np.count_nonzero(evaluation.feasible))
        if evaluation.refusal is None and by is not None:
            evaluation.candidates = within if evaluation.candidates is None else evaluation.candidates & within
            evaluation.narrowed_by = (*evaluation.narrowed_by, by.name)
        return evaluation

    def chosen(self, evaluator: Evaluator, evaluation: Evaluation, *, compared: bool = False) -> ScheduleResult:
        """The decision among feasible nodes, of which there is at least one; `compared`: its score is wanted even if there is no other."""
        row = self.nominated_row(evaluation)
        if row is not None:
            return self.settled(evaluator, evaluation, row)
        if evaluation.count > 1:
            self.sample(evaluator.runtime, evaluation)
        return self.best(evaluator, evaluation, compared=compared)

    def nominated_row(self, evaluation: Evaluation) -> int | None:
        """The row that preemption made room on for this pod, when it fits there now."""
        node = self._nominator.node_of(evaluation.pod.uid)
        row = None if node is None else self._cluster.row(node)
        return row if row is not None and evaluation.feasible[row] else None

    def draw(self, things: int) -> int:
        """One of several equally good things, by its number from 0; from the same seed as the choice among nodes."""
        return self._rng.randrange(things)

    def sample(self, runtime: ProfileRuntime, evaluation: Evaluation) -> None:
        """Narrow the feasible nodes to as many as the profile wants scored."""
        percentage = runtime.profile.percentage_of_nodes_to_score
        if percentage is not None and not evaluation.sampled:
            nodes = candidate_count(self._cluster, evaluation.candidates)
            evaluation.feasible = self._sampler.narrow(evaluation.feasible, nodes, percentage)
            evaluation.count = int(np.count_nonzero(evaluation.feasible))

    def best(
        self, evaluator: Evaluator, evaluation: Evaluation, extra: Mapping[str, IntColumn] = NOTHING_EXTRA, *, compared: bool = False
    ) -> ScheduleResult:
        """The feasible node with the highest total; a single one is not scored, unless it is to be `compared` with other decisions.

        `extra`: by name, what others add to the scores, shape (size,). Raises `FitError` when a plugin breaks.
        """
        if evaluation.count == 1 and not compared:
            return self.settled(evaluator, evaluation, int(np.flatnonzero(evaluation.feasible)[0]))
        try:
            totals, lowest = _with(extra, evaluator.score(evaluation), evaluation.rows)
            choice = choose(totals, self._rng)
            rows = self.detail.rows(totals, choice) if self.detail.on else np.array([choice.row], np.intp)
            parts = evaluator.breakdown(evaluation, rows)
            if self.detail.on:
                self.detail.taken()
            if evaluator.impact.due():
                evaluator.impact.note(totals[evaluation.rows], evaluator.parts(evaluation))
        except (CycleError, InvalidScoreError) as problem:
            raise broken(str(problem)) from problem
        for name, added in extra.items():
            parts[name] = [PluginScore(score, score, 1) for score in added[rows].tolist()]
        best = tuple([self._name(row, evaluation) for row in rows.tolist()])
        return ScheduleResult(
            evaluation.pod,
            best[0],
            evaluator.runtime,
            evaluation.state,
            evaluation.count,
            score=choice.total + lowest,
            runner_up=None if choice.runner_up is None else int(totals[choice.runner_up]) + lowest,
            plugins={plugin: scores[0].product for plugin, scores in parts.items()},
            ties=choice.ties,
            best=best,
            parts=parts,
            nodes=self._cluster.node_count,
        )

    def settled(self, evaluator: Evaluator, evaluation: Evaluation, row: int) -> ScheduleResult:
        """The decision for a row that need not be compared with others."""
        node = self._name(row, evaluation)
        return ScheduleResult(
            evaluation.pod, node, evaluator.runtime, evaluation.state, evaluation.count, best=(node,), nodes=self._cluster.node_count
        )

    def _name(self, row: int, evaluation: Evaluation) -> NodeName:
        name = self._cluster.names[row]
        if name is None:
            raise RuntimeError(f"row {row} was chosen for {evaluation.pod.key} but holds no node")
        return name


def _with(extra: Mapping[str, IntColumn], totals: Totals, rows: Rows) -> tuple[Totals, int]:
    """The totals with these added, all above `NOT_FEASIBLE`, and what was taken off all of them for that, 0 or less."""
    if not extra:
        return totals, 0
    wide = totals.astype(np.int64)
    for scores in extra.values():
        wide[rows] += scores[rows]
    lowest = min(int(wide[rows].min()), 0)
    wide[rows] -= lowest
    return wide, lowest


def make_room(runtime: ProfileRuntime, evaluation: Evaluation, diagnosis: Diagnosis) -> PostFilterResult:
    """PostFilter, with its time taken; nobody need leave for a pod that is beyond a limit."""
    if evaluation.pod.extent.excess:
        return NOTHING_TRIED
    steps = evaluation.state.steps
    steps.begin()
    result = runtime.run_post_filter(evaluation.state, evaluation.pod, diagnosis)
    steps.end(POST_FILTER, result.status.code)
    return result


def no_placement(diagnosis: Diagnosis, made_room: PostFilterResult, refused: Refused = NO_NODE_REFUSED) -> FitError:
    """No node fits, and this came of trying to make room."""
    if made_room.status.code is not Code.SUCCESS:
        diagnosis.postfilter_message = made_room.status.message
    failure = FitError(
        fit_error(diagnosis),
        unschedulable_plugins=frozenset(diagnosis.unschedulable_plugins),
        pending_plugins=frozenset(diagnosis.pending_plugins),
        nominated_node=made_room.nominated_node,
        victims=made_room.victims,
        refused=refused,
    )
    failure.diagnosis = diagnosis
    return failure


def choose(totals: Totals, rng: random.Random) -> Choice:
    """Choose uniformly among the rows with the highest total; rows below 0 do not take part."""
    best = totals.max()
    tied = np.flatnonzero(totals == best)
    row = int(tied[rng.randrange(len(tied))] if len(tied) > 1 else tied[0])
    if len(tied) > 1:
        return Choice(row, int(best), len(tied), int(tied[1] if tied[0] == row else tied[0]))
    return Choice(row, int(best), 1, _second(totals, row))


def _second(totals: Totals, row: int) -> int | None:
    """The first of the rows with the highest total beside this one; None where no other takes part."""
    parts = ((0, totals[:row]), (row + 1, totals[row + 1 :]))
    found = [begin + int(part.argmax()) for begin, part in parts if len(part)]
    second = max(found, key=lambda second: (totals[second], -second), default=None)
    return second if second is not None and totals[second] >= 0 else None
