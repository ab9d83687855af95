"""A node under trial: who could leave it, who has to, and what that costs beside other nodes.

The cost has kube-scheduler's criteria, in its order, and the node's name as the last one. Upstream's last criterion is the order of a Go
map; ours is the name, so that the same cluster always gives the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import Seconds
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.together import Move, importance, start_time
from placewright.framework.status import Status, error, unresolvable

#: Makes every priority positive, so that of two sums the one with more pods is never smaller for a negative priority.
_PRIORITY_OFFSET: Final = 2**31


#: As in `Candidate`: the number of broken budgets, the top priority, the sum of priorities, the number of victims, the youngest start.
Cost = tuple[int, int, int, int, Seconds]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and who would have to leave it.

    Attributes:
        victims: most important first, at least one.
        violations: how many of them no disruption budget can spare.
        ranks: the priorities that victims count with, where these are not their own but their groups'; in the same order.
        cost: how bad it would be; less is better.
    """

    node: NodeName
    victims: tuple[PodInfo, ...]
    violations: int
    ranks: tuple[int, ...] = ()
    cost: Cost = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", self._cost())  # compared again and again where candidates are kept

    def _cost(self) -> Cost:
        """Broken budgets, the priority of the top victim, the sum of priorities, the number of victims, how long the top ones have run."""
        ranks = self.ranks or tuple(pod.priority for pod in self.victims)
        top = ranks[0]
        total = sum(rank + _PRIORITY_OFFSET for rank in ranks)
        earliest = min(start_time(pod) for pod, rank in zip(self.victims, ranks, strict=True) if rank == top)
        return self.violations, top, total, len(self.victims), -earliest


def pick(candidates: Iterable[Candidate]) -> Candidate:
    """The cheapest candidate; raise `ValueError` when there is none."""
    return min(candidates, key=lambda candidate: (candidate.cost, candidate.node))


NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")

#: The outcome of a trial: a candidate, or why evicting does not help there.
Outcome = Candidate | Status


class NodeTrial:
    """A node with all evictable pods taken away, and the pods that may come back one by one.

    Attributes:
        evictable: the pods that may be made to leave.
        protected: the pods that a disruption budget protects; the first to be let back.
        others: the rest; each list has the most important pod first.
    """

    __slots__ = ("_victims", "_violations", "evictable", "node", "others", "protected", "row")

    def __init__(self, row: int, node: NodeName, evictable: Sequence[PodInfo]) -> None:
        self.row = row
        self.node = node
        self.evictable = evictable
        self.protected: list[PodInfo] = []
        self.others: list[PodInfo] = []
        self._victims: list[PodInfo] = []
        self._violations = 0

    def rank(self, budgets: Budgets) -> None:
        """Fill `protected` and `others`, and begin; needed only where taking all of them away makes room."""
        self._victims = []
        self._violations = 0
        self.protected, self.others = budgets.split(sorted(self.evictable, key=importance))

    def everybody(self) -> list[Move]:
        """All pods that may leave, with their rows."""
        return [(self.row, pod) for pod in self.evictable]

    @property
    def turns(self) -> int:
        """Number of returns that are tried."""
        return len(self.evictable)

    def to_reprieve(self, index: int) -> Sequence[PodInfo]:
        """The pod whose return is tried at this turn, from 0; None when all had their turn."""
        if index < len(self.protected):
            return self.protected[index : index + 1]
        index -= len(self.protected)
        return self.others[index : index + 1]

    def condemn(self, index: int) -> None:
        """The pod of this turn must leave: the preemptor does not fit beside it."""
        self._victims += self.to_reprieve(index)
        self._violations += index < len(self.protected)

    def outcome(self) -> Outcome:
        """The candidate, once every pod had its turn; an error when no pod had to leave, for then the node was rejected for nothing."""
        if not self._victims:
            return error(f'expected at least one victim pod on node "{self.node}"')
        return Candidate(self.node, tuple(sorted(self._victims, key=importance)), self._violations)
