"""Preemption for a whole group: either enough members get nodes once other pods leave, or no pod leaves.

PostFilter runs member by member, in a dry run. In it the earlier members have nodes, and their victims have left. Each member
looks for itself, so together they may choose more victims than the group needs. At the end each victim is let back if the members
on its node find other seats. Victims that leave as a whole are let back as a whole (decision 24).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Final

from placewright.api.compatibility import Rule
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Seconds
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.eligibility import NEVER
from placewright.framework.preemption.evictions import VictimUnit, may_preempt, units_of
from placewright.framework.preemption.rules import soonest
from placewright.framework.runtime.evaluation import Evaluation
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, make_room
from placewright.scheduler.podgroups.domainchoice import DomainChoice
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import DryRunSeatHolder, Group, MemberCycle, Seat
from placewright.scheduler.podgroups.trial import GroupTrial
from placewright.scheduler.turns import Steps

#: Seats and victims that cost as much to lay down and take up again as one step.
_MOVES_A_STEP: Final = 128
#: The lowest priority. Sums count from it, as kube-scheduler's do, so that a victim with a negative priority adds to them, too.
_LOWEST: Final = -(2**31)


@dataclass(slots=True)
class GroupRoom:
    """The outcome of the search for room.

    Attributes:
        nodes: nodes of the members, each with the victims that leave it, by uid; empty when no eviction makes enough room.
        free: True if no pod has to leave for it, nor leaves already.
        withdraws: True if earlier nominations of the members are pointless.
        why: message of PostFilter for the member that found no room; may be empty.
        retry_after: seconds after which the group may make room without a change in the cluster; None if only events help.
        harm: key that sorts rooms, the least harmful first; empty without nodes. Broken budgets count first, as for the node of a single
            pod. Then come the highest priority of a victim, the sum of priorities, and the number of victims.
    """

    nodes: dict[str, tuple[NodeName, tuple[PodInfo, ...]]] = field(default_factory=dict)
    free: bool = False
    withdraws: bool = False
    why: str = ""
    retry_after: Seconds | None = None
    harm: tuple[int, ...] = ()

    def stands(self, cluster: Cluster) -> bool:
        """Return whether its nodes and victims are still there. Other domains may have been searched in turns since."""
        return all(
            cluster.row(node) is not None and all(cluster.placement(victim.uid) is not None for victim in victims)
            for node, victims in self.nodes.values()
        )


def room_for(group: Group, members: MemberCycle, choosing: DomainChoice) -> Steps[GroupRoom]:
    """Find where a group would fit if other pods left, in steps of a member or a victim each.

    A group that requires one domain is tried in a few domains, the ones with the most room. It gets the room that does least harm. Each
    domain costs as much as all nodes. No state is changed: the caller evicts and nominates.

    Args:
        group: a group without nodes.
        members: the tools that place one member.
        choosing: finder of the domains of the group's label.

    Returns:
        The room, without nodes if there is none.
    """
    if not group.evaluator.runtime.post_filter:
        return GroupRoom()
    if not all(may_preempt(members.cluster.pod_groups, attempt.pod) for attempt in group.attempts):
        return GroupRoom(why=f"preemption: {NEVER}")
    rules = group.evaluator.runtime.preemption_rules
    refusal = None if rules is None else rules.why_not_yet([attempt.pod for attempt in group.attempts])
    if refusal is not None:
        return GroupRoom(why=f"preemption: {refusal.reason}", retry_after=refusal.retry_after)
    room = GroupRoom()
    found: list[GroupRoom] = []
    retries: list[Seconds | None] = []
    for domain in choosing.roomiest(group):
        room = yield from _Search(members, group, domain).run()
        if room.free:
            return room
        if room.nodes:
            found.append(room)
        else:
            retries.append(room.retry_after)
    if found:
        return min((each for each in found if each.stands(members.cluster)), key=lambda each: each.harm, default=found[-1])
    room.retry_after = soonest(retries)
    return room


class _Search:
    """A search in one domain or on all nodes: a trial that makes room, in a dry run. Implements `turns.Suspendable` and `group.RoomMaker`.

    While other work has its turn, the dry run is undone. Afterwards a member whose seat is gone looks for another one, and victims that
    have left need not leave. Other changes are not searched again. kube-scheduler, which searches on a snapshot, does not see them
    either. A nomination promises nothing, because the group is tried anew once its victims are gone.
    """

    #: Watches must not see pods leave that leave in the dry run only.
    hidden: Final = True
    #: All seats are taken again at once.
    settled: Final = True

    def __init__(self, members: MemberCycle, group: Group, domain: Domain | None) -> None:
        self._members = members
        self._group = group
        self._trial = GroupTrial(members, group, domain, self)
        self._room = GroupRoom()
        self._uids = {attempt.uid for attempt in group.attempts}
        #: The victims that leave for each member, by its uid.
        self._victims: dict[str, tuple[PodInfo, ...]] = {}
        #: Uids of victims that are let back.
        self._back: set[str] = set()
        self._seats: tuple[Seat, ...] = ()
        self._lost_seats = False
        self._steps = 0

    def run(self) -> Steps[GroupRoom]:
        """Seat the members until enough have a node, or until that has become impossible."""
        # Journalled, because members are evaluated by the ordinary cycle, whose kept columns have to follow the dry run.
        with self._members.cluster.dry_run(journalled=True) as self._dry_run:
            try:
                yield from self._trial.run(to_the_end=False, spares=False)
                if self._trial.fits():
                    self._lost_seats = False
                    yield from self._reprieve()
                    if not self._lost_seats:
                        seats = self._trial.seats
                        self._room.nodes = {uid: (seat.node, self._leaving_for(uid)) for uid, seat in seats.items()}
                        unaided = all(seat.holder is self._members.holder for seat in seats.values())
                        self._room.free = unaided and not self._all_leaving()
                        self._room.harm = self._harm()
                        self._hold_to_rules()
            finally:
                self._trial.take_back()
        return self._room

    def _hold_to_rules(self) -> None:
        """Give the room up if its victims together are more than the profile's rules allow."""
        rules = self._group.evaluator.runtime.preemption_rules
        victims = [] if rules is None else self._all_leaving()
        refusal = None if rules is None or not victims else rules.limits().objection(victims)
        if refusal is not None:
            self._room.nodes, self._room.why, self._room.retry_after = {}, f"preemption: {refusal.reason}", refusal.retry_after

    def _harm(self) -> tuple[int, ...]:
        units = units_of(self._members.cluster, self._all_leaving())
        priorities = [unit.priority for unit in units for _ in unit.pods]
        total = sum(priority - _LOWEST for priority in priorities)
        return sum(self._violations(units)), max(priorities, default=_LOWEST), total, len(priorities)

    def _violations(self, units: Sequence[VictimUnit]) -> list[int]:
        empty_covers_all = Rule.EMPTY_BUDGET_SELECTOR in self._group.evaluator.runtime.profile.rules
        return Budgets(self._members.cluster.objects, empty_covers_all=empty_covers_all).violations(unit.pods for unit in units)

    def _all_leaving(self) -> list[PodInfo]:
        return [victim for uid in self._victims for victim in self._leaving_for(uid)]

    # --- others' turns -------------------------------------------------------------------------------------------------------------

    def step(self) -> Steps[None]:
        """End a step.

        The more seats have to be suspended and resumed, the more rarely other work has its turn. So this takes a bounded share of time.
        """
        self._steps += 1
        if self._steps * _MOVES_A_STEP >= len(self._trial.seats) + len(self._victims):
            self._steps = 0
            yield self

    def suspend(self) -> None:
        """Implement `Suspendable.suspend`."""
        self._seats = tuple(self._trial.seats.values())
        self._trial.take_back()
        self._dry_run.undo()

    def resume(self) -> None:
        """Implement `Suspendable.resume`."""
        cluster = self._members.cluster
        lost = {seat.attempt.uid for seat in self._seats if not self._is_there(seat)}
        for uid in lost:
            self._victims.pop(uid, None)
        self._dry_run.remove([(row, pod) for pod in self._all_leaving() if (row := _row_of(cluster, pod)) is not None])
        for seat in self._seats:
            with suppress(FitError):
                if seat.attempt.uid not in lost:
                    self._trial.sit(seat)
                    continue
            self._victims.pop(seat.attempt.uid, None)
            self._trial.try_again(seat.attempt)
            self._lost_seats = True
        self._seats = ()

    def _is_there(self, seat: Seat) -> bool:
        return not self._trial.is_gone(seat.attempt) and self._members.cluster.row(seat.node) == seat.row

    def _leaving_for(self, uid: str) -> tuple[PodInfo, ...]:
        """Return the victims that leave for a member, except victims that are gone or let back."""
        placement = self._members.cluster.placement
        return tuple([pod for pod in self._victims.get(uid, ()) if pod.uid not in self._back and placement(pod.uid) is not None])

    def make_room(self, attempt: Attempt, evaluation: Evaluation) -> Seat | None:
        """Implement `RoomMaker.make_room`. PostFilter chooses the node, and its victims leave in the dry run."""
        evaluator, cluster = self._group.evaluator, self._members.cluster
        rules = evaluator.runtime.preemption_rules
        with nullcontext() if rules is None else rules.for_a_group(self._all_leaving()):
            result = make_room(evaluator.runtime, evaluation, evaluator.diagnose(evaluation))
        self._room.retry_after = soonest((self._room.retry_after, result.retry_after))
        self._room.withdraws |= result.nominated_node == ""
        row = cluster.row(result.nominated_node) if result.status.ok and result.nominated_node else None
        # A member that evicts a member of its own group gains nothing for the group.
        if row is None or any(victim.uid in self._uids for victim in result.victims):
            self._room.why = self._room.why or result.status.message
            return None
        self._dry_run.remove([move for unit in units_of(cluster, result.victims) for move in unit.moves])
        self._victims[attempt.uid] = result.victims
        schedule_result = self._members.cycle.settled(evaluator, evaluation, row)
        return Seat(attempt, schedule_result, row, DryRunSeatHolder(cluster, self._dry_run))

    def give_up(self, uid: str) -> None:
        """Implement `RoomMaker.give_up`."""
        left = [(row, pod) for pod in self._leaving_for(uid) if (row := _row_of(self._members.cluster, pod)) is not None]
        self._dry_run.add(left)
        self._victims.pop(uid, None)

    # --- who need not leave after all --------------------------------------------------------------------------------------------

    def _reprieve(self) -> Steps[None]:
        """Let victims back that need not leave. Victims whose eviction breaks a budget come first, then the most important."""
        cluster, trial, dry_run = self._members.cluster, self._trial, self._dry_run
        victims = self._all_leaving()
        units = sorted(units_of(cluster, victims), key=lambda unit: unit.rank)
        if len(units) == 1:
            return  # without any victim the group did not fit
        for unit, _ in sorted(zip(units, self._violations(units), strict=True), key=lambda each: not each[1]):
            if self._lost_seats:
                return  # the group is to be tried anew
            if any(_row_of(cluster, pod) != row for row, pod in unit.moves):
                continue  # a pod of this unit left while other work had its turn
            dry_run.add(unit.moves)
            lifted = list(trial.seats.values()) if self._look_around(unit) else trial.on({row for row, _ in unit.moves})
            if trial.moved(lifted):
                self._back.update(pod.uid for pod in unit.pods)
            else:
                dry_run.remove(unit.moves)
                for seat in lifted:
                    trial.sit(seat)
            yield from self.step()

    def _look_around(self, unit: VictimUnit) -> bool:
        """Return whether pods on other nodes may matter to the members, or the members to them."""
        pods = [*unit.pods, *(attempt.pod for attempt in self._group.attempts)]
        return any(pod.pod.spec.affinity is not None or pod.pod.spec.topology_spread_constraints for pod in pods)


def _row_of(cluster: Cluster, pod: PodInfo) -> int | None:
    placement = cluster.placement(pod.uid)
    return None if placement is None else cluster.row(placement.node)
