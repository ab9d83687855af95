"""Tasks that run for as long as a part of the process works, and the waits that they share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

#: Makes the coroutine of a task.
Work = Callable[[], Coroutine[Any, Any, None]]


class Tasks:
    """The tasks of one part. They start together and are cancelled together.

    Attributes:
        tasks: the tasks from `start` until `stop`. None of them ends by itself unless it broke.
    """

    def __init__(self, work: Mapping[str, Work]) -> None:
        """Start nothing yet.

        Args:
            work: coroutines to run, by the names of their tasks.
        """
        self._work = [*work.items()]
        self._started = False
        self.tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all tasks; needs a running event loop."""
        self._started = True
        self.tasks = [asyncio.create_task(run(), name=name) for name, run in self._work]

    def add(self, name: str, run: Work) -> None:
        """Add a task, and start it if the others run."""
        self._work.append((name, run))
        if self._started:
            self.tasks.append(asyncio.create_task(run(), name=name))

    async def stop(self) -> None:
        """Cancel all tasks and wait for their end."""
        await cancelled(*self.tasks)
        self.tasks, self._started = [], False


async def cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end. Their errors are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until_set(event: asyncio.Event, seconds: float | None) -> None:
    """Wait for an event, but no longer than so many seconds.

    Args:
        event: to wait for.
        seconds: None for ever.
    """
    # Not `wait_for`: until Python 3.12 it can swallow a cancellation that comes together with the event.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
