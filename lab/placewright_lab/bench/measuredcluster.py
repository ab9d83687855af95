"""A real API server with one scheduler at work, and the questions of benchmarks to both.

Two benchmarks use it: the arena, in which waves of pods meet the same nodes again and again, and upstream's own workloads.

Creation of objects at the least cost, for benchmarks in which the feed shares the processors with the scheduler.

Whole requests are encoded beforehand. Each connection has one request under way at a time, and reads only the status of an answer.
"""

from __future__ import annotations

import asyncio
import math
import re
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self, cast

import msgspec
from yarl import URL

from placewright.api.profile import GROUP, KIND, VERSION
from placewright.cli.definitions import shipped_definitions
from placewright.kube.auth.login import ClusterAccess, load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import error_from_answer
from placewright.offline.kinds import Manifest
from placewright_lab.bench.boundwatch import BoundWatch
from placewright_lab.bench.contenders import Contender, RunningScheduler
from placewright_lab.bench.wavecomparison import Spent, cpu_seconds
from placewright_lab.controlplane.installation import until_served
from placewright_lab.demo.livestate import PROFILES_PATH

CONNECTIONS: Final = 32
_DONE: Final = frozenset({b"200", b"201"})
_HEAD_END: Final = b"\r\n\r\n"
#: The end of a body of unknown length; JSON text never contains it.
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class FeedBroken(Exception):
    """The API server refused an object, or closed the connection."""


class Post(NamedTuple):
    """One creation.

    Attributes:
        name: name of the object.
        request: bytes of the request.
        before: requests that precede it on the same connection, each after the answer to the one before.
    """

    name: str
    request: bytes
    before: tuple[bytes, ...] = ()


def posts(access: ClusterAccess, path: str, manifests: Iterable[Manifest]) -> list[Post]:
    """Return the creations of objects in the collection at `path`."""
    head = _head(access, "POST", path)
    return [Post(manifest["metadata"]["name"], _whole(head, manifest)) for manifest in manifests]


def request(access: ClusterAccess, method: str, path: str, manifest: Manifest) -> bytes:
    """Return a request with an object for `Post.before`."""
    return _whole(_head(access, method, path), manifest)


def _head(access: ClusterAccess, method: str, path: str) -> str:
    url = URL(access.server)
    head = f"{method} {url.raw_path.rstrip('/')}{path} HTTP/1.1\r\nHost: {url.host}:{url.port}\r\nAccept: application/json\r\n"
    return f"{head}Content-Type: application/json\r\nUser-Agent: placewright-bench\r\nAuthorization: {access.authorization}\r\n"


def _whole(head: str, manifest: Manifest) -> bytes:
    body = msgspec.json.encode(manifest)
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class QuickFeed:
    """Connections that stay open with the context, so that no handshake falls into a measurement."""

    def __init__(self, access: ClusterAccess, connections: int = CONNECTIONS) -> None:
        """Take an `access` to an HTTPS server without a proxy, with a token, like that of our control planes."""
        self._access = access
        self._count = connections
        self._connections: list[_Connection] = []

    async def __aenter__(self) -> Self:
        await self._connect()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for connection in self._connections:
            connection.close()
        self._connections = []

    async def create(self, wanted: Iterable[Post], rate: float | None = None) -> dict[str, float]:
        """Create all objects, at most `rate` a second. Return when each was sent (`time.monotonic`), by name.

        Without `rate`, create them as fast as the server accepts them. Raises `FeedBroken` if the server refuses one.
        """
        await self._connect()
        batch = _Batch(iter(wanted), asyncio.get_running_loop(), rate)
        for connection in self._connections:
            connection.work_on(batch)
        await asyncio.gather(*(connection.idle() for connection in self._connections))
        return batch.sent

    async def _connect(self) -> None:
        """Open missing connections. An API server closes a connection after 90 silent seconds, and a wave may take longer."""
        url, loop = URL(self._access.server), asyncio.get_running_loop()
        tls = self._access.tls if isinstance(self._access.tls, ssl.SSLContext) else None
        self._connections = [each for each in self._connections if each.open]
        while len(self._connections) < self._count:
            _, connection = await loop.create_connection(_Connection, url.host or "", url.port or 443, ssl=tls)
            self._connections.append(connection)


