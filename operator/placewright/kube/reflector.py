"""A reflector keeps a copy of one collection of the API server and tells a sink about each change.

It lists in pages, watches from the version of the list, and resumes after a broken stream. If the server has forgotten that version, it
lists again. Objects that vanished meanwhile are told as deleted. Kopf does not do that, which is why the scheduler does not rely on its
watches. No answer of the server ends a reflector: it logs once, counts, waits with jitter and goes on.

The sink hears `changed` and `deleted` as changes come, and `synced` after every complete list. A list that broke off has told some changes
already; these are true, and only deletions wait for a complete list.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from placewright.api.objectbounds import bounded
from placewright.kube.client import ApiClient
from placewright.kube.errors import GONE, ApiError, RequestError, RetryBackoff, Sleep, Unreachable
from placewright.kube.listwatch import (
    ChangeType,
    Event,
    LineSplitter,
    LineTooLong,
    Malformed,
    Object,
    ObjectKey,
    Page,
    UndecodableObject,
    Wire,
    object_key,
    pages,
)
from placewright.kube.optionalterms import ObjectBytes, OptionalTerms
from placewright.kube.sink import ReflectorCounts, Sink
from placewright.kube.tasks import Tasks

T = TypeVar("T", bound=Object)

PAGE_LIMIT: Final = 500
#: Objects told to a sink in one turn of the event loop.
_SLICE: Final = 100
#: Seconds that a watch lasts. It ends so that connections spread over the API servers again after one of them was restarted.
_SHORTEST_WATCH: Final = 300
_LONGEST_WATCH: Final = 600
#: Seconds; a watch without an event that ended sooner counts as a failure.
_SHORT_LIVED: Final = 1.0
#: Seconds beyond the requested duration until a watch is ended from here.
_WATCH_GRACE: Final = 15.0
#: Bad objects remembered, so that each is logged once.
_REMEMBERED_BAD: Final = 1000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """The collection that a reflector reads.

    Attributes:
        path: the collection, such as `/api/v1/pods`.
        kind: the struct to decode into.
        field_selector, label_selector: selectors as the API takes them; empty for everything.
        upgrade: gives an object of an older API version the same meaning in the newest; None if the versions do not differ.
        optional: terms of a collection that the scheduler can do without; None for collections that it needs.
    """

    path: str
    kind: type[T]
    field_selector: str = ""
    label_selector: str = ""
    upgrade: Callable[[T], T] | None = None
    optional: OptionalTerms | None = None

    @property
    def resource(self) -> str:
        """The resource as kubectl names it, such as `pods` or `podgroups.scheduling.k8s.io`: two groups may have a resource of one name."""
        group, resource = self.path.split("/")[2], self.path.rpartition("/")[2]
        return f"{resource}.{group}" if self.path.startswith("/apis/") else resource

    @property
    def selectors(self) -> dict[str, str]:
        """The selectors as query parameters of list and watch."""
        chosen = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {name: value for name, value in chosen.items() if value}

    def __str__(self) -> str:
        chosen = "&".join(filter(None, (self.field_selector, self.label_selector)))
        return f"{self.path}?{chosen}" if chosen else self.path


@dataclass(eq=False)
class Reflector(Generic[T]):
    """Reflects one source into `store` and a sink; see the module's text.

        reflector = Reflector(client, Source("/api/v1/nodes", Node), sink)
        task = asyncio.create_task(reflector.run())
        await reflector.has_synced.wait()

    Attributes:
        client: the API server's client.
        source: the collection that is read.
        sink: hears of the changes.
        backoff: waits after failures.
        sleep: waits so many seconds.
        page_limit: objects on a page of a list.
        clock: monotonic seconds.
        store: current objects by key, for reading only.
        counts: counts of lists, events and failures.
        has_synced: set once the first list is complete.
        version: resourceVersion up to which every change was told; empty before the first list and when a new list is due.
        complaint: the last failure of a server that answers, such as a right that is missing; empty since requests succeed.
    """

    client: ApiClient
    source: Source[T]
    sink: Sink[T]
    _: KW_ONLY
    backoff: RetryBackoff = RetryBackoff()  # noqa: RUF009 - frozen
    sleep: Sleep = asyncio.sleep
    page_limit: int = PAGE_LIMIT
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.store: dict[ObjectKey, T] = {}
        self.counts = ReflectorCounts()
        self.has_synced = asyncio.Event()
        self._wire = Wire(self.source.kind)
        self.version = ""
        self._redirected: Source[T] | None = None
        #: Callers of `list_anew` whose list has not begun yet.
        self._asked: list[asyncio.Future[None]] = []
        self._watching: asyncio.Timeout | None = None
        self._attempt = 0
        self._bad_seen: set[tuple[str, str]] = set()
        self.complaint = ""
        #: When requests began to fail; None while they are answered.
        self._failing_since: float | None = None
        #: Bytes of the objects of an optional source.
        self._bytes = ObjectBytes()

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._reflect()
            except (Malformed, LineTooLong) as error:
                # Resuming would meet the same bytes again; a new list may get past them.
                self.counts.malformed += 1
                self.version = ""
                await self._wait_after(error)
            except RequestError as error:
                if _expired(error):
                    self.counts.expired += 1
                    self.version = ""
                else:
                    await self._wait_after(error)

    def redirect(self, source: Source[T]) -> None:
        """Read the same collection elsewhere, such as in another API version, once the current watch ends.

        The store stays. The list that begins then tells which objects changed or vanished.

        Args:
            source: the collection to read from then on.
        """
        self._redirected = source

    async def list_anew(self) -> None:
        """Return when a list that began after this call is complete. The watch then goes on from that list."""
        done = asyncio.get_running_loop().create_future()
        self._asked.append(done)
        if self._watching is not None:
            watching, self._watching = self._watching, None  # asyncio refuses to reschedule a scope that is ending
            watching.reschedule(asyncio.get_running_loop().time())
        await done

    def _turn_to_source(self) -> None:
        if self._redirected is not None:
            self.source, self._redirected = self._redirected, None
            self.version = ""

    async def _reflect(self) -> None:
        self._turn_to_source()
        terms = self.source.optional
        if self._asked or not self.version or (terms is not None and terms.poll_seconds is not None):
            await self._list()
        if terms is not None and terms.poll_seconds is not None:
            if not self._asked:
                async with self._until_asked_to_list():
                    await self.sleep(terms.poll_seconds)
            return
        while self._redirected is None and not self._asked:
            began = self.clock()
            if await self._watch() or self._asked or self.clock() - began >= _SHORT_LIVED:
                self._attempt = 0
            else:
                # A server that ends every watch at once must not be asked in a tight loop.
                await self.sleep(self.backoff.delay(self._attempt))
                self._attempt += 1

    async def _wait_after(self, error: Exception) -> None:
        self.counts.failed += 1
        # A connection that breaks once is ordinary, and the next request shows whether the server is away.
        ordinary = isinstance(error, Unreachable) and self._attempt == 0
        if not ordinary and str(error) != self.complaint and self.client.away.away_since is None:
            self.complaint = str(error)
            without = f", and {self.source.optional.reader} does without" if self.source.optional else ""
            _log.warning("%s: %s; it is read again%s", self.source, error, without)
        if self.source.optional is not None:
            self.has_synced.set()
            self._let_go_of_stale(self.source.optional)
        known = error if isinstance(error, RequestError) else None
        await self.sleep(self.backoff.delay(self._attempt, known))
        self._attempt += 1

    def _let_go_of_stale(self, terms: OptionalTerms) -> None:
        """Tell all objects as deleted once they are older than the source allows."""
        now = self.clock()
        if self._failing_since is None:
            self._failing_since = now
        age = now - self._failing_since
        if self.store and terms.stale_after_seconds is not None and age >= terms.stale_after_seconds:
            _log.warning("%s: not read for %.0f s: its objects are too old, so %s does without", self.source, age, terms.reader)
            self.version = ""
            for key in list(self.store):
                self._remove(key)
            self._tell(self.sink.synced)

    def _recovered(self) -> None:
        self._attempt = 0
        self.complaint = ""
        self._failing_since = None

    # --- listing ---

    async def _list(self) -> None:
        asked = len(self._asked)  # a caller that asks from here on waits for the next list: this one may miss its change
        seen: set[ObjectKey] = set()
        try:
            version = await self._list_pages(seen, self.page_limit)
        except ApiError as error:
            if not _expired(error):
                raise
            # The pages took longer than the server remembers; the whole at once cannot expire.
            seen.clear()
            version = await self._list_pages(seen, 0)
        for key in [key for key in self.store if key not in seen]:
            self._remove(key)
        self.version = version
        self._recovered()
        self.counts.lists += 1
        self.has_synced.set()
        self._tell(self.sink.synced)
        answered, self._asked = self._asked[:asked], self._asked[asked:]
        for each in answered:
            if not each.done():
                each.set_result(None)

    async def _list_pages(self, seen: set[ObjectKey], limit: int) -> str:
        version, get = "", partial(self.client.get, self.source.path)
        async for page in pages(get, self._wire.page, self.source.selectors | ({"limit": str(limit)} if limit else {})):
            await self._take_page(page, seen)
            version = page.resource_version
        return version

    async def _take_page(self, page: Page[T], seen: set[ObjectKey]) -> None:
        for start in range(0, len(page.items), _SLICE):
            for item in page.items[start : start + _SLICE]:
                seen.add(object_key(item.metadata))
                self._put(item)
            # The cycle, Bindings and a Lease renewal run between two slices.
            await asyncio.sleep(0)

    # --- watching ---

    async def _watch(self) -> bool:
        """Follow one watch to its end; True when it brought an event."""
        seconds = random.randint(_SHORTEST_WATCH, _LONGEST_WATCH)
        params = self.source.selectors | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.version,
            "timeoutSeconds": str(seconds),
        }
        self.counts.watches += 1
        before = self.counts.events
        async with self._until_asked_to_list(), self.client.stream(self.source.path, params, limit=seconds + _WATCH_GRACE) as stream:
            splitter, opened = LineSplitter(), self.clock()
            try:
                while chunk := await stream.readany():
                    for line in splitter.feed(chunk):
                        self._take(self._wire.event(line))
            finally:
                if self.clock() - opened >= _SHORT_LIVED:
                    self._attempt = 0  # the server answered for a while, however the watch ends
        return self.counts.events > before

    @asynccontextmanager
    async def _until_asked_to_list(self) -> AsyncIterator[None]:
        """End the block when `list_anew` is called."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None) as watching:
                self._watching = watching
                try:
                    yield
                finally:
                    self._watching = None

    def _take(self, event: Event[T]) -> None:
        self.counts.events += 1
        self._recovered()
        found = event.object
        if event.change is ChangeType.DELETED:
            key = object_key(found.metadata)
            if (known := self.store.get(key)) is None or known.metadata.uid == found.metadata.uid:  # another one may have the name by now
                self._remove(key)
        elif event.change is not ChangeType.BOOKMARK:
            self._put(found)
        self.version = found.metadata.resource_version or self.version

    # --- the store ---

    def _put(self, item: T | UndecodableObject) -> None:
        key = object_key(item.metadata)
        if isinstance(item, UndecodableObject):
            self._note_bad(key, item)
            return
        if self.source.upgrade is not None:
            item = self.source.upgrade(item)
        item = self._within_bounds(key, item)
        old = self.store.get(key)
        if old is not None and old.metadata.resource_version == item.metadata.resource_version != "":
            return
        if old is not None and old.metadata.uid != item.metadata.uid:
            self._remove(key)
            old = None
        if self.source.optional is not None and not self._bytes.admits(key, item, self.source.optional.most_bytes):
            self._leave_out(key, self.source.optional)
            return
        self.store[key] = item
        self._tell(self.sink.changed, old, item)

    def _within_bounds(self, key: ObjectKey, item: T) -> T:
        """Return the object without the fields that are beyond their bound; log them once."""
        within = bounded(item)
        if within is not item:
            self._complain(key, within.metadata.excess)
        return within

    def _leave_out(self, key: ObjectKey, terms: OptionalTerms) -> None:
        """Do without an object beyond the limit of bytes; logged once, and counted as a bad object each time."""
        self.counts.bad_object += 1
        if not self._bytes.overflowed:
            self._bytes.overflowed = True
            _log.warning("%s: more than %d bytes: %s does without %s and others", self.source, terms.most_bytes, terms.reader, key)
        self._remove(key)

    def _remove(self, key: ObjectKey) -> None:
        self._bytes.drop(key)
        old = self.store.pop(key, None)
        if old is not None:
            self._tell(self.sink.deleted, old)

    def _note_bad(self, key: ObjectKey, bad: UndecodableObject) -> None:
        """Count and log an object that cannot be decoded. A known object stays as last read: taking it for deleted would free its room."""
        self.counts.bad_object += 1
        known = self.store.get(key)
        if known is not None and known.metadata.uid != bad.metadata.uid:
            self._remove(key)
        self._complain(key, bad.error)

    def _complain(self, key: ObjectKey, error: str) -> None:
        """Log once that an object or a part of it is ignored."""
        if (key, error) not in self._bad_seen:
            if len(self._bad_seen) >= _REMEMBERED_BAD:
                self._bad_seen.clear()
            self._bad_seen.add((key, error))
            _log.warning("%s: %s ignored: %s", self.source, key, error)

    def _tell(self, call: Callable[..., None], *args: Any) -> None:
        try:
            call(*args)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001
            # An error about one object must not stop the news about all others.
            self.counts.sink_error += 1
            _log.exception("%s: one object could not be taken over; the watch goes on", self.source)


