"""The tasks that a part of the engine runs for as long as it works."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

#: Makes the coroutine of a task.
Work = Callable[[], Coroutine[Any, Any, None]]


class Children:
    """The tasks of one part. They start together and are cancelled together.

    Attributes:
        tasks: the tasks from `start` until `stop`. None of them ends by itself unless it broke.
    """

    def __init__(self, work: Mapping[str, Work]) -> None:
        """Start nothing yet.

        Args:
            work: what runs, by the name of its task.
        """
        self._work = work
        self.tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all tasks; needs a running event loop."""
        self.tasks = [asyncio.create_task(run(), name=name) for name, run in self._work.items()]

    async def stop(self) -> None:
        """Cancel all tasks and wait for their end."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks = []


async def every(seconds: float, act: Callable[[], object]) -> None:
    """Call a function at whole multiples of a time, until cancelled.

    Args:
        seconds: on the monotonic clock. Backoff ends in windows of a second, which begin at whole seconds.
        act: the function.
    """
    while True:
        await asyncio.sleep(seconds - time.monotonic() % seconds)
        act()
