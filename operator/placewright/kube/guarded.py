"""Requests that may be sent, and be under way, only while somebody allows it: what only the active replica may write.

A request that left in time may be carried out late: when its sender is not the active replica any more, and another one has decided about
the same room. So when the lead is lost, what is under way is aborted, and nobody waits for that moment alone: each guarded request asks
for itself, more often than the time in which another replica can take over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec

from placewright.kube.errors import Unreachable
from placewright.kube.keptconnection import NOT_WANTED


class GuardedBody:
    """A request's body, JSON or bytes as they are, that is written only while it is allowed. For one request.

    Between asking whether a request may be sent and sending it lie waiting for a turn, a connection and its TLS: time enough to lose the
    lead, or to stand still for minutes on a machine that hangs. So it is asked again when the bytes are about to be written. Without its
    body a request is not complete, and the server does nothing.

    For as long as the answer is waited for it stays a question, too (`GuardedRequests`).

    Attributes:
        data: what is to be written.
        withheld: whether it was not written, as it was not allowed any more.
    """

    __slots__ = ("_allowed", "data", "withheld")

    def __init__(self, body: Mapping[str, Any] | bytes, allowed: Callable[[], bool]) -> None:
        self.data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.withheld = False
        self._allowed = allowed

    def allowed(self) -> bool:
        """Whether it may be written now; where it may not, it is withheld for good."""
        self.withheld = self.withheld or not self._allowed()
        return not self.withheld

    def wanted(self) -> bool:
        """Whether the answer is still waited for; says nothing about what has been written."""
        return self._allowed()


class GuardedRequests:
    """Those of one client that are under way. A request ends once its body is not allowed any more; its outcome is then unknown."""

    def __init__(self, outlive: float) -> None:
        """`outlive`: how long a request may be under way after it ceased to be allowed, where nobody says so, in seconds."""
        self.outlive = outlive
        self._abort: dict[GuardedBody, Callable[[], None]] = {}

    def abort_unwanted(self) -> None:
        """End those that are not allowed any more."""
        for body, abort in tuple(self._abort.items()):
            if not body.wanted():
                abort()

    @contextmanager
    def aborted_by(self, abort: Callable[[], None], body: bytes | GuardedBody) -> Iterator[None]:
        """What is inside is ended by `abort`; it asks for itself whether it is wanted."""
        if not isinstance(body, GuardedBody):
            yield
            return
        self._abort[body] = abort
        try:
            yield
        finally:
            self._abort.pop(body, None)

    @asynccontextmanager
    async def ending(self, what: str, body: bytes | GuardedBody | None) -> AsyncIterator[None]:
        """What is inside ends with `Unreachable` when its body is not allowed any more; asked for it again and again."""
        if not isinstance(body, GuardedBody):
            yield
            return
        loop = asyncio.get_running_loop()
        looking: asyncio.TimerHandle | None = None
        try:
            async with asyncio.timeout(None) as scope:

                def abort() -> None:
                    if self._abort.pop(body, None) is not None:  # a scope that ends cannot be ended again
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