def _expired(error: RequestError) -> bool:
    """Return whether the server has forgotten the version that we ask from, so that a new list is due."""
    return isinstance(error, ApiError) and error.status == GONE


class Reflectors(Tasks):
    """Reflectors that run together.

    Attributes:
        members: all of them, running or not.
    """

    def __init__(self, members: Iterable[Reflector[Any]]) -> None:
        super().__init__({})
        self.members: list[Reflector[Any]] = []
        for one in members:
            self.include(one)

    def include(self, one: Reflector[Any]) -> None:
        """Add a reflector, and start it if the others run. `wait_synced` does not wait for its first list if it has returned already."""
        self.members.append(one)
        self.add(f"reflector {one.source}", one.run)

    async def wait_synced(self) -> None:
        """Return when every first list is complete.

        Raises:
            Exception: the error that ended a reflector; no answer of the server does.
        """
        waiting = asyncio.create_task(self._all_synced())
        try:
            await asyncio.wait([waiting, *self.tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in self.tasks:
                if task.done():
                    task.result()
        finally:
            waiting.cancel()

    async def _all_synced(self) -> None:
        for one in self.members:
            await one.has_synced.wait()

    def unsynced(self) -> list[str]:
        """Return the sources whose first list is not complete yet, for messages and health."""
        return [str(one.source) for one in self.members if not one.has_synced.is_set()]
