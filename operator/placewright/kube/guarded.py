"""Guarded requests: only the active replica may send them, and they may be under way only while it is active.

A request that was sent in time may be carried out late: when its sender is not active any more and another replica has decided about the
same room on a node. So a lost lead aborts the requests under way. A process that hangs cannot do that. So each guarded request also asks
for itself, before another replica can have taken over (docs/decisions/0017).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter

from placewright.kube.errors import Unreachable
from placewright.kube.keptconnection import NOT_WANTED


def always() -> bool:
    """Allow every write, for requests that need no lead."""
    return True


class GuardedBody:
    """The body of one request, JSON or bytes, that is written only while it is allowed.

    Between the decision to send and the sending lie waits for a token, a connection and its TLS. The replica may lose the lead meanwhile,
    or the machine may hang for minutes. So `allowed` is asked again when the bytes are about to be written. A request without its body is
    not complete, and the server does nothing.

    While the answer is waited for, `GuardedRequests` asks on.

    Attributes:
        data: the bytes to write.
        withheld: True once the body was not written because it was not allowed any more.
    """

    __slots__ = ("_allowed", "data", "withheld")

    def __init__(self, body: Mapping[str, Any] | msgspec.Struct | list[Any] | bytes, allowed: Callable[[], bool] = always) -> None:
        self.data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.withheld = False
        self._allowed = allowed

    def allowed(self) -> bool:
        """Whether the body may be written now. Once it may not, it never may again."""
        self.withheld = self.withheld or not self._allowed()
        return not self.withheld

    def wanted(self) -> bool:
        """Whether the answer is still wanted. It says nothing about the bytes that were written."""
        return self._allowed()


class GuardedPayload(aiohttp.BytesPayload):
    """A guarded body as aiohttp writes it.

    Args:
        body: the guarded body, for one request.
    """

    def __init__(self, body: GuardedBody) -> None:
        super().__init__(body.data)
        self._body = body

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Write the body, unless it is not allowed any more. aiohttp calls this.

        Raises:
            ConnectionAbortedError: the body is not allowed any more; this breaks the connection off.
        """
        if not self._body.allowed():
            raise ConnectionAbortedError("not allowed any more")
        await super().write_with_length(writer, content_length)


class GuardedRequests:
    """The guarded requests of one client that are under way.

    A request ends once its body is not allowed any more; its outcome is unknown then.
    """

    def __init__(self, outlive: float) -> None:
        """Watch nothing yet.

        Args:
            outlive: seconds between two questions whether a request is still allowed.
        """
        self.outlive = outlive
        self._abort: dict[GuardedBody, Callable[[], None]] = {}

    def abort_unwanted(self) -> None:
        """Abort the requests that are not allowed any more."""
        for body, abort in tuple(self._abort.items()):
            if not body.wanted():
                abort()

    @contextmanager
    def aborted_by(self, abort: Callable[[], None], body: GuardedBody) -> Iterator[None]:
        """Abort a request on a connection that asks for itself whether the request is wanted."""
        self._abort[body] = abort
        try:
            yield
        finally:
            self._abort.pop(body, None)

    @asynccontextmanager
    async def ending(self, what: str, body: GuardedBody | None) -> AsyncIterator[None]:
        """End a block with `Unreachable` when its body is not allowed any more; asked every `outlive` seconds.

        Args:
            what: the request, for the message.
            body: body of the request; None never ends the block.

        Raises:
            Unreachable: the body is not allowed any more.
        """
        if body is None:
            yield
            return
        loop = asyncio.get_running_loop()
        looking: asyncio.TimerHandle | None = None
        try:
            async with asyncio.timeout(None) as scope:

                def abort() -> None:
                    if self._abort.pop(body, None) is not None:  # asyncio refuses to reschedule a scope that is ending
                        scope.reschedule(loop.time())

                def look() -> None:
                    nonlocal looking
                    if body.wanted():
                        looking = loop.call_later(self.outlive, look)
                    else:
                        abort()

                looking = loop.call_later(self.outlive, look)
                self._abort[body] = abort
                try:
                    yield
                finally:
                    self._abort.pop(body, None)
                    if looking is not None:
                        looking.cancel()
        except TimeoutError as error:
            raise Unreachable(f"{what}: {NOT_WANTED}") from error
