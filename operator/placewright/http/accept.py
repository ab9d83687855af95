"""Accepts the connections of a port: a limited number at once, each for one request and for a limited time.

Any client that reaches a port may open connections. Four rules bound what they cost, and how long an honest client waits:

- `PLACES` connections are open at most. Further ones wait with the kernel, and are accepted in the order in which they came.
- A connection ends `REQUEST_SECONDS` after its accept unless its request is complete, and `ANSWER_SECONDS` after that.
- A client that sends more than `LONGEST_REQUEST` bytes, or more than its server takes, is hung up on.
- A long answer, such as the console's stream, gives its place back. At most `FOLLOWING` such answers are open.

No connection ends for the sake of another. A silent crowd gives up all places every `REQUEST_SECONDS`. So a health probe behind the crowd
is answered after a wait. Addresses are not told apart: a kubelet may share its address with a tenant, and the kernel has one queue for all.

Time is counted in beats of the event loop. So a loop that stood still takes no client's time away. One connection is accepted in a turn of
the loop. So a client that opens many connections leaves the scheduler its turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from aiohttp import web

_log = logging.getLogger(__name__)

#: Connections of one port, beside its followers. A connection within TLS takes up to 400 KiB.
PLACES: Final = 128
#: Connections of one port whose answers go on for as long as their clients stay.
FOLLOWING: Final = 128
#: Seconds from the accept until the request is complete. A client needs two ways through the network, and processor time.
REQUEST_SECONDS: Final = 1.5
#: Seconds from the request to the last byte of the answer.
ANSWER_SECONDS: Final = 30.0
BEAT_SECONDS: Final = 0.1
#: Time at the end for answers under way.
END_SECONDS: Final = 1.0
#: Time for a client's goodbye of TLS.
_GOODBYE_SECONDS: Final = 1.0
#: Time without an accept after the process lacked descriptors or buffers for one.
_PAUSE_SECONDS: Final = 0.25
#: Seconds between two log lines of one port.
_SAID_EVERY: Final = 60.0
#: Bytes of a request without a body: first line, headers (a bearer token is the largest that we know of), and what follows unasked.
LONGEST_REQUEST: Final = 32768
_MOST_HEADERS: Final = 64
#: Option of `web.Server` and `web.AppRunner`. Without it aiohttp goes on with a request whose client has gone.
CANCELLED_WHEN_GONE: Final[dict[str, Any]] = {"handler_cancellation": True}


class Connection(web.RequestHandler):
    """One connection, for its one request.

    Attributes:
        unfinished: whether an answer with an end is under way.
        placed: done when the connection needs its place no more.
    """

    def __init__(self, port: Port) -> None:
        super().__init__(
            port.server,
            loop=asyncio.get_running_loop(),
            logger=_unheard(),
            access_log=None,  # type: ignore[arg-type]  # aiohttp's word for "none"
            keepalive_timeout=0.0,
            lingering_time=0.0,
            max_headers=_MOST_HEADERS,
        )
        self._port = port
        self._bytes_left = port.longest_request
        self._wire: asyncio.BaseTransport | None = None
        self._end_after(port.request_seconds)
        self.unfinished = False
        self.placed: asyncio.Future[None] = self._loop.create_future()

    def answer(self) -> None:
        """Note that the request is complete. The handler of a request calls this."""
        self.unfinished = True
        self._end_after(ANSWER_SECONDS)

    def follow(self) -> bool:
        """Give the place back, because the answer goes on for as long as the client stays.

        Returns:
            Whether the port has room for one more such answer.
        """
        if self.transport is None or len(self._port.followers) >= FOLLOWING:
            return False
        self.unfinished = False
        self._bytes_left = 0  # a client that follows has nothing more to say
        self._port.followers.add(self)
        self._leave_place()
        return True

    def hang_up(self) -> None:
        """End the connection without a word."""
        if self._wire is not None:
            cast(asyncio.Transport, self._wire).abort()

    def _end_after(self, seconds: float) -> None:
        self._last_beat = self._port.beat + seconds / BEAT_SECONDS

    @property
    def overdue(self) -> bool:
        """Whether the time for the request, or for its answer, is over."""
        return self._port.beat >= self._last_beat

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport: aiohttp forgets its own while the kernel takes the last bytes."""
        self._wire = transport
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass bytes to aiohttp, or hang up on a client that sends too many."""
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            self.hang_up()
        else:
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Leave the port."""
        super().connection_lost(exc)
        self._port.followers.discard(self)
        self._leave_place()

    def _leave_place(self) -> None:
        if not self.placed.done():
            self.placed.set_result(None)

    def log_exception(self, *args: Any, **named: Any) -> None:
        """Report a lack of memory; aiohttp calls this with each error of a handler, and goes on."""
        if isinstance(problem := named.get("exc_info"), MemoryError):
            self._loop.call_exception_handler({"message": "a request has run out of memory", "exception": problem})
        super().log_exception(*args, **named)

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio asks for it, and aiohttp always lets the connection end
        """Note that the client sends no more. Without TLS it may still read its answer, as `nc -N` does; otherwise it has gone."""
        reads = self not in self._port.followers
        return reads and self.transport is not None and self.transport.get_extra_info("ssl_object") is None


