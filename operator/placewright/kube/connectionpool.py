"""Kept connections for `ApiClient.write`: an idle one, else the first that becomes idle or is opened.

A caller that finds no idle connection waits for both, as in Go's client. So a quick server needs few connections, and a slow server gets as
many as there are requests under way. The writers bound that number.

aiohttp handles unusual ways to the server: a proxy, credentials in the address, several addresses. If this pool cannot open a connection
it gives none, and the request goes through aiohttp.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final

from yarl import URL

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.keptconnection import KeptConnection
from placewright.kube.tasks import cancelled

#: Connections opened at once. A handshake costs the client 0.7 ms of CPU, as much as twenty requests.
_OPENING: Final = 4
#: Time to open one connection, its TLS included, seconds.
_OPENING_SECONDS: Final = 5.0
#: Seconds without an attempt after a failure. Meanwhile requests go through aiohttp, which finds out whether the server is away.
_REST_SECONDS: Final = 5.0
#: Seconds until an idle connection is closed. API servers and load balancers keep theirs longer, so that we are the first to close. Each
#: connection takes about 0.3 MiB, so the ones of a burst go with it: kept for a minute, they were what grew with the rate of pods.
_KEPT_SECONDS: Final = 10.0

#: A caller that waits; it gets None if no connection can be opened.
_Turn = asyncio.Future[KeptConnection | None]


def reaches(access: ClusterAccess) -> bool:
    """Whether the pool can reach this server.

    Returns:
        True for plain TCP, or TLS if the address says so, without a proxy and without credentials in the address.
    """
    url = URL(access.server)
    usual = (url.scheme, isinstance(access.tls, ssl.SSLContext)) in (("https", True), ("http", False))
    return usual and access.proxy is None and bool(url.host) and not url.user and not url.password


class ConnectionPool:
    """Keeps connections to one API server. Use it inside one event loop, and close it."""

    def __init__(self, access: ClusterAccess, clock: Callable[[], float], unacknowledged: float = 0.0) -> None:
        """Open no connection yet.

        Args:
            access: read for its TLS context at every `take`, because certificates are replaced while we run.
            clock: monotonic seconds.
            unacknowledged: seconds; see `keptconnection.probe`.
        """
        self._access = access
        self._unacknowledged = unacknowledged
        self._clock = clock
        self._url = URL(access.server)
        #: A stack: the last used connection is used next, so that surplus connections stay idle and are closed.
        self._idle: list[KeptConnection] = []
        self._busy: set[KeptConnection] = set()
        self._waiting: deque[_Turn] = deque()
        self._opening: set[asyncio.Task[None]] = set()
        self._not_before = 0.0
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def take(self) -> KeptConnection | None:
        """Take a connection, or wait for one. Give it back with `give_back`.

        Returns:
            A connection that may carry a request now. None if none could be opened, the last attempt failed less than 5 seconds ago, or the
            pool is closed.
        """
        while self._idle:
            connection = self._idle.pop()
            if self._good(connection):
                self._busy.add(connection)
                return connection
            connection.close()
        if self._closed or self._clock() < self._not_before:
            return None
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._open_more()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and (given := turn.result()) is not None:
                self.give_back(given)
            raise

    def give_back(self, connection: KeptConnection) -> None:
        """Hand the connection to the first waiting caller, or keep it idle.

        Args:
            connection: one that `take` returned. It is closed if it is broken, or was opened with earlier certificates.
        """
        self._busy.discard(connection)
        if self._closed or not self._good(connection):
            connection.close()
        elif (turn := self._next()) is not None:
            self._busy.add(connection)
            turn.set_result(connection)
        else:
            connection.idle_since = self._clock()
            self._idle.append(connection)
            self._sweep_later()

    async def close(self) -> None:
        """Close all connections. Requests under way fail."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        await cancelled(*self._opening)
        self._refuse()
        for connection in (*self._idle, *self._busy):
            connection.close()
        self._idle.clear()

    def _good(self, connection: KeptConnection) -> bool:
        """Return whether a connection is usable and was opened with the current certificates."""
        return connection.usable and connection.tls is self._tls()

    def _tls(self) -> ssl.SSLContext | None:
        return self._access.tls if isinstance(self._access.tls, ssl.SSLContext) else None

    def _next(self) -> _Turn | None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                return turn
        return None

    # --- opening ---------------------------------------------------------------------------------------------------------------

    def _open_more(self) -> None:
        while len(self._opening) < min(_OPENING, len(self._waiting)):
            task = asyncio.get_running_loop().create_task(self._open(), name="connection to the API server")
            self._opening.add(task)

    async def _open(self) -> None:
        try:
            connection = await self._opened()
        except MemoryError:
            raise
        except BaseException as problem:
            # Any error releases every waiting request: aiohttp finds another way, or names the problem.
            self._not_before = self._clock() + _REST_SECONDS
            self._refuse()
            if not isinstance(problem, Exception):
                raise
        else:
            self.give_back(connection)
        finally:
            self._opening -= {asyncio.current_task()}
        if not self._closed:
            self._open_more()

    async def _opened(self) -> KeptConnection:
        loop, tls = asyncio.get_running_loop(), self._tls()
        host, port = self._url.host or "", self._url.port or 0
        expected = None if tls is None else self._access.tls_server_name or host.rstrip(".")
        async with asyncio.timeout(_OPENING_SECONDS):
            _, connection = await loop.create_connection(
                lambda: KeptConnection(loop, tls, self._unacknowledged), host, port, ssl=tls, server_hostname=expected
            )
        return connection

    def _refuse(self) -> None:
        """Let every waiting `take` return None."""
        while (turn := self._next()) is not None:
            turn.set_result(None)

    # --- growing old -----------------------------------------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(_KEPT_SECONDS / 2, self._close_old)

    def _close_old(self) -> None:
        self._sweep, old = None, self._clock() - _KEPT_SECONDS
        kept = [each for each in self._idle if each.idle_since > old and self._good(each)]
        for connection in self._idle:
            if connection not in kept:
                connection.close()
        self._idle = kept
        if kept:
            self._sweep_later()
