"""Trials of one node, and candidates: the victims on a node, and what their eviction costs.

The cost follows kube-scheduler's criteria in its order. Upstream breaks the last ties by the order of a Go map. Here the node's name breaks
them, so that the same cluster always gives the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import Seconds
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.victimunits import Move, importance, start_time
from placewright.framework.status import Status, error, unresolvable

#: Makes every priority positive, so that a victim of negative priority cannot lower the sum.
_PRIORITY_OFFSET: Final = 2**31


#: Cost of a candidate: broken budgets, top priority, sum of priorities, number of victims, negated earliest start.
Cost = tuple[int, int, int, int, Seconds]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and the pods that would be evicted from it.

    Attributes:
        victims: pods to evict, at least one, most important first.
        violations: number of victims whose eviction breaks a disruption budget.
        ranks: priorities that the victims count with, in their order; empty if each counts with its own.
        cost: criteria by which candidates are compared; less is better.
    """

    node: NodeName
    victims: tuple[PodInfo, ...]
    violations: int
    ranks: tuple[int, ...] = ()
    cost: Cost = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", self._cost())  # compared again and again where candidates are kept

    def _cost(self) -> Cost:
        """Compute the criteria in the order of `Cost`. Only victims of the top priority count for the start."""
        ranks = self.ranks or tuple(pod.priority for pod in self.victims)
        top = ranks[0]
        total = sum(rank + _PRIORITY_OFFSET for rank in ranks)
        earliest = min(start_time(pod) for pod, rank in zip(self.victims, ranks, strict=True) if rank == top)
        return self.violations, top, total, len(self.victims), -earliest


def pick(candidates: Iterable[Candidate]) -> Candidate:
    """Return the cheapest candidate. Raise `ValueError` if there is none."""
    return min(candidates, key=lambda candidate: (candidate.cost, candidate.node))


NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")

#: The outcome of a trial: a candidate, or why evicting does not help there.
Outcome = Candidate | Status


class NodeTrial:
    """A node without its evictable pods, and the pods that may come back one by one.

    Attributes:
        evictable: pods that preemption may evict.
        protected: evictable pods whose eviction would break a disruption budget, most important first; they come back first.
        others: the other evictable pods, most important first.
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
        """Fill `protected` and `others`, and forget earlier victims. Needed only if evicting all pods makes room."""
        self._victims = []
        self._violations = 0
        self.protected, self.others = budgets.split(sorted(self.evictable, key=importance))

    def evictable_moves(self) -> list[Move]:
        """List all pods that may leave, with their rows."""
        return [(self.row, pod) for pod in self.evictable]

    @property
    def turns(self) -> int:
        """Number of returns that are tried."""
        return len(self.evictable)

    def to_reprieve(self, index: int) -> Sequence[PodInfo]:
        """Return the pod that comes back at turn `index`, from 0; empty after the last turn."""
        if index < len(self.protected):
            return self.protected[index : index + 1]
        index -= len(self.protected)
        return self.others[index : index + 1]

    def condemn(self, index: int) -> None:
        """Make the pod of turn `index` a victim, because the preemptor does not fit beside it."""
        self._victims += self.to_reprieve(index)
        self._violations += index < len(self.protected)

    def outcome(self) -> Outcome:
        """Return the candidate; an error if no pod had to leave. Call it after the last turn."""
        if not self._victims:
            return error(f'expected at least one victim pod on node "{self.node}"')
        return Candidate(self.node, tuple(sorted(self._victims, key=importance)), self._violations)