class Port:
    """One listening socket, and its connections.

    Attributes:
        server: answers requests.
        longest_request: bytes that are read of a connection.
        request_seconds: seconds from the accept until the request is complete.
        beat: number of beats since the port was opened.
        followers: connections whose answers go on for as long as their clients stay.
    """

    def __init__(
        self,
        listening: socket.socket,
        tls: ssl.SSLContext | None,
        server: web.Server,
        longest_request: int = LONGEST_REQUEST,
        request_seconds: float | None = None,
    ) -> None:
        """Accept nothing yet.

        Args:
            listening: is not blocking from now on, and closed at the end.
            tls: None for plain HTTP.
            server: answers requests. Its handler calls `answer` of the connection when it has the whole request.
            longest_request: bytes of the request with its body.
            request_seconds: seconds from the accept until the request is complete; None for `REQUEST_SECONDS`. A silent crowd keeps others
                waiting for that long.
        """
        listening.setblocking(False)
        self._listening = listening
        self._tls: dict[str, Any] = {}
        if tls is not None:
            self._tls = {"ssl": tls, "ssl_handshake_timeout": ANSWER_SECONDS, "ssl_shutdown_timeout": _GOODBYE_SECONDS}
        self.server = server
        self.longest_request = longest_request
        self.request_seconds = REQUEST_SECONDS if request_seconds is None else request_seconds
        self._places = asyncio.Semaphore(PLACES)
        self._held: dict[asyncio.Task[None], Connection] = {}
        self._said = -_SAID_EVERY
        self.beat = 0
        self.followers: set[Connection] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Accept for as long as the context is open. At its end answers under way have `END_SECONDS`; all other connections end at once."""
        tasks = [asyncio.create_task(each(), name=each.__name__) for each in (self._accept, self._count_beats)]
        for task in tasks:
            task.add_done_callback(_report)
        try:
            yield
        finally:
            await _cancelled(tasks)
            self._listening.close()
            for each in tuple(self.followers):
                each.hang_up()
            await _cancelled(task for task, each in self._held.items() if not each.unfinished)
            await self.server.shutdown(END_SECONDS)
            await _cancelled(self._held)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._places.locked():
                self._say("all %s connections of a port are open; further ones wait", PLACES)
            await self._places.acquire()
            try:
                accepted, _ = await loop.sock_accept(self._listening)
            except ConnectionAbortedError:  # the client left while it waited with the kernel
                self._places.release()
                continue
            except OSError as problem:
                self._places.release()
                self._say("connections cannot be accepted: %s", problem)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            self._admit(accepted)
            await asyncio.sleep(0)

    def _admit(self, accepted: socket.socket) -> None:
        connection = Connection(self)
        task = asyncio.create_task(self._hold(connection, accepted))
        self._held[task] = connection
        task.add_done_callback(self._held.pop)

    async def _hold(self, connection: Connection, accepted: socket.socket) -> None:
        """Give a connection a place for as long as it needs one, or until this is cancelled."""
        try:
            # An error is that of a client that speaks no TLS, or has gone.
            with contextlib.suppress(OSError):
                await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, accepted, **self._tls)
                await connection.placed
        except asyncio.CancelledError:
            connection.hang_up()
        finally:
            self._places.release()

    async def _count_beats(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self.beat += 1
            for overdue in [task for task, each in self._held.items() if each.overdue]:
                overdue.cancel()

    def _say(self, words: str, about: object) -> None:
        now = time.monotonic()
        if now - self._said >= _SAID_EVERY:
            self._said = now
            _log.warning(words + " (said once a minute)", about)


def _report(task: asyncio.Task[None]) -> None:
    """Report a broken task of a port: without memory the process ends, instead of a port that accepts no more."""
    if not task.cancelled() and (problem := task.exception()) is not None:
        task.get_loop().call_exception_handler({"message": "a port accepts no more connections", "exception": problem})


async def _cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


def _unheard() -> logging.Logger:
    """Return a silent logger for aiohttp, which logs a traceback for each broken request: a client could fill the log."""
    unheard = _log.getChild("unheard")
    unheard.setLevel(logging.CRITICAL + 1)
    return unheard
