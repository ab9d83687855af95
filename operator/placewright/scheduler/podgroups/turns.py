"""Work in steps: done at once, or in turns with the other work of the event loop.

The decision of a group of thousands takes seconds. Meanwhile watches are read, Bindings are sent, the lead is renewed, and other
pods are decided. A decision must not count members that may be taken back, so the group is laid down before it: its members leave
the columns. Afterwards they are put back where they still fit. A group works at least as long as that took before it is laid down
again, so half of its time is its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeVar

from placewright.scheduler.cycle import broken
from placewright.scheduler.extendedcycle import LEAD_LOST
from placewright.scheduler.ports import Clock

T = TypeVar("T")


class Supposing(Protocol):
    """Work that has changed the columns for a trial, which other decisions must not see."""

    @property
    def hidden(self) -> bool:
        """True if watches must not see the changes either."""

    @property
    def settled(self) -> bool:
        """False while it still puts back the changes that it laid down."""

    def lay_down(self) -> None:
        """Undo the changes, and remember them."""

    def take_up(self) -> None:
        """Begin to repeat the changes as far as they are still possible, after other work had its turn."""


class Deciding:
    """The right to decide pods. One task has it at a time, and the others get it in the order in which they asked.

    Attributes:
        wanted: number of tasks that wait for it.
    """

    __slots__ = ("_lock", "wanted")

    def __init__(self) -> None:
        self.wanted = 0
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> None:
        self.wanted += 1
        try:
            await self._lock.acquire()
        finally:
            self.wanted -= 1

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Let other tasks decide inside the `with` block. Called by the task that has the right, which has it again afterwards."""
        self._lock.release()
        try:
            yield
        finally:
            try:
                await self.__aenter__()
            except asyncio.CancelledError:
                await self.__aenter__()  # the caller gives the right back when it ends, so it must have it
                raise


#: Work that yields after each uninterruptible piece: None, or the trial to lay down before other pods are decided. Returns the result.
Steps = Generator[Supposing | None, None, T]

#: Seconds of steps before other work has its turn.
TURN_SECONDS: Final = 0.005


def at_once(steps: Steps[T]) -> T:
    """Take all steps without a turn of other work.

    Args:
        steps: not begun.

    Returns:
        Their result.
    """
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: T = ended.value
            return result


class Turns:
    """Turns of the event loop between steps.

    Example:
        trial = await Turns(clock, lambda: lead.active).take(choosing.best(group))   # other tasks run between members

    Args:
        clock: seconds, monotonic.
        leads: whether this replica may still decide.
        deciding: the right to decide, which the caller has and lends to others; None if the caller has not.

    Attributes:
        given_way: whether other work has had a turn.
    """

    def __init__(self, clock: Clock, leads: Callable[[], bool], deciding: Deciding | None = None) -> None:
        self.given_way = False
        self._clock = clock
        self._leads = leads
        self._deciding = deciding
        #: When others decided last, and the time from which they may decide again.
        self._lent_at = self._lend_at = clock()

    async def take(self, steps: Steps[T]) -> T:
        """Take all steps, with turns of other work in between.

        Returns:
            The result of the steps.

        Raises:
            FitError: this replica lost the lead; the steps have been closed, which undoes them.
        """
        until = self._clock() + TURN_SECONDS
        try:
            while True:
                supposing = next(steps)
                if self._clock() >= until:
                    await self._give_way(supposing)
                    until = self._clock() + TURN_SECONDS
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            # Closing raises GeneratorExit inside the work, which then takes back all that it assumed.
            steps.close()

    async def _give_way(self, supposing: Supposing | None) -> None:
        self.given_way = True
        lends = self._lends(supposing)
        laid_down = supposing if supposing is not None and (lends or supposing.hidden) else None
        if lends:
            self._lent_at = self._lend_at = self._clock()
        if laid_down is not None:
            laid_down.lay_down()
        try:
            await self._others(lends)
        finally:
            if laid_down is not None:
                laid_down.take_up()
        if not self._leads():
            raise broken(LEAD_LOST)

    async def _others(self, lends: bool) -> None:
        if not lends or self._deciding is None:
            await asyncio.sleep(0)
            return
        began = self._clock()
        async with self._deciding.lent():
            await asyncio.sleep(0)
        self._lent_at += self._clock() - began  # the others' time is not the group's

    def _lends(self, supposing: Supposing | None) -> bool:
        """Return whether others decide now: they wait, and the group has worked since as long as it took to be put back."""
        now = self._clock()
        if supposing is not None and not supposing.settled:
            self._lend_at = now + (now - self._lent_at)
            return False
        return self._deciding is not None and self._deciding.wanted > 0 and now >= self._lend_at
