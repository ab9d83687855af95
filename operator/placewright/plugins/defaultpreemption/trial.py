"""One node under trial: who could leave it, who has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.importance import importance
from placewright.framework.status import Status, error, unresolvable
from placewright.plugins.defaultpreemption.pick import Candidate

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")

#: What came of a trial: a candidate, or why evicting does not help there.
Outcome = Candidate | Status


class Trial:
    """A node with all evictable pods taken away, and the pods that may come back one by one.

    Attributes:
        evictable: the pods that may be made to leave.
        protected: those that a disruption budget protects; the first to be let back.
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

    @property
    def turns(self) -> int:
        """So many returns are tried."""
        return len(self.evictable)

    def to_reprieve(self, index: int) -> Sequence[PodInfo]:
        """The pod whose return is tried at this turn, from 0; nobody when all had theirs."""
        if index < len(self.protected):
            return self.protected[index : index + 1]
        index -= len(self.protected)
        return self.others[index : index + 1]

    def condemn(self, index: int) -> None:
        """The pod of this turn must leave: the preemptor does not fit beside it."""
        self._victims += self.to_reprieve(index)
        self._violations += index < len(self.protected)

    def outcome(self) -> Outcome:
        """The candidate, once every pod had its turn; an error when nobody had to leave, for then the node was rejected for nothing."""
        if not self._victims:
            return error(f'expected at least one victim pod on node "{self.node}"')
        return Candidate(self.node, tuple(sorted(self._victims, key=importance)), self._violations)
