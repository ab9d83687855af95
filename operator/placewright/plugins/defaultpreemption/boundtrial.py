"""The trial of one node that runs members of pod groups whose eviction takes other members along.

Members of such a group on other nodes leave, too. If a filter may read these pods, such nodes are tried one after another, without any
leaving pod. Otherwise they are tried in step with other nodes, and each trial removes the pods of its own node only.
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
from placewright.framework.preemption.victimunits import EvictablePods, Move, VictimUnit, alone
from placewright.framework.status import error
from placewright.plugins.defaultpreemption.candidates import Candidate, Outcome


class BoundTrial:
    """A node without its evictable pods, and the units that may come back one by one.

    Members of a group that can spare some come back one by one. A group that would lose more than it can spare leaves as a whole. `run`
    then starts the trial again with that group as one unit.

    Attributes:
        evictable: pods of this node that preemption may evict.
    """

    __slots__ = ("_leaving", "_lost", "_ranked", "_victims", "_violations", "evictable", "node", "row")

    def __init__(self, row: int, node: NodeName, leaving: EvictablePods) -> None:
        self.row = row
        self.node = node
        self.evictable = [*leaving.singles, *(pod for pods in leaving.members.values() for pod in pods)]
        self._leaving = leaving
        #: Groups that leave as a whole or not at all.
        self._lost = {ref for ref, bond in leaving.bonds.items() if not bond.spare}
        #: Units in the order of their return. Each has the number of its pods that break a budget, and its pods on this node.
        self._ranked: list[tuple[VictimUnit, int, Sequence[PodInfo]]] = []
        self._victims: list[VictimUnit] = []
        self._violations = 0

    def rank(self, budgets: Budgets) -> None:
        """Order the units for their return, protected ones first, then by importance; forget earlier victims."""
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
        """Return the pods of this node that come back at turn `index`, from 0; empty after the last turn."""
        return self._ranked[index][2] if index < len(self._ranked) else ()

    def condemn(self, index: int) -> None:
        """Make the unit of turn `index` a victim, because the preemptor does not fit beside it."""
        unit, breaks, _ = self._ranked[index]
        self._victims.append(unit)
        self._violations += breaks

    def torn(self) -> set[GroupRef]:
        """Find the groups that would lose more members than they can spare."""
        members = {pod.uid: ref for ref, pods in self._leaving.members.items() if ref not in self._lost for pod in pods}
        leaving = Counter(members.get(unit.pods[0].uid) for unit in self._victims if unit.ref is None)
        bonds = self._leaving.bonds
        return {ref for ref, count in leaving.items() if ref is not None and count > bonds[ref].spare}

    def outcome(self) -> Outcome:
        """Return the candidate; an error if no unit had to leave. Call it after the last turn, when no group is torn."""
        if not self._victims:
            return error(f'expected at least one victim pod on node "{self.node}"')
        victims = sorted(self._victims, key=lambda unit: unit.rank)
        pods = tuple(pod for unit in victims for pod in unit.pods)
        return Candidate(self.node, pods, self._violations, tuple(unit.priority for unit in victims for _ in unit.pods))

    # --- by itself -------------------------------------------------------------------------------------------------------------

    def run(self, handle: Handle, preemptor: PodInfo, budgets: Budgets) -> Outcome:
        """Try this node by itself: return the candidate, or why evicting does not help."""
        try:
            with handle.cluster.dry_run() as dry_run:
                away = self.evictable_moves()
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
        """Let the units come back, one by one, and condemn each unit that keeps the preemptor out."""
        self.rank(budgets)
        dry_run.add(self._elsewhere())
        for turn, (unit, _, _) in enumerate(self._ranked):
            dry_run.add(unit.moves)
            if not handle.check_row(preemptor, self.row).ok:
                dry_run.remove(unit.moves)
                self.condemn(turn)

    def evictable_moves(self) -> list[Move]:
        """List all pods that may leave, also on other nodes, with their rows."""
        bound = [move for bond in self._leaving.bonds.values() if bond.whole is not None for move in bond.whole.moves]
        return [*((self.row, pod) for pod in self._leaving.singles), *bound]

    def _units(self) -> Iterable[VictimUnit]:
        for pod in self._leaving.singles:
            yield alone(self.row, pod)
        for ref, bond in self._leaving.bonds.items():
            if ref in self._lost and bond.whole is not None:
                yield bond.whole
            else:
                yield from (alone(self.row, pod) for pod in self._leaving.members[ref])

    def _elsewhere(self) -> list[Move]:
        """List the members on other nodes that stay, because their groups can spare some."""
        staying: list[Move] = []
        for ref, bond in self._leaving.bonds.items():
            if ref not in self._lost and bond.whole is not None:
                here = {pod.uid for pod in self._leaving.members[ref]}
                staying += [move for move in bond.whole.moves if move[1].uid not in here]
        return staying
