"""What came of a simulation: for every pod where it is and when it got there, or why not; and the cluster as it stands at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from placewright.api.objects import NodeName, PodKey
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster


@dataclass(slots=True)
class Fate:
    """One pod that the profile had to place. Times are virtual seconds from the beginning.

    Attributes:
        pod: as it was created.
        created: when it came; 0 for those that waited at the beginning.
        node: where it is, or was when it left; None while it waits.
        bound: when it got its node.
        left: when it was deleted, finished or was preempted; None while it is there.
        attempts: how often it was tried.
        message: why it has no node, in kube-scheduler's words; empty for one that has.
        plugins: who rejected it last.
        score: total of its node; 0 where there was nothing to choose.
        parts: each plugin's weighted part of it.
        rejected: True once it was tried and got no node, whatever became of it later.
        preempted: True when it had to leave for another.
        preempted_others: keys of pods that had to leave for it.
    """

    pod: PodInfo
    created: float
    node: NodeName | None = None
    bound: float | None = None
    left: float | None = None
    attempts: int = 0
    message: str = ""
    plugins: frozenset[str] = frozenset()
    score: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    rejected: bool = False
    preempted: bool = False
    preempted_others: list[PodKey] = field(default_factory=list)

    @property
    def pending(self) -> bool:
        """True while it waits for a node."""
        return self.node is None and self.left is None


@dataclass(slots=True)
class Outcome:
    """What one profile made of a scenario.

    Attributes:
        profile: its name, for people.
        seed: of the choice among equally good nodes.
        fates: by uid, in the order in which pods came.
        cluster: as it stands at the end, pods that were there before included.
        ended: virtual seconds at the end.
        wall_seconds: what it took in fact.
        evicted: uids of pods that were there at the beginning and had to leave for others.
        passed_over: keys of pods that wait at the end for a scheduler that none of the profiles is.
    """

    profile: str
    seed: int
    fates: dict[str, Fate]
    cluster: Cluster
    ended: float = 0.0
    wall_seconds: float = 0.0
    evicted: list[str] = field(default_factory=list)
    passed_over: list[PodKey] = field(default_factory=list)

    def placed(self) -> Iterator[Fate]:
        """Pods that got a node, whether or not they have left it since."""
        return (fate for fate in self.fates.values() if fate.node is not None)

    def pending(self) -> Iterator[Fate]:
        """Pods that wait at the end."""
        return (fate for fate in self.fates.values() if fate.pending)
