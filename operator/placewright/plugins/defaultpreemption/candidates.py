"""Trials of one node, and candidates: the victims on a node, and what their eviction costs.

The cost follows kube-scheduler's criteria in its order. Upstream breaks the last ties by the order of a Go map. Here the node's name breaks
them, so that the same cluster always gives the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import DryRunCluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import Seconds
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.evictions import EvictablePods, Move, VictimUnit, start_time
from placewright.framework.status import SUCCESS, Status, error, unresolvable, unschedulable

#: Makes every priority positive, so that a victim of negative priority cannot lower the sum.
_PRIORITY_OFFSET: Final = 2**31


#: Cost of a candidate: broken budgets, top priority, sum of priorities, number of victims, negated earliest start.
Cost = tuple[int, int, int, int, Seconds]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and the pods that would be evicted from it.

    Attributes:
        victims: pods to evict, most important first; none if the pod fits beside all of them, and an extender rejected the node.
        violations: number of victims whose eviction breaks a disruption budget.
        ranks: priorities that the victims count with, in their order.
        cost: criteria by which candidates are compared; less is better.
    """

    node: NodeName
    victims: tuple[PodInfo, ...]
    violations: int
    ranks: tuple[int, ...]
    cost: Cost = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", self._cost())  # compared again and again where candidates are kept

    def _cost(self) -> Cost:
        """Compute the criteria in the order of `Cost`. Only victims of the top priority count for the start."""
        if not self.ranks:
            return 0, 0, 0, 0, 0.0  # never compared: extenders choose victims first
        top = self.ranks[0]
        total = sum(rank + _PRIORITY_OFFSET for rank in self.ranks)
        earliest = min(start_time(pod) for pod, rank in zip(self.victims, self.ranks, strict=True) if rank == top)
        return self.violations, top, total, len(self.victims), -earliest


def pick(candidates: Iterable[Candidate]) -> Candidate:
    """Return the cheapest candidate. Raise `ValueError` if there is none."""
    return min(candidates, key=lambda candidate: (candidate.cost, candidate.node))


NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")

#: The outcome of a trial: a candidate, or why evicting does not help there.
Outcome = Candidate | Status


#: Pods that come back together: a pod by itself (and None), or a group as a whole.
_Unit = tuple[tuple[PodInfo, ...], VictimUnit | None]


def _rank(unit: _Unit) -> tuple[int, bool, int, Seconds]:
    """Return the `VictimUnit.rank` of a unit."""
    (pod, *_), whole = unit
    return (-pod.priority, True, 0, start_time(pod)) if whole is None else whole.rank


class Checks(Protocol):
    """Checks pods on rows, with the changes of dry runs. `Handle` runs the profile's filters."""

    @property
    def cluster(self) -> Cluster:
        """The columns."""

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """Return SUCCESS if the row can hold the pod."""


@dataclass(frozen=True, slots=True)
class OnItsNode:
    """Checks whether a node can hold a pod that stands there, with the amounts that it is counted with.

    Attributes:
        cluster: the columns, which count the pod.
    """

    cluster: Cluster

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """Implement `Checks.check_row`."""
        resources = self.cluster.resources
        asked = [name for name, amount in pod.requests.items() if amount and name in resources]
        short = [f"Insufficient {name}" for name in asked if resources.column(name).free.item(row) < 0]
        return unschedulable(*short) if short else SUCCESS


