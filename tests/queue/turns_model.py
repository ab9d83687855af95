"""A plain model of the order of turns: one list of waiting pods, read from end to end for each question."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class WaitingPod:
    uid: str
    tenant: str
    priority: int
    key: float
    charge: int


@dataclass
class TurnsModel:
    """Pods in order of arrival, and by (priority, tenant) the tag and its number. Room is no part of it."""

    weights: dict[str, int] = field(default_factory=dict)
    pods: list[WaitingPod] = field(default_factory=list)
    tags: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    in_effect: dict[tuple[int, str], int] = field(default_factory=dict)
    clock: dict[int, int] = field(default_factory=dict)
    least: dict[int, int] = field(default_factory=dict)
    given: int = 0

    def _waiting(self, priority: int) -> set[str]:
        return {pod.tenant for pod in self.pods if pod.priority == priority}

    def _give(self, priority: int, tenant: str, tag: int) -> None:
        self.given += 1
        self.tags[priority, tenant] = (tag, self.given)

    def push(self, pod: WaitingPod) -> None:
        if pod.tenant not in self._waiting(pod.priority):
            owed = self.tags.get((pod.priority, pod.tenant), (0, 0))[0]
            self._give(pod.priority, pod.tenant, max(self.clock.get(pod.priority, 0), owed))
            self.in_effect[pod.priority, pod.tenant] = self.weights.get(pod.tenant, 1)
        self.pods.append(pod)

    def remove(self, uid: str) -> None:
        priorities = {pod.priority for pod in self.pods if pod.uid == uid}
        self.pods = [pod for pod in self.pods if pod.uid != uid]
        for priority in priorities:
            self._reset_if_empty(priority)

    def _reset_if_empty(self, priority: int) -> None:
        """When no pod of a priority waits, no tenant waited for another: its debts are forgotten."""
        if not self._waiting(priority):
            self.clock.pop(priority, None)
            self.least.pop(priority, None)
            self.tags = {key: tag for key, tag in self.tags.items() if key[0] != priority}

    def first(self) -> WaitingPod | None:
        if not self.pods:
            return None
        priority = max(pod.priority for pod in self.pods)
        tenant = min(self._waiting(priority), key=lambda name: self.tags[priority, name])
        return min((pod for pod in self.pods if (pod.priority, pod.tenant) == (priority, tenant)), key=lambda pod: pod.key)

    def pop(self) -> str | None:
        pod = self.first()
        if pod is None:
            return None
        priority = pod.priority
        weight = self.in_effect[priority, pod.tenant] = self.weights.get(pod.tenant, 1)
        waiting = self._waiting(priority)
        tag = self.tags[priority, pod.tenant][0]
        all_weights = sum(self.in_effect[priority, name] for name in waiting)
        self._give(priority, pod.tenant, tag + (pod.charge + weight - 1) // weight)
        least = self.least[priority] = min(self.least.get(priority, pod.charge), pod.charge)
        self.clock[priority] = max(self.clock.get(priority, 0), tag) + max(1, least // all_weights)
        self.remove(pod.uid)
        return pod.uid
