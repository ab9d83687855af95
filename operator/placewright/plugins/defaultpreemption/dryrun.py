"""Dry runs of preemption: which pods must leave a node so that the preemptor fits, until there are enough candidates.

On every node all evictable pods are removed. If the preemptor then fits, they come back one by one while it still fits. Nodes are tried in
step, if one check of the columns can decide about all of them (see `RowTrials`). Other nodes are tried one after another, after a joint
check has dropped the hopeless ones. Both ways have the same outcomes. Nodes with members of groups that leave as a whole have a
`BoundTrial`. They are tried in step only if no filter reads other nodes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np

from placewright.api.compatibility import Rule
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import DryRunCluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import Handle, Rows, RowTrials, Seconds
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.evictions import EvictablePods, VictimUnits
from placewright.framework.preemption.rules import PreemptionRefusal, VictimLimits, one_for_each_reason, soonest
from placewright.framework.status import Code, Status, error, unresolvable
from placewright.plugins.defaultpreemption.candidates import NO_VICTIMS, Candidate, NodeTrial, Outcome


class DryRun:
    """The trials of many nodes in one preemption attempt.

    Attributes:
        limits: rules of the profile for victims; None if it has none.
        retry_after: seconds until a rule may allow victims that it refused; None if time alone lifts no refusal.
    """

    def __init__(
        self,
        handle: Handle,
        pod: PodInfo,
        budgets: Budgets,
        kept: MutableMapping[int, Outcome] | None = None,
        limits: VictimLimits | None = None,
        kept_refusals: MutableMapping[int, Sequence[PreemptionRefusal]] | None = None,
    ) -> None:
        """Prepare the trials.

        `kept` holds the outcomes by row that are still true, and takes new ones. `kept_refusals` holds the refusals of rows on which only a
        rule prevents preemption; it is empty for other rows.
        """
        self.retry_after: Seconds | None = None
        self._handle = handle
        self._cluster = handle.cluster
        self._pod = pod
        self._budgets = budgets
        self._kept = kept
        self.limits = limits
        self._kept_refusals = kept_refusals
        self._together = VictimUnits(self._cluster, pod, None if limits is None else limits.keeps)
        self._empty_victims = handle.in_force(Rule.EMPTY_VICTIMS)

    @property
    def pointless(self) -> bool:
        """Whether no pod in the cluster has a lower priority than the preemptor."""
        return self._together.pointless

    def on(self, nodes: Iterable[tuple[int, NodeName]]) -> Iterator[Outcome]:
        """Try these rows, and iterate over the outcomes in the given order."""
        if self.limits is None:
            return self._known_or_tried(nodes)
        nodes = list(nodes)
        return iter(self._allowed(nodes, list(self._known_or_tried(nodes)), self.limits))

    def _known_or_tried(self, nodes: Iterable[tuple[int, NodeName]]) -> Iterator[Outcome]:
        if self._kept is None:
            yield from self._tried(nodes)
            return
        nodes, kept = list(nodes), self._kept
        fresh = [(row, node) for row, node in nodes if row not in kept]
        found = dict(zip([row for row, _ in fresh], self._tried(fresh), strict=True))
        # An error is not kept, because the next attempt may succeed.
        kept.update((row, outcome) for row, outcome in found.items() if isinstance(outcome, Candidate) or outcome.code is not Code.ERROR)
        yield from [found[row] if row in found else kept[row] for row, _ in nodes]

    def _tried(self, nodes: Iterable[tuple[int, NodeName]]) -> Iterator[Outcome]:
        trials = [self._trial(row, node) for row, node in nodes]
        known = self._in_step([trial for trial in trials if trial.evictable])
        for trial in trials:
            if not trial.evictable:
                yield NO_VICTIMS
                continue
            outcome = known[trial.row] if trial.row in known else trial.run(self._handle, self._pod, self._budgets)
            if isinstance(outcome, Candidate) and not (outcome.victims or self._empty_victims):
                outcome = error(f'expected at least one victim pod on node "{trial.node}"')
            yield outcome

    def _trial(self, row: int, node: NodeName) -> NodeTrial:
        priority = self._together.priority
        if not self._cluster.pod_groups.placed_groups and self.limits is None:
            return NodeTrial(row, node, EvictablePods([pod for pod in self._cluster.pods_on(node) if pod.priority < priority]))
        return NodeTrial(row, node, self._together.on(node))

    # --- the profile's rules -------------------------------------------------------------------------------------------------

    def _allowed(self, nodes: Sequence[tuple[int, NodeName]], outcomes: Sequence[Outcome], limits: VictimLimits) -> list[Outcome]:
        """Hold candidates to the rules. Name the rule on nodes where nothing else prevents preemption."""
        hopeless = [node for node, outcome in zip(nodes, outcomes, strict=True) if _is_hopeless(outcome)]
        kept = self._kept_by_rules(hopeless, limits)
        return [
            self._refused(kept[row]) if row in kept else self._held_to(outcome, limits)
            for (row, _), outcome in zip(nodes, outcomes, strict=True)
        ]

    def _held_to(self, outcome: Outcome, limits: VictimLimits) -> Outcome:
        if isinstance(outcome, Status):
            return outcome
        refusal = limits.why_not_these(outcome.victims)
        if refusal is not None:
            return self._refused([refusal])
        # kube-scheduler charges budgets with all pods that might leave, so it counts violations that the victims do not cause.
        return replace(outcome, violations=0) if limits.strict else outcome

    def _refused(self, refusals: Sequence[PreemptionRefusal]) -> Status:
        self.retry_after = soonest([self.retry_after, *(refusal.retry_after for refusal in refusals)])
        return unresolvable(*sorted(refusal.reason for refusal in refusals))

    def _kept_by_rules(self, nodes: Sequence[tuple[int, NodeName]], limits: VictimLimits) -> dict[int, Sequence[PreemptionRefusal]]:
        """Return the refusals by row, for rows where the pod would fit if all pods of lower priority left."""
        known = {} if self._kept_refusals is None else self._kept_refusals
        fresh = [(row, node) for row, node in nodes if row not in known]
        found = self._found_kept_by_rules(fresh, limits)
        known.update((row, found.get(row, ())) for row, _ in fresh)
        return {row: known[row] for row, _ in nodes if known[row]}

    def _found_kept_by_rules(self, nodes: Iterable[tuple[int, NodeName]], limits: VictimLimits) -> dict[int, Sequence[PreemptionRefusal]]:
        every = VictimUnits(self._cluster, self._pod)
        trials: list[NodeTrial] = []
        refusals: dict[int, Sequence[PreemptionRefusal]] = {}
        for row, node in nodes:
            trial = NodeTrial(row, node, every.on(node))
            found = one_for_each_reason(limits.why_it_stays(pod) for _, pod in trial.evictable_moves())
            if found:
                trials.append(trial)
                refusals[row] = found
        fits = self._fits_without(trials)
        return {row: found for row, found in refusals.items() if row in fits}

    def _fits_without(self, trials: Sequence[NodeTrial]) -> set[int]:
        """Find the rows on which the pod fits once all pods of the trial have left; none if a plugin fails."""
        if not trials:
            return set()
        try:
            together = self._handle.trials(self._pod, [trial.row for trial in trials])
            alone = [trial for trial in trials if trial.bound and not together.rows_are_apart]
            in_step = [trial for trial in trials if trial not in alone]
            with self._cluster.dry_run() as dry_run:
                dry_run.remove([(trial.row, pod) for trial in in_step for pod in trial.evictable])
                rejected, unsettled = _check(together, in_step)
            fits = {trial.row for trial in in_step} - rejected.keys() - unsettled
            alone += [trial for trial in in_step if trial.row in unsettled]
            return fits | {trial.row for trial in alone if self._fits_alone(trial)}
        except CycleError:
            return set()

    def _fits_alone(self, trial: NodeTrial) -> bool:
        with self._cluster.dry_run() as dry_run:
            dry_run.remove(trial.evictable_moves())
            return self._handle.check_row(self._pod, trial.row).ok

    # --- many nodes in step --------------------------------------------------------------------------------------------------

    def _in_step(self, trials: list[NodeTrial]) -> dict[int, Outcome]:
        """Try nodes in step. Return the outcome by row, for rows that a joint check settles; none if a plugin fails."""
        if not trials:
            return {}
        try:
            together = self._handle.trials(self._pod, [trial.row for trial in trials])
            trials = [trial for trial in trials if not trial.bound or together.rows_are_apart]
            with self._cluster.dry_run() as dry_run:
                dry_run.remove([(trial.row, pod) for trial in trials for pod in trial.evictable])
                hopeless, unsettled = _check(together, trials)
                hopeful = [trial for trial in trials if trial.row not in hopeless and trial.row not in unsettled]
                settled = self._reprieve_in_step(hopeful, together, dry_run)
        except CycleError:
            return {}
        return {**hopeless, **{trial.row: trial.outcome() for trial in settled}}

    def _reprieve_in_step(self, trials: list[NodeTrial], together: RowTrials, dry_run: DryRunCluster) -> list[NodeTrial]:
        """Let evictable pods come back, turn by turn, while the preemptor fits. Return the trials that this settled."""
        for trial in trials:
            trial.rank(self._budgets)
        for turn in range(max((trial.turns for trial in trials), default=0)):
            returning = [(trial, pods) for trial in trials if (pods := trial.to_reprieve(turn))]
            dry_run.add([(trial.row, pod) for trial, pods in returning for pod in pods])
            rejected, unsettled = _check(together, [trial for trial, _ in returning])
            unfit = [(trial, pods) for trial, pods in returning if trial.row in rejected]
            for trial, _ in unfit:
                trial.condemn(turn)
            dry_run.remove([(trial.row, pod) for trial, pods in unfit for pod in pods])
            if unsettled:
                trials = [trial for trial in trials if trial.row not in unsettled]
        return [trial for trial in trials if not trial.torn()]


def _is_hopeless(outcome: Outcome) -> bool:
    return isinstance(outcome, Status) and outcome.code is not Code.ERROR


def _check(together: RowTrials, trials: Sequence[NodeTrial]) -> tuple[dict[int, Status], set[int]]:
    """Check the rows. Return why the pod does not fit, by row, and the unsettled rows. It fits on all others."""
    rejections, unsettled = together.check(np.fromiter((trial.row for trial in trials), np.intp, len(trials)))
    return {row: status for status, rejected in rejections for row in rejected.tolist()}, set(unsettled.tolist())


# --- enough candidates -----------------------------------------------------------------------------------------------------------


NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
#: Nodes tried in step: enough to share the cost of a check, and at most a few milliseconds' work more than needed.
_SMALLEST_BATCH: Final = 64


@dataclass(slots=True)
class CandidateSearch:
    """The search for candidates, and its findings so far.

    Attributes:
        wanted: number of candidates to stop at, once one of them breaks no budget.
        asks_extenders: whether nodes without victims are candidates, too, because extenders may choose victims there.
        candidates: nodes where evicting helps.
        rejections: statuses of nodes that were tried in vain, with why evicting does not help.
    """

    wanted: int
    asks_extenders: bool
    candidates: list[Candidate] = field(default_factory=list)
    rejections: list[Status] = field(default_factory=list)
    _respectful: int = 0

    def run(self, trials: DryRun, cluster: Cluster, rows: Rows, rng: random.Random) -> None:
        """Try the rows, from a random one on, until there are enough candidates."""
        if trials.pointless:
            self.rejections.extend([NO_VICTIMS] * len(rows))
            return
        nodes = _from_anywhere(cluster, rows, rng)
        while batch := list(islice(nodes, max(self.wanted - len(self.candidates), _SMALLEST_BATCH))):
            for outcome in trials.on(batch):
                self._note(outcome)
                if self._respectful and len(self.candidates) >= self.wanted:
                    return

    def _note(self, outcome: Outcome) -> None:
        if isinstance(outcome, Status):
            self.rejections.append(outcome)
        elif not (outcome.victims or self.asks_extenders):
            self.rejections.append(NO_VICTIMS)
        elif outcome.violations == 0:
            self._respectful += 1
            self.candidates.append(outcome)
        elif len(self.candidates) - self._respectful < self.wanted:
            self.candidates.append(outcome)

    @property
    def problem(self) -> str:
        """The error while nodes were tried, or ""."""
        return ", ".join(sorted({status.message for status in self.rejections if status.code is Code.ERROR}))

    def summary(self, node_count: int) -> str:
        """Say why no node will do: `0/5 nodes are available: 2 No preemption victims found for incoming pod, 3 Preemption is ...`.

        Nodes that were not tried count as nodes where preemption is not helpful.
        """
        counted = Counter(reason for status in self.rejections for reason in status.reasons)
        if untried := node_count - len(self.rejections):
            counted[NOT_HELPFUL] += untried
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counted.items()))
        return f"0/{node_count} nodes are available: {reasons}."


def _from_anywhere(cluster: Cluster, rows: Rows, rng: random.Random) -> Iterator[tuple[int, NodeName]]:
    """Iterate over rows and their nodes' names from a random row on, so that preemption disturbs different nodes each time."""
    for row in np.roll(rows, -rng.randrange(len(rows))).tolist() if len(rows) else ():
        name = cluster.names[row]
        if name is not None:
            yield row, name
