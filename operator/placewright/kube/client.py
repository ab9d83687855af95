"""One HTTP client for one API server: bare aiohttp, keep-alive, no retries.

Bindings and events are most of the traffic, and their caller reads only whether they succeeded. `write` sends them past aiohttp's client if
no proxy is needed. That client costs three times as much CPU a request (docs/decisions/0027).

This client does not bound concurrency; each writer does (binder, events, status). A bound here would let slow Bindings delay a Lease
renewal. A limit on requests a second is optional, and watches do not count. The class of a request (`sending`) decides how soon it gets its
token. A less important class waits while the server refuses more important requests (`ratelimit.Pacing`).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

import aiohttp
import msgspec

from placewright.api.decode import decode
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.connectionpool import ConnectionPool, reaches
from placewright.kube.errors import (
    AWAY,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
    ApiError,
    AwayNotice,
    RequestError,
    Unreachable,
    error_from_answer,
)
from placewright.kube.guarded import GuardedBody, GuardedPayload, GuardedRequests
from placewright.kube.keptconnection import REFUSED_FROM, AnswerLost, KeptConnection, NotSent, probing_socket
from placewright.kube.ratelimit import Pacing, TokenBucket, Traffic
from placewright.kube.requesttext import RequestText

T = TypeVar("T")


#: An object to encode as JSON, ready JSON text, or a guarded body.
WrittenBody = bytes | GuardedBody | Mapping[str, Any] | msgspec.Struct | list[Any]
Body = WrittenBody | None
Params = Mapping[str, str]

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
NO_PARAMS: Final[Params] = {}

USER_AGENT: Final = "placewright"
#: Bytes of a watch that are decoded in one turn of the event loop. The reader must catch up before more are taken from the socket.
_READ_BUFFER: Final = 2**17


class RequestListener(Protocol):
    """Is told about requests, such as metrics. Called in the event loop; must return quickly."""

    def answered(self, method: str, status: int | None) -> None:
        """Note that an answer began, of a watch, too.

        Args:
            method: HTTP method.
            status: HTTP status; None when the server did not answer.
        """

    def ended(self, method: str, waited: float, took: float) -> None:
        """Note that a request ended; not called for watches.

        Args:
            method: HTTP method.
            waited: seconds that it waited for a token.
            took: seconds from then to its end.
        """


class ApiClient:
    """Sends requests to one API server over kept-alive connections.

    Every request method takes a path such as `/api/v1/nodes`. It raises `ApiError` when the server refuses, and `Unreachable` when no
    answer comes. Use it inside a running event loop, and close it:

        async with ApiClient(load_config()) as client:
            nodes = await client.get("/api/v1/nodes", {"limit": "500"})

    Attributes:
        access, away: see the arguments.
        traffic: class of this client's requests.
        pacing: decides when a request may be sent; shared by all clients that `sending` made.
        guarded: the guarded requests under way; shared like `pacing`.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        timeout: float = 30.0,
        user_agent: str = USER_AGENT,
        limit: TokenBucket | None = None,
        listeners: Sequence[RequestListener] = (),
        away: AwayNotice | None = None,
        outlive: float = math.inf,
    ) -> None:
        """Open no connection yet.

        Args:
            access: address of the server and our credentials.
            timeout: seconds for a whole request, connecting included. A stream has the limit that its caller gives.
            user_agent: the User-Agent header.
            limit: tokens that bound requests a second; None for no bound.
            listeners: are told about every request.
            away: logs once when the server stops answering and once when it answers again; made here if None.
            outlive: seconds that a guarded request may stay under way after it ceased to be allowed. The kernel, too, gives up delivering
                its bytes after that time. So a machine that was suspended or cut off sends nothing late.
        """
        self.access = access
        self.away = away or AwayNotice(access.server)
        self._listeners = listeners
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 10.0))
        self._text = RequestText(access, user_agent)
        self.pacing = Pacing(limit)
        self.traffic = Traffic.ORDINARY
        unacknowledged = 0.0 if outlive == math.inf else outlive
        # No bound on connections: each writer bounds its own requests, and a Lease renewal must not wait behind them.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60.0, socket_factory=partial(probing_socket, unacknowledged))
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True, read_bufsize=_READ_BUFFER)
        self._seconds = timeout
        self._pool = ConnectionPool(access, self.away.clock, unacknowledged) if reaches(access) else None
        self._outlive = outlive
        self.guarded = GuardedRequests(outlive)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def sending(self, traffic: Traffic) -> Self:
        """Return this client for requests of another class.

        Args:
            traffic: class of the requests.

        Returns:
            A copy that shares connections, credentials and pacing. Close only the original.
        """
        other = copy(self)
        other.traffic = traffic
        return other

    async def close(self) -> None:
        """Close all connections. Requests under way fail."""
        if self._pool is not None:
            await self._pool.close()
        await self._session.close()

    async def get(self, path: str, params: Params = NO_PARAMS) -> bytes:
        """Return the JSON text at a path.

        Args:
            path: such as `/api/v1/nodes`.
            params: the query.

        Raises:
            RequestError: the server refused, or no whole answer came.
        """
        return await self.request("GET", path, params=params)

    async def date(self, path: str = "/version") -> str:
        """Read the server's clock from the header Date (RFC 9110).

        Args:
            path: any path that this client may read.

        Returns:
            The header, in whole seconds; empty when the answer has none.

        Raises:
            RequestError: the server refused, or no answer came.
        """
        async with self._send("GET", path, NO_PARAMS, None, JSON, self._timeout) as answer:
            return str(answer.headers.get("Date", ""))

    async def get_as(self, path: str, kind: type[T], params: Params = NO_PARAMS) -> T:
        """Return the decoded answer at a path.

        Args:
            path: such as `/api/v1/nodes`.
            kind: type to decode into.
            params: the query.

        Raises:
            RequestError: the server refused, or no whole answer came.
            DecodeError: the answer does not have the shape of `kind`.
        """
        return decode(await self.get(path, params), kind)

    async def post(self, path: str, body: Body, params: Params = NO_PARAMS) -> bytes:
        """Return the created object's JSON text; see `request`.

        Args:
            path: the collection.
            body: the object.
            params: the query.
        """
        return await self.request("POST", path, body, params=params)

    async def put(self, path: str, body: Body, params: Params = NO_PARAMS, content_type: str = JSON) -> bytes:
        """Replace an object, and only the version that `metadata.resourceVersion` names (else 409); see `request`.

        Args:
            path: the object.
            body: the new object.
            params: the query.
            content_type: encoding of the body.

        Returns:
            The answer's JSON text: the object as it is now.
        """
        return await self.request("PUT", path, body, params=params, content_type=content_type)

    async def patch(self, path: str, body: Body, params: Params = NO_PARAMS, content_type: str = MERGE_PATCH) -> bytes:
        """Change parts of an object; see `request`.

        Args:
            path: the object, or a subresource of it.
            body: the patch.
            params: the query.
            content_type: kind of patch, such as `MERGE_PATCH`.

        Returns:
            The answer's JSON text: the object as it is now.
        """
        return await self.request("PATCH", path, body, params=params, content_type=content_type)

    async def delete(self, path: str, body: Body = None, params: Params = NO_PARAMS) -> bytes:
        """Return the JSON text of a deletion's answer, a Status or the object that is being deleted; see `request`.

        Args:
            path: the object.
            body: DeleteOptions, such as a precondition on the uid; None for the defaults.
            params: the query.
        """
        return await self.request("DELETE", path, body, params=params)

    async def request(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        params: Params = NO_PARAMS,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        """Send one request and read the whole answer. Nothing is sent twice.

        Args:
            method: HTTP method.
            path: such as `/api/v1/nodes`; printable ASCII without blanks.
            body: JSON text, an object to encode, or a guarded body.
            params: the query.
            content_type: encoding of the body.
            accept: encodings that the caller reads.

        Returns:
            The answer's body.

        Raises:
            ApiError: the server refused.
            Unreachable: no whole answer came, or the guarded body was not allowed any more. A write may have been carried out.
        """
        data = body if body is None or isinstance(body, GuardedBody) else GuardedBody(body)
        return await self._paced(method, lambda: self._read(method, path, params, data, content_type, accept))

    async def write(self, method: str, path: str, body: WrittenBody, content_type: str = JSON) -> None:
        """Send one request and read only whether it succeeded. It costs a third of `request`.

        Nothing is sent twice. After `Unreachable` the server may have carried the write out: the caller has to look.

        Args:
            method: HTTP method.
            path: such as `/api/v1/namespaces/web/pods/web-0/binding`.
            body: JSON text, an object to encode, or a guarded body.
            content_type: encoding of the body.

        Raises:
            ApiError: the server refused.
            Unreachable: no whole answer came, or the guarded body was not allowed any more.
        """
        data = body if isinstance(body, GuardedBody) else GuardedBody(body)
        await self._paced(method, lambda: self._write(method, path, data, content_type))

    @asynccontextmanager
    async def stream(self, path: str, params: Params, *, limit: float) -> AsyncIterator[aiohttp.StreamReader]:
        """Read the body of a GET as it comes, such as a watch.

        Args:
            path: the collection.
            params: the query.
            limit: seconds after which the stream ends with `Unreachable`.

        Yields:
            The body's bytes.

        Raises:
            ApiError: the server refused.
            Unreachable: no answer came, or its body broke off.
        """
        timeout = aiohttp.ClientTimeout(total=limit, sock_connect=10.0)
        async with self._send("GET", path, params, None, JSON, timeout) as answer:
            yield answer.content

    async def _paced(self, method: str, send: Callable[[], Awaitable[T]]) -> T:
        """Send a request when it may be sent, and tell the listeners how long it took."""
        asked = self.away.clock()
        await self.pacing.wait(self.traffic)
        sent = self.away.clock()
        try:
            return await send()
        finally:
            for listener in self._listeners:
                listener.ended(method, sent - asked, self.away.clock() - sent)

    def _answered(self, method: str, status: int | None) -> None:
        for listener in self._listeners:
            listener.answered(method, status)

    async def _read(self, method: str, path: str, params: Params, data: GuardedBody | None, content_type: str, accept: str = JSON) -> bytes:
        async with (
            self.guarded.ending(f"{method} {path}", data),
            self._send(method, path, params, data, content_type, self._timeout, accept) as answer,
        ):
            return await answer.read()

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        params: Params,
        data: GuardedBody | None,
        content_type: str,
        limit: aiohttp.ClientTimeout,
        accept: str = JSON,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        await self.access.refresh_when_due()
        answered = False
        asked = self.away.clock()
        try:
            async with self._session.request(
                method,
                self._text.url(path, params),
                data=None if data is None else GuardedPayload(data),
                headers=self._text.headers(None if data is None else content_type, accept),
                timeout=limit,
                ssl=self.access.tls,
                proxy=self.access.proxy,
                server_hostname=self.access.tls_server_name,
                allow_redirects=False,
            ) as answer:
                self._answered(method, answer.status)
                if answer.status >= REFUSED_FROM:
                    raise self._refusal(answer.status, await answer.read(), answer.headers.get("Retry-After"), asked)
                self.away.answered(asked)
                answered = True
                yield answer
        except RequestError:
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if data is not None and data.withheld:
                raise Unreachable(_withheld(method, path)) from error
            lost = Unreachable(f"{method} {path}: {_in_words(error)}")
            # Only a missing answer means that the server is away: a watch that breaks off is ordinary.
            if not answered:
                self._answered(method, None)
                self.away.failed(lost)
            raise lost from error

    async def _write(self, method: str, path: str, data: GuardedBody, content_type: str) -> None:
        await self.access.refresh_when_due()
        connection = None if self._pool is None else await self._pool.take()
        if self._pool is None or connection is None:
            await self._read(method, path, NO_PARAMS, data, content_type)
            return
        try:
            request = self._text.whole(method, path, data.data, content_type)
            with self.guarded.aborted_by(connection.abort, data):
                await self._exchange(connection, method, path, request, data)
        finally:
            self._pool.give_back(connection)

    async def _exchange(self, connection: KeptConnection, method: str, path: str, request: bytes, data: GuardedBody) -> None:
        asked = self.away.clock()
        try:
            answer = await connection.exchange(request, self._seconds, data.wanted, self._outlive, data.allowed)
        except NotSent:
            raise Unreachable(_withheld(method, path)) from None
        except AnswerLost as error:
            lost = Unreachable(f"{method} {path}: {error}")
            self._answered(method, error.status)
            # Only a missing answer means that the server is away. This one broke off, or we gave it up.
            if error.status is None and not error.given_up:
                self.away.failed(lost)
            raise lost from error
        self._answered(method, answer.status)
        if answer.status >= REFUSED_FROM:
            raise self._refusal(answer.status, answer.body, answer.retry_after, asked)
        self.away.answered(asked)

    def _refusal(self, status: int, body: bytes, retry_after: str | None, asked: float) -> ApiError:
        """Build the error, and tell credentials, pacing and the away notice about it."""
        error = error_from_answer(status, body, retry_after)
        if status == UNAUTHORIZED:
            self.access.rejected()
        # A webhook's 429 is about its object: holding other classes back for it would let one tenant slow down all (docs/decisions/0032).
        if status == TOO_MANY_REQUESTS and not error.of_a_webhook:
            self.pacing.refused(self.traffic, error.retry_after)
        if status in AWAY:
            self.away.failed(error)
        else:
            self.away.answered(asked)
        return error


def _withheld(method: str, path: str) -> str:
    return f"{method} {path}: not sent, as it was not allowed any more"


def _in_words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer broke off"
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        # Errors of name resolution have a negative number, or none, and say in words what is wrong.
        why = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
        return f"Cannot connect to host {error.host}:{error.port}: {why}"
    # aiohttp tells the TLS settings as an object of Python.
    return re.sub(r" ssl:(<[^>]*>|\S+)", "", str(error)) or type(error).__name__
