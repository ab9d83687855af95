"""The scheduling cycle: one pod, all nodes, one decision. It never awaits and changes nothing: the caller assumes and binds.

PreFilter · Filter · (nothing fits: PostFilter) · PreScore · Score · choose.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.evaluation import Evaluation, Evaluator
from placewright.framework.interface import CycleState
from placewright.framework.runtime import ProfileRuntime
from placewright.framework.status import Code
from placewright.queue.nominator import Nominator
from placewright.scheduler.messages import NO_NODES, fit_error
from placewright.scheduler.selection import Choice, Sampler, choose

#: Withdraws an earlier nomination.
NO_NOMINATION: Final = NodeName("")


@dataclass(frozen=True, slots=True)
class Placement:
    """A decision: this pod goes to that node.

    Attributes:
        runtime: the profile generation that decided.
        feasible: how many nodes could have held the pod.
        score, runner_up: totals of the chosen and of the best other node (None: there was no other, or nothing was scored).
        plugins: each plugin's weighted part of `score`.
        ties: how many nodes shared the highest score.
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


class NoPlacement(Exception):
    """The pod cannot be placed now.

    Attributes:
        message: what the pod's event and condition say.
        internal: True when something broke, False when plugins rejected the pod.
        unschedulable_plugins, pending_plugins: who rejected it; empty when something broke.
        nominated_node: node that preemption made room on; "" clears an earlier nomination, None leaves it.
        victims: pods to evict from the nominated node.
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
    ) -> None:
        super().__init__(message)
        self.message = message
        self.internal = internal
        self.unschedulable_plugins = unschedulable_plugins
        self.pending_plugins = pending_plugins
        self.nominated_node = nominated_node
        self.victims = victims


def broken(message: str) -> NoPlacement:
    """Something broke, and no plugin is to blame; as upstream, an earlier nomination goes."""
    return NoPlacement(message, internal=True, nominated_node=NO_NOMINATION)


class SchedulingCycle:
    """Decides pods on one cluster. One object serves all profiles; each profile's evaluator comes with the call."""

    def __init__(self, cluster: Cluster, nominator: Nominator, rng: random.Random) -> None:
        self._cluster = cluster
        self._nominator = nominator
        self._rng = rng
        self._sampler = Sampler()

    def place(self, evaluator: Evaluator, pod: PodInfo) -> Placement:
        """Choose a node; raise `NoPlacement` when there is none."""
        if self._cluster.node_count == 0:
            raise NoPlacement(NO_NODES, nominated_node=NO_NOMINATION)
        try:
            evaluation = evaluator.evaluate(pod)
            if evaluation.count == 0:
                raise self._no_placement(evaluator, evaluation)
            row = self._nominated_row(evaluation)
            if row is None and evaluation.count == 1:
                row = int(np.flatnonzero(evaluation.feasible)[0])
            if row is not None:
                return self._placement(evaluator, evaluation, Choice(row, 0, 1, None), scored=False)
            self._sample(evaluator.runtime, evaluation)
            totals = evaluator.score(evaluation)
        except (CycleError, InvalidScoreError) as problem:
            raise broken(str(problem)) from problem
        return self._placement(evaluator, evaluation, choose(totals, self._rng), scored=True)

    def _nominated_row(self, evaluation: Evaluation) -> int | None:
        """The row that preemption made room on for this pod, when it fits there now."""
        node = self._nominator.node_of(evaluation.pod.uid)
        row = None if node is None else self._cluster.row(node)
        return row if row is not None and evaluation.feasible[row] else None

    def _sample(self, runtime: ProfileRuntime, evaluation: Evaluation) -> None:
        percentage = runtime.profile.percentage_of_nodes_to_score
        if percentage is not None:
            nodes = self._cluster.node_count
            if evaluation.candidates is not None:
                nodes = sum(self._cluster.row(name) is not None for name in evaluation.candidates)
            evaluation.feasible = self._sampler.narrow(evaluation.feasible, nodes, percentage)
            evaluation.count = int(np.count_nonzero(evaluation.feasible))

    def _placement(self, evaluator: Evaluator, evaluation: Evaluation, choice: Choice, *, scored: bool) -> Placement:
        name = self._cluster.names[choice.row]
        if name is None:
            raise RuntimeError(f"row {choice.row} was chosen for {evaluation.pod.key} but holds no node")
        if not scored or evaluation.totals is None:
            return Placement(evaluation.pod, name, evaluator.runtime, evaluation.state, evaluation.count)
        parts = evaluator.breakdown(evaluation, np.array([choice.row], np.intp))
        return Placement(
            evaluation.pod,
            name,
            evaluator.runtime,
            evaluation.state,
            evaluation.count,
            score=choice.total,
            runner_up=None if choice.runner_up is None else int(evaluation.totals[choice.runner_up]),
            plugins={plugin: scores[0].product for plugin, scores in parts.items()},
            ties=choice.ties,
        )

    def _no_placement(self, evaluator: Evaluator, evaluation: Evaluation) -> NoPlacement:
        diagnosis = evaluator.diagnose(evaluation)
        result = evaluator.runtime.run_post_filter(evaluation.state, evaluation.pod, diagnosis)
        if result.status.code is not Code.SUCCESS:
            diagnosis.postfilter_message = result.status.message
        return NoPlacement(
            fit_error(diagnosis),
            unschedulable_plugins=frozenset(diagnosis.unschedulable_plugins),
            pending_plugins=frozenset(diagnosis.pending_plugins),
            nominated_node=result.nominated_node,
            victims=result.victims,
        )
