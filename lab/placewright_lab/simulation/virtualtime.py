"""An event loop whose clock stands still while a task runs, and jumps to the next timer when all tasks wait.

Coroutines that wait for minutes, the scheduler's own among them, take no time at all, and the order in which they run depends on nothing
outside. There is no I/O in such a loop.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Final

_LOOK_SECONDS: Final = 1.0


class _Jumping(selectors.SelectSelector):
    """The selector of the event loop: it never waits."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.waiting: list[asyncio.Future[bool]] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let those run who wait for quiet; if there are none, let the time pass until the next timer."""
        if timeout is not None and timeout <= 0:
            return []
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(timeout is not None)
        elif timeout is None:
            raise RuntimeError("all tasks wait for something that will never happen")
        else:
            self.now += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Begins at 0 seconds; to be given to `asyncio.Runner` as its `loop_factory`."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds."""
        return self._jumping.now

    def jump_to(self, moment: float) -> None:
        """Set the time exactly, to the last bit: a timer may ring a rounding error early. Never goes back."""
        self._jumping.now = max(self._jumping.now, moment)

    async def quiet(self) -> bool:
        """Return once all other tasks wait; False when they wait for ever, because no timer is set."""
        future: asyncio.Future[bool] = self.create_future()
        self._jumping.waiting.append(future)
        return await future


async def until(clock: Callable[[], float], done: Callable[[], bool], seconds: float) -> bool:
    """Whether it is done within so many virtual seconds; looks once a second."""
    deadline = clock() + seconds
    while not done():
        if clock() >= deadline:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return True
