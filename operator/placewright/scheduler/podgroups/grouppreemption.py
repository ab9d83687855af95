"""Preemption for a whole group: either enough members have a node once others leave, or nobody leaves.

PostFilter is run member by member, with what earlier members take and their victims' leaving supposed. Each looks for itself, so together
they may have chosen more victims than the group needs. At the end every victim, or every group of victims that leaves as a whole, is let
back if the members whose nodes it stands on find other seats.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.eligibility import NEVER
from placewright.framework.preemption.together import Unit, units_of
from placewright.framework.runtime.evaluation import Evaluation
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, make_room
from placewright.scheduler.podgroups.domainchoice import DomainChoice
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import Group, MemberCycle
from placewright.scheduler.podgroups.seats import Seat, Seating
from placewright.scheduler.podgroups.turns import Steps

#: Seats and victims that are laid down and taken up again cost this small a part of a step each.
_MOVES_A_STEP: Final = 128


@dataclass(slots=True)
class GroupRoom:
    """What came of looking for room.

    Attributes:
        nodes: by uid, each member's node and who leaves it; empty where no eviction makes room for enough members.
        withdraws: whether earlier nominations of the members are pointless.
        why: what PostFilter said of the member for which there is no room; empty when it had nothing to say.
    """

    nodes: dict[str, tuple[NodeName, tuple[PodInfo, ...]]] = field(default_factory=dict)
    withdraws: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """Finds whom a group could make leave. Nothing is changed: the caller evicts and nominates."""

    members: MemberCycle
    choosing: DomainChoice

    def search(self, group: Group) -> Steps[GroupRoom]:
        """In steps of a member or a victim each, where the group would fit if others left.

        A group that requires one domain is tried in a few of them, those with the most room first: each costs as much as trying all nodes.
        """
        if not group.evaluator.runtime.post_filter:
            return GroupRoom()
        if any(attempt.pod.pod.spec.preemption_policy == "Never" for attempt in group.attempts):
            return GroupRoom(why=f"preemption: {NEVER}")
        where: list[Domain | None] = [None]
        if group.pod_group.topology_key and group.pod_group.topology_required:
            found = sorted(self.choosing.domains(group), key=lambda domain: (-domain.room, domain.value))
            where = list(found[: group.settings.domains_to_compare])
        room = GroupRoom()
        for domain in where:
            room = yield from _Search(self.members, group, domain).run()
            if room.nodes:
                break
        return room


class _Search:
    """One search, in one domain or anywhere; implements `turns.Supposing`.

    While others have their turn nothing is supposed. What they changed is heeded where the search goes on: whose seat is not there any
    more looks for another one, and victims that have left need not leave. What else became otherwise is not looked at again, as it is not
    by kube-scheduler, which searches on a snapshot: a nomination promises nothing, and the group is tried anew once its victims are gone.
    """

    def __init__(self, members: MemberCycle, group: Group, domain: Domain | None) -> None:
        self._members = members
        self._group = group
        self._within = None if domain is None else domain.names
        self._room = GroupRoom()
        self._uids = {attempt.uid for attempt in group.attempts}
        #: By the member's uid, who leaves for its sake.
        self._victims: dict[str, tuple[PodInfo, ...]] = {}
        #: Victims that are let back.
        self._back: set[str] = set()
        #: Members that have no seat yet and were not tried in vain.
        self._waiting: deque[Attempt] = deque(group.attempts)
        self._nominations: dict[str, NodeName] = {}
        self._seats: tuple[Seat, ...] = ()
        self._lost_seats = False
        self._steps = 0

    def run(self) -> Steps[GroupRoom]:
        """Go through the members until enough have a node, or one that is needed can have none."""
        with self._members.cluster.dry_run(journalled=True) as self._dry_run:
            self._seating = Seating(self._members, self._group.evaluator, self._within, self._dry_run)
            self._open_nominations()
            try:
                if (yield from self._seated()):
                    self._lost_seats = False
                    yield from self._reprieve()
                    if not self._lost_seats:
                        seats = self._seating.seats.items()
                        self._room.nodes = {uid: (seat.node, self._leaving_for(uid)) for uid, seat in seats}
            finally:
                self._seating.give_back()
                self._close_nominations()
        return self._room

    # --- others' turns -------------------------------------------------------------------------------------------------------------

    def _step(self) -> Steps[None]:
        """A step was made. The more there is to lay down and to take up again, the fewer turns others have, so that it stays a share."""
        self._steps += 1
        if self._steps * _MOVES_A_STEP >= len(self._seating.seats) + len(self._victims):
            self._steps = 0
            yield self

    def lay_down(self) -> None:
        """`Supposing.lay_down`."""
        self._seats = tuple(self._seating.seats.values())
        self._seating.give_back()
        self._dry_run.undo()
        self._close_nominations()

    def take_up(self) -> None:
        """`Supposing.take_up`."""
        cluster = self._members.cluster
        self._open_nominations()
        lost = {seat.attempt.uid for seat in self._seats if not self._is_there(seat)}
        for uid in lost:
            self._victims.pop(uid, None)
        leaving = [victim for uid in self._victims for victim in self._leaving_for(uid)]
        self._dry_run.remove([(row, pod) for pod in leaving if (row := _row_of(cluster, pod)) is not None])
        for seat in self._seats:
            if seat.attempt.uid in lost or not self._sits_again(seat):
                self._victims.pop(seat.attempt.uid, None)
                self._waiting.append(seat.attempt)
                self._lost_seats = True
        self._seats = ()

    def _is_there(self, seat: Seat) -> bool:
        flight = self._members.queue.in_flight.get(seat.attempt.uid)
        return flight is not None and not flight.gone and self._members.cluster.row(seat.node) == seat.row

    def _sits_again(self, seat: Seat) -> bool:
        try:
            self._seating.restore([seat])
        except FitError:
            return False
        return True

    def _leaving_for(self, uid: str) -> tuple[PodInfo, ...]:
        """Who leaves for a member's sake, of those that are still there."""
        placement = self._members.cluster.placement
        return tuple([pod for pod in self._victims.get(uid, ()) if pod.uid not in self._back and placement(pod.uid) is not None])

    def _open_nominations(self) -> None:
        """Where the members were nominated to before is open again."""
        nominator = self._members.queue.nominator
        for attempt in self._group.attempts:
            node = nominator.node_of(attempt.uid)
            if node is not None:
                nominator.delete(attempt.uid)
                self._nominations[attempt.uid] = node

    def _close_nominations(self) -> None:
        queue = self._members.queue
        for attempt in self._group.attempts:
            node = self._nominations.pop(attempt.uid, None)
            if node is not None:
                queue.nominate(queue.latest(attempt.uid) or attempt.pod, node)  # ignored for a member that is gone

    # --- seats -----------------------------------------------------------------------------------------------------------------------

    def _seated(self) -> Steps[bool]:
        """Whether enough members have a seat."""
        seats, needed = self._seating.seats, self._group.needed
        while self._waiting and len(seats) < needed:
            attempt = self._waiting.popleft()
            if not self._is_gone(attempt):
                self._seat(attempt)
            if len(seats) + len(self._waiting) < needed:
                return False
            yield from self._step()
        return len(seats) == needed

    def _is_gone(self, attempt: Attempt) -> bool:
        flight = self._members.queue.in_flight.get(attempt.uid)
        return flight is None or flight.gone

    def _seat(self, attempt: Attempt) -> None:
        """Give a member a node, with or without evictions, if there is one."""
        with suppress(FitError):
            evaluation = self._seating.evaluate(attempt)
            if evaluation.count:
                self._seating.take(attempt, evaluation)
            else:
                self._evict(attempt, evaluation)

    def _evict(self, attempt: Attempt, evaluation: Evaluation) -> None:
        evaluator, cluster = self._group.evaluator, self._members.cluster
        result = make_room(evaluator.runtime, evaluation, evaluator.diagnose(evaluation))
        self._room.withdraws |= result.nominated_node == ""
        row = cluster.row(result.nominated_node) if result.status.ok and result.nominated_node else None
        if row is None or result.nominated_node is None or any(victim.uid in self._uids for victim in result.victims):
            self._room.why = self._room.why or result.status.message
            return
        self._dry_run.remove([move for unit in units_of(cluster, result.victims) for move in unit.moves])
        self._seating.seat_in_dry_run(attempt, result.nominated_node, row)
        self._victims[attempt.uid] = result.victims

    # --- who need not leave after all --------------------------------------------------------------------------------------------

    def _reprieve(self) -> Steps[None]:
        """Let back whom the group does not need to leave: those that break a budget first, then the most important."""
        cluster, seating, dry_run = self._members.cluster, self._seating, self._dry_run
        victims = [victim for uid in self._victims for victim in self._leaving_for(uid)]
        units = sorted(units_of(cluster, victims), key=lambda unit: unit.rank)
        if len(units) == 1:
            return  # somebody had to leave
        violations = Budgets(cluster.objects.disruption_budgets.values()).violations(unit.pods for unit in units)
        for unit, _ in sorted(zip(units, violations, strict=True), key=lambda each: not each[1]):
            if self._lost_seats:
                return  # the group is to be tried anew
            if any(_row_of(cluster, pod) != row for row, pod in unit.moves):
                continue  # left while others had their turn
            dry_run.add(unit.moves)
            lifted = list(seating.seats.values()) if self._look_around(unit) else seating.on({row for row, _ in unit.moves})
            if seating.moved(lifted):
                self._back.update(pod.uid for pod in unit.pods)
            else:
                dry_run.remove(unit.moves)
                seating.restore(lifted)
            yield from self._step()

    def _look_around(self, unit: Unit) -> bool:
        """Whether pods on other nodes may matter to the members, or the members to these."""
        pods = [*unit.pods, *(attempt.pod for attempt in self._group.attempts)]
        return any(pod.pod.spec.affinity is not None or pod.pod.spec.topology_spread_constraints for pod in pods)


def _row_of(cluster: Cluster, pod: PodInfo) -> int | None:
    placement = cluster.placement(pod.uid)
    return None if placement is None else cluster.row(placement.node)
