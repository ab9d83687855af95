"""A plain model of preemption among groups: whole numbers of CPUs, pods in lists, and no code of the engine.

`leaving_for` says who has to leave for one pod, by the rules of docs/decisions/0024 read literally; `Audit` looks at what was done, by
whatever preemptor, and only asks whether the rules allow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Running:
    """A pod on a node. `since`: seconds, no two alike. `guarded`: under a budget that allows no disruption."""

    name: str
    node: str
    cpus: int
    priority: int
    since: int
    group: str = ""
    guarded: bool = False


@dataclass(frozen=True)
class Declared:
    """A group. `minimum` None: basic. `own`: its own priority, which only Kubernetes' groups have."""

    minimum: int | None
    mode: str = ""
    own: int | None = None

    @property
    def loose(self) -> bool:
        """Any of its members may leave."""
        return self.mode == "Pod" or (not self.mode and (self.minimum is None or self.minimum <= 1))


@dataclass
class Town:
    """Nodes with their CPUs, pods on them, and groups by name."""

    nodes: dict[str, int]
    pods: list[Running] = field(default_factory=list)
    groups: dict[str, Declared] = field(default_factory=dict)

    def of(self, group: str) -> list[Running]:
        return [pod for pod in self.pods if pod.group == group]

    def spare(self, group: str) -> int:
        declared, standing = self.groups[group], len(self.of(group))
        return 0 if declared.mode == "PodGroup" else max(standing - (declared.minimum or 0), 0)

    def rank(self, group: str) -> int:
        """The priority with which a group leaves as a whole."""
        own = self.groups[group].own
        return own if own is not None else max(pod.priority for pod in self.of(group))

    def free(self, gone: Iterable[Running]) -> dict[str, int]:
        left, away = dict(self.nodes), {pod.name for pod in gone}
        for pod in self.pods:
            left[pod.node] -= 0 if pod.name in away else pod.cpus
        return left

    def places(self, gone: Iterable[Running], cpus: int) -> int:
        """For how many pods of so many CPUs there is room."""
        return sum(max(left, 0) // cpus for left in self.free(gone).values())


Unit = tuple[Running, ...]


def leaving_for(town: Town, cpus: int, priority: int) -> set[str]:
    """The victims of one pod; empty where nobody's leaving helps. The pod must fit nowhere as it is."""
    candidates = [found for node in sorted(town.nodes) if (found := _on(town, node, cpus, priority))]
    return {pod.name for pod in min(candidates, key=lambda found: found[0])[1]} if candidates else set()


def _on(town: Town, node: str, cpus: int, priority: int) -> tuple[tuple[object, ...], list[Running]] | None:
    whole, singles = set(), []
    for group in {pod.group for pod in town.pods if pod.node == node}:
        here = sorted((pod for pod in town.of(group) if pod.node == node), key=lambda pod: (-pod.priority, pod.since))
        weak = [pod for pod in here if pod.priority < priority]
        if not group or group not in town.groups or town.groups[group].loose:
            singles += weak
        elif town.spare(group) == 0:
            whole |= {group} if town.rank(group) < priority else set()
        elif town.rank(group) < priority and len(weak) > town.spare(group):
            singles += weak  # as long as not too many of them have to go
        else:
            singles += weak[max(len(weak) - town.spare(group), 0) :]
    while True:
        victims = _reprieved(town, node, cpus, _units(town, singles, whole))
        if victims is None:
            return None
        counts = Counter(unit[0].group for unit in victims if len(unit) == 1 and unit[0].group not in whole)
        bound = {group for group in counts if group in town.groups and not town.groups[group].loose}
        torn = {group for group in bound if counts[group] > town.spare(group)}
        if not torn:
            pods = [pod for unit in victims for pod in unit]
            return _cost(town, node, victims, whole), pods
        whole |= torn
        singles = [pod for pod in singles if pod.group not in torn]


def _units(town: Town, singles: Sequence[Running], whole: Iterable[str]) -> list[Unit]:
    alone: list[Unit] = [(pod,) for pod in singles]
    groups = {group: tuple(town.of(group)) for group in whole}
    keyed = [((-unit[0].priority, 1, 0, unit[0].since), unit) for unit in alone]
    keyed += [((-town.rank(group), 0, -len(unit), min(pod.since for pod in unit)), unit) for group, unit in groups.items()]
    return [unit for _, unit in sorted(keyed, key=lambda each: each[0])]


def _reprieved(town: Town, node: str, cpus: int, units: list[Unit]) -> list[Unit] | None:
    gone = {pod.name: pod for unit in units for pod in unit}
    if town.free(gone.values())[node] < cpus:
        return None
    victims = []
    for unit in sorted(units, key=lambda unit: not any(pod.guarded for pod in unit)):
        staying = {name: pod for name, pod in gone.items() if pod not in unit}
        if town.free(staying.values())[node] >= cpus:
            gone = staying
        else:
            victims.append(unit)
    return victims


def _cost(town: Town, node: str, victims: list[Unit], whole: set[str]) -> tuple[object, ...]:
    ranked = [(town.rank(pod.group) if pod.group in whole else pod.priority, pod) for unit in victims for pod in unit]
    top = max(rank for rank, _ in ranked)
    oldest = min(pod.since for rank, pod in ranked if rank == top)
    broken = sum(pod.guarded for _, pod in ranked)
    return broken, top, sum(rank + 2**31 for rank, _ in ranked), len(ranked), -oldest, node


@dataclass
class Audit:
    """What was done for `needed` pods of so many CPUs and one priority: `evicted`, by name. Every breach is noted."""

    town: Town
    cpus: int
    priority: int
    needed: int
    evicted: set[str]

    def breaches(self) -> list[str]:
        victims = [pod for pod in self.town.pods if pod.name in self.evicted]
        if not victims:
            return []
        found = [text for group in self.town.groups for text in self._broken(group)]
        if self.town.places(victims, self.cpus) < self.needed:
            found.append("there is no room although they leave")
        for unit in self._units(victims):
            staying = [pod for pod in victims if pod not in unit]
            if self.town.places(staying, self.cpus) >= self.needed:
                found.append(f"{[pod.name for pod in unit]} need not have left")
        return found

    def _broken(self, group: str) -> Iterable[str]:
        declared, standing = self.town.groups[group], self.town.of(group)
        gone = [pod for pod in standing if pod.name in self.evicted]
        if not gone:
            return
        remain = len(standing) - len(gone)
        if remain and not declared.loose and (declared.mode == "PodGroup" or remain < (declared.minimum or 0)):
            yield f"{len(gone)} of {len(standing)} of {group} left, {declared.minimum} are the fewest"
        if declared.loose or remain:
            yield from (f"{pod.name} is too important" for pod in gone if pod.priority >= self.priority)
        elif self.town.rank(group) >= self.priority:
            yield f"{group} is too important"

    def _units(self, victims: list[Running]) -> Iterable[Unit]:
        for group in {pod.group for pod in victims}:
            gone = [pod for pod in victims if pod.group == group]
            declared = self.town.groups.get(group)
            if declared is None or declared.loose or len(gone) < len(self.town.of(group)):
                yield from ((pod,) for pod in gone)
            else:
                yield tuple(gone)
