"""Work in steps: done at once, or in turns with the other work of the event loop.

The decision of a group of thousands takes seconds. No other pod is decided meanwhile, because that decision would count members
that may be taken back; but watches are read, Bindings are sent and the lead is renewed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Final, Protocol, TypeVar

from placewright.scheduler.cycle import broken
from placewright.scheduler.extendedcycle import LEAD_LOST
from placewright.scheduler.ports import Clock

T = TypeVar("T")


class Supposing(Protocol):
    """Work that has changed the columns in a dry run, which other work must not see."""

    def lay_down(self) -> None:
        """Undo the dry run, and remember it."""

    def take_up(self) -> None:
        """Repeat the dry run as far as it is still possible, after other work had its turn."""


#: Work that yields after each uninterruptible piece: None, or the dry run to lay down before other work has its turn. Returns the result.
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

    Attributes:
        given_way: whether other work has had a turn.
    """

    def __init__(self, clock: Clock, leads: Callable[[], bool]) -> None:
        self.given_way = False
        self._clock = clock
        self._leads = leads

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
        if supposing is not None:
            supposing.lay_down()
        try:
            await asyncio.sleep(0)
        finally:
            if supposing is not None:
                supposing.take_up()
        if not self._leads():
            raise broken(LEAD_LOST)
