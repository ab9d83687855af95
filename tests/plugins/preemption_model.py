"""A plain scalar model of preemption with rules, on nodes that hold pods by their CPU alone: each node, each pod, one after the other.

It follows kube-scheduler's `dryRunPreemption` and `pickOneNodeForPreemption` (1.36). Rules are filters: on the pods that may leave a node,
and on the nodes that are candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Standing:
    """A pod on a node; `day` is the day of January on which it started, None for a pod that has not reported it."""

    name: str
    priority: int
    cpu: int
    day: int | None
    app: str


@dataclass(frozen=True)
class Rules:
    """The rules; the values that switch them off are those of a profile without."""

    strict: bool = False
    min_run_days: int = 0
    max_victims: int = 1000
    protected_app: str = "none"


@dataclass
class Model:
    """Nodes by name with their pods, milli-CPU of each node, disruptions allowed by app, and the day of January that it is."""

    nodes: Mapping[str, Sequence[Standing]]
    cpu: int
    allowed: Mapping[str, int] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    today: int = 31

    def victims(self, priority: int, cpu: int) -> tuple[str, list[str]] | None:
        """The node, and the names of its victims, most important first; None where no node is a candidate."""
        found = []
        for node, pods in self.nodes.items():
            victims = self._on(pods, priority, cpu)
            if victims is not None:
                found.append((self._cost(*victims), node, [pod.name for pod in victims[0]]))
        if not found:
            return None
        _, node, names = min(found)
        return node, names

    def _may_leave(self, pod: Standing) -> bool:
        rules = self.rules
        if pod.app == rules.protected_app:
            return False
        if rules.min_run_days and (pod.day is None or self.today - pod.day < rules.min_run_days):
            return False
        return not (rules.strict and self.allowed.get(pod.app, 1) <= 0)

    def _on(self, pods: Sequence[Standing], priority: int, cpu: int) -> tuple[list[Standing], int] | None:
        """The victims on a node and the number of budgets that they count as breaking."""
        may_leave = [pod for pod in pods if pod.priority < priority and self._may_leave(pod)]
        gone = list(may_leave)

        def fits() -> bool:
            return sum(pod.cpu for pod in pods if pod not in gone) + cpu <= self.cpu

        if not may_leave or not fits():
            return None
        breaking = self._breaking(sorted(may_leave, key=_importance))
        others = [pod for pod in sorted(may_leave, key=_importance) if pod not in breaking]
        for pod in [*breaking, *others]:
            gone.remove(pod)
            if not fits():
                gone.append(pod)
        if self.rules.strict and any(sum(pod.app == app for pod in gone) > most for app, most in self.allowed.items()):
            return None
        if len(gone) > self.rules.max_victims:
            return None
        return sorted(gone, key=_importance), 0 if self.rules.strict else sum(pod in breaking for pod in gone)

    def _breaking(self, pods: Sequence[Standing]) -> list[Standing]:
        used: dict[str, int] = {}
        breaking = []
        for pod in pods:
            used[pod.app] = used.get(pod.app, 0) + 1
            if used[pod.app] > self.allowed.get(pod.app, len(pods)):
                breaking.append(pod)
        return breaking

    def _cost(self, victims: Sequence[Standing], breaking: int) -> tuple[float, ...]:
        top = max(pod.priority for pod in victims)
        earliest = min(_start(pod) for pod in victims if pod.priority == top)
        return breaking, top, sum(pod.priority + 2**31 for pod in victims), len(victims), -earliest


def _start(pod: Standing) -> float:
    return float("inf") if pod.day is None else pod.day


def _importance(pod: Standing) -> tuple[int, float]:
    return -pod.priority, _start(pod)
