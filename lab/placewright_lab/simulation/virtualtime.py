"""An event loop in virtual time. Its clock stands still while a task runs, and jumps to the next timer when all wait.

Coroutines that wait for minutes take no time at all. The order in which they run depends on nothing outside. Such a loop has no I/O.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Final

_LOOK_SECONDS: Final = 1.0


class _Jumping(selectors.SelectSelector):
    """The selector of the event loop, which never waits."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.waiting: list[asyncio.Future[bool]] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Run the waiters for quiet. Without any, let the time pass until the next timer."""
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
    """A loop that begins at 0 seconds, for the `loop_factory` of `asyncio.Runner`."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual seconds."""
        return self._jumping.now

    def jump_to(self, moment: float) -> None:
        """Set the time exactly, because a timer may ring a rounding error early. It never goes back."""
        self._jumping.now = max(self._jumping.now, moment)

    async def quiet(self) -> bool:
        """Return True once all other tasks wait, or False if they wait for ever without a timer."""
        future: asyncio.Future[bool] = self.create_future()
        self._jumping.waiting.append(future)
        return await future


async def until(clock: Callable[[], float], done: Callable[[], bool], seconds: float) -> bool:
    """Return whether a condition holds within so many virtual seconds. It is tested once a second."""
    deadline = clock() + seconds
    while not done():
        if clock() >= deadline:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return True
