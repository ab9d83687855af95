"""Who would have to leave a node so that the pod fits there: tried on the columns, and undone.

On every node all evictable pods are taken away; where the pod then fits, they come back one by one, as long as it still does. Nodes are
tried in step, one look at the columns for all of them, as far as that can tell (see `RowTrials`). Others are tried one after another, once
the hopeless ones were sorted out together. The outcomes are the same. Nodes with members of groups that leave as a whole have a trial of
another kind (see `boundtrial`); they are tried in step only where no filter looks at other nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.dryrun import DryRunCluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import Handle, RowTrials
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.together import Together
from placewright.framework.status import Status, error
from placewright.plugins.defaultpreemption.boundtrial import BoundTrial
from placewright.plugins.defaultpreemption.trial import NO_VICTIMS, Outcome, Trial

AnyTrial = Trial | BoundTrial


class DryRun:
    """One attempt's question to many nodes."""

    def __init__(self, handle: Handle, pod: PodInfo, budgets: Budgets) -> None:
        self._handle = handle
        self._cluster = handle.cluster
        self._pod = pod
        self._budgets = budgets
        self._together = Together(self._cluster, pod)

    @property
    def pointless(self) -> bool:
        """True when nobody anywhere has a lower priority."""
        return self._together.pointless

    def on(self, nodes: Iterable[tuple[int, NodeName]]) -> Iterator[Outcome]:
        """The outcome on each of these rows, in the given order."""
        trials = [self._trial(row, node) for row, node in nodes]
        known = self._in_step([trial for trial in trials if trial.evictable])
        for trial in trials:
            if not trial.evictable:
                yield NO_VICTIMS
            elif trial.row in known:
                yield known[trial.row]
            else:
                yield self._alone(trial) if isinstance(trial, Trial) else trial.run(self._handle, self._pod, self._budgets)

    def _trial(self, row: int, node: NodeName) -> AnyTrial:
        priority = self._together.priority
        if not self._cluster.pod_groups.placed_groups:
            return Trial(row, node, [pod for pod in self._cluster.pods_on(node) if pod.priority < priority])
        found = self._together.on(node)
        return BoundTrial(row, node, found) if found.bonds else Trial(row, node, found.singles)

    # --- one node ------------------------------------------------------------------------------------------------------------

    def _alone(self, trial: Trial) -> Outcome:
        try:
            with self._cluster.supposing() as supposition:
                supposition.remove([(trial.row, pod) for pod in trial.evictable])
                status = self._handle.check_row(self._pod, trial.row)
                return self._reprieve(trial, supposition) if status.ok else status
        except CycleError as problem:
            return error(str(problem))

    def _reprieve(self, trial: Trial, supposition: DryRunCluster) -> Outcome:
        trial.rank(self._budgets)
        turn = 0
        while pods := trial.to_reprieve(turn):
            supposition.add([(trial.row, pod) for pod in pods])
            if not self._handle.check_row(self._pod, trial.row).ok:
                supposition.remove([(trial.row, pod) for pod in pods])
                trial.condemn(turn)
            turn += 1
        return trial.outcome()

    # --- many nodes in step --------------------------------------------------------------------------------------------------

    def _in_step(self, trials: list[AnyTrial]) -> dict[int, Outcome]:
        """Outcome by row, for those nodes about which it can be told together; where a plugin breaks, for none."""
        try:
            together = self._handle.trials(self._pod)
            if any(isinstance(trial, BoundTrial) for trial in trials) and not together.rows_are_apart:
                trials = [trial for trial in trials if isinstance(trial, Trial)]
            with self._cluster.supposing() as supposition:
                supposition.remove([(trial.row, pod) for trial in trials for pod in trial.evictable])
                hopeless, unsettled = _check(together, trials)
                hopeful = [trial for trial in trials if trial.row not in hopeless and trial.row not in unsettled]
                settled = self._reprieve_in_step(hopeful, together, supposition)
        except CycleError:
            return {}
        return {**hopeless, **{trial.row: trial.outcome() for trial in settled}}

    def _reprieve_in_step(self, trials: list[AnyTrial], together: RowTrials, supposition: DryRunCluster) -> list[AnyTrial]:
        """Let evictable pods come back, turn by turn, where the pod still fits beside them; the trials that this settled."""
        for trial in trials:
            trial.rank(self._budgets)
        for turn in range(max((trial.turns for trial in trials), default=0)):
            returning = [(trial, pods) for trial in trials if (pods := trial.to_reprieve(turn))]
            supposition.add([(trial.row, pod) for trial, pods in returning for pod in pods])
            rejected, unsettled = _check(together, [trial for trial, _ in returning])
            for trial, _ in returning:
                if trial.row in rejected:
                    trial.condemn(turn)
            supposition.remove([(trial.row, pod) for trial, pods in returning if trial.row in rejected for pod in pods])
            if unsettled:
                trials = [trial for trial in trials if trial.row not in unsettled]
        return [trial for trial in trials if isinstance(trial, Trial) or not trial.torn()]


def _check(together: RowTrials, trials: Sequence[AnyTrial]) -> tuple[dict[int, Status], set[int]]:
    """Why the pod does not fit, by row; and the rows of which that cannot be told. It fits on all others."""
    rejections, unsettled = together.check(np.fromiter((trial.row for trial in trials), np.intp, len(trials)))
    return {row: status for status, rejected in rejections for row in rejected.tolist()}, set(unsettled.tolist())
