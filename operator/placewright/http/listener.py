"""Listens on an address, and answers requests by a table of routes. `accept.Port` bounds the connections."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final, cast

from aiohttp import web

from placewright.api.bad_input import InputError
from placewright.http.accept import CANCELLED_WHEN_GONE, Connection, Port
from placewright.http.routes import TEXT, Answer, Audience, Following, Gate, Question, RequestRefused, Routes

_log = logging.getLogger(__name__)

#: Connections that the kernel queues until they are accepted; its own limit may be lower.
_BACKLOG: Final = 1024
#: Answers that are judged, made or written at once, without health. Health is answered beyond them, because a port has more connections.
MOST_ANSWERS: Final = 96
_TURNS_TO_LEAVE: Final = 16
#: Bytes from which on an answer is compressed: for fewer the work costs more than the bytes.
_WORTH_PACKING: Final = 4096
#: Seconds that a client which follows a long answer may take for one piece.
_PIECE_SECONDS: Final = 30.0
#: Bytes that are written at once. Bytes that a client does not take wait in a buffer of its own.
_PIECE_BYTES: Final = 65536
_METHOD_NOT_ALLOWED: Final = 405
_NOT_FOUND: Final = 404
_INTERNAL_ERROR: Final = 500
_NO_PLACE: Final = 503
#: Errors of a kernel that knows IPv6 on a machine without an IPv6 address.
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Server": "placewright"}


class CannotListen(InputError):
    """The address is not of this machine, or the port is taken."""


def bind(address: str, port: int, flag: str) -> socket.socket:
    """Make a listening socket.

    Args:
        address: an unspecified one (`0.0.0.0`, `::`) means all addresses of IPv4 and IPv6, as for kube-scheduler.
        port: 0 for one that the system chooses.
        flag: named in the error.

    Raises:
        CannotListen: the address is not of this machine, or the port is taken.
    """
    try:
        if ipaddress.ip_address(address).is_unspecified:
            return _bind_everywhere(port)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        found = f"{flag}: found {port}, which cannot be bound at {address} ({_in_words(error)})"
        raise CannotListen(f"{found}; allowed a port that is free, or 0 for none") from None


def _in_words(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno is not None else str(error)


def _bind_everywhere(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
    return socket.create_server(("0.0.0.0", port), backlog=_BACKLOG)  # noqa: S104 - the address that the flag gave


class Listener:
    """Answers requests on a socket by a table of routes."""

    def __init__(self, routes: Routes, gate: Gate) -> None:
        self._routes = routes
        self._gate = gate
        self._under_way: set[Connection] = set()

    @asynccontextmanager
    async def serving(self, listening: socket.socket, tls: ssl.SSLContext | None) -> AsyncIterator[None]:
        """Serve for as long as the context is open.

        Args:
            listening: closed at the end.
            tls: None for plain HTTP.
        """
        async with Port(listening, tls, web.Server(self._handle, **CANCELLED_WHEN_GONE)).open():
            yield

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast(Connection, request.protocol)
        connection.answer()
        try:
            return await self._answered(request)
        finally:
            self._under_way.discard(connection)

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            answer = await self._answer(request)
        except RequestRefused as refused:
            answer = Answer(f"{refused}\n".encode(), status=refused.status)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a defect in one page must leave the others standing
            _log.exception("GET %s failed", request.path)
            answer = Answer(b"Internal Server Error\n", status=_INTERNAL_ERROR)
        try:
            return await self._sent(request, answer)
        except ConnectionError:
            raise  # the client has gone, or took too long
        except Exception:
            _log.exception("GET %s failed half-way", request.path)
            raise

    async def _answer(self, request: web.BaseRequest) -> Answer:
        question = _question(request)
        endpoint = self._routes.find(question.path)
        if endpoint is None:
            raise RequestRefused(_NOT_FOUND, "404 page not found")
        if request.method != "GET":
            return Answer(b"405 method not allowed\n", status=_METHOD_NOT_ALLOWED, headers={"Allow": "GET"})
        if endpoint.audience is not Audience.EVERYBODY:
            await self._enter(cast(Connection, request.protocol))
        await self._gate.admit(endpoint, question)
        return await endpoint.answer(question)

    async def _enter(self, connection: Connection) -> None:
        """Count an answer as under way.

        Raises:
            RequestRefused: too many are, also after the turns that refused ones need to leave. After a long turn all requests of a crowd
                may be complete, and must not turn a user away.
        """
        for _ in range(_TURNS_TO_LEAVE):
            if len(self._under_way) < MOST_ANSWERS:
                self._under_way.add(connection)
                return
            await asyncio.sleep(0)
        raise RequestRefused(_NO_PLACE, "503 too many answers are under way; try again later")

    async def _sent(self, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        body = answer.body
        if isinstance(body, Following):
            return await self._followed(request, answer, body)
        if isinstance(body, bytes) and len(body) <= _PIECE_BYTES:
            response: web.StreamResponse = web.Response(body=body, status=answer.status, headers=_headers(answer))
        else:
            response = web.StreamResponse(status=answer.status, headers=_headers(answer))
        response.force_close()
        if isinstance(body, bytes) and len(body) >= _WORTH_PACKING:
            response.enable_compression()  # if the client accepts it, as Prometheus does
        if isinstance(response, web.Response):
            return response
        await response.prepare(request)
        async for piece in _in_pieces(body) if isinstance(body, bytes) else body:
            await response.write(piece)
        await response.write_eof()
        return response

    async def _followed(self, request: web.BaseRequest, answer: Answer, body: Following) -> web.StreamResponse:
        """Write an answer for as long as the client stays and reads."""
        connection = cast(Connection, request.protocol)
        try:
            async with aclosing(body.pieces) as pieces:
                if not connection.follow():
                    return await self._sent(request, Answer(b"503 too many clients follow\n", status=_NO_PLACE))
                self._under_way.discard(connection)
                response = web.StreamResponse(status=answer.status, headers=_headers(answer))
                response.force_close()
                await response.prepare(request)
                async for whole in pieces:
                    async for piece in _in_pieces(whole):
                        async with asyncio.timeout(_PIECE_SECONDS):
                            await response.write(piece)
                await response.write_eof()
                return response
        except TimeoutError:
            connection.hang_up()
            raise ConnectionResetError("the client does not read") from None
        finally:
            body.end()


async def _in_pieces(body: bytes) -> AsyncIterator[bytes]:
    """Cut bytes, so that no more of them than the client takes are copied into buffers."""
    for at in range(0, len(body), _PIECE_BYTES):
        yield body[at : at + _PIECE_BYTES]


def _question(request: web.BaseRequest) -> Question:
    query: dict[str, tuple[str, ...]] = {name: tuple(request.query.getall(name)) for name in request.query}
    headers: Mapping[str, str] = request.headers
    authorization, packings = headers.get("Authorization", ""), headers.get("Accept-Encoding", "")
    packed = any(each.strip() == "gzip" for each in packings.split(","))
    site = headers.get("Sec-Fetch-Site", "")
    return Question(request.path, query, headers.get("Accept", ""), request.remote or "", authorization, packed, site)


def _headers(answer: Answer) -> dict[str, str]:
    return {"Content-Type": answer.content_type or TEXT, "Connection": "close", **_HEADERS, **answer.headers}
