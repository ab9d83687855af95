"""Creation of objects at the least cost, for benchmarks in which the feed shares the processors with the scheduler.

Whole requests are encoded beforehand. Each connection has one request under way at a time, and reads only the status of an answer.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Final, NamedTuple, Self, cast

import msgspec
from yarl import URL

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.errors import error_from_answer
from placewright.offline.kinds import Manifest

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
