"""What waits to be written: one item a key, the latest, and never two about the same key on their way at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
#: After an error of its own a worker begins anew so many seconds later: an error that comes back must not keep the event loop busy.
RESTART_SECONDS: Final = 1.0


def _at_once(_key: object) -> float:
    return 0.0


def _any(_item: object) -> bool:
    return True


class WriteQueue(Generic[K, V]):
    """Items that a few workers write, the oldest first.

    Attributes:
        waiting: by key, in the order in which keys came. Owners may take items out, or put others in the place of those that wait.
        idle: set while nothing waits and nothing is being written.
        restarts: how often a worker began anew after an error that was not one of writing.
    """

    def __init__(
        self,
        write: Callable[[V], Awaitable[None]],
        broke: Callable[[K], None],
        not_before: Callable[[K], float] = _at_once,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`broke` hears, inside an `except`, that writing raised; no worker ends by that. `not_before`: when a key may be written again."""
        self.waiting: OrderedDict[K, V] = OrderedDict()
        self.idle = asyncio.Event()
        self.idle.set()
        self.restarts = 0
        self._write = write
        self._broke = broke
        self._not_before = not_before
        self._clock = clock
        self._in_flight: set[K] = set()
        self._closing = False
        #: Workers that have nothing to do. One is woken by each item that comes, and wakes the next if there is more: the event loop
        #: would have much to do if an item woke them all.
        self._resting: deque[asyncio.Future[None]] = deque()
        self._workers: list[asyncio.Task[None]] = []

    def start(self, workers: int, name: str) -> None:
        """Start so many workers; needs a running event loop."""
        self._workers = [asyncio.create_task(self._work(), name=f"{name} {n}") for n in range(workers)]

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The workers; none ends before `close`."""
        return self._workers

    def put(self, key: K, item: V) -> None:
        """Queue the item, in the place of what waits under its key; returns at once."""
        self.waiting[key] = item
        self.idle.clear()
        self._wake_one()

    def clear(self, going: Callable[[V], bool] = _any) -> list[V]:
        """Take out the items that wait and are `going`. What is being written stays on its way."""
        gone = [key for key, item in self.waiting.items() if going(item)]
        taken = [self.waiting.pop(key) for key in gone]
        if not self.waiting and not self._in_flight:
            self.idle.set()
        return taken

    async def close(self, deadline: float) -> int:
        """Write what waits, without the pauses between two writes, for at most so many seconds; end the workers.

        Returns how many items were not written, or not to the end.
        """
        self._closing = True
        self._wake_one()
        if self._workers:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(deadline):
                    await self.idle.wait()
        left = len(self.waiting) + len(self._in_flight)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers = []
        return left

    async def _work(self) -> None:
        while True:
            try:
                await self._work_on()
            except Exception:  # noqa: BLE001 - whatever it is, what waits is still to be written
                self.restarts += 1
                _log.exception("what waits to be written could not be chosen or given up; the worker begins anew")
                await asyncio.sleep(RESTART_SECONDS)

    async def _work_on(self) -> None:
        while True:
            key, item = await self._next()
            try:
                await self._write(item)
            except Exception:  # noqa: BLE001 - one strange item must not end a worker
                self._broke(key)
            finally:
                self._in_flight.discard(key)
                if not self.waiting and not self._in_flight:
                    self.idle.set()

    async def _next(self) -> tuple[K, V]:
        while True:
            seconds = None
            if self.waiting:
                now = self._clock()
                key = next((key for key in self.waiting if key not in self._in_flight and self._may_be_written(key, now)), None)
                if key is not None:
                    self._in_flight.add(key)
                    item = self.waiting.pop(key)
                    if self.waiting:
                        self._wake_one()
                    return key, item
                soonest = min((self._not_before(key) for key in self.waiting if key not in self._in_flight), default=None)
                seconds = None if soonest is None else soonest - now
            await self._rest(seconds)

    async def _rest(self, seconds: float | None) -> None:
        """Return when an item came, or after so many seconds."""
        woken = asyncio.get_running_loop().create_future()
        self._resting.append(woken)
        if seconds is None:
            await woken
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await woken
        with contextlib.suppress(ValueError):  # whoever woke it took it out
            self._resting.remove(woken)

    def _wake_one(self) -> None:
        while self._resting:
            woken = self._resting.popleft()
            if not woken.done():  # one whose time is up is awake already
                woken.set_result(None)
                return

    def _may_be_written(self, key: K, now: float) -> bool:
        return self._closing or self._not_before(key) <= now
