"""PodDisruptionBudgets as preemption counts them: respected where possible, broken where nothing else helps.

Budgets of a namespace are read when a pod of that namespace is asked about; their selectors are compiled once for a version of the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from placewright.api.pods import PodInfo
from placewright.api.selectors import Selector, SelectorError
from placewright.api.workloads import PodDisruptionBudget
from placewright.cluster.objects import ClusterObjects
from placewright.framework.preemption.evictions import Eviction

_NOBODY: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class _Budget:
    selector: Selector
    allowed: int
    already_counted: Mapping[str, str]

    def covers(self, pod: PodInfo | Eviction) -> bool:
        """Return True if evicting the pod would use this budget up further. The API server has counted the pods that it names."""
        return pod.name not in self.already_counted and self.selector.matches(pod.labels)


class Budgets:
    """The disruption budgets of the cluster, for one attempt.

    Args:
        objects: has the budgets; one that covers no pod is left out.
        under_way: finds the evictions that a budget's status may not show yet; they use it up, too. None: no budget has such.
        chosen: victims that use budgets up before all others.
        empty_covers_all: whether `Rule.EMPTY_BUDGET_SELECTOR` is in force.
    """

    def __init__(
        self,
        objects: ClusterObjects,
        under_way: Callable[[PodDisruptionBudget], Iterable[Eviction]] | None = None,
        chosen: Sequence[PodInfo] = (),
        *,
        empty_covers_all: bool = False,
    ) -> None:
        self._empty_covers_all = empty_covers_all
        self._selectors = objects.storage.selectors
        self._under_way = under_way
        self._chosen = chosen
        self._shown: dict[str, list[PodDisruptionBudget]] = {}
        for budget in objects.disruption_budgets.values():
            self._shown.setdefault(budget.metadata.namespace, []).append(budget)
        self._by_namespace: dict[str, list[_Budget]] = {}
        self._selecting: dict[tuple[str, frozenset[tuple[str, str]]], list[_Budget]] = {}

    def violations(self, units: Iterable[Iterable[PodInfo]]) -> list[int]:
        """Count, for pods that leave together, how many would break a budget each.

        Args:
            units: pods that leave together, in the order in which they use budgets up.
        """
        if not self._shown:
            return [0 for _ in units]
        used: dict[_Budget, int] = {}
        return [sum([self._breaks_one(pod, used) for pod in unit]) for unit in units]

    def exhausted_for(self, pod: PodInfo) -> bool:
        """Tell whether the pod's eviction alone would break a budget.

        Returns:
            True if a budget that covers the pod allows no disruption.
        """
        return any(budget.allowed <= 0 for budget in self._covering(pod))

    def broken_by(self, pods: Iterable[PodInfo]) -> bool:
        """Tell whether evictions would break a budget together.

        Returns:
            True if a budget covers more of them than it allows disruptions.
        """
        used: dict[_Budget, int] = {}
        return any(self._breaks_one(pod, used) for pod in pods)

    def _breaks_one(self, pod: PodInfo, used: dict[_Budget, int]) -> bool:
        breaks = False
        for budget in self._covering(pod):
            used[budget] = used.get(budget, 0) + 1
            breaks = breaks or used[budget] > budget.allowed
        return breaks

    def _covering(self, pod: PodInfo) -> Sequence[_Budget]:
        budgets = self._of(pod.namespace)
        if not budgets or not self._may_be_covered(pod):
            return ()
        at = pod.namespace, pod.pairwise_key.labels
        found = self._selecting.get(at)
        if found is None:  # asked once for pods with equal labels: an attempt asks about each pod of many nodes, several times
            found = self._selecting[at] = [budget for budget in budgets if budget.selector.matches(pod.labels)]
        return [budget for budget in found if pod.name not in budget.already_counted]

    def _may_be_covered(self, pod: PodInfo | Eviction) -> bool:
        """Until 1.37, kube-scheduler leaves pods without labels under no budget, with any selector."""
        return self._empty_covers_all or bool(pod.labels)

    def _of(self, namespace: str) -> list[_Budget]:
        found = self._by_namespace.get(namespace)
        if found is None:
            compiled = [self._compile(budget) for budget in self._shown.get(namespace, ())]
            found = self._by_namespace[namespace] = [budget for budget in compiled if budget is not None]
        return found

    def _compile(self, shown: PodDisruptionBudget) -> _Budget | None:
        """None for a budget that covers no pod: without a selector, with an empty one until 1.37, or with one that does not parse."""
        if shown.spec.selector is None:
            return None
        try:
            selector = self._selectors.of(PodDisruptionBudget, shown.metadata, shown.spec.selector)
        except SelectorError:
            return None
        if selector.empty and not self._empty_covers_all:
            return None
        budget = _Budget(selector, shown.status.disruptions_allowed, shown.status.disrupted_pods or _NOBODY)
        if self._under_way is None:
            return budget
        beside: list[PodInfo | Eviction] = [pod for pod in self._chosen if pod.namespace == shown.metadata.namespace]
        used = sum(self._may_be_covered(pod) and budget.covers(pod) for pod in [*beside, *self._under_way(shown)])
        return replace(budget, allowed=budget.allowed - used)
