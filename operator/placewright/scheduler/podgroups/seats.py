"""Seats: the nodes of a group's members during a search for room, with or without evictions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.dryrun import DryRunCluster
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, ScheduleResult
from placewright.scheduler.podgroups.group import MemberCycle


@dataclass(frozen=True, slots=True)
class Seat:
    """A member's node.

    Attributes:
        attempt: the member's.
        node: its name.
        row: of the node.
        placement: the member's reservation; None when it stands there in the dry run only.
    """

    attempt: Attempt
    node: NodeName
    row: int
    placement: ScheduleResult | None = None

    @property
    def pod(self) -> PodInfo:
        """The member."""
        return self.attempt.pod


class Seating:
    """The members' seats. A member that fits is assumed and reserved, so that its devices and volumes are not offered twice.

    Args:
        members: places one member.
        evaluator: the group's profile.
        within: only these nodes are candidates; None for all.
        dry_run: holds members whose victims have not left.

    Attributes:
        seats: by the member's uid, in the order in which they were taken.
    """

    def __init__(self, members: MemberCycle, evaluator: Evaluator, within: Collection[NodeName] | None, dry_run: DryRunCluster) -> None:
        self.seats: dict[str, Seat] = {}
        self._members = members
        self._evaluator = evaluator
        self._within = None if within is None else frozenset(within)
        self._dry_run = dry_run

    def evaluate(self, attempt: Attempt) -> Evaluation:
        """Filter the member on all nodes as the columns are now.

        Returns:
            The feasible nodes; there may be none.

        Raises:
            FitError: a plugin broke.
        """
        return self._members.cycle.evaluate(self._evaluator, attempt.pod, None, self._within)

    def take(self, attempt: Attempt, evaluation: Evaluation) -> None:
        """Give the member one of its feasible nodes, and reserve it.

        Args:
            attempt: the member's.
            evaluation: with a feasible node.

        Raises:
            FitError: a Reserve plugin refused.
        """
        placement = self._members.cycle.chosen(self._evaluator, evaluation)
        row = self._members.cluster.row(placement.node)
        assert row is not None  # it was chosen among them
        self._sit(Seat(attempt, placement.node, row, placement))

    def seat_in_dry_run(self, attempt: Attempt, node: NodeName, row: int) -> None:
        """Seat the member in the dry run, on a node that its victims leave.

        Args:
            attempt: the member's.
            node: its name.
            row: of the node.
        """
        self._sit(Seat(attempt, node, row))

    def on(self, rows: Collection[int]) -> list[Seat]:
        """Find the seats on rows.

        Args:
            rows: of nodes.

        Returns:
            The seats, in the order in which they were taken.
        """
        return [seat for seat in self.seats.values() if seat.row in rows]

    def moved(self, lifted: Iterable[Seat]) -> bool:
        """Give these members other seats that need no eviction.

        Returns:
            False when one fits nowhere; then none of them sits, and the caller calls `restore`.
        """
        lifted = list(lifted)
        for seat in lifted:
            self._rise(seat)
        found: list[Seat] = []
        try:
            for seat in lifted:
                evaluation = self.evaluate(seat.attempt)
                if not evaluation.count:
                    break
                self.take(seat.attempt, evaluation)
                found.append(self.seats[seat.attempt.uid])
        except FitError:
            pass  # it cannot be reserved there, so it has no seat
        if len(found) == len(lifted):
            return True
        for seat in found:
            self._rise(seat)
        return False

    def restore(self, lifted: Iterable[Seat]) -> None:
        """Take these seats again, after `moved` failed."""
        for seat in lifted:
            self._sit(seat)

    def give_back(self) -> None:
        """Give back all seats, the last one first."""
        for seat in reversed(tuple(self.seats.values())):
            self._rise(seat)

    def _sit(self, seat: Seat) -> None:
        if seat.placement is None:
            self._dry_run.add([(seat.row, seat.pod)])
        else:
            self._members.reserver.take(seat.placement)
        self.seats[seat.attempt.uid] = seat

    def _rise(self, seat: Seat) -> None:
        del self.seats[seat.attempt.uid]
        if seat.placement is None:
            self._dry_run.remove([(seat.row, seat.pod)])
        else:
            self._members.reserver.give_back(seat.placement)
