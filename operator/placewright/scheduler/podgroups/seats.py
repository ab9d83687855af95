"""Seats: the nodes of a group's members while the group is tried. `MemberSeats.seat` is the only function that gives a member a node.

The decision, the search for victims and the self-check try a group by it. Each states three conditions: the nodes that are candidates, the
holder of members, and whether room is made for members that fit nowhere. The members' own nominations never count against each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import DryRunCluster
from placewright.framework.runtime.evaluation import Evaluation
from placewright.framework.steps import Steps as Timing
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, ScheduleResult
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import Group, MemberCycle, SeatHolder
from placewright.scheduler.turns import Steps


@dataclass(frozen=True, slots=True)
class Seat:
    """A member's node.

    Attributes:
        attempt: attempt of the member.
        result: decision for the node.
        row: row of the node.
        holder: counts the member on the node.
    """

    attempt: Attempt
    result: ScheduleResult
    row: int
    holder: SeatHolder

    @property
    def node(self) -> NodeName:
        """Name of the node."""
        return self.result.node


@dataclass(frozen=True, slots=True)
class DryRunSeatHolder:
    """Holds members in a dry run, without Reserve. Victims have not left the room yet, or the self-check may change no state.

    Attributes:
        cluster: columns that know the nodes' rows.
        dry_run: dry run in which members are counted.
    """

    cluster: Cluster
    dry_run: DryRunCluster

    def take(self, result: ScheduleResult) -> None:
        """Implement `SeatHolder.take`."""
        self.dry_run.add([(_row_of(self.cluster, result), result.pod)])

    def give_back(self, result: ScheduleResult) -> None:
        """Implement `SeatHolder.give_back`."""
        self.dry_run.remove([(_row_of(self.cluster, result), result.pod)])


class RoomMaker(Protocol):
    """Makes room in a dry run for members that fit nowhere."""

    def make_room(self, attempt: Attempt, evaluation: Evaluation) -> Seat | None:
        """Let pods leave in the dry run.

        Args:
            attempt: attempt of the member.
            evaluation: evaluation that found no feasible node.

        Returns:
            The seat that becomes free; None when no eviction helps the member.
        """

    def step(self) -> Steps[None]:
        """End a step of the trial."""


class MemberSeats:
    """The seats of a group's members, under the conditions of one trial.

    Args:
        members: the tools that place one member.
        group: the group.
        domain: domain whose nodes are candidates; None for all nodes.
        room: makes room for members that fit nowhere; None if no pod leaves.
        compared: whether the node of every member is scored, because the caller compares trials.

    Attributes:
        seats: seats by the member's uid, in the order in which they were taken.
    """

    def __init__(
        self, members: MemberCycle, group: Group, domain: Domain | None = None, room: RoomMaker | None = None, *, compared: bool = False
    ) -> None:
        self.seats: dict[str, Seat] = {}
        self._members = members
        self._group = group
        self._within = None if domain is None else domain.names
        self._room = room
        self._compared = compared

    def seat(self, attempt: Attempt) -> None:
        """Give a member a node beside the members that have one.

        Raises:
            FitError: no node can hold the member, its holder refused, or a plugin broke.
        """
        attempt.steps.forget()  # only the times of the last try are kept, because a member may be tried in hundreds of domains
        refused = self._tried(attempt, attempt.steps, self._room)
        if refused is not None:
            raise self._members.cycle.refusal(self._group.evaluator, refused)

    async def seat_with_extenders(self, attempt: Attempt) -> None:
        """Give a member a node that its profile's extenders agree to. A member that leaves while they are asked gets no seat.

        Raises:
            FitError: as `seat`.
        """
        attempt.steps.forget()
        extended = self._members.extended
        assert extended is not None  # only groups with extenders are seated like this
        with self._members.queue.nominator.trying(self._group.pod_group.ref):
            result = await extended.place(self._group.evaluator, attempt.pod, attempt.steps, self._within, alone=False)
        if not self.is_gone(attempt):
            self.sit(self._seat_at(attempt, result))

    def is_gone(self, attempt: Attempt) -> bool:
        """Return whether a member was deleted, or placed by another scheduler, while other work had its turn."""
        return self._members.queue.get(attempt.uid) is None or self._members.cluster.placement(attempt.uid) is not None

    def sit(self, seat: Seat) -> None:
        """Take a seat.

        Raises:
            FitError: a Reserve plugin refused.
        """
        seat.holder.take(seat.result)
        seat.attempt.chose(seat.result)
        self.seats[seat.attempt.uid] = seat

    def rise(self, seat: Seat) -> None:
        """Give a seat back."""
        del self.seats[seat.attempt.uid]
        seat.attempt.schedule_result = None
        seat.holder.give_back(seat.result)

    def give_back(self) -> None:
        """Give back all seats, the last one first."""
        for seat in reversed(tuple(self.seats.values())):
            self.rise(seat)

    def on(self, rows: Collection[int]) -> list[Seat]:
        """Return the seats on these rows, in the order in which they were taken."""
        return [seat for seat in self.seats.values() if seat.row in rows]

    def moved(self, lifted: Iterable[Seat]) -> bool:
        """Give these members other seats that need no eviction.

        Returns:
            False when one fits nowhere. Then none of them has a seat, and the caller lets them sit again.
        """
        lifted = list(lifted)
        for seat in lifted:
            self.rise(seat)
        before = len(self.seats)
        try:
            # The times of plugins are not noted, because members are moved once for each victim.
            if all(self._tried(seat.attempt, None, None) is None for seat in lifted):
                return True
        except FitError:
            pass  # it cannot be reserved there, so it has no seat
        for seat in reversed(tuple(self.seats.values())[before:]):
            self.rise(seat)
        return False

    def _tried(self, attempt: Attempt, timing: Timing | None, room: RoomMaker | None) -> Evaluation | None:
        """Give a member a node; return the evaluation of a member that gets none."""
        cycle, evaluator = self._members.cycle, self._group.evaluator
        with self._members.queue.nominator.trying(self._group.pod_group.ref):
            evaluation = cycle.evaluate(evaluator, attempt.pod, timing, self._within)
            if evaluation.count:
                found = self._seat_at(attempt, cycle.chosen(evaluator, evaluation, compared=self._compared))
            else:
                made = None if room is None else room.make_room(attempt, evaluation)
                if made is None:
                    return evaluation
                found = made
        self.sit(found)
        return None

    def _seat_at(self, attempt: Attempt, result: ScheduleResult) -> Seat:
        return Seat(attempt, result, _row_of(self._members.cluster, result), self._members.holder)


def _row_of(cluster: Cluster, result: ScheduleResult) -> int:
    row = cluster.row(result.node)
    assert row is not None  # the node was chosen in this turn of the event loop
    return row
