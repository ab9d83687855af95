"""Trials: members of a group are placed one after the other for real, and taken back when too few fit.

Because members are assumed and reserved, ports, volumes, devices and spread among them count as they do for single pods. No
other pod is decided between the first and the last member, so no decision has seen the members that are taken back. Events are
handled in between while extenders are asked, and while a large group is placed in turns (`turns`).
"""

from __future__ import annotations

from typing import Final, Self

from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, ScheduleResult, broken
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import Group, MemberCycle, Misfit
from placewright.scheduler.podgroups.turns import Steps

#: Members that are tried to explain why a group cannot fit, at most.
MOST_MISFITS: Final = 32


class GroupTrial:
    """One way to place a group.

    Attributes:
        placed: members with a node, assumed and reserved, in that order.
        misfits: members that no node could hold.
        group: the group.
        domain: all members stand in it; None for any nodes.
        elsewhere: plugins that kept the group out of other domains. Their events may help it, too.
    """

    def __init__(self, members: MemberCycle, group: Group, domain: Domain | None = None, *, compared: bool = False) -> None:
        """Start without members placed.

        Args:
            members: places one member.
            group: the group.
            domain: all members stand in it; None for any nodes.
            compared: score every member, because the caller compares trials.
        """
        self.placed: list[tuple[Attempt, ScheduleResult]] = []
        self.misfits: list[Misfit] = []
        self.group = group
        self.domain = domain
        self.elsewhere: frozenset[str] = frozenset()
        self._members = members
        self._compared = compared

    def fits(self) -> bool:
        """Return whether enough members have a node."""
        return len(self.placed) >= self.group.needed

    @property
    def hopeless(self) -> bool:
        """True when too few members could have a node, even if all that were not tried fit."""
        return len(self.group.attempts) - len(self.misfits) < self.group.needed

    @property
    def rejected_by(self) -> frozenset[str]:
        """The plugins that rejected members without a node."""
        return frozenset[str]().union(*(misfit.failure.unschedulable_plugins for misfit in self.misfits))

    @property
    def score(self) -> int:
        """The sum of the members' scores: the value of the whole group's placement."""
        return sum(placement.score for _, placement in self.placed)

    def run(self, *, to_the_end: bool = True) -> Steps[Self]:
        """Try all members, one a step. When something breaks, everything is taken back before the exception passes on.

        Once the trial is hopeless, at most `MOST_MISFITS` members without a node are looked at to explain it: a group may have
        hundreds, and other pods wait.

        Args:
            to_the_end: explain a hopeless trial; without, it ends at once.

        Returns:
            This trial.
        """
        try:
            for attempt in self.group.attempts:
                if self.hopeless and (len(self.misfits) >= MOST_MISFITS or not to_the_end):
                    break
                # Prepared as single pods are, so that no step of a group is longer than a step of theirs.
                for _ in self.group.evaluator.preparation(attempt.pod):
                    yield None
                if not self._gone(attempt):
                    self._try(attempt)
                yield None
        except BaseException:
            self.take_back()
            raise
        return self

    async def run_with_extenders(self) -> Self:
        """Try all members, with questions to extenders in between."""
        try:
            for attempt in self.group.attempts:
                await self._try_with_extenders(attempt)
        except BaseException:
            self.take_back()
            raise
        return self

    def take_back(self) -> None:
        """Take back all members, the last one first."""
        while self.placed:
            attempt, placement = self.placed.pop()
            attempt.placement = None
            self._members.reserver.give_back(placement)

    def drop_lost(self) -> None:
        """Take back members that were deleted, or whose node was, while other work had its turn.

        The latter become misfits with an error.
        """
        cluster, in_flight = self._members.cluster, self._members.queue.in_flight
        for attempt, placement in tuple(self.placed):
            flight = in_flight.get(attempt.uid)
            if flight is None or flight.gone:
                self.drop(attempt)
            elif cluster.row(placement.node) is None:
                self.drop(attempt)
                self.misfits.append(Misfit(attempt, broken(f"node {placement.node} was deleted while the pod's group was decided")))

    def drop(self, dropped: Attempt) -> None:
        """Take back one member."""
        _, placement = next(each for each in self.placed if each[0] is dropped)
        self.placed = [each for each in self.placed if each[0] is not dropped]
        dropped.placement = None
        self._members.reserver.give_back(placement)

    def _try(self, attempt: Attempt) -> None:
        try:
            self._take(attempt, self._choose(attempt))
        except FitError as failure:
            self._refused(attempt, failure)

    async def _try_with_extenders(self, attempt: Attempt) -> None:
        try:
            within = None if self.domain is None else self.domain.names
            placement = await self._members.extended.place(self.group.evaluator, attempt.pod, attempt.steps, within, alone=False)
            if self._gone(attempt):
                return
            self._take(attempt, placement)
        except FitError as failure:
            self._refused(attempt, failure)

    def _choose(self, attempt: Attempt) -> ScheduleResult:
        cycle, evaluator = self._members.cycle, self.group.evaluator
        within = None if self.domain is None else self.domain.names
        evaluation = cycle.evaluate(evaluator, attempt.pod, attempt.steps, within)
        if evaluation.count == 0:
            raise cycle.refusal(evaluator, evaluation)
        return cycle.chosen(evaluator, evaluation, compared=self._compared)

    def _take(self, attempt: Attempt, placement: ScheduleResult) -> None:
        self._members.reserver.take(placement)
        attempt.chose(placement)
        self.placed.append((attempt, placement))

    def _refused(self, attempt: Attempt, failure: FitError) -> None:
        if failure.internal:
            raise failure
        self.misfits.append(Misfit(attempt, failure))

    def _gone(self, attempt: Attempt) -> bool:
        """Return whether a member was deleted, or placed by another scheduler, while other work had its turn."""
        flight = self._members.queue.in_flight.get(attempt.uid)
        return flight is None or flight.gone or self._members.cluster.placement(attempt.uid) is not None
