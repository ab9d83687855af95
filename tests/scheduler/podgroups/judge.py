"""Judges what happened to groups, from the rules' plain meaning: it reads manifests and a list of what was done, and no code of the engine.

Bindings that are sent at one moment of virtual time, with nothing else in between, are sent together: a group's go one after the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

Manifest = dict[str, Any]
LABEL = "scheduling.x-k8s.io/pod-group"
TOPOLOGY = "placewright.dev/topology-key"
MODE = "placewright.dev/topology-mode"
SENT = frozenset({"bind", "refused"})


@dataclass(frozen=True)
class Deed:
    """One thing that was done: `bind` (sent, and done), `refused` (sent, and not done), `gone`, or `evict`."""

    at: float
    what: str
    pod: str
    node: str = ""
    by: str = ""


@dataclass
class Judge:
    """Goes through the deeds in order and notes every breach.

    Attributes:
        breaches: what was wrong, as text.
        placed_at: by group, when enough of its members stood for the first time.
    """

    nodes: Mapping[str, Manifest]
    groups: Mapping[str, Manifest]
    pods: Mapping[str, Manifest]
    breaches: list[str] = field(default_factory=list)
    placed_at: dict[str, float] = field(default_factory=dict)
    _on: dict[str, str] = field(default_factory=dict)
    _before: Counter[str] = field(default_factory=Counter)
    _refused: set[str] = field(default_factory=set)

    def go_through(self, deeds: Sequence[Deed], at_first: Mapping[str, str]) -> None:
        """`at_first`: by pod, the node it stands on at the beginning."""
        self._on = dict(at_first)
        for at, together in _moments(deeds):
            self._before = Counter(map(self.group_of, self._on))
            touched = set()
            for deed in together:
                if deed.what == "bind":
                    self._binds(deed)
                    touched.add(self.group_of(deed.pod))
                elif deed.what == "refused":
                    self._refused.add(deed.pod)
                    touched.add(self.group_of(deed.pod))
                else:
                    self._on.pop(deed.pod, None)
            for group in touched - {""}:
                self._all_or_none(at, group)
                self._one_domain(at, group)
            self._refused.clear()

    def group_of(self, pod: str) -> str:
        name: str = (self.pods[pod]["metadata"].get("labels") or {}).get(LABEL, "")
        return name if name in self.groups else ""

    def minimum(self, group: str) -> int:
        wanted: int = self.groups[group]["spec"]["minMember"]
        return wanted

    def _standing(self, group: str) -> list[str]:
        return [pod for pod in self._on if self.group_of(pod) == group]

    def _binds(self, deed: Deed) -> None:
        if deed.pod in self._on:
            self.breaches.append(f"{deed.at}: {deed.pod} is bound twice")
        self._on[deed.pod] = deed.node
        used = sum(cpu_of(self.pods[pod]) for pod, node in self._on.items() if node == deed.node)
        offered = milli(self.nodes[deed.node]["status"]["allocatable"]["cpu"])
        if used > offered:
            self.breaches.append(f"{deed.at}: {deed.node} offers {offered}m and holds {used}m")

    def _all_or_none(self, at: float, group: str) -> None:
        """What the API server refuses was sent all the same, and cannot be helped."""
        standing = len(self._standing(group))
        sent = standing + sum(self.group_of(pod) == group for pod in self._refused)
        if standing >= self.minimum(group):
            self.placed_at.setdefault(group, at)
        elif sent < self.minimum(group) and not self._before[group]:
            self.breaches.append(f"{at}: {sent} of {group} were to be bound, {self.minimum(group)} are the fewest")

    def _one_domain(self, at: float, group: str) -> None:
        notes = self.groups[group]["metadata"].get("annotations") or {}
        if TOPOLOGY not in notes or notes.get(MODE, "required") != "required":
            return
        found = {self.nodes[self._on[pod]]["metadata"]["labels"].get(notes[TOPOLOGY]) for pod in self._standing(group)}
        if len(found) > 1 or None in found:
            self.breaches.append(f"{at}: {group} stands in {sorted(map(str, found))}")

    def could_ever_stand(self, group: str) -> bool:
        """Whether enough members fit on the empty cluster, all of them in one domain if that is required; by trying everything."""
        notes = self.groups[group]["metadata"].get("annotations") or {}
        required = TOPOLOGY in notes and notes.get(MODE, "required") == "required"
        places: dict[str, list[int]] = defaultdict(list)
        for node in self.nodes.values():
            domain = node["metadata"]["labels"].get(notes[TOPOLOGY]) if required else "anywhere"
            if domain is not None:
                places[domain].append(milli(node["status"]["allocatable"]["cpu"]))
        sizes = sorted(cpu_of(pod) for name, pod in self.pods.items() if self.group_of(name) == group)[: self.minimum(group)]
        return len(sizes) == self.minimum(group) and any(_packs(sizes[::-1], free) for free in places.values())


def _packs(sizes: list[int], free: list[int]) -> bool:
    if not sizes:
        return True
    first, *rest = sizes
    return any(
        _packs(rest, [left - first if other == index else left for other, left in enumerate(free)])
        for index, left in enumerate(free)
        if left >= first and left not in free[:index]
    )


def _moments(deeds: Iterable[Deed]) -> Iterator[tuple[float, list[Deed]]]:
    """Deeds of one moment that are all Bindings, or all none: who is bound may have to leave at once."""
    for (at, _), together in groupby(deeds, lambda deed: (deed.at, deed.what in SENT)):
        yield at, list(together)


def cpu_of(pod: Manifest) -> int:
    return sum(milli(container["resources"]["requests"]["cpu"]) for container in pod["spec"]["containers"])


def milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
