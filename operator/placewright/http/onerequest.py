"""Shows aiohttp one request of a connection that came in through a doorway, and nothing after it.

The request's head is handed on when it is complete and the doorway has a place for an answer, and not before: aiohttp keeps no header
without end, and makes no answer that would have to wait.

A request whose client is gone ends: the connection is read while its answer is made, and `CANCELLED_WHEN_GONE` has aiohttp cancel the
handler as soon as the connection is lost. Every server of ours is made with it.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any, Final

from aiohttp import web

from placewright.http.accept import Caller

_log = logging.getLogger(__name__)

#: For `web.Server` and `web.AppRunner`: without it aiohttp goes on with a request although no client is there for its answer.
CANCELLED_WHEN_GONE: Final[dict[str, Any]] = {"handler_cancellation": True}
#: Bytes, of the request's first line and of one header; a bearer token is the largest that we know of.
_LONGEST_LINE: Final = 8190
_MOST_HEADERS: Final = 64
#: Bytes, of the first line and all headers.
_LONGEST_HEAD: Final = 16384
#: Bytes after the request that are read and dropped; a client that sends more is hung up on.
_MOST_DROPPED: Final = 16384
_END_OF_HEAD: Final = b"\r\n\r\n"
_HEAD_TOO_LONG: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class SingleRequest(web.RequestHandler):
    """One connection, for its one request."""

    def __init__(self, manager: web.Server, caller: Caller, longest_body: int = 0) -> None:
        """`longest_body`: bytes after the head that are handed on; a client that sends more is hung up on. With 0 they are dropped."""
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            logger=_unheard(),
            access_log=None,  # type: ignore[arg-type]  # aiohttp's word for "none"
            keepalive_timeout=0.0,  # the doorway ends connections
            lingering_time=0.0,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
            max_headers=_MOST_HEADERS,
        )
        self._caller = caller
        #: None from its end on.
        self._head: bytearray | None = bytearray()
        #: Whether bytes after the head are a body, and how many more are read.
        self._has_body = longest_body > 0
        self._bytes_left = longest_body or _MOST_DROPPED
        self._follows = False

    def follow(self) -> bool:
        """Go on to an answer that takes as long as the client stays.

        Returns:
            Whether the doorway has a place for that.
        """
        self._follows = self.transport is not None and self._caller.follow()
        if self._follows:
            self._bytes_left = 0  # a client that follows has nothing more to say
        return self._follows

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._caller.opened(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is no more."""
        self._caller.lost()
        super().connection_lost(exc)

    def log_exception(self, *args: Any, **named: Any) -> None:
        """Report a lack of memory; aiohttp calls this with each error of a handler, and goes on."""
        if isinstance(problem := named.get("exc_info"), MemoryError):
            self._loop.call_exception_handler({"message": "a request has run out of memory", "exception": problem})
        super().log_exception(*args, **named)

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio asks for it, and aiohttp always lets the connection end
        """The client sends no more. Without TLS it may still read its answer, as `nc -N` does; otherwise it has gone.

        Returns:
            Whether the connection stays open.
        """
        if self.transport is None:
            return False
        reads = self._head is None and not self._follows and self.transport.get_extra_info("ssl_object") is None
        if not reads:
            self.transport.abort()
        return reads

    def data_received(self, data: bytes) -> None:
        """Keep the head until it is complete; hand it on, and then what is read of the body."""
        if self._head is None:
            self._body_received(data)
            return
        head = self._head
        looked_at = max(len(head) - len(_END_OF_HEAD) + 1, 0)
        head += data if head else data.lstrip(b"\r\n")
        end = head.find(_END_OF_HEAD, looked_at) + len(_END_OF_HEAD)
        if len(_END_OF_HEAD) <= end <= _LONGEST_HEAD:
            self._head_received(bytes(head[:end]), bytes(head[end:]))
        elif len(head) > _LONGEST_HEAD:
            self._refuse_head()

    def _head_received(self, head: bytes, rest: bytes) -> None:
        self._head = None
        self._read_no_more()
        self._caller.asked(partial(self._answer, head, rest))

    def _answer(self, head: bytes, rest: bytes) -> None:
        super().data_received(head)
        if rest:
            self._body_received(rest)
        if self.transport is not None:
            self.transport.resume_reading()

    def _body_received(self, data: bytes) -> None:
        self._bytes_left -= len(data)
        if self._bytes_left <= 0:
            if self.transport is not None:
                self.transport.abort()
        elif self._has_body:
            super().data_received(data)

    def _refuse_head(self) -> None:
        self._head = None
        self._read_no_more()
        if self.transport is not None:
            self.transport.write(_HEAD_TOO_LONG)
            self.transport.close()

    def _read_no_more(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()


def _unheard() -> logging.Logger:
    """Return a silent logger for aiohttp, which logs a traceback for each broken request: a client could fill the log."""
    unheard = _log.getChild("unheard")
    unheard.setLevel(logging.CRITICAL + 1)
    return unheard
