"""Work in steps: done at once, or in turns with whatever else the event loop has to do.

A group of thousands takes seconds to decide. Nothing else is decided meanwhile, or it would see members that may be taken back; but watches
are heard, Bindings are sent and the lead is renewed.
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
    """Work that supposes the columns to be otherwise than they are, which others must not see."""

    def lay_down(self) -> None:
        """Leave the columns as they are in truth; nothing is lost."""

    def take_up(self) -> None:
        """Suppose again what is still possible, after others had their turn."""


#: Yields after each piece of work that should not be interrupted, with what has to be laid down before others have their turn; returns what
#: came of all of it.
Steps = Generator[Supposing | None, None, T]

#: How long steps are made before others have their turn, in seconds.
TURN_SECONDS: Final = 0.005


def at_once(steps: Steps[T]) -> T:
    """All steps, one after the other."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: T = ended.value
            return result


class Turns:
    """Turns that steps take with whatever else the event loop has to do.

    Attributes:
        given_way: whether others have had a turn.
    """

    def __init__(self, clock: Clock, leads: Callable[[], bool]) -> None:
        self.given_way = False
        self._clock = clock
        self._leads = leads

    async def take(self, steps: Steps[T]) -> T:
        """All steps, with others' turns in between. Raises `FitError` once this replica may not decide any more; all is undone then."""
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