class NodeTrial:
    """A node without its evictable pods, and the units that may come back one by one.

    Most units are single pods. Members of a group that can spare some come back one by one. A group that would lose more than it can
    spare leaves as a whole. `run` then starts the trial again with that group as one unit.

    Such a group's members on other nodes leave, too: the trial is `bound`. If a filter may read these pods, bound nodes are tried one after
    another, without any leaving pod. Otherwise all nodes are tried in step, and each trial removes the pods of its own node only.

    Attributes:
        bound: whether pods of other nodes may have to leave with those of this node.
        evictable: pods of this node that preemption may evict.
    """

    __slots__ = ("_leaving", "_lost", "_ranked", "_victims", "_violations", "bound", "evictable", "node", "row")

    def __init__(self, row: int, node: NodeName, leaving: EvictablePods) -> None:
        self.row = row
        self.node = node
        self.bound = bool(leaving.bonds)
        self.evictable = [*leaving.singles, *(pod for pods in leaving.members.values() for pod in pods)]
        self._leaving = leaving
        #: Groups that leave as a whole or not at all.
        self._lost = {ref for ref, bond in leaving.bonds.items() if not bond.spare}
        #: Units in the order of their return, each with the number of its pods that break a budget.
        self._ranked: list[tuple[_Unit, int]] = []
        self._victims: list[_Unit] = []
        self._violations = 0

    def rank(self, budgets: Budgets) -> None:
        """Order the units for their return, protected ones first, then by importance; forget earlier victims."""
        units = sorted(self._units(), key=_rank)
        violations = budgets.violations(pods for pods, _ in units)
        self._ranked = sorted(zip(units, violations, strict=True), key=lambda each: not each[1])
        self._victims = []
        self._violations = 0

    @property
    def turns(self) -> int:
        """Number of returns that are tried."""
        return len(self._ranked)

    def to_reprieve(self, index: int) -> Sequence[PodInfo]:
        """Return the pods of this node that come back at turn `index`, from 0; empty after the last turn."""
        if index >= len(self._ranked):
            return ()
        (pods, whole), _ = self._ranked[index]
        return pods if whole is None else [pod for row, pod in whole.moves if row == self.row]

    def condemn(self, index: int) -> None:
        """Make the unit of turn `index` a victim, because the preemptor does not fit beside it."""
        unit, breaks = self._ranked[index]
        self._victims.append(unit)
        self._violations += breaks

    def torn(self) -> set[GroupRef]:
        """Find the groups that would lose more members than they can spare."""
        if not self.bound:
            return set()
        members = {pod.uid: ref for ref, pods in self._leaving.members.items() if ref not in self._lost for pod in pods}
        leaving = Counter(members.get(pods[0].uid) for pods, whole in self._victims if whole is None)
        bonds = self._leaving.bonds
        return {ref for ref, count in leaving.items() if ref is not None and count > bonds[ref].spare}

    def outcome(self) -> Outcome:
        """Return the candidate, without victims if no unit had to leave. Call it after the last turn, when no group is torn."""
        victims = [
            (pod, pod.priority if whole is None else whole.priority) for pods, whole in sorted(self._victims, key=_rank) for pod in pods
        ]
        return Candidate(self.node, tuple(pod for pod, _ in victims), self._violations, tuple(rank for _, rank in victims))

    # --- by itself -------------------------------------------------------------------------------------------------------------

    def run(self, handle: Checks, preemptor: PodInfo, budgets: Budgets) -> Outcome:
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
                    gone = {pod.uid for pods, _ in self._victims for pod in pods}
                    dry_run.remove([move for move in away if move[1].uid not in gone])
                    self._reprieve(handle, preemptor, budgets, dry_run)
                return self.outcome()
        except CycleError as problem:
            return error(str(problem))

    def _reprieve(self, handle: Checks, preemptor: PodInfo, budgets: Budgets, dry_run: DryRunCluster) -> None:
        """Let the units come back, one by one, and condemn each unit that keeps the preemptor out."""
        self.rank(budgets)
        dry_run.add(self._elsewhere())
        for turn, ((pods, whole), _) in enumerate(self._ranked):
            moves = [(self.row, pod) for pod in pods] if whole is None else whole.moves
            dry_run.add(moves)
            if not handle.check_row(preemptor, self.row).ok:
                dry_run.remove(moves)
                self.condemn(turn)

    def evictable_moves(self) -> list[Move]:
        """List all pods that may leave, also on other nodes, with their rows."""
        bound = [move for bond in self._leaving.bonds.values() if bond.whole is not None for move in bond.whole.moves]
        return [*((self.row, pod) for pod in self._leaving.singles), *bound]

    def _units(self) -> Iterator[_Unit]:
        yield from (((pod,), None) for pod in self._leaving.singles)
        for ref, bond in self._leaving.bonds.items():
            if ref in self._lost and bond.whole is not None:
                yield bond.whole.pods, bond.whole
            else:
                yield from (((pod,), None) for pod in self._leaving.members[ref])

    def _elsewhere(self) -> list[Move]:
        """List the members on other nodes that stay, because their groups can spare some."""
        staying: list[Move] = []
        for ref, bond in self._leaving.bonds.items():
            if ref not in self._lost and bond.whole is not None:
                here = {pod.uid for pod in self._leaving.members[ref]}
                staying += [move for move in bond.whole.moves if move[1].uid not in here]
        return staying
