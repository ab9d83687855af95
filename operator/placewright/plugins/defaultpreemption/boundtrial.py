"""One node under trial on which members of groups stand that would not leave alone.

Those of their group on other nodes leave in the trial, too: a filter may look at them. So these nodes are tried one after another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.supposition import Supposition
from placewright.framework.errors import CycleError
from placewright.framework.interface import Handle
from placewright.framework.status import error
from placewright.plugins.defaultpreemption.budgets import Budgets
from placewright.plugins.defaultpreemption.pick import Candidate
from placewright.plugins.defaultpreemption.together import Move, OnNode, Unit, alone
from placewright.plugins.defaultpreemption.trial import Outcome


class BoundTrial:
    """Takes everybody away who may leave, and lets units come back, the most important first, as long as the preemptor still fits.

    Members of a group that has some to spare come back one by one. If more of them have to leave than the group can spare, the group is
    lost: the trial begins again with the group as one unit.
    """

    def __init__(self, handle: Handle, preemptor: PodInfo, budgets: Budgets, row: int, node: NodeName, leaving: OnNode) -> None:
        self._handle = handle
        self._preemptor = preemptor
        self._budgets = budgets
        self._row = row
        self._node = node
        self._leaving = leaving
        #: Groups that leave as a whole, if they leave.
        self._lost = {ref for ref, bond in leaving.bonds.items() if not bond.spare}

    def run(self) -> Outcome:
        """The candidate, or why evicting does not help."""
        try:
            with self._handle.cluster.supposing() as supposition:
                away = self._everybody()
                supposition.remove(away)
                status = self._handle.check_row(self._preemptor, self._row)
                return self._outcome(supposition, away) if status.ok else status
        except CycleError as problem:
            return error(str(problem))

    def _everybody(self) -> list[Move]:
        bound = [move for bond in self._leaving.bonds.values() if bond.whole is not None for move in bond.whole.moves]
        return [*((self._row, pod) for pod in self._leaving.singles), *bound]

    def _outcome(self, supposition: Supposition, away: list[Move]) -> Outcome:
        """`away`: everybody, and so it is supposed."""
        while True:
            victims, violations = self._reprieve(supposition)
            torn = self._torn(victims)
            if not torn:
                break
            self._lost |= torn
            staying = {pod.uid for unit in victims for pod in unit.pods}
            supposition.remove([move for move in away if move[1].uid not in staying])
        if not victims:
            return error(f'expected at least one victim pod on node "{self._node}"')
        victims.sort(key=lambda unit: unit.rank)
        pods = tuple(pod for unit in victims for pod in unit.pods)
        return Candidate(self._node, pods, violations, tuple(unit.priority for unit in victims for _ in unit.pods))

    def _reprieve(self, supposition: Supposition) -> tuple[list[Unit], int]:
        """The units that have to leave, and how many of their pods break a budget."""
        units = sorted(self._units(), key=lambda unit: unit.rank)
        violations = self._budgets.violations(unit.pods for unit in units)
        supposition.add(self._elsewhere())
        victims, broken = [], 0
        for unit, breaks in sorted(zip(units, violations, strict=True), key=lambda each: not each[1]):
            supposition.add(unit.moves)
            if not self._handle.check_row(self._preemptor, self._row).ok:
                supposition.remove(unit.moves)
                victims.append(unit)
                broken += breaks
        return victims, broken

    def _units(self) -> Iterable[Unit]:
        for pod in self._leaving.singles:
            yield alone(self._row, pod)
        for ref, bond in self._leaving.bonds.items():
            if ref in self._lost and bond.whole is not None:
                yield bond.whole
            else:
                yield from (alone(self._row, pod) for pod in self._leaving.members[ref])

    def _elsewhere(self) -> list[Move]:
        """Members on other nodes of groups that have some to spare: they stay."""
        staying: list[Move] = []
        for ref, bond in self._leaving.bonds.items():
            if ref not in self._lost and bond.whole is not None:
                here = {pod.uid for pod in self._leaving.members[ref]}
                staying += [move for move in bond.whole.moves if move[1].uid not in here]
        return staying

    def _torn(self, victims: Iterable[Unit]) -> set[GroupRef]:
        """Groups of which more members would leave than the group can spare."""
        members = {pod.uid: ref for ref, pods in self._leaving.members.items() for pod in pods}
        leaving = Counter(members.get(unit.pods[0].uid) for unit in victims if unit.ref is None)
        bonds = self._leaving.bonds
        return {ref for ref, count in leaving.items() if ref is not None and count > bonds[ref].spare}
