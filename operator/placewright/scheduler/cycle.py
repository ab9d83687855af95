"""The scheduling cycle chooses a node for one pod. It never awaits and changes no state. The caller assumes and binds the pod.

The cycle runs PreFilter and Filter, then PreScore and Score, and chooses a node. If no node fits, it runs PostFilter. kube-scheduler
copies the cluster for each cycle, so that it stands still. Here it stands still because no other code runs before the decision.

`DecisionDetail` records the best few nodes with their scores, and the rejections by plugin, before the columns change.

To record rejections costs little compared to finding them. To record the best few nodes costs a few percent of a decision among
thousands of nodes. So they are recorded within a share of the time: at low rates by every decision, and at full speed by a sample.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Final, NamedTuple

import msgspec
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
    Seconds,
)
from placewright.framework.preemption.rules import PreemptionRules
from placewright.framework.runtime.evaluation import Evaluation, Evaluator, PluginScore
from placewright.framework.runtime.nodesample import Sampler, candidate_count
from placewright.framework.runtime.podcolumns import Totals, rows_named
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.status import Code, Status, unschedulable
from placewright.framework.steps import POST_FILTER, Steps
from placewright.queue.nominator import Nominator
from placewright.scheduler.messages import NO_NODES, fit_error

#: Best nodes that a decision records, the chosen one among them.
TOP: Final = 3
#: Share of the time since the last record that may be spent on the next one.
SHARE: Final = 0.01
#: Most seconds between two records. If a record seems to need a longer pause, other work interrupted it.
_LONGEST_PAUSE: Final = 0.05
#: Kinds of rejection that one attempt records, nodes named with each, and characters of a reason. They bound the size of records.
MOST_REFUSALS: Final = 20
MOST_EXAMPLES: Final = 5
MOST_CHARACTERS: Final = 300
#: The reason of nodes that have none: extenders may drop nodes without a word.
NO_REASON: Final = "left out without a reason"
OTHER_REASONS: Final = "other reasons"
#: Marks rows that are recorded already; below every total.
_TAKEN: Final = -1


class NodeRefusal(msgspec.Struct, frozen=True, gc=False):
    """Nodes that one plugin rejected first, for one reason.

    Attributes:
        plugin: name of the plugin; empty when none is known.
        reason: text of the plugin, cut to `MOST_CHARACTERS`.
        nodes: number of nodes.
        examples: names of some of the nodes.
    """

    plugin: str
    reason: str
    nodes: int
    examples: tuple[NodeName, ...] = ()


class Refused(NamedTuple):
    """The rejections of all nodes, which could not hold a pod.

    Attributes:
        nodes: number of nodes in the cluster.
        by: groups of nodes by plugin and reason, the largest group first. Together they are all nodes. Empty if no observer wants
            details.
    """

    nodes: int = 0
    by: tuple[NodeRefusal, ...] = ()


#: No node was looked at.
NO_NODE_REFUSED: Final = Refused()


class Choice(NamedTuple):
    """The chosen row, compared with the other rows.

    Attributes:
        row: row of the chosen node.
        total: score of the chosen node.
        ties: number of nodes with that score.
        runner_up: best row that was not chosen; None when there is no other.
    """

    row: int
    total: int
    ties: int
    runner_up: int | None


class DecisionDetail:
    """Chooses the decisions that record their best nodes.

    Attributes:
        on: True if an observer wants details; otherwise none are recorded.
    """

    __slots__ = ("_began", "_clock", "_due", "on")

    def __init__(self, clock: Callable[[], float], *, on: bool = False) -> None:
        """Start without a record under way.

        Args:
            clock: seconds, finer than a microsecond.
            on: True if an observer wants details.
        """
        self.on = on
        self._clock = clock
        self._began: float | None = None
        self._due = 0.0

    def rows(self, totals: Totals, choice: Choice) -> Rows:
        """Return the rows that this decision records, the chosen row first. The caller calls `taken` once it has read their scores.

        Args:
            totals: totals of the rows; shape (size,).
            choice: the chosen row.
        """
        if self.on:
            now = self._clock()
            if now >= self._due:
                self._began = now
                return best_rows(totals, choice)
        return np.array([choice.row], np.intp)

    def taken(self) -> None:
        """Note that the scores of the rows have been read. Schedule the next record so that the cost stays within `SHARE`."""
        if self._began is not None:
            now = self._clock()
            self._due = now + min((now - self._began) / SHARE, _LONGEST_PAUSE)
            self._began = None

    def refused(self, cluster: Cluster, diagnosis: Diagnosis) -> Refused:
        """Count the nodes that do not fit, and group them if an observer wants details."""
        return Refused(diagnosis.node_count, refusals(cluster, diagnosis) if self.on else ())


def best_rows(totals: Totals, choice: Choice, most: int = TOP) -> Rows:
    """Return up to `most` rows by total, the chosen one first.

    Args:
        totals: totals of the rows; shape (size,).
        choice: the chosen row.
        most: number of rows, at least 1.

    Returns:
        Rows, shape (1 to most,).
    """
    rows, totals = [choice.row], totals.copy()
    following = choice.runner_up
    totals[choice.row] = _TAKEN
    while following is not None and len(rows) < most:
        rows.append(following)
        totals[following] = _TAKEN
        # A few maxima cost less than sorting thousands of rows.
        following = int(totals.argmax()) if len(rows) < most else None
        if following is not None and totals[following] < 0:
            following = None
    return np.array(rows, np.intp)


def refusals(cluster: Cluster, diagnosis: Diagnosis) -> tuple[NodeRefusal, ...]:
    """Group the nodes by the plugin that rejected them first and its reason.

    Args:
        cluster: cluster that knows the names of nodes.
        diagnosis: reason of each node.

    Returns:
        At most `MOST_REFUSALS` groups, the largest first; together they are all nodes.
    """
    groups: defaultdict[tuple[str, tuple[str, ...]], list[Rows]] = defaultdict(list)
    for status, rows in diagnosis.rejections:
        groups[status.plugin, status.reasons].append(rows)
    told = [
        NodeRefusal(plugin, cut(", ".join(why)), sum(map(len, parts)), _examples(cluster, parts)) for (plugin, why), parts in groups.items()
    ]
    rest = diagnosis.node_count - sum(each.nodes for each in told)
    if rest > 0:
        told.append(_of_the_rest(cluster, diagnosis.absent, rest))
    if len(told) > 1:
        told.sort(key=lambda refusal: -refusal.nodes)
    if len(told) > MOST_REFUSALS:
        others = sum(refusal.nodes for refusal in told[MOST_REFUSALS - 1 :])
        told[MOST_REFUSALS - 1 :] = [NodeRefusal("", OTHER_REASONS, others)]
    return tuple(told)


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """Cut a text to `most` characters, with an ellipsis at the end if it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _of_the_rest(cluster: Cluster, status: Status | None, nodes: int) -> NodeRefusal:
    if status is None:
        return NodeRefusal("", NO_REASON, nodes)
    some = islice((name for name in cluster.names if name is not None), MOST_EXAMPLES)
    return NodeRefusal(status.plugin, cut(status.message), nodes, tuple(some))