class _Batch:
    """Objects to create, shared by all connections."""

    def __init__(self, wanted: Iterator[Post], loop: asyncio.AbstractEventLoop, rate: float | None) -> None:
        self.sent: dict[str, float] = {}
        self.loop = loop
        self._wanted = wanted
        self._interval = 1 / rate if rate else 0.0
        self._due = loop.time()

    def draw(self) -> tuple[Post | None, float]:
        """Return the next creation, and its earliest time."""
        due = self._due
        self._due += self._interval
        return next(self._wanted, None), due


class _Connection(asyncio.Protocol):
    """One kept-alive connection. It sends a request, waits for its answer, and sends the next."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer = bytearray()
        self._batch: _Batch | None = None
        self._idle: asyncio.Future[None] | None = None
        self._rest: list[bytes] = []

    @property
    def open(self) -> bool:
        """True if the server has not closed the connection."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods, but not the type.
        self._transport = cast(asyncio.WriteTransport, transport)

    def work_on(self, batch: _Batch) -> None:
        """Create from this batch until it is empty."""
        self._batch, self._idle, self._rest = batch, batch.loop.create_future(), []
        if self.open:
            self._next()
        else:
            self._fail("the API server hung up")

    async def idle(self) -> None:
        """Return when the batch is empty and our last answer is there. Raises `FeedBroken`."""
        if self._idle is not None:
            await self._idle

    def close(self) -> None:
        """Close the connection."""
        self._idle = None
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(_HEAD_END)
        if not found or not _complete(head, body):
            return
        status = bytes(head[9:12])
        self._answer.clear()
        if status in _DONE:
            self._next()
        else:
            self._fail(str(error_from_answer(int(status), bytes(body))))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the API server hung up: {exc}" if exc else "the API server hung up")

    def _next(self) -> None:
        if self._batch is None or self._idle is None or self._idle.done():
            return
        if self._rest and self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._rest.pop())
            return
        post, due = self._batch.draw()
        if post is None:
            self._idle.set_result(None)
        elif due > self._batch.loop.time() and self._batch.sent:
            self._batch.loop.call_at(due, self._send, post)
        else:
            self._send(post)

    def _send(self, post: Post) -> None:
        if self._batch is not None and self._transport is not None and not self._transport.is_closing():
            # The loop's clock has only milliseconds with uvloop.
            self._batch.sent[post.name] = time.monotonic()
            *self._rest, first = (post.request, *reversed(post.before))
            self._transport.write(first)

    def _fail(self, why: str) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_exception(FeedBroken(why))


def _complete(head: bytearray, body: bytearray) -> bool:
    """Return whether a body is complete, by its length or by its last chunk."""
    length = _LENGTH.search(head)
    return len(body) >= int(length[1]) if length else body.endswith(_LAST_CHUNK)


LOOK_SECONDS: Final = 0.05
_SCHEDULED: Final = "Scheduled"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_REQUEST_SECONDS: Final = 120.0


class WaveFailed(Exception):
    """A scheduler ended by itself, or left pods unbound."""


class Plane(Protocol):
    """A control plane of our own."""

    @property
    def kubeconfig(self) -> Path:
        """Path of an administrator's kubeconfig."""

    @property
    def api_server_pid(self) -> int:
        """Process id of the API server."""

    @property
    def etcd_pid(self) -> int:
        """Process id of etcd."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits after which a scheduler counts as idle.

    Attributes:
        binding: seconds without a binding.
        event: seconds without an event; the remaining events count as lost then.
    """

    binding: float = 60.0
    event: float = 3.0


#: Limits for a real API server.
USUAL: Final = Patience()


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    remaining_item_count: int = 0


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""


