"""The base classes of all writers: how often they repeat a request, whether this replica may send it, their clock, and their workers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Generic, TypedDict, TypeVar, Unpack

from placewright.api.boundedcache import counts_bytes
from placewright.api.bytecount import estimate_bytes
from placewright.kube.client import ApiClient
from placewright.kube.guarded import GuardedBody
from placewright.kube.ratelimit import Traffic
from placewright.kube.retry import RetryBackoff, Sleep, with_retries
from placewright.kube.writers.places import RequestOwner, RequestPlaces
from placewright.kube.writers.writequeue import WriteQueue

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
#: Seconds between two looks at the watched state, at first and at last; kube-scheduler looks every second (volumes) or five (claims).
LOOK_SECONDS: Final = 0.2
LONGEST_LOOK_SECONDS: Final = 5.0
#: Seconds between two looks, as a share of the time waited so far: thousands of pods that wait for long then cost next to nothing.
_SHARE_OF_THE_WAIT: Final = 0.1


class WriterTiming(TypedDict, total=False):
    """Keyword arguments of every writer. Tests set the last three, to run on a virtual clock.

    Attributes:
        attempts: how often a request is sent at most while its errors are temporary.
        backoff: waits between two attempts.
        clock: monotonic seconds.
        now: the time of day, for texts that are written.
        sleep: waits so many seconds.
    """

    attempts: int
    backoff: RetryBackoff
    clock: Callable[[], float]
    now: Callable[[], datetime]
    sleep: Sleep


def always() -> bool:
    """Allow every write, for a writer that needs no lead.

    Returns:
        True.
    """
    return True


class ApiWriter:
    """Sends requests that change objects. Subclasses set the class of traffic, the number of attempts and the error."""

    TRAFFIC: ClassVar[Traffic]
    ATTEMPTS: ClassVar[int] = 5
    BACKOFF: ClassVar[RetryBackoff] = RetryBackoff(initial=0.2, maximum=10.0)
    #: Requests under way at once, among requests that name a party (`RequestOwner`).
    PLACES: ClassVar[int] = 64
    #: Raised when this replica is not the active one.
    ERROR: ClassVar[type[Exception]] = PermissionError

    def __init__(self, client: ApiClient, may_write: Callable[[], bool] = always, **timing: Unpack[WriterTiming]) -> None:
        """Send nothing yet.

        Args:
            client: of the API server.
            may_write: asked before each request and each look, and when the bytes of a body leave: only the active replica may write.
            timing: attempts, backoff and clock; see `WriterTiming`.
        """
        self._client = client.sending(self.TRAFFIC)
        self._may_write = may_write
        self._places = RequestPlaces(self.PLACES)
        self._attempts = timing.get("attempts", self.ATTEMPTS)
        self._backoff = timing.get("backoff", self.BACKOFF)
        self._clock = timing.get("clock", time.monotonic)
        self._now = timing.get("now", lambda: datetime.now(UTC))
        self._sleep = timing.get("sleep", asyncio.sleep)

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until the watches show a state. The API server is asked nothing.

        Args:
            done: looks at the watched state.
            seconds: time limit.

        Returns:
            True once `done` does; False after the time limit.

        Raises:
            Exception: the writer's `ERROR`, once this replica is not the active one.
        """
        began = self._clock()
        while not done():
            self._require_lead()
            waited = self._clock() - began
            if waited >= seconds:
                return False
            pause = min(max(LOOK_SECONDS, waited * _SHARE_OF_THE_WAIT), LONGEST_LOOK_SECONDS)
            await self._sleep(min(pause, max(seconds - waited, LOOK_SECONDS)))
        return True

    async def _send(
        self, request: Callable[[], Awaitable[T]], *, about: str = "", attempts: int | None = None, whose: RequestOwner | None = None
    ) -> T:
        """Send the request, and again while its errors are temporary.

        Args:
            request: sends it once.
            about: begins the message when this replica may not write.
            attempts: how often at most; None for the writer's number.
            whose: holds one of the writer's places for this party while the request is under way; None holds none.
        """

        async def allowed() -> T:
            if whose is None:
                self._require_lead(about)
                return await request()
            async with self._places.one(whose):
                self._require_lead(about)
                return await request()

        return await with_retries(allowed, self._attempts if attempts is None else attempts, self._backoff, self._sleep)

    def _guarded(self, body: Mapping[str, Any] | bytes) -> GuardedBody:
        return GuardedBody(body, self._may_write)

    def _guarded_if_asked(self, body: Mapping[str, Any]) -> Mapping[str, Any] | GuardedBody:
        """Guard the body, except for a writer that may always write."""
        return body if self._may_write is always else self._guarded(body)

    def _require_lead(self, about: str = "") -> None:
        if not self._may_write():
            raise self.ERROR(f"{about}this replica is not the active one")


