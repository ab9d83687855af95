"""Members of a group on nodes for as long as a search for room lasts: those that fit as it is, and those that fit once others leave."""

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
        placement: what the member has taken for real; None where it is only supposed to stand there.
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
    """Who sits where.

    Members that fit are assumed and reserved, so that what they use is not offered twice. All is given back at the end.
    """

    def __init__(self, members: MemberCycle, evaluator: Evaluator, within: Collection[NodeName] | None, dry_run: DryRunCluster) -> None:
        self.seats: dict[str, Seat] = {}
        self._members = members
        self._evaluator = evaluator
        self._within = None if within is None else frozenset(within)
        self._dry_run = dry_run

    def evaluate(self, attempt: Attempt) -> Evaluation:
        """The member on all nodes, as things stand; raises `FitError` where a plugin breaks."""
        return self._members.cycle.evaluate(self._evaluator, attempt.pod, None, self._within)

    def take(self, attempt: Attempt, evaluation: Evaluation) -> None:
        """Give the member one of the nodes that hold it as it is; raises `FitError` where it cannot be reserved."""
        placement = self._members.cycle.chosen(self._evaluator, evaluation)
        row = self._members.cluster.row(placement.node)
        assert row is not None  # it was chosen among them
        self._sit(Seat(attempt, placement.node, row, placement))

    def seat_in_dry_run(self, attempt: Attempt, node: NodeName, row: int) -> None:
        """As if the member stood there."""
        self._sit(Seat(attempt, node, row))

    def on(self, rows: Collection[int]) -> list[Seat]:
        """The seats on these rows, in the order in which they were taken."""
        return [seat for seat in self.seats.values() if seat.row in rows]

    def moved(self, lifted: Iterable[Seat]) -> bool:
        """Give these members other seats where they fit as it is. False where one fits nowhere; then all sit as before."""
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
        """As before `moved` failed."""
        for seat in lifted:
            self._sit(seat)

    def give_back(self) -> None:
        """Give back what members have taken, the last one first."""
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
