"""One node under trial on which members of groups stand that would not leave alone.

Members of these groups on other nodes leave, too. Where a filter may look at them, such nodes are tried one after another, with all
leaving pods taken away; else in step with others, each with its own pods alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.dryrun import DryRunCluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import Handle
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.together import Move, OnNode, Unit, alone
from placewright.framework.status import error
from placewright.plugins.defaultpreemption.candidates import Candidate, Outcome


class BoundTrial:
    """A node with all pods taken away that may leave, and units that may come back, one by one.

    Members of a group that has some to spare come back one by one. If more of them have to leave than the group can spare, the group is
    lost: the trial has to begin again with the group as one unit, which `run` does.

    Attributes:
        evictable: the pods on this node that may be made to leave.
    """

    __slots__ = ("_leaving", "_lost", "_ranked", "_victims", "_violations", "evictable", "node", "row")

    def __init__(self, row: int, node: NodeName, leaving: OnNode) -> None:
        self.row = row
        self.node = node
        self.evictable = [*leaving.singles, *(pod for pods in leaving.members.values() for pod in pods)]
        self._leaving = leaving
        #: Groups that leave as a whole, if they leave.
        self._lost = {ref for ref, bond in leaving.bonds.items() if not bond.spare}
        #: Units in the order in which they may come back, each with the number of its pods that break a budget, and those of it here.
        self._ranked: list[tuple[Unit, int, Sequence[PodInfo]]] = []
        self._victims: list[Unit] = []
        self._violations = 0

    def rank(self, budgets: Budgets) -> None:
        """Begin: units that may come back, units that a budget protects first, then the most important."""
        units = sorted(self._units(), key=lambda unit: unit.rank)
        violations = budgets.violations(unit.pods for unit in units)
        here = {pod.uid for pod in self.evictable}
        ranked = sorted(zip(units, violations, strict=True), key=lambda each: not each[1])
        self._ranked = [(unit, breaks, [pod for pod in unit.pods if pod.uid in here]) for unit, breaks in ranked]
        self._victims = []
        self._violations = 0

    @property
    def turns(self) -> int:
        """Number of returns that are tried."""
        return len(self._ranked)

    def to_reprieve(self, index: int) -> Sequence[PodInfo]:
        """The pods of this node whose return is tried at this turn, from 0; empty when all had their turn."""
        return self._ranked[index][2] if index < len(self._ranked) else ()

    def condemn(self, index: int) -> None:
        """The unit of this turn must leave: the preemptor does not fit beside it."""
        unit, breaks, _ = self._ranked[index]
        self._victims.append(unit)
        self._violations += breaks

    def torn(self) -> set[GroupRef]:
        """Groups that would lose more members than they can spare."""
        members = {pod.uid: ref for ref, pods in self._leaving.members.items() if ref not in self._lost for pod in pods}
        leaving = Counter(members.get(unit.pods[0].uid) for unit in self._victims if unit.ref is None)
        bonds = self._leaving.bonds
        return {ref for ref, count in leaving.items() if ref is not None and count > bonds[ref].spare}

    def outcome(self) -> Outcome:
        """The candidate, once every unit had its turn and no group is torn."""
        if not self._victims:
            return error(f'expected at least one victim pod on node "{self.node}"')
        victims = sorted(self._victims, key=lambda unit: unit.rank)
        pods = tuple(pod for unit in victims for pod in unit.pods)
        return Candidate(self.node, pods, self._violations, tuple(unit.priority for unit in victims for _ in unit.pods))

    # --- by itself -------------------------------------------------------------------------------------------------------------

    def run(self, handle: Handle, preemptor: PodInfo, budgets: Budgets) -> Outcome:
        """The candidate, or why evicting does not help."""
        try:
            with handle.cluster.dry_run() as dry_run:
                away = self.everybody()
                dry_run.remove(away)
                status = handle.check_row(preemptor, self.row)
                if not status.ok:
                    return status
                self._reprieve(handle, preemptor, budgets, dry_run)
                while torn := self.torn():
                    self._lost |= torn
                    gone = {pod.uid for unit in self._victims for pod in unit.pods}
                    dry_run.remove([move for move in away if move[1].uid not in gone])
                    self._reprieve(handle, preemptor, budgets, dry_run)
                return self.outcome()
        except CycleError as problem:
            return error(str(problem))

    def _reprieve(self, handle: Handle, preemptor: PodInfo, budgets: Budgets, dry_run: DryRunCluster) -> None:
        """Take away all pods that may leave; let units come back."""
        self.rank(budgets)
        dry_run.add(self._elsewhere())
        for turn, (unit, _, _) in enumerate(self._ranked):
            dry_run.add(unit.moves)
            if not handle.check_row(preemptor, self.row).ok:
                dry_run.remove(unit.moves)
                self.condemn(turn)

    def everybody(self) -> list[Move]:
        """All pods that may leave, also those of other nodes, with their rows."""
        bound = [move for bond in self._leaving.bonds.values() if bond.whole is not None for move in bond.whole.moves]
        return [*((self.row, pod) for pod in self._leaving.singles), *bound]

    def _units(self) -> Iterable[Unit]:
        for pod in self._leaving.singles:
            yield alone(self.row, pod)
        for ref, bond in self._leaving.bonds.items():
            if ref in self._lost and bond.whole is not None:
                yield bond.whole
            else:
                yield from (alone(self.row, pod) for pod in self._leaving.members[ref])

    def _elsewhere(self) -> list[Move]:
        """Members on other nodes of groups that have some to spare: they stay."""
        staying: list[Move] = []
        for ref, bond in self._leaving.bonds.items():
            if ref not in self._lost and bond.whole is not None:
                here = {pod.uid for pod in self._leaving.members[ref]}
                staying += [move for move in bond.whole.moves if move[1].uid not in here]
        return staying
