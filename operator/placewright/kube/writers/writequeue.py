"""The base class of writers that queue: per key only the latest item, and never two writes of one key under way at once.

Items belong to namespaces, which take turns. A namespace whose items are answered slowly, because its admission webhook hangs, gets a share
of the workers (`FairShares`); the rest is left for others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar, Final, Generic, TypeVar

from placewright.api.boundedcache import counts_bytes
from placewright.api.bytecount import estimate_bytes
from placewright.api.fairshares import FairShares
from placewright.kube.errors import RequestError
from placewright.kube.tasks import cancelled, until_set
from placewright.kube.writers.writer import ApiWriter, NotActive

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
#: Seconds until a worker begins anew after an error of its own: an error that recurs must not keep the event loop busy.
RESTART_SECONDS: Final = 1.0
#: A namespace that is alone gets two of three workers.
_FACTOR: Final = 2


@dataclass(slots=True)
class WriteCounts:
    """Outcomes that every writer counts."""

    written: int = 0
    failed: int = 0
    dropped: int = 0


@dataclass(eq=False)
class QueueingWriter(ApiWriter, Generic[K, V]):
    """Queues items without waiting. A few workers write them, the oldest of a namespace first. Subclasses write one item (`_write`).

    Attributes:
        counts: outcomes so far.
        waiting: items by key, in the order in which keys came; for reading only.
        idle: set while no item waits and none is being written.
        restarts: number of times that a worker began anew after an error outside of `_write`.
        tasks: the workers; none ends before `close`.
    """

    #: Name of the writer; the workers' tasks begin with it.
    NAME: ClassVar[str]
    #: Begins the log lines about a key.
    SUBJECT: ClassVar[str] = "status of"

    workers: int = field(kw_only=True)
    counts: WriteCounts = field(init=False, default_factory=WriteCounts)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.waiting: OrderedDict[K, V] = OrderedDict()
        self.idle = asyncio.Event()
        self.idle.set()
        self.restarts = 0
        self.tasks: list[asyncio.Task[None]] = []
        self._all = next(each for each in count(self.workers + 1) if FairShares[str](each, _FACTOR).most >= self.workers)
        self._shares: FairShares[str] = FairShares(self._all, _FACTOR)
        #: Keys of `waiting` by namespace, in the order in which they came.
        self._lines: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()
        self._in_flight: set[K] = set()
        #: Events by key that a caller of `written` waits for, set when a write of the key has ended.
        self._ended: dict[K, asyncio.Event] = {}
        self._closing = False
        #: Idle workers. An item wakes one of them, and that one wakes the next if more items wait: waking all of them for each item would
        #: cost the event loop a step a worker.
        self._resting: deque[asyncio.Future[None]] = deque()
        self._complained = False
        counts_bytes(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the items that wait."""
        return estimate_bytes(list(self.waiting.values()))

    def start(self) -> None:
        """Start the workers; needs a running event loop. Items that were queued before are written then."""
        self.tasks = [asyncio.create_task(self._work(), name=f"{self.NAME} {n}") for n in range(self._all)]

    async def close(self, deadline: float = 5.0) -> int:
        """Write the waiting items without the pauses between two writes of a key, then end the workers.

        Args:
            deadline: seconds to write for at most.

        Returns:
            The number of items that were not written, or not to the end. They count as dropped.
        """
        self._closing = True
        self._wake_one()
        if self.tasks:
            await self.settled(deadline)
        left = len(self.waiting) + len(self._in_flight)
        self.counts.dropped += left
        await cancelled(*self.tasks)
        self.tasks = []
        self._resting.clear()
        return left

    async def settled(self, deadline: float) -> None:
        """Return when the queue has been written. The workers go on.

        Args:
            deadline: seconds to wait at most.
        """
        await until_set(self.idle, deadline)

    async def written(self, key: K, seconds: float) -> None:
        """Wait until no item of a key waits or is being written."""
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

    def end_term(self) -> None:
        """Drop the queued items: they follow from decisions of a term that is over, and another replica may lead from now on."""
        for key in [key for key, item in self.waiting.items() if self._ends_with_term(item)]:
            self._drop(self._take_out(key))
        self._note_idle()

    # --- for subclasses ----------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def _write(self, item: V) -> None:
        """Write one item."""

    @abstractmethod
    def _namespace_of(self, item: V) -> str:
        """Return the namespace whose share of the workers writes the item."""

    def _not_before(self, _key: K) -> float:
        """Return the earliest time at which the key may be written again, by the writer's clock."""
        return 0.0

    def _ends_with_term(self, _item: V) -> bool:
        return True

    def _drop(self, _item: V) -> None:
        """Count an item that is not written: there are too many, or its term is over."""
        self.counts.dropped += 1

    def _failed(self, about: object, error: RequestError) -> None:
        """Count a failed write, and log the first one after a success."""
        self.counts.failed += 1
        if not self._complained:
            self._complained = True
            _log.warning("%s %s not written: %s (further ones are only counted)", self.SUBJECT, about, error)

    def _put(self, key: K, item: V) -> None:
        """Queue an item, in the place of the item that waits under its key."""
        if key not in self.waiting:
            self._lines.setdefault(self._namespace_of(item), OrderedDict())[key] = None
        self.waiting[key] = item
        self.idle.clear()
        self._wake_one()

    def _take_out(self, key: K) -> V:
        item = self.waiting.pop(key)
        namespace = self._namespace_of(item)
        line = self._lines[namespace]
        del line[key]
        if not line:
            del self._lines[namespace]
        return item

    # --- working -----------------------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            try:
                await self._write_next()
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - the items that wait are still to be written
                self.restarts += 1
                _log.exception("a worker of the write queue could not choose or finish an item; it begins anew")
                await asyncio.sleep(RESTART_SECONDS)

    async def _write_next(self) -> None:
        key = await self._next()
        self._in_flight.add(key)
        item = self._take_out(key)
        namespace = self._namespace_of(item)
        self._shares.take(namespace)
        if self.waiting:
            self._wake_one()
        try:
            await self._write(item)
        except MemoryError:
            raise
        except NotActive:
            self._drop(item)
        except Exception:  # noqa: BLE001 - one strange item must not end a worker
            self.counts.failed += 1
            _log.exception("%s %s not written", self.SUBJECT, key)
        finally:
            self._shares.give_back(namespace)
            self._in_flight.discard(key)
            if (ended := self._ended.get(key)) is not None:
                ended.set()
            self._note_idle()

    def _note_idle(self) -> None:
        if not self.waiting and not self._in_flight:
            self.idle.set()

    async def _next(self) -> K:
        """Return the next key to write, once there is one."""
        while True:
            key, seconds = self._first(self.clock())
            if key is not None:
                return key
            woken = asyncio.get_running_loop().create_future()
            self._resting.append(woken)
            if seconds is None:  # a limit would double the cost of an item that comes alone
                await woken
                continue
            await asyncio.wait([woken], timeout=seconds)
            with contextlib.suppress(ValueError):  # `_wake_one` took it out already
                self._resting.remove(woken)

    def _first(self, now: float) -> tuple[K | None, float | None]:
        """Choose the next key. If none may be written now, return the seconds until one may, or None."""
        soonest = math.inf
        for namespace, line in self._lines.items():
            if self._shares.held.get(namespace, 0) >= self.workers or not self._shares.may_take(namespace):
                continue
            for key in line:
                if key in self._in_flight:
                    continue
                pause = self._not_before(key)
                if self._closing or pause <= now:
                    self._lines.move_to_end(namespace)
                    return key, None
                soonest = min(soonest, pause)
        return None, None if soonest == math.inf else soonest - now

    def _wake_one(self) -> None:
        while self._resting:
            woken = self._resting.popleft()
            if not woken.done():  # the worker was cancelled
                woken.set_result(None)
                return


def remember(table: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Put a value last in a table, and drop the oldest values beyond a bound.

    Args:
        table: values from the oldest to the newest.
        key: key of the value.
        value: replaces an earlier one of the same key.
        most: entries that the table may have.
    """
    table[key] = value
    table.move_to_end(key)
    while len(table) > most:
        table.popitem(last=False)
