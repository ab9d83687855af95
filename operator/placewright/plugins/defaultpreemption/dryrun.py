"""What would have to leave one node so that the pod fits there: tried on the columns, and undone."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.evaluation import CycleError
from placewright.framework.interface import Handle
from placewright.framework.status import Status, error, unresolvable
from placewright.plugins.defaultpreemption.budgets import Budgets
from placewright.plugins.defaultpreemption.eligibility import may_evict
from placewright.plugins.defaultpreemption.importance import importance
from placewright.plugins.defaultpreemption.pick import Candidate

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")


class DryRun:
    """One attempt's question, asked of one node after the other."""

    def __init__(self, handle: Handle, pod: PodInfo, budgets: Budgets) -> None:
        self._handle = handle
        self._cluster = handle.cluster
        self._pod = pod
        self._budgets = budgets

    def on(self, row: int, node: NodeName) -> Candidate | Status:
        """The node with the fewest victims that will do, or why evicting does not help there."""
        evictable = [other for other in self._cluster.pods_on(node) if may_evict(self._pod, other)]
        if not evictable:
            return NO_VICTIMS
        try:
            with self._cluster.hypothetically(remove=evictable, row=row):
                status = self._handle.check_row(self._pod, row)
                return self._reprieve(evictable, row, node) if status.ok else status
        except CycleError as problem:
            return error(str(problem))

    def _reprieve(self, evictable: list[PodInfo], row: int, node: NodeName) -> Candidate | Status:
        """Let stay whom the pod can live with: first those that a budget protects, then the others, the most important first."""
        breaking, others = self._budgets.split(sorted(evictable, key=importance))
        with ExitStack() as stays:
            violations = [pod for pod in breaking if not self._stays(pod, row, stays)]
            victims = violations + [pod for pod in others if not self._stays(pod, row, stays)]
        if not victims:
            return error(f'expected at least one victim pod on node "{node}"')
        return Candidate(node, tuple(sorted(victims, key=importance)), len(violations))

    def _stays(self, pod: PodInfo, row: int, stays: ExitStack) -> bool:
        with ExitStack() as trial:
            trial.enter_context(self._cluster.hypothetically(add=(pod,), row=row))
            if not self._handle.check_row(self._pod, row).ok:
                return False
            stays.push(trial.pop_all())
            return True