def _examples(cluster: Cluster, parts: Sequence[Rows]) -> tuple[NodeName, ...]:
    some = islice((row for part in parts for row in part[:MOST_EXAMPLES].tolist()), MOST_EXAMPLES)
    return tuple([name for row in some if (name := cluster.names[row]) is not None])


#: Withdraws an earlier nomination.
NO_NOMINATION: Final = NodeName("")
NOTHING_EXTRA: Final[Mapping[str, IntColumn]] = {}
#: The outcome of PostFilter if it was not run.
NOTHING_TRIED: Final = PostFilterResult(Status(Code.UNSCHEDULABLE))


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The decision that a pod goes to a node.

    Attributes:
        pod: version of the pod that was decided.
        node: the chosen node.
        runtime: profile generation that decided.
        state: notes of the profile's plugins.
        feasible: number of nodes that could have held the pod.
        score: total of the chosen node; 0 when nothing was scored.
        runner_up: total of the best other node; None when there was none, or nothing was scored.
        plugins: weighted part of `score` by plugin.
        ties: number of nodes that shared the highest score.
        best: the chosen node, followed by the next best nodes if the decision records them.
        parts: parts of the totals of the nodes in `best`, by plugin; empty when nothing was scored.
        nodes: number of nodes in the cluster.
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


@dataclass(eq=False, repr=False)
class FitError(Exception):
    """The failure of an attempt: the pod cannot be placed now.

    Attributes:
        message: text of the pod's event and condition.
        internal: True when something broke, False when plugins rejected the pod.
        unschedulable_plugins: plugins that rejected it; empty when something broke.
        pending_plugins: plugins that rejected it with PENDING; empty when something broke.
        nominated_node: node that preemption made room on; "" clears an earlier nomination, None leaves it.
        victims: pods to evict from the nominated node.
        refused: numbers of nodes that each plugin rejected.
        retry_after: seconds after which the pod is tried again even if no event helps it; None for a pod that waits for events alone.
        diagnosis: reason of each node; None when the attempt failed before or after filtering.
    """

    message: str
    _: KW_ONLY
    internal: bool = False
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: NodeName | None = None
    victims: tuple[PodInfo, ...] = ()
    refused: Refused = NO_NODE_REFUSED
    retry_after: Seconds | None = None
    diagnosis: Diagnosis | None = None