class _PodStatus(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = []


class SeenPod(msgspec.Struct, frozen=True):
    """The fields of a pod that benchmarks read."""

    metadata: _Metadata
    status: _PodStatus = _PodStatus()


class _Pods(msgspec.Struct, frozen=True):
    items: list[SeenPod]


class _Event(msgspec.Struct, rename="camel", frozen=True):
    involved_object: _Metadata
    reason: str = ""


class _Some(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw]


class _Events(msgspec.Struct, frozen=True):
    items: list[_Event]


class MeasuredCluster:
    """A control plane with connections to it. `measured_cluster` makes it.

    Attributes:
        client: client for few requests.
        feed: client for thousands of requests.
        patience: limits after which a scheduler counts as idle.
    """

    def __init__(self, plane: Plane, client: ApiClient, feed: QuickFeed, patience: Patience) -> None:
        self.client = client
        self.feed = feed
        self.patience = patience
        self._plane = plane

    async def install(self, scheduler_name: str) -> None:
        """Create the shipped definitions, and a profile with all defaults for this scheduler name."""
        for definition in shipped_definitions():
            await self.client.post(_DEFINITIONS, definition)
        spec = {"schedulerName": scheduler_name}
        profile = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": "bench"}, "spec": spec}
        await until_served(lambda: self.client.post(PROFILES_PATH, profile))

    @asynccontextmanager
    async def started(self, contender: Contender) -> AsyncIterator[RunningScheduler]:
        """Run the scheduler while the context is open."""
        with tempfile.TemporaryDirectory(prefix="placewright-bench-") as folder:
            async with contender.start(Path(folder)) as running:
                yield running

    @asynccontextmanager
    async def watch(self, path: str) -> AsyncIterator[BoundWatch]:
        """Return a watch of the pods in the collection at `path` that are bound from now on."""
        now = await self.client.get_as(path, _Some, {"limit": "1"})
        async with BoundWatch(self.client.access, path, now.metadata.resource_version) as watch:
            yield watch

    async def all_bound(self, running: RunningScheduler, watch: BoundWatch, wanted: int) -> None:
        """Return when the watch has seen so many bindings. Raises `WaveFailed` if the scheduler makes no more."""
        count, at, patience = watch.seen(), time.monotonic(), self.patience.binding
        while count < wanted:
            await asyncio.sleep(LOOK_SECONDS)
            if running.ended:
                raise WaveFailed(f"it ended by itself: {running.last_words()}")
            if (found := watch.seen()) > count:
                count, at = found, time.monotonic()
            elif time.monotonic() - at > patience:
                raise WaveFailed(f"{count} of {wanted} pods were bound, then none for {patience:.0f} s: {running.last_words()}")

    async def events_written(self, running: RunningScheduler, path: str, wanted: float, seconds: float = math.inf) -> tuple[float, Spent]:
        """Wait until so many events exist, no more are written, or time is over.

        Return the time of the last event, and the CPU seconds until then.
        """
        count, at, spent = -1, time.monotonic(), self.spent(running.pid)
        end = at + seconds
        while count < wanted and time.monotonic() < min(end, at + self.patience.event):
            await asyncio.sleep(LOOK_SECONDS)
            found = await self.count(path)
            if found > count:
                count, at, spent = found, time.monotonic(), self.spent(running.pid)
        return at, spent

    async def told(self, path: str, names: Iterable[str]) -> int:
        """Return the number of these pods with an event about their binding."""
        events = (await self.client.get_as(path, _Events)).items
        return len({event.involved_object.name for event in events if event.reason == _SCHEDULED} & set(names))

    async def pods(self, path: str, selector: str = "") -> list[SeenPod]:
        """Return the pods in a collection, all or those of a field selector."""
        return (await self.client.get_as(path, _Pods, {"fieldSelector": selector} if selector else {})).items

    async def count(self, path: str) -> int:
        """Return the number of objects in a collection."""
        some = await self.client.get_as(path, _Some, {"limit": "1"})
        return len(some.items) + some.metadata.remaining_item_count

    def spent(self, scheduler: int = 0) -> Spent:
        """Return the CPU seconds until now, with 0 for a scheduler that does not run."""
        plane = self._plane
        used = cpu_seconds(scheduler) if scheduler else 0.0
        return Spent(used, cpu_seconds(plane.api_server_pid), cpu_seconds(plane.etcd_pid), time.process_time())


@asynccontextmanager
async def measured_cluster(plane: Plane, patience: Patience = USUAL) -> AsyncIterator[MeasuredCluster]:
    """Connect to a control plane."""
    access = load_config(str(plane.kubeconfig))
    async with ApiClient(access, timeout=_REQUEST_SECONDS) as client, QuickFeed(access) as feed:
        yield MeasuredCluster(plane, client, feed, patience)
