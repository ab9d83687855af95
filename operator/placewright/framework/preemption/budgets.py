"""PodDisruptionBudgets as preemption counts them: respected where possible, broken where nothing else helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from placewright.api.pods import PodInfo
from placewright.api.selectors import Selector, SelectorError, compile_label_selector
from placewright.api.workloads import PodDisruptionBudget
from placewright.framework.preemption.evictions import Eviction

_NOBODY: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class _Budget:
    selector: Selector
    allowed: int
    already_counted: Mapping[str, str]

    def covers(self, pod: PodInfo | Eviction) -> bool:
        """True when evicting the pod would use this budget up further; the API server has counted the pods it names itself."""
        return pod.name not in self.already_counted and self.selector.matches(pod.labels)


class Budgets:
    """The disruption budgets of the cluster, compiled for one attempt.

    Args:
        budgets: all of them; one that covers no pod is left out.
        under_way: finds the evictions that a budget's status may not show yet; they use it up, too. None: no budget has such.
        chosen: victims that use budgets up before all others.
    """

    def __init__(
        self,
        budgets: Iterable[PodDisruptionBudget],
        under_way: Callable[[PodDisruptionBudget], Iterable[Eviction]] | None = None,
        chosen: Sequence[PodInfo] = (),
    ) -> None:
        self._by_namespace: dict[str, list[_Budget]] = {}
        self._selecting: dict[tuple[str, frozenset[tuple[str, str]]], list[_Budget]] = {}
        for budget in budgets:
            compiled = _compile(budget)
            if compiled is not None and under_way is not None:
                beside: list[PodInfo | Eviction] = [pod for pod in chosen if pod.namespace == budget.metadata.namespace]
                used = sum(bool(pod.labels) and compiled.covers(pod) for pod in [*beside, *under_way(budget)])
                compiled = replace(compiled, allowed=compiled.allowed - used)
            if compiled is not None:
                self._by_namespace.setdefault(budget.metadata.namespace, []).append(compiled)

    def split(self, pods: Iterable[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Separate pods whose eviction would break a budget from the others.

        Args:
            pods: the most important first, because pods use budgets up in this order.

        Returns:
            Pods that break a budget, and the others; each in the given order.
        """
        breaking: list[PodInfo] = []
        others: list[PodInfo] = []
        used: dict[_Budget, int] = {}
        for pod in pods:
            (breaking if self._breaks_one(pod, used) else others).append(pod)
        return breaking, others

    def violations(self, units: Iterable[Iterable[PodInfo]]) -> list[int]:
        """Count, for pods that leave together, how many would break a budget each.

        Args:
            units: in the order in which they use budgets up.

        Returns:
            A number for each unit.
        """
        used: dict[_Budget, int] = {}
        return [sum([self._breaks_one(pod, used) for pod in unit]) for unit in units]

    def exhausted_for(self, pod: PodInfo) -> bool:
        """Tell whether the pod's eviction alone would break a budget.

        Args:
            pod: on a node.

        Returns:
            True where a budget that covers the pod allows no disruption.
        """
        return any(budget.allowed <= 0 for budget in self._covering(pod))

    def broken_by(self, pods: Iterable[PodInfo]) -> bool:
        """Tell whether evictions would break a budget together.

        Args:
            pods: all that are to be evicted.

        Returns:
            True where a budget covers more of them than it allows disruptions.
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
        budgets = self._by_namespace.get(pod.namespace)
        if budgets is None or not pod.labels:  # kube-scheduler: pods without labels are under no budget, with any selector
            return ()
        at = pod.namespace, pod.pairwise_key.labels
        found = self._selecting.get(at)
        if found is None:  # asked once for pods with equal labels: an attempt asks about each pod of many nodes, several times
            found = self._selecting[at] = [budget for budget in budgets if budget.selector.matches(pod.labels)]
        return [budget for budget in found if pod.name not in budget.already_counted]


def _compile(budget: PodDisruptionBudget) -> _Budget | None:
    """None for a budget that covers no pod: without a selector, with an empty one (until 1.37), or with one that does not parse."""
    if budget.spec.selector is None:
        return None
    try:
        selector = compile_label_selector(budget.spec.selector)
    except SelectorError:
        return None
    if selector.empty:
        return None
    return _Budget(selector, budget.status.disruptions_allowed, budget.status.disrupted_pods or _NOBODY)
