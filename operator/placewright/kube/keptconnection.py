"""One kept-alive HTTP/1.1 connection for `ApiClient.write`: it writes a request in one piece and reads status and refusal of the answer.

aiohttp's client spends three times as much CPU on a small request. Its parser is used here, so that one code decides for all requests where
an answer ends (`docs/decisions/0027-writes-past-aiohttps-client.md`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpResponseParser, RawResponseMessage
from aiohttp.streams import StreamReader

#: Bytes kept of a refusal's body. A Status has a few hundred, and its message is cut anyway.
LONGEST_REFUSAL: Final = 2**16
#: Bytes of any answer, its head included. The API server holds no object above 1.5 MiB.
LONGEST_ANSWER: Final = 8 * 2**20
#: Answers such as "102 Processing" that may come before the one that counts.
_MOST_INTERIM: Final = 8
#: The parser's limit, more bytes than any answer has: it must not pause, because each piece is taken out of it at once.
_NEVER_PAUSE: Final = 2 * LONGEST_ANSWER
_SWITCHING_PROTOCOLS: Final = 101
_OK: Final = 200
#: Statuses from here on are refusals, redirects among them.
REFUSED_FROM: Final = 300
#: Keep-alive probes find a dead peer within 15 + 3·5 seconds: watches are silent for minutes.
_PROBES: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


#: SO_LINGER, on, for zero seconds: closing resets the connection and drops the bytes that were not delivered yet.
_RESET: Final = struct.pack("ii", 1, 0)
#: Seconds by which a timer of the event loop may fire early.
_TICK: Final = 0.001
#: Message of an answer that we gave up because the replica lost the lead.
NOT_WANTED: Final = "given up, as it is not allowed any more"


class WriteAnswer(NamedTuple):
    """The server's answer to a write.

    Attributes:
        status: HTTP status.
        body: body of a refusal, at most `LONGEST_REFUSAL` bytes; empty for a success.
        retry_after: the header `Retry-After`; None without one.
    """

    status: int
    body: bytes
    retry_after: str | None


class AnswerLost(Exception):
    """A request was sent and its whole answer did not come. The server may have carried the request out.

    Attributes:
        status: HTTP status of an answer that broke off; None when no answer began.
        given_up: True when we broke the connection because the answer was not wanted any more.
    """

    def __init__(self, why: str, status: int | None) -> None:
        super().__init__(why)
        self.status = status
        self.given_up = why == NOT_WANTED


class NotSent(Exception):
    """A request was not written, because it was not allowed any more. The connection can carry another one."""


class KeptConnection(asyncio.Protocol):
    """Carries one request at a time. No pipelining: a POST must not wait behind a request whose outcome is unknown.

    Attributes:
        tls: context it was opened with; None for plain TCP.
        idle_since: when it was last given back, by the clock of its pool.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext | None, unacknowledged: float = 0.0) -> None:
        """Open nothing; the event loop connects it.

        Args:
            loop: the running event loop.
            tls: context it is opened with; None for plain TCP.
            unacknowledged: seconds that the kernel tries to deliver written bytes; 0 leaves that to the kernel.
        """
        self.tls = tls
        self._unacknowledged = unacknowledged
        self.idle_since = 0.0
        self._loop = loop
        self._transport: asyncio.WriteTransport | None = None
        self._parser: Any = None
        self._answer: asyncio.Future[WriteAnswer] | None = None
        self._head: RawResponseMessage | None = None
        self._payload: StreamReader | None = None
        self._refusal = b""
        self._received = 0
        self._interim = 0
        self._last = False
        self._late: asyncio.TimerHandle | None = None

    @property
    def usable(self) -> bool:
        """True when the connection is open and carries no request."""
        return self._answer is None and self._transport is not None and not self._transport.is_closing()

    async def exchange(
        self, request: bytes, seconds: float, wanted: Callable[[], bool], every: float, allowed: Callable[[], bool]
    ) -> WriteAnswer:
        """Write the request at once and wait for its answer. The connection must be `usable`.

        The connection is closed after a lost answer, after an answer that says `Connection: close`, and when the caller is cancelled.

        Args:
            request: the bytes of head and body.
            seconds: time limit of the answer.
            wanted: asked every `every` seconds; once it returns False the connection is reset, so that the kernel delivers nothing more.
            every: seconds between two questions.
            allowed: asked right before the bytes are handed to the kernel. A process that is stopped in between writes them when it goes
                on, however late that is. So nothing else happens in between.

        Returns:
            The answer: its status, and the body if it is a refusal.

        Raises:
            AnswerLost: the answer did not come in time, broke off, could not be parsed, or was not wanted any more.
            NotSent: the request was not allowed.
        """
        assert self.usable and self._transport is not None
        answer: asyncio.Future[WriteAnswer] = self._loop.create_future()
        self._answer = answer
        self._refusal, self._received, self._interim = b"", 0, 0
        self._look_again(self._loop.time() + seconds, wanted, every)
        write = self._transport.write
        try:
            if not allowed():
                self._answer = None
                raise NotSent
            write(request)
            return await answer
        except asyncio.CancelledError:
            self._lose("the caller was cancelled")
            raise
        finally:
            if self._late is not None:
                self._late.cancel()

    def abort(self) -> None:
        """Reset the connection because the answer is not wanted any more. The kernel delivers nothing more of the request."""
        self._lose(NOT_WANTED)

    def _look_again(self, end: float, wanted: Callable[[], bool], every: float) -> None:
        left = end - self._loop.time()
        self._late = self._loop.call_later(min(left, every), self._look, end, wanted, every)

    def _look(self, end: float, wanted: Callable[[], bool], every: float) -> None:
        if not wanted():
            self._lose(NOT_WANTED)
        elif self._loop.time() >= end - _TICK:
            self._lose("no answer in time")
        else:
            self._look_again(end, wanted, every)

    def close(self) -> None:
        """Close the connection. The answer to a request under way is lost."""
        if self._transport is not None:
            self._transport.close()
        self._lose("the connection was closed")

    # --- called by the loop ----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the open connection, its TLS included. The event loop calls this."""
        # uvloop's transports have its methods and are none by type.
        self._transport = cast(asyncio.WriteTransport, transport)
        self._parser = HttpResponseParser(BaseProtocol(self._loop), self._loop, _NEVER_PAUSE, read_until_eof=True)
        connected = transport.get_extra_info("socket")
        # A Unix socket has no TCP options, and its peer cannot vanish silently.
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            probe(connected, self._unacknowledged)

    def data_received(self, data: bytes) -> None:
        """Take a piece of an answer. The event loop calls this."""
        if self._answer is None:
            # No request is under way: these bytes would be taken for the answer to the next one.
            self._hang_up()
            return
        self._received += len(data)
        try:
            messages, _, _ = self._parser.feed_data(data)
            self._begin(messages)
            self._read()
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001 - the parser's many, and the body's
            self._lose(f"no answer that can be read: {str(problem) or type(problem).__name__}".replace("\n", " "))
            return
        if self._received > LONGEST_ANSWER or self._interim > _MOST_INTERIM:
            self._lose("an answer without end")
        elif self._payload is not None and self._payload.is_eof():
            self._done()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer: the connection is closed, by the server or by us. The event loop calls this."""
        if self._answer is None:
            return
        if self._payload is not None and self._ends_here():
            self._done()
        else:
            self._lose(f"the server hung up: {exc}" if exc else "the server hung up")

    # --- an answer -------------------------------------------------------------------------------------------------------------

    def _begin(self, messages: list[tuple[RawResponseMessage, StreamReader]]) -> None:
        for message, payload in messages:
            if self._head is not None:
                # A second answer to one request: the first one counts, and the connection is closed, as the bytes are out of step.
                self._last = True
            elif message.code < _OK:
                self._interim += 1
                if message.code == _SWITCHING_PROTOCOLS:
                    raise ValueError("another protocol")
            else:
                self._head, self._payload, self._last = message, payload, message.should_close

    def _read(self) -> None:
        """Take the body out of the parser. Only a refusal's is kept."""
        if self._head is None or self._payload is None:
            return
        body = self._payload.read_nowait()
        if self._head.code >= REFUSED_FROM and len(self._refusal) < LONGEST_REFUSAL:
            self._refusal = (self._refusal + body)[:LONGEST_REFUSAL]

    def _ends_here(self) -> bool:
        """Return whether the end of the connection was the end of the body (HTTP/1.0 style)."""
        try:
            self._parser.feed_eof()
            self._read()
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a length that was promised and not kept
            return False
        return self._payload is not None and self._payload.is_eof()

    def _done(self) -> None:
        head, answer = self._head, self._answer
        assert head is not None and answer is not None
        found = WriteAnswer(head.code, self._refusal, head.headers.get("Retry-After") if head.code >= REFUSED_FROM else None)
        self._answer = self._head = self._payload = None
        if self._last and self._transport is not None:
            self._transport.close()
        if not answer.done():
            answer.set_result(found)

    def _lose(self, why: str) -> None:
        """Raise `AnswerLost` in the waiting caller, and reset the connection: a late answer must not serve the next request."""
        answer, head = self._answer, self._head
        if answer is None:
            return
        self._answer = self._head = self._payload = None
        self._hang_up()
        if not answer.done():
            answer.set_exception(AnswerLost(why, None if head is None else head.code))

    def _hang_up(self) -> None:
        if self._transport is None:
            return
        connected = self._transport.get_extra_info("socket")
        if connected is not None:
            # Without a reset the kernel goes on delivering written bytes after close: a Binding could arrive after the lead was lost.
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()


def probe(connection: socket.socket, unacknowledged: float = 0.0) -> None:
    """Make the kernel find out that the peer of a TCP connection is dead.

    Args:
        connection: a TCP socket.
        unacknowledged: seconds after which the kernel gives up delivering bytes that the peer does not acknowledge, and breaks the
            connection; 0 keeps the kernel's default. By that default a request written before a partition may be delivered a quarter of an
            hour later.
    """
    if unacknowledged and hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1, int(unacknowledged * 1000)))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES:
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def probing_socket(unacknowledged: float, address: Any) -> socket.socket:
    """Make a socket for aiohttp that finds out when its peer is dead.

    Args:
        unacknowledged: seconds; see `probe`.
        address: one entry of `getaddrinfo`.
    """
    family, kind, protocol = address[:3]
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setblocking(False)
    probe(made, unacknowledged)
    return made
