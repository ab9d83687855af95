"""One HTTP client for one API server: bare aiohttp, keep-alive, no retries.

Writes of whose answer nobody reads more than whether they succeeded (`write`: Bindings, events) are most of what is sent. They go past
aiohttp's client where the server is reached plainly, because it spends more on each of them than everything else together.

Bounds on concurrency belong to those who ask (binder, events, status): a limit here would make a Lease renewal wait behind slow binds.
A limit on requests a second is there for those who ask for one; watches do not count. What a request is for (`sending`) says how soon it
gets its token, and whether it stands aside while the server refuses others (`ratelimit.Pacing`).
"""

from __future__ import annotations

import math
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from placewright.api.bad_input import shown
from placewright.api.decode import decode
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.connectionpool import CannotConnect, ConnectionPool, reaches
from placewright.kube.errors import (
    AWAY,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
    ApiError,
    RequestError,
    Unreachable,
    error_from_answer,
)
from placewright.kube.guarded import GuardedBody, GuardedRequests
from placewright.kube.keptconnection import REFUSED_FROM, AnswerLost, KeptConnection, probe
from placewright.kube.ratelimit import Pacing, TokenBucket, Traffic
from placewright.kube.retry import AwayNotice

T = TypeVar("T")


class _GuardedPayload(aiohttp.BytesPayload):
    """A guarded body as aiohttp writes it."""

    def __init__(self, body: GuardedBody) -> None:
        super().__init__(body.data)
        self._body = body

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """For aiohttp: write it, or break the connection off."""
        if not self._body.allowed():
            raise ConnectionAbortedError("not allowed any more")
        await super().write_with_length(writer, content_length)


#: A JSON-able body, ready JSON text, or one that is sent only while it is allowed.
Body = bytes | GuardedBody | Mapping[str, Any] | msgspec.Struct | list[Any] | None
Params = Mapping[str, str]

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
NO_PARAMS: Final[Params] = {}

USER_AGENT: Final = "placewright"
_BAD_REQUEST: Final = 400
#: Watch data taken from the socket before the reader must catch up, bytes; also what is decoded in one go of the event loop.
_READ_BUFFER: Final = 2**17


class RequestListener(Protocol):
    """Hears of requests; must be quick."""

    def answered(self, method: str, status: int | None) -> None:
        """An answer begins, of a watch, too; None: there was none."""

    def ended(self, method: str, waited: float, took: float) -> None:
        """A request is over, whatever came of it; it `waited` for its turn and then `took`, seconds. Not said of watches."""


