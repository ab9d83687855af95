"""Who would have to leave a node so that the pod fits there: tried on the columns, and undone.

On every node all evictable pods are taken away; where the pod then fits, they come back one by one, as long as it still does. Nodes that do
not influence each other (see `Handle.check_rows`) are tried in step, one look at the columns for all of them. Others are tried one after
another, once the hopeless ones were sorted out together. The outcomes are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.errors import CycleError
from placewright.framework.interface import Handle
from placewright.framework.status import Status, error
from placewright.plugins.defaultpreemption.budgets import Budgets
from placewright.plugins.defaultpreemption.eligibility import may_evict
from placewright.plugins.defaultpreemption.trial import NO_VICTIMS, Outcome, Trial


class DryRun:
    """One attempt's question to many nodes."""

    def __init__(self, handle: Handle, pod: PodInfo, budgets: Budgets) -> None:
        self._handle = handle
        self._cluster = handle.cluster
        self._pod = pod
        self._budgets = budgets

    @property
    def pointless(self) -> bool:
        """True when no pod anywhere has a lower priority: the common case of a full cluster without priorities."""
        lowest = self._cluster.lowest_priority
        return lowest is None or lowest >= self._pod.priority

    def on(self, nodes: Iterable[tuple[int, NodeName]]) -> Iterator[Outcome]:
        """The outcome on each of these rows, in the given order."""
        trials = [Trial(row, node, self._evictable(node)) for row, node in nodes]
        known = self._in_step([trial for trial in trials if trial.evictable])
        for trial in trials:
            if not trial.evictable:
                yield NO_VICTIMS
            else:
                yield known[trial.row] if trial.row in known else self._alone(trial)

    def _evictable(self, node: NodeName) -> list[PodInfo]:
        preemptor = self._pod
        return [pod for pod in self._cluster.pods_on(node) if may_evict(preemptor, pod)]

    # --- one node ------------------------------------------------------------------------------------------------------------

    def _alone(self, trial: Trial) -> Outcome:
        try:
            with ExitStack() as taken_away:
                taken_away.enter_context(self._cluster.hypothetically(remove=trial.evictable, row=trial.row))
                status = self._handle.check_row(self._pod, trial.row)
                return self._reprieve(trial, taken_away) if status.ok else status
        except CycleError as problem:
            return error(str(problem))

    def _reprieve(self, trial: Trial, back: ExitStack) -> Outcome:
        trial.rank(self._budgets)
        for turn in range(len(trial.evictable)):
            with ExitStack() as attempt:
                self._return(trial, turn, attempt)
                if self._handle.check_row(self._pod, trial.row).ok:
                    back.push(attempt.pop_all())
                else:
                    trial.condemn(turn)
        return trial.outcome()

    def _return(self, trial: Trial, turn: int, attempt: ExitStack) -> bool:
        """Put the pod whose turn it is back on its node for as long as `attempt` lasts; False when there is none."""
        pod = trial.to_reprieve(turn)
        if pod is None:
            return False
        attempt.enter_context(self._cluster.hypothetically(add=(pod,), row=trial.row))
        return True

    # --- many nodes in step --------------------------------------------------------------------------------------------------

    def _in_step(self, trials: list[Trial]) -> dict[int, Outcome]:
        """Outcome by row, for those nodes about which it can be told together; where a plugin breaks, for none."""
        known: dict[int, Outcome] = {}
        try:
            with ExitStack() as changes:
                for trial in trials:
                    changes.enter_context(self._cluster.hypothetically(remove=trial.evictable, row=trial.row))
                hopeless, complete = self._rejected(trials)
                known.update(hopeless)
                hopeful = [trial for trial in trials if complete and trial.row not in known]
                self._reprieve_in_step(hopeful, changes)
            return {**known, **{trial.row: trial.outcome() for trial in hopeful}}
        except (CycleError, _NotTogether):
            return known

    def _reprieve_in_step(self, trials: list[Trial], back: ExitStack) -> None:
        for trial in trials:
            trial.rank(self._budgets)
        for turn in range(max((len(trial.evictable) for trial in trials), default=0)):
            with ExitStack() as attempts:
                running = {}
                for trial in trials:
                    attempt = attempts.enter_context(ExitStack())
                    if self._return(trial, turn, attempt):
                        running[trial.row] = (trial, attempt)
                rejected, complete = self._rejected([trial for trial, _ in running.values()])
                if not complete:
                    raise _NotTogether
                for row in rejected:
                    trial, attempt = running[row]
                    trial.condemn(turn)
                    attempt.close()
                back.push(attempts.pop_all())

    def _rejected(self, trials: list[Trial]) -> tuple[dict[int, Status], bool]:
        """Why the pod does not fit, by row, where it does not; and whether it fits on all other rows."""
        rows = np.fromiter((trial.row for trial in trials), np.intp, len(trials))
        rejections, complete = self._handle.check_rows(self._pod, rows)
        return {row: status for status, rejected in rejections for row in rejected.tolist()}, complete


class _NotTogether(Exception):
    """With some pods away, a filter that reads the whole cluster has something to say after all."""
