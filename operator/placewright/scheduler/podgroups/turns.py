"""Work in steps: done at once, or in turns with whatever else the event loop has to do.

A group of thousands takes seconds to decide. Nothing else is decided meanwhile, or it would see members that may be taken back; but watches
are heard, Bindings are sent and the lead is renewed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from placewright.scheduler.cycle import broken
from placewright.scheduler.extendedcycle import LEAD_LOST
from placewright.scheduler.ports import Clock

T = TypeVar("T")
#: Yields after each piece of work that should not be interrupted; returns what came of all of it.
Steps = Generator[None, None, T]

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


async def in_turns(steps: Steps[T], clock: Clock, leads: Callable[[], bool]) -> T:
    """All steps, with others' turns in between. Raises `FitError` once this replica may not decide any more; what was begun is undone."""
    until = clock() + TURN_SECONDS
    try:
        while True:
            next(steps)
            if clock() >= until:
                await asyncio.sleep(0)
                if not leads():
                    raise broken(LEAD_LOST)
                until = clock() + TURN_SECONDS
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        steps.close()
