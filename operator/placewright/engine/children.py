"""Races, beats and turns of the engine's tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from itertools import zip_longest
from typing import Any, TypeVar

from placewright.kube.tasks import cancelled

T = TypeVar("T")


async def first_of(*work: Coroutine[Any, Any, T]) -> T:
    """Run coroutines until one of them ends, and cancel the others.

    Args:
        work: the coroutines. If several end at once, the first of them counts.

    Returns:
        The result of the coroutine that ended; its error is raised.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
    finally:
        await cancelled(*tasks)


async def every(seconds: float, act: Callable[[], object]) -> None:
    """Call a function at whole multiples of a time, until cancelled.

    Args:
        seconds: length of a beat on the monotonic clock. Backoff ends in windows of a second, which begin at whole seconds.
        act: the function.
    """
    while True:
        await asyncio.sleep(seconds - time.monotonic() % seconds)
        act()


async def while_leading(
    seconds: float, leads: Callable[[], bool], look: Callable[[], Awaitable[None] | None], forget: Callable[[], object]
) -> None:
    """Call a function at every beat, until cancelled.

    Args:
        seconds: length of a beat.
        leads: tells whether this replica leads.
        look: called if it does.
        forget: called if it does not, because another replica goes on.
    """
    while True:
        await asyncio.sleep(seconds)
        if not leads():
            forget()
        elif (looking := look()) is not None:
            await looking


def in_turns(groups: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yield an item of each group in turn, so that a large group does not delay the others."""
    over: Any = object()
    return (item for turn in zip_longest(*groups, fillvalue=over) for item in turn if item is not over)