class ApiClient:
    """Requests to one API server, over kept-alive connections.

    Every method takes a path such as `/api/v1/nodes` and raises `ApiError` when the server refuses, `Unreachable` when nobody answers.
    To be used inside a running event loop, and closed.

    Attributes:
        access: where the server is and who we are.
        away: whether the server answers, said once each way.
        traffic: what its requests are for.
        pacing: when they may be sent; shared with all that `sending` made.
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
        """Open nothing yet.

        Args:
            access: where the server is and who we are.
            timeout: seconds for a whole request, connecting included; streams have none of their own.
            user_agent: how requests name us.
            limit: of requests a second.
            listeners: hear of every request.
            away: says that the server does not answer, once each way.
            outlive: how long a guarded request may be under way after it ceased to be allowed, in seconds. The system, too, delivers what
                was written for no longer than that, so that a machine that stands still or is cut off sends nothing late.
        """
        self.access = access
        self.away = away or AwayNotice(access.server)
        self._listeners = listeners
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 10.0))
        self._user_agent = user_agent
        self.pacing = Pacing(limit)
        self.traffic = Traffic.ORDINARY
        # Parsed once; a path in the server's URL, as gateways to several clusters have it, goes before ours.
        self._base = URL(access.server)
        self._prefix = self._base.raw_path.rstrip("/")
        unacknowledged = 0.0 if outlive == math.inf else outlive
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60.0, socket_factory=partial(_probing_socket, unacknowledged))
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True, read_bufsize=_READ_BUFFER)
        self._seconds = timeout
        #: Headers that all writes have alike, with the credentials that they are for.
        self._head = ("", "")
        self._pool = ConnectionPool(access, self.away.clock, unacknowledged) if reaches(access) else None
        self._outlive = outlive
        self._guarded = GuardedRequests(outlive)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def sending(self, traffic: Traffic) -> Self:
        """The same client for requests of that class, with the same connections; only the first one is to be closed."""
        other = copy(self)
        other.traffic = traffic
        return other

    def abort_unwanted(self) -> None:
        """End the guarded requests under way that are not allowed any more: `Unreachable`, as nobody knows what the server did."""
        self._guarded.abort_unwanted()

    def while_allowed(self, what: str, allowed: Callable[[], bool]) -> AbstractAsyncContextManager[None]:
        """What is inside ends as a guarded request does, with `Unreachable`: for what goes elsewhere than to the API server."""
        return self._guarded.ending(what, GuardedBody(b"", allowed))

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        if self._pool is not None:
            await self._pool.close()
        await self._session.close()

    async def get(self, path: str, params: Params = NO_PARAMS) -> bytes:
        """The answer's JSON text."""
        return await self.request("GET", path, params=params)

    async def date(self, path: str = "/version") -> str:
        """The server's time as an answer's header tells it, in whole seconds (RFC 9110); empty where it does not."""
        async with self._send("GET", path, NO_PARAMS, None, JSON, self._timeout) as answer:
            return str(answer.headers.get("Date", ""))

    async def get_in(self, media_type: str, path: str) -> bytes:
        """The answer in another form than JSON, from servers that have it."""
        return await self.request("GET", path, accept=f"{media_type}, {JSON};q=0.5")

    async def get_as(self, path: str, kind: type[T], params: Params = NO_PARAMS) -> T:
        """The answer decoded into `kind`; raises `DecodeError` too."""
        return decode(await self.get(path, params), kind)

    async def post(self, path: str, body: Body, params: Params = NO_PARAMS) -> bytes:
        """Create."""
        return await self.request("POST", path, body, params=params)

    async def put(self, path: str, body: Body, params: Params = NO_PARAMS, content_type: str = JSON) -> bytes:
        """Replace; with `metadata.resourceVersion` in the body, only what was read."""
        return await self.request("PUT", path, body, params=params, content_type=content_type)

    async def patch(
        self, path: str, body: Body, params: Params = NO_PARAMS, content_type: str = MERGE_PATCH
    ) -> bytes:
        """Change parts; `content_type` says which kind of patch."""
        return await self.request("PATCH", path, body, params=params, content_type=content_type)

    async def delete(self, path: str, body: Body = None, params: Params = NO_PARAMS) -> bytes:
        """Delete; `body` may be DeleteOptions."""
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
        """Send one request and read the whole answer."""
        data = body if body is None or isinstance(body, (bytes, GuardedBody)) else msgspec.json.encode(body)
        asked = self.away.clock()
        await self.pacing.turn(self.traffic)
        sent = self.away.clock()
        try:
            async with self._guarded.ending(f"{method} {path}", data), self._send(
                method, path, params, data, content_type, self._timeout, accept
            ) as answer:
                return await answer.read()
        finally:
            for listener in self._listeners:
                listener.ended(method, sent - asked, self.away.clock() - sent)

    async def write(self, method: str, path: str, body: Body, content_type: str = JSON) -> None:
        """Send one request of whose answer nobody reads more than whether it succeeded.

        It costs a fraction of `request`. A connection that the server closes while the request is on its way is `Unreachable`, like all
        else after which nobody knows what the server did: nothing is sent twice here.
        """
        data = body if isinstance(body, (bytes, GuardedBody)) else msgspec.json.encode(body)
        asked = self.away.clock()
        await self.pacing.turn(self.traffic)
        sent = self.away.clock()
        try:
            await self._write(method, path, data, content_type)
        finally:
            for listener in self._listeners:
                listener.ended(method, sent - asked, self.away.clock() - sent)

    @asynccontextmanager
    async def stream(self, path: str, params: Params, *, limit: float) -> AsyncIterator[aiohttp.StreamReader]:
        """The body of a GET as it comes, for at most `limit` seconds. Errors while reading are raised as `Unreachable`."""
        timeout = aiohttp.ClientTimeout(total=limit, sock_connect=10.0)
        async with self._send("GET", path, params, None, JSON, timeout) as answer:
            yield answer.content

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        params: Params,
        data: bytes | GuardedBody | None,
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
                self._url(path, params),
                data=_GuardedPayload(data) if isinstance(data, GuardedBody) else data,
                headers=self._headers(data, content_type, accept),
                timeout=limit,
                ssl=self.access.tls,
                proxy=self.access.proxy,
                server_hostname=self.access.tls_server_name,
                allow_redirects=False,
            ) as answer:
                for listener in self._listeners:
                    listener.answered(method, answer.status)
                await self._raise_for(answer, asked)
                self.away.answered(asked)
                answered = True
                yield answer
        except RequestError:
            raise
        except (aiohttp.ClientError, TimeoutError, OSError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and (answered or not _lost_its_descriptor(error)):
                raise
            if isinstance(data, GuardedBody) and data.withheld:
                raise Unreachable(_withheld(method, path)) from error
            lost = Unreachable(f"{method} {path}: {_in_words(error)}")
            # A body that breaks off, such as a watch's, says nothing about the server.
            if not answered:
                for listener in self._listeners:
                    listener.answered(method, None)
                self.away.failed(lost)
            raise lost from error

    async def _write(self, method: str, path: str, data: bytes | GuardedBody, content_type: str) -> None:
        connection = await self._connection()
        if connection is None:
            async with self._guarded.ending(f"{method} {path}", data), self._send(
                method, path, NO_PARAMS, data, content_type, self._timeout
            ) as answer:
                await answer.read()
            return
        assert self._pool is not None
        try:
            request = self._request_bytes(method, path, data, content_type)
            # Nothing comes between this question and the bytes.
            if isinstance(data, GuardedBody) and not data.allowed():
                raise Unreachable(_withheld(method, path))
            with self._guarded.aborted_by(connection.abort, data):
                await self._exchange(connection, method, path, request, data)
        finally:
            self._pool.give_back(connection)

    async def _connection(self) -> KeptConnection | None:
        """One for a request of our own making; None: aiohttp has to find the way."""
        await self.access.refresh_when_due()
        if self._pool is None:
            return None
        try:
            return await self._pool.take()
        except CannotConnect:
            return None

    async def _exchange(
        self, connection: KeptConnection, method: str, path: str, request: bytes, data: bytes | GuardedBody
    ) -> None:
        asked = self.away.clock()
        try:
            if isinstance(data, GuardedBody):
                answer = await connection.exchange(request, self._seconds, data.wanted, self._outlive)
            else:
                answer = await connection.exchange(request, self._seconds)
        except AnswerLost as error:
            lost = Unreachable(f"{method} {path}: {error}")
            for listener in self._listeners:
                listener.answered(method, error.status)
            # An answer that breaks off says nothing about the server, nor does one that is not waited for.
            if error.status is None and not error.given_up:
                self.away.failed(lost)
            raise lost from error
        for listener in self._listeners:
            listener.answered(method, answer.status)
        if answer.status >= REFUSED_FROM:
            raise self._refusal(answer.status, answer.body, answer.retry_after, asked)
        self.away.answered(asked)

    def _request_bytes(self, method: str, path: str, data: bytes | GuardedBody, content_type: str) -> bytes:
        body = data.data if isinstance(data, GuardedBody) else data
        line = f"{method} {self._prefix}{_checked(path)} HTTP/1.1\r\n"
        about = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return f"{line}{self._common_head()}{about}".encode() + body

    def _common_head(self) -> str:
        """The headers that all requests of our own making have alike, until the credentials change."""
        authorization = self.access.authorization
        if self._head[0] != authorization or not self._head[1]:
            headers = {"Host": self._base.host_port_subcomponent} | self._headers(None, "", JSON)
            self._head = authorization, "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return self._head[1]

    async def _raise_for(self, answer: aiohttp.ClientResponse, asked: float) -> None:
        if answer.status >= REFUSED_FROM:
            raise self._refusal(answer.status, await answer.read(), answer.headers.get("Retry-After"), asked)

    def _refusal(self, status: int, body: bytes, retry_after: str | None, asked: float) -> ApiError:
        """What the server said, after all who have to mind it know."""
        error = error_from_answer(status, body, retry_after)
        if status == UNAUTHORIZED:
            self.access.rejected()
        if status == TOO_MANY_REQUESTS and not error.of_a_webhook:
            self.pacing.refused(self.traffic, error.retry_after)
        if status in AWAY:
            self.away.failed(error)
        else:
            self.away.answered(asked)
        return error

    def _url(self, path: str, params: Params) -> URL:
        url = self._base.with_path(self._prefix + _checked(path), encoded=True)
        return url.with_query(params) if params else url

    def _headers(self, data: bytes | GuardedBody | None, content_type: str, accept: str) -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": self._user_agent}
        if data is not None:
            headers["Content-Type"] = content_type
        authorization = self.access.authorization
        if authorization:
            headers["Authorization"] = authorization
        return headers


def _checked(path: str) -> str:
    """The path, if a request line may hold it."""
    if not (path.isascii() and path.isprintable()) or " " in path:
        # Names come from the server; no API server lets such a one be.
        raise ApiError(_BAD_REQUEST, "BadRequest", f"not asked: {shown(path)} is no path")
    return path


def _withheld(method: str, path: str) -> str:
    return f"{method} {path}: not sent, as it was not allowed any more"


def _lost_its_descriptor(error: RuntimeError) -> bool:
    """Whether uvloop could not connect, because a connection that broke still holds the new socket's number. The next attempt may."""
    return "is used by transport" in str(error)


def _in_words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__


def _probing_socket(unacknowledged: float, address: Any) -> socket.socket:
    family, kind, protocol = address[:3]
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setblocking(False)
    probe(made, unacknowledged)
    return made