def broken(message: str) -> FitError:
    """Make the failure of an attempt that broke. It names no plugin, and as upstream it withdraws an earlier nomination."""
    return FitError(message, internal=True, nominated_node=NO_NOMINATION)


class SchedulingCycle:
    """Decides pods on one cluster. One object serves all profiles, and each call names the profile's evaluator.

    Args:
        cluster: columns, which the cycle only reads.
        nominator: pods that are nominated to nodes.
        rng: random numbers that break ties among equal scores.
        detail: chooses the decisions that record their best nodes; None if none does.

    Attributes:
        detail: chooses the decisions that record their best nodes.
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
        """Choose a node.

        Args:
            evaluator: evaluator of the pod's profile.
            pod: a pod without a node.
            steps: record of the time of each extension point; None for no record.
            within: names of the nodes that are candidates; None for all nodes.

        Returns:
            The decision.

        Raises:
            FitError: no node fits, or something broke.
        """
        # A sample could miss the node that victims have left for this pod, or the domain of its group.
        alone = within is None and self._nominator.node_of(pod.uid) is None
        evaluation = self.evaluate(evaluator, pod, steps, within, self._sampler if alone else None)
        if evaluation.count == 0:
            diagnosis = evaluator.diagnose(evaluation)
            refused = self.detail.refused(self._cluster, diagnosis)
            raise no_placement(diagnosis, make_room(evaluator.runtime, evaluation, diagnosis), refused)
        return self.chosen(evaluator, evaluation)

    def refusal(self, evaluator: Evaluator, evaluation: Evaluation) -> FitError:
        """Make the failure of a member of a group that no node can hold. No room is made for a member alone.

        Args:
            evaluator: evaluator of the pod's profile.
            evaluation: evaluation that found no feasible node.

        Returns:
            The failure, to be raised.
        """
        diagnosis = evaluator.diagnose(evaluation)
        return no_placement(diagnosis, NOTHING_TRIED, self.detail.refused(self._cluster, diagnosis))

    # --- its steps, for callers that act in between (extenders, groups) --------------------------------------------------------

    def evaluate(
        self,
        evaluator: Evaluator,
        pod: PodInfo,
        steps: Steps | None = None,
        within: frozenset[NodeName] | None = None,
        sampler: Sampler | None = None,
    ) -> Evaluation:
        """Run PreFilter and Filter.

        Args:
            evaluator: evaluator of the pod's profile.
            pod: a pod without a node.
            steps: record of the time of each extension point; None for no record.
            within: names of the nodes that are candidates, if the pod's group stands in one domain; None for all nodes.
            sampler: stops once as many nodes are feasible as the profile wants scored; None filters all nodes.

        Returns:
            The feasible nodes; there may be none.

        Raises:
            FitError: there are no nodes at all, or something broke.
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
        """Choose among the feasible nodes; there is at least one.

        Args:
            evaluator: evaluator of the pod's profile.
            evaluation: evaluation that found a feasible node.
            compared: whether the node is scored even if it is the only feasible one, because the caller compares the score.

        Returns:
            The decision.
        """
        row = self.nominated_row(evaluation)
        if row is not None:
            # As upstream, the nominated node is taken without scores, because its victims have left for this pod.
            return self.settled(evaluator, evaluation, row)
        if evaluation.count > 1:
            self.sample(evaluator.runtime, evaluation)
        return self.best(evaluator, evaluation, compared=compared)

    def nominated_row(self, evaluation: Evaluation) -> int | None:
        """Return the row of the pod's nominated node; None without a nomination, or when the pod does not fit there now."""
        node = self._nominator.node_of(evaluation.pod.uid)
        row = None if node is None else self._cluster.row(node)
        return row if row is not None and evaluation.feasible[row] else None

    def draw(self, things: int) -> int:
        """Draw a random number from 0 to `things` - 1, from the same seed as ties among nodes."""
        return self._rng.randrange(things)

    def sample(self, runtime: ProfileRuntime, evaluation: Evaluation) -> None:
        """Narrow the feasible nodes to as many as the profile wants scored.

        Args:
            runtime: runtime of the pod's profile.
            evaluation: evaluation that is narrowed in place.
        """
        percentage = runtime.profile.settings.percentage_of_nodes_to_score
        if percentage is not None and not evaluation.sampled:
            nodes = candidate_count(self._cluster, evaluation.candidates)
            evaluation.feasible = self._sampler.narrow(evaluation.feasible, nodes, percentage)
            evaluation.count = int(np.count_nonzero(evaluation.feasible))

    def best(
        self, evaluator: Evaluator, evaluation: Evaluation, extra: Mapping[str, IntColumn] = NOTHING_EXTRA, *, compared: bool = False
    ) -> ScheduleResult:
        """Choose the feasible node with the highest total; ties are broken at random.

        Args:
            evaluator: evaluator of the pod's profile.
            evaluation: evaluation that found a feasible node.
            extra: scores that extenders add, by their names; shape (size,).
            compared: whether the node is scored even if it is the only feasible one.

        Returns:
            The decision. A single node is not scored unless `compared`.

        Raises:
            FitError: a plugin broke.
        """
        # As upstream, a single feasible node is not scored.
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
        """Return the decision for a row that need not be compared with others.

        Args:
            evaluator: evaluator of the pod's profile.
            evaluation: evaluation in which the row is feasible.
            row: row of the chosen node.

        Returns:
            The decision, without scores.
        """
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
    """Add extra scores to the totals.

    Returns:
        (totals, subtracted): all totals at least 0, and the amount, 0 or less, that was taken off each for that.
    """
    if not extra:
        return totals, 0
    wide = totals.astype(np.int64)
    for scores in extra.values():
        wide[rows] += scores[rows]
    lowest = min(int(wide[rows].min()), 0)
    wide[rows] -= lowest
    return wide, lowest


