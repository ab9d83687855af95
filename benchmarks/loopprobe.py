"""Measures how long an event loop was held: the longest time between two of its turns, seen by another task on it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Self


class LoopProbe:
    """Looks at the clock at every turn of the running event loop, for as long as the `async with` lasts.

    Attributes:
        longest: the longest time between two turns, in seconds.
        turns: number of turns.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        """Measure nothing yet. `clock` is the processor's time, so that a machine's other work does not count."""
        self.longest = 0.0
        self.turns = 0
        self._clock = clock
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._looking = asyncio.create_task(self._look())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    async def _look(self) -> None:
        before = self._clock()
        while True:
            await asyncio.sleep(0)
            now = self._clock()
            self.longest = max(self.longest, now - before)
            self.turns += 1
            before = now
