"""Members of a group put on nodes one after the other, for real but for the time being: ports, volumes, devices and spread all count.

Nobody else decides between the first and the last member; so nobody has seen what is taken back. Others may be heard in between: while
extenders are asked, and while a large group is placed in turns (see `turns`).
"""

from __future__ import annotations

from typing import Final, Self

from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, ScheduleResult, broken
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import Group, MemberCycle, Misfit
from placewright.scheduler.podgroups.turns import Steps

#: Where too few can fit, so many members are looked at to say why.
MOST_MISFITS: Final = 32


class GroupTrial:
    """One way to place a group.

    Attributes:
        placed: members with a node, assumed and reserved, in the order in which they were.
        misfits: members without.
    """

    def __init__(self, members: MemberCycle, group: Group, domain: Domain | None = None, *, compared: bool = False) -> None:
        """`domain`: all members stand in it. `compared`: the scores are wanted."""
        self.placed: list[tuple[Attempt, ScheduleResult]] = []
        self.misfits: list[Misfit] = []
        self.group = group
        self.domain = domain
        self._members = members
        self._compared = compared

    def fits(self) -> bool:
        """Whether enough members have a node."""
        return len(self.placed) >= self.group.needed

    @property
    def hopeless(self) -> bool:
        """Whether too few could have one, whatever becomes of those that were not tried yet."""
        return len(self.group.attempts) - len(self.misfits) < self.group.needed

    @property
    def score(self) -> int:
        """The sum of the members' scores: how good the whole group's placement is."""
        return sum(placement.score for _, placement in self.placed)

    def run(self, *, to_the_end: bool = True) -> Steps[Self]:
        """Try all members, a step each; without `to_the_end`, only until too few can fit. What breaks is raised, with all taken back.

        Even then no more than `MOST_MISFITS` that fit nowhere are looked at: a group may have hundreds, and others wait.
        """
        try:
            for attempt in self.group.attempts:
                if self.hopeless and (len(self.misfits) >= MOST_MISFITS or not to_the_end):
                    break
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
        """The same, with questions to extenders in between."""
        try:
            for attempt in self.group.attempts:
                await self._try_with_extenders(attempt)
        except BaseException:
            self.take_back()
            raise
        return self

    def take_back(self) -> None:
        """Give everything back, the last member first."""
        while self.placed:
            attempt, placement = self.placed.pop()
            attempt.placement = None
            self._members.reserver.give_back(placement)

    def drop_lost(self) -> None:
        """Give back what members have that were deleted meanwhile, or whose nodes were; the latter are to be tried again."""
        cluster, in_flight = self._members.cluster, self._members.queue.in_flight
        for attempt, placement in tuple(self.placed):
            flight = in_flight.get(attempt.uid)
            if flight is None or flight.gone:
                self.drop(attempt)
            elif cluster.row(placement.node) is None:
                self.drop(attempt)
                self.misfits.append(Misfit(attempt, broken(f"node {placement.node} was deleted while the pod's group was decided")))

    def drop(self, dropped: Attempt) -> None:
        """Give back what one member has."""
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
        """Deleted, or placed by somebody else, while others had their turn: it is no member any more."""
        flight = self._members.queue.in_flight.get(attempt.uid)
        return flight is None or flight.gone or self._members.cluster.placement(attempt.uid) is not None