def make_room(runtime: ProfileRuntime, evaluation: Evaluation, diagnosis: Diagnosis) -> PostFilterResult:
    """Run PostFilter and note its time. No room is made for a pod that is beyond a limit, because evictions would not help it.

    Args:
        runtime: runtime of the pod's profile.
        evaluation: evaluation that found no feasible node.
        diagnosis: reason of each node.

    Returns:
        The nominated node and its victims, or a status that says why there are none.
    """
    if evaluation.pod.extent.excess:
        return NOTHING_TRIED
    steps = evaluation.state.steps
    steps.begin()
    result = runtime.run_post_filter(evaluation.state, evaluation.pod, diagnosis)
    steps.end(POST_FILTER, result.status.code)
    return result if runtime.preemption_rules is None else _held_to(runtime.preemption_rules, result)


def _held_to(rules: PreemptionRules, result: PostFilterResult) -> PostFilterResult:
    """Refuse victims that the profile's rules forbid, because a plugin of another package may not have asked."""
    refusal = rules.limits().objection(result.victims) if result.status.ok and result.victims else None
    if refusal is None:
        return result
    return PostFilterResult(unschedulable(f"preemption: {refusal.reason}"), retry_after=refusal.retry_after)


def no_placement(diagnosis: Diagnosis, made_room: PostFilterResult, refused: Refused = NO_NODE_REFUSED) -> FitError:
    """Make the failure of a pod that no node can hold.

    Args:
        diagnosis: reason of each node.
        made_room: outcome of PostFilter.
        refused: numbers of nodes that each plugin rejected.

    Returns:
        The failure, to be raised.
    """
    if made_room.status.code is not Code.SUCCESS:
        diagnosis.postfilter_message = made_room.status.message
    return FitError(
        fit_error(diagnosis),
        unschedulable_plugins=frozenset(diagnosis.unschedulable_plugins),
        pending_plugins=frozenset(diagnosis.pending_plugins),
        nominated_node=made_room.nominated_node,
        victims=made_room.victims,
        refused=refused,
        retry_after=made_room.retry_after,
        diagnosis=diagnosis,
    )


def choose(totals: Totals, rng: random.Random) -> Choice:
    """Choose uniformly among the rows with the highest total. kube-scheduler does the same (`selectHost`).

    Args:
        totals: totals of the rows, below 0 for rows that do not take part; shape (size,).
        rng: random numbers that break ties.

    Returns:
        The row, with its ties and the runner-up.
    """
    best = totals.max()
    tied = np.flatnonzero(totals == best)
    row = int(tied[rng.randrange(len(tied))] if len(tied) > 1 else tied[0])
    if len(tied) > 1:
        return Choice(row, int(best), len(tied), int(tied[1] if tied[0] == row else tied[0]))
    return Choice(row, int(best), 1, _second(totals, row))


def _second(totals: Totals, row: int) -> int | None:
    """Return the first row with the highest total except this one; None when no other row takes part."""
    parts = ((0, totals[:row]), (row + 1, totals[row + 1 :]))
    found = [begin + int(part.argmax()) for begin, part in parts if len(part)]
    second = max(found, key=lambda second: (totals[second], -second), default=None)
    return second if second is not None and totals[second] >= 0 else None