class RoomWriter(ApiWriter):
    """Writes that a Binding waits for, or that make room for a pod: they repeat for a few seconds."""

    TRAFFIC: ClassVar[Traffic] = Traffic.ROOM
    ATTEMPTS: ClassVar[int] = 4
    BACKOFF: ClassVar[RetryBackoff] = RetryBackoff(initial=0.2, maximum=5.0)


class QueueingWriter(ApiWriter, Generic[K, V]):
    """Queues items without waiting; a few workers write them. Subclasses write one item (`_write`)."""

    #: In the names of the workers' tasks.
    NAME: ClassVar[str]

    def __init__(self, client: ApiClient, may_write: Callable[[], bool] = always, *, workers: int, **timing: Unpack[WriterTiming]) -> None:
        """Queue nothing yet.

        Args:
            client: of the API server.
            may_write: asked before each request: only the active replica may write.
            workers: writes under way at once for one namespace; there are half as many again for other namespaces.
            timing: attempts, backoff and clock; see `WriterTiming`.
        """
        super().__init__(client, may_write, **timing)
        self._workers = workers
        self._queue: WriteQueue[K, V] = WriteQueue(self._write, self._broke, self._not_before, self._clock, self._namespace_of)
        counts_bytes(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the items that wait."""
        return estimate_bytes(list(self._queue.waiting.values()))

    def start(self) -> None:
        """Start the workers; needs a running event loop. Items that were queued before are written then."""
        self._queue.start(self._workers, self.NAME)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The workers, which run until `close`."""
        return self._queue.tasks

    @property
    def restarts(self) -> int:
        """How often a worker began anew after an error of its own."""
        return self._queue.restarts

    async def close(self, deadline: float = 5.0) -> None:
        """Write the queued items, and end the workers.

        Args:
            deadline: seconds; items that are left then are not written.
        """
        await self._queue.close(deadline)

    async def settled(self, deadline: float) -> None:
        """Return when the queue has been written. The workers go on.

        Args:
            deadline: seconds to wait at most.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                await self._queue.idle.wait()

    def end_term(self) -> None:
        """Drop the queued items: they follow from decisions of a term that is over, and another replica may lead from now on."""
        for item in self._queue.clear(self._ends_with_term):
            self._outlived(item)

    def _ends_with_term(self, _item: V) -> bool:
        return True

    @abstractmethod
    def _outlived(self, item: V) -> None:
        """Count an item that was dropped at the end of its term."""

    @abstractmethod
    async def _write(self, item: V) -> None:
        """Write one item."""

    @abstractmethod
    def _namespace_of(self, item: V) -> str:
        """Return the namespace whose share of the workers writes the item."""

    @abstractmethod
    def _broke(self, key: K) -> None:
        """Count and log an unexpected error of `_write`; called inside its `except`."""

    def _not_before(self, _key: K) -> float:
        """Return the earliest time at which the key may be written again, by the writer's clock."""
        return 0.0


def remember(table: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Put a value last in a table, and drop the oldest values beyond a bound.

    Args:
        table: from the oldest to the newest.
        key: of the value.
        value: replaces an earlier one of the same key.
        most: entries that the table may have.
    """
    table[key] = value
    table.move_to_end(key)
    while len(table) > most:
        table.popitem(last=False)
