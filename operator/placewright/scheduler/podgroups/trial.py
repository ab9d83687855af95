"""Trials: members of a group are seated one after the other, and rise again when too few fit.

The decision holds them for real: assumed and reserved, so that ports, volumes, devices and spread among them count as they do for
single pods. No other pod is decided between the first and the last member, so no decision has seen the members that are taken
back. Events are handled in between while extenders are asked, and while a large group is placed in turns (`turns`).

The search for victims and the self-check run the same trial in a dry run (`seats` states the conditions), so their answer to
"does it fit" is the decision's.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Self

from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, ScheduleResult, broken
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import Group, MemberCycle, Misfit
from placewright.scheduler.podgroups.seats import RoomMaker, Seating
from placewright.scheduler.podgroups.turns import Steps

#: Members that are tried to explain why a group cannot fit, at most.
MOST_MISFITS: Final = 32


class GroupTrial:
    """One way to place a group.

    Attributes:
        seating: the seats of the members that fit.
        misfits: members that no node could hold.
        group: the group.
        domain: all members stand in it; None for any nodes.
        elsewhere: plugins that kept the group out of other domains. Their events may help it, too.
    """

    def __init__(
        self, members: MemberCycle, group: Group, domain: Domain | None = None, room: RoomMaker | None = None, *, compared: bool = False
    ) -> None:
        """Start without members placed.

        Args:
            members: places one member.
            group: the group.
            domain: all members stand in it; None for any nodes.
            room: makes room for members that fit nowhere; None where no pod leaves.
            compared: score every member, because the caller compares trials.
        """
        self.seating = Seating(members, group, domain, room, compared=compared)
        self.misfits: list[Misfit] = []
        self.group = group
        self.domain = domain
        self.elsewhere: frozenset[str] = frozenset()
        self._members = members
        self._room = room
        #: Members that are still to be tried.
        self._waiting = deque(group.attempts)

    @property
    def placed(self) -> list[tuple[Attempt, ScheduleResult]]:
        """The members with a node, in the order in which they got one."""
        return [(seat.attempt, seat.placement) for seat in self.seating.seats.values()]

    def fits(self) -> bool:
        """Return whether enough members have a node."""
        return len(self.seating.seats) >= self.group.needed

    @property
    def hopeless(self) -> bool:
        """True when too few members could have a node, even if all that were not tried fit."""
        return len(self.seating.seats) + len(self._waiting) < self.group.needed

    @property
    def rejected_by(self) -> frozenset[str]:
        """The plugins that rejected members without a node."""
        return frozenset[str]().union(*(misfit.failure.unschedulable_plugins for misfit in self.misfits))

    @property
    def score(self) -> int:
        """The sum of the members' scores: the value of the whole group's placement."""
        return sum(seat.placement.score for seat in self.seating.seats.values())

    def run(self, *, to_the_end: bool = True, spares: bool = True) -> Steps[Self]:
        """Try the members, one a step. When something breaks, everything is taken back before the exception passes on.

        Once the trial is hopeless, at most `MOST_MISFITS` members without a node are looked at to explain it: a group may have
        hundreds, and other pods wait.

        Args:
            to_the_end: explain a hopeless trial; without, it ends at once.
            spares: try the members beyond the needed ones, too.

        Returns:
            This trial.
        """
        try:
            while self._waiting and (spares or not self.fits()):
                if self.hopeless and (len(self.misfits) >= MOST_MISFITS or not to_the_end):
                    break
                attempt = self._waiting.popleft()
                yield from self._prepared(attempt)
                if not self.seating.is_gone(attempt):
                    self._try(attempt)
                yield from self._step()
        except BaseException:
            self.take_back()
            raise
        return self

    async def run_with_extenders(self) -> Self:
        """Try all members, with questions to extenders in between."""
        try:
            while self._waiting:
                attempt = self._waiting.popleft()
                try:
                    await self.seating.seat_with_extenders(attempt)
                except FitError as failure:
                    self._refused(attempt, failure)
        except BaseException:
            self.take_back()
            raise
        return self

    def try_again(self, attempt: Attempt) -> None:
        """Try a member again that has lost its seat, after the others."""
        self._waiting.append(attempt)

    def take_back(self) -> None:
        """Take back all members, the last one first."""
        self.seating.give_back()

    def drop_lost(self) -> None:
        """Take back members that were deleted, or whose node was, while other work had its turn.

        The latter become misfits with an error.
        """
        for attempt, placement in self.placed:
            if self._members.queue.get(attempt.uid) is None:
                self.drop(attempt)
            elif self._members.cluster.row(placement.node) is None:
                self.drop(attempt)
                self.misfits.append(Misfit(attempt, broken(f"node {placement.node} was deleted while the pod's group was decided")))

    def drop(self, dropped: Attempt) -> None:
        """Take back one member."""
        self.seating.rise(self.seating.seats[dropped.uid])

    def _prepared(self, attempt: Attempt) -> Steps[None]:
        """Prepare a member as single pods are prepared, so that no step of a group is longer than a step of theirs."""
        if self._room is None:  # a search for room follows a trial, which has prepared the members
            for _ in self.group.evaluator.preparation(attempt.pod):
                yield None

    def _step(self) -> Steps[None]:
        if self._room is None:
            yield None
        else:
            yield from self._room.step()

    def _try(self, attempt: Attempt) -> None:
        try:
            self.seating.seat(attempt)
        except FitError as failure:
            self._refused(attempt, failure)

    def _refused(self, attempt: Attempt, failure: FitError) -> None:
        if failure.internal:
            raise failure
        self.misfits.append(Misfit(attempt, failure))
