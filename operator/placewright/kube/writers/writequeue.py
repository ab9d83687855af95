"""A queue of items to write: per key only the latest, and never two of one key under way at once.

Items belong to namespaces, which take turns. A namespace whose items are answered slowly, because its admission webhook hangs, gets a share
of the workers (`FairShares`); the rest is left for others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from placewright.api.fairshares import FairShares

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
#: Seconds until a worker begins anew after an error of its own: an error that recurs must not keep the event loop busy.
RESTART_SECONDS: Final = 1.0
#: A namespace that is alone gets two of three workers.
_FACTOR: Final = 2
#: Keys that were taken out stay in line until a worker meets them. Beyond this many of them the lines are rebuilt, to bound their memory.
_SLACK: Final = 64


def _at_once(_key: object) -> float:
    return 0.0


def _any(_item: object) -> bool:
    return True


def _enough_for(most: int) -> int:
    """Return the number of workers that lets one namespace have so many when it is alone."""
    every = most + 1
    while FairShares[str](every, _FACTOR).most < most:
        every += 1
    return every


def _of_no_namespace(_item: object) -> str:
    return ""


class WriteQueue(Generic[K, V]):
    """Items that a few workers write, the oldest of a namespace first.

    Attributes:
        waiting: by key, in the order in which keys came. The owner may take items out, or replace them.
        idle: set while no item waits and none is being written.
        restarts: how often a worker began anew after an error outside of `write`.
    """

    def __init__(
        self,
        write: Callable[[V], Awaitable[None]],
        broke: Callable[[K], None],
        not_before: Callable[[K], float] = _at_once,
        clock: Callable[[], float] = time.monotonic,
        namespace_of: Callable[[V], str] = _of_no_namespace,
    ) -> None:
        """Queue nothing yet.

        Args:
            write: writes one item.
            broke: is told, inside an `except`, that `write` raised; the worker goes on.
            not_before: earliest time at which a key may be written again, by `clock`.
            clock: monotonic seconds.
            namespace_of: the namespace whose share of the workers writes an item; by default all items share all workers.
        """
        self.waiting: OrderedDict[K, V] = OrderedDict()
        self.idle = asyncio.Event()
        self.idle.set()
        self.restarts = 0
        self._write = write
        self._broke = broke
        self._not_before = not_before
        self._clock = clock
        self._namespace_of = namespace_of
        #: By namespace, keys in the order in which they came; a key that was taken out is dropped when a worker meets it.
        self._lines: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()
        self._lined_up = 0
        self._shares: FairShares[str] = FairShares(1, 1)
        self._most = 1
        self._in_flight: set[K] = set()
        #: By key, set when a write of it has ended; only for keys that a caller of `written` waits for.
        self._ended: dict[K, asyncio.Event] = {}
        self._closing = False
        #: Idle workers. An item wakes one of them, and that one wakes the next if more items wait: waking all of them for each item would
        #: cost the event loop a step a worker.
        self._resting: deque[asyncio.Future[None]] = deque()
        self._workers: list[asyncio.Task[None]] = []

    def start(self, workers: int, name: str) -> None:
        """Start the workers; needs a running event loop.

        Args:
            workers: writes under way at once for one namespace; half as many again are started for other namespaces.
            name: begins the names of the tasks.
        """
        self._most = workers
        enough = _enough_for(workers)
        self._shares = FairShares(enough, _FACTOR)
        at_work = workers if self._namespace_of is _of_no_namespace else enough
        self._workers = [asyncio.create_task(self._work(), name=f"{name} {n}") for n in range(at_work)]

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The workers; none ends before `close`."""
        return self._workers

    def put(self, key: K, item: V) -> None:
        """Queue an item, in the place of the one that waits under its key. Returns at once.

        Args:
            key: such as the pod.
            item: the latest to write of it.
        """
        if key not in self.waiting:
            self._line_up(key, item)
        self.waiting[key] = item
        self.idle.clear()
        self._wake_one()

    def clear(self, going: Callable[[V], bool] = _any) -> list[V]:
        """Take waiting items out. Items that are being written stay under way.

        Args:
            going: selects the items; by default all.

        Returns:
            The items.
        """
        gone = [key for key, item in self.waiting.items() if going(item)]
        taken = [self.waiting.pop(key) for key in gone]
        if not self.waiting and not self._in_flight:
            self.idle.set()
        return taken

    async def written(self, key: K, seconds: float) -> None:
        """Wait until no item of a key waits or is being written.

        Args:
            key: such as the pod.
            seconds: to wait at most.
        """
        ended = self._ended.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                while key in self.waiting or key in self._in_flight:
                    ended.clear()
                    await ended.wait()
        except TimeoutError:
            _log.info("%s is still not written after %g s", key, seconds)
        finally:
            self._ended.pop(key, None)

    async def close(self, deadline: float) -> int:
        """Write the waiting items without the pauses between two writes of a key, then end the workers.

        Args:
            deadline: seconds to write for at most.

        Returns:
            The number of items that were not written, or not to the end.
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
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - the items that wait are still to be written
                self.restarts += 1
                _log.exception("a worker of the write queue could not choose or finish an item; it begins anew")
                await asyncio.sleep(RESTART_SECONDS)

    async def _work_on(self) -> None:
        while True:
            key, item = await self._next()
            try:
                await self._write(item)
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - one strange item must not end a worker
                self._broke(key)
            finally:
                self._shares.give_back(self._namespace_of(item))
                self._in_flight.discard(key)
                if (ended := self._ended.get(key)) is not None:
                    ended.set()
                if not self.waiting and not self._in_flight:
                    self.idle.set()

    async def _next(self) -> tuple[K, V]:
        while True:
            seconds = None
            if self.waiting:
                now = self._clock()
                key, soonest = self._first(now)
                if key is not None:
                    self._in_flight.add(key)
                    item = self.waiting.pop(key)
                    self._shares.take(self._namespace_of(item))
                    if self.waiting:
                        self._wake_one()
                    return key, item
                seconds = None if soonest is None else soonest - now
            await self._rest(seconds)

    def _first(self, now: float) -> tuple[K | None, float | None]:
        """Choose the next key. Where none may be written now: the earliest time at which one may."""
        soonest: float | None = None
        emptied: list[str] = []
        for namespace, line in self._lines.items():
            if self._shares.held.get(namespace, 0) >= self._most or not self._shares.may_take(namespace):
                continue
            key, pause = self._first_of(line, now)
            if key is not None:
                del line[key]
                self._lines.move_to_end(namespace)
                return key, None
            if pause is not None:
                soonest = pause if soonest is None else min(soonest, pause)
            if not line:
                emptied.append(namespace)
        for namespace in emptied:
            del self._lines[namespace]
        return None, soonest

    def _first_of(self, line: OrderedDict[K, None], now: float) -> tuple[K | None, float | None]:
        """Choose the next key of one namespace's line, or the time of the first that pauses."""
        soonest: float | None = None
        found: K | None = None
        gone: list[K] = []
        for key in line:
            if key not in self.waiting:
                gone.append(key)
            elif key not in self._in_flight:
                if self._may_be_written(key, now):
                    found = key
                    break
                pause = self._not_before(key)
                soonest = pause if soonest is None else min(soonest, pause)
        for key in gone:
            del line[key]
        return found, soonest

    def _line_up(self, key: K, item: V) -> None:
        self._lines.setdefault(self._namespace_of(item), OrderedDict())[key] = None
        self._lined_up += 1
        if self._lined_up > 2 * len(self.waiting) + _SLACK:
            self._lines.clear()
            for each, waiting in (*self.waiting.items(), (key, item)):
                self._lines.setdefault(self._namespace_of(waiting), OrderedDict())[each] = None
            self._lined_up = len(self.waiting) + 1

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
        with contextlib.suppress(ValueError):  # `_wake_one` took it out already
            self._resting.remove(woken)

    def _wake_one(self) -> None:
        while self._resting:
            woken = self._resting.popleft()
            if not woken.done():  # a worker whose time was up is awake already, and another one has to be woken
                woken.set_result(None)
                return

    def _may_be_written(self, key: K, now: float) -> bool:
        return self._closing or self._not_before(key) <= now
