"""One kept-alive HTTP/1.1 connection: a request is written whole, and of its answer only what somebody reads is kept.

aiohttp's client spends several times as much on a small request as its bytes cost. Its parser stays: what is an answer, and where it ends,
is decided by the same code as for all other requests (`docs/decisions/0027-writes-past-aiohttps-client.md`).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpResponseParser, RawResponseMessage
from aiohttp.streams import StreamReader

#: Of a refusal's body, bytes: a Status is a few hundred, and its message is cut anyway.
LONGEST_REFUSAL: Final = 2**16
#: Of any answer, its head included, bytes: an object of the API server's is 1.5 MiB at most.
LONGEST_ANSWER: Final = 8 * 2**20
#: Answers such as "102 Processing" that may come before the one that counts.
_MOST_INTERIM: Final = 8
#: More than any answer may have: the parser must not pause, as what it has read is taken out at once.
_NEVER_PAUSE: Final = 2 * LONGEST_ANSWER
_SWITCHING_PROTOCOLS: Final = 101
_OK: Final = 200
#: Statuses from here on are refusals, redirects among them.
REFUSED_FROM: Final = 300
#: Keep-alive probes find a dead peer within 15 + 3·5 seconds: watches are silent for minutes.
_PROBES: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


#: To close is to reset, and to throw away what was not delivered yet: SO_LINGER, on, for no time.
_RESET: Final = struct.pack("ii", 1, 0)
#: Timers of the event loop may be early by that, seconds.
_TICK: Final = 0.001
#: Why an answer is not waited for.
NOT_WANTED: Final = "given up, as it is not allowed any more"


def _always() -> bool:
    return True


class WriteAnswer(NamedTuple):
    """What the server answered.

    Attributes:
        body: of a refusal, at most `LONGEST_REFUSAL` bytes; empty where all went well.
        retry_after: the header, where there is one.
    """

    status: int
    body: bytes
    retry_after: str | None


class AnswerLost(Exception):
    """A request was sent, and its answer did not come, or not whole. The server may have done what it asks for.

    Attributes:
        status: of an answer that broke off; None where none began.
        given_up: whether the connection was broken from here, as the answer was not wanted any more.
    """

    def __init__(self, why: str, status: int | None) -> None:
        super().__init__(why)
        self.status = status
        self.given_up = why == NOT_WANTED


class KeptConnection(asyncio.Protocol):
    """Carries one request at a time.

    Attributes:
        tls: what it was opened with.
        idle_since: when it was last given back, by its owner's clock.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext | None, unacknowledged: float = 0.0) -> None:
        """`unacknowledged`: for so many seconds the system tries to deliver what was written; 0 leaves that to the system."""
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
        """Whether a request may be written: the connection is open, and no answer is due."""
        return self._answer is None and self._transport is not None and not self._transport.is_closing()

    async def exchange(
        self, request: bytes, seconds: float, wanted: Callable[[], bool] = _always, every: float = math.inf
    ) -> WriteAnswer:
        """Write the request, at once, and wait for its answer; for a connection that is usable. Raises `AnswerLost`.

        A connection whose answer did not come, or that says it is the last one, is closed; so is that of a caller who is cancelled.

        Args:
            request: its bytes.
            seconds: how long the answer may take.
            wanted: asked again and again; once it is False the answer is not waited for, and nothing more of the request is delivered.
            every: seconds between two questions.
        """
        assert self.usable and self._transport is not None
        answer: asyncio.Future[WriteAnswer] = self._loop.create_future()
        self._answer = answer
        self._refusal, self._received, self._interim = b"", 0, 0
        self._look_again(self._loop.time() + seconds, wanted, every)
        self._transport.write(request)
        try:
            return await answer
        except asyncio.CancelledError:
            self._lose("nobody waits for it any more")
            raise
        finally:
            if self._late is not None:
                self._late.cancel()

    def abort(self) -> None:
        """Hang up on an answer that is not wanted any more, and have the system deliver nothing more of the request."""
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
        """Hang up; an answer that is due is lost."""
        if self._transport is not None:
            self._transport.close()
        self._lose("the connection was closed")

    # --- what the loop calls ---------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open, TLS included."""
        # uvloop's transports have its methods and are none by type.
        self._transport = cast(asyncio.WriteTransport, transport)
        self._parser = HttpResponseParser(BaseProtocol(self._loop), self._loop, _NEVER_PAUSE, read_until_eof=True)
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            probe(connected, self._unacknowledged)

    def data_received(self, data: bytes) -> None:
        """A piece of an answer."""
        if self._answer is None:
            # Nothing was asked: whatever comes now would be taken for the next request's answer.
            self._hang_up()
            return
        self._received += len(data)
        try:
            messages, _, _ = self._parser.feed_data(data)
            self._begin(messages)
            self._read()
        except Exception as problem:  # noqa: BLE001 - the parser's many, and the body's
            self._lose(f"no answer that can be read: {str(problem) or type(problem).__name__}".replace("\n", " "))
            return
        if self._received > LONGEST_ANSWER or self._interim > _MOST_INTERIM:
            self._lose("an answer without end")
        elif self._payload is not None and self._payload.is_eof():
            self._done()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed, by whomever."""
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
                # A second answer to one request. The first one counts, and nothing more is read from who says so much.
                self._last = True
            elif message.code < _OK:
                self._interim += 1
                if message.code == _SWITCHING_PROTOCOLS:
                    raise ValueError("another protocol")
            else:
                self._head, self._payload, self._last = message, payload, message.should_close

    def _read(self) -> None:
        """Take what is there of the body out of the parser; most of it is nobody's."""
        if self._head is None or self._payload is None:
            return
        body = self._payload.read_nowait()
        if self._head.code >= REFUSED_FROM and len(self._refusal) < LONGEST_REFUSAL:
            self._refusal = (self._refusal + body)[:LONGEST_REFUSAL]

    def _ends_here(self) -> bool:
        """Whether the answer's body was to end with the connection."""
        try:
            self._parser.feed_eof()
            self._read()
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
        """The answer that is due does not come; nothing that comes later may be taken for another one's."""
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
            # Else the system goes on delivering what was written, after the connection was closed, too.
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()


def probe(connection: socket.socket, unacknowledged: float = 0.0) -> None:
    """Have the system find out when the peer is dead, on a TCP connection.

    `unacknowledged`: seconds after which it gives up delivering what the peer does not acknowledge, and breaks the connection; 0 for never.
    Without it a request that was written before a partition is delivered after it, up to a quarter of an hour later.
    """
    if unacknowledged and hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1, int(unacknowledged * 1000)))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES:
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
