"""When to ask again, and when to say that nobody answers.

Delays grow exponentially with full jitter (uniform between 0 and the bound), so that a thousand waiting callers do not come back together.
A server's `Retry-After` is a lower bound that is always obeyed.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from placewright.kube.errors import ApiError, RequestError

T = TypeVar("T")
#: Waits that many seconds; `asyncio.sleep` but in tests.
Sleep = Callable[[float], Awaitable[None]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryBackoff:
    """Exponential backoff with full jitter.

    Attributes:
        initial: bound of the first delay, seconds.
        maximum: bound of any delay, seconds.
        factor: growth from one attempt to the next.
        uniform: draws from [0, 1).
    """

    initial: float = 0.2
    maximum: float = 30.0
    factor: float = 2.0
    uniform: Callable[[], float] = random.random

    def delay(self, attempt: int, error: RequestError | None = None) -> float:
        """Seconds to wait after failure number `attempt` (from 0); never less than the error's `Retry-After`."""
        bound = min(self.maximum, self.initial * self.factor ** min(attempt, 32))
        asked = error.retry_after if isinstance(error, ApiError) and error.retry_after else 0.0
        # The jitter comes on top of what the server asked for: everybody was asked for the same.
        return asked + bound * self.uniform()


@dataclass(slots=True)
class AwayNotice:
    """Says once that the API server is away, and once that it is back.

    Attributes:
        server: its address, for the message.
        clock: monotonic seconds.
        away_since: when the first of the current failures happened, None while it answers.
    """

    server: str
    clock: Callable[[], float] = time.monotonic
    away_since: float | None = field(default=None)

    def failed(self, error: RequestError) -> None:
        """A request got no answer, or one that only a failing server gives."""
        if self.away_since is None:
            self.away_since = self.clock()
            _log.warning("API server %s is away: %s; nothing is lost, trying on", self.server, error, extra={"about": self.server})

    def answered(self, asked: float | None = None) -> None:
        """A request was answered; `asked` is when it was sent: an answer to what was asked before the server went away proves nothing."""
        if self.away_since is not None and (asked is None or asked > self.away_since):
            away = self.clock() - self.away_since
            _log.warning("API server %s is back after %.1f s", self.server, away, extra={"about": self.server})
            self.away_since = None


async def until_answered(call: Callable[[], Awaitable[T]], backoff: RetryBackoff, sleep: Sleep = asyncio.sleep) -> T:
    """Repeat `call` while the server is away or overloaded; other `ApiError`s pass through."""
    return await with_retries(call, sys.maxsize, backoff, sleep)


async def with_retries(
    call: Callable[[], Awaitable[T]], attempts: int, backoff: RetryBackoff, sleep: Sleep = asyncio.sleep
) -> T:
    """Repeat `call` at most `attempts` times in all while its errors are temporary; the last error is raised.

    Only for what may be done twice: an answer that got lost does not mean that nothing happened.
    """
    for attempt in range(attempts - 1):
        try:
            return await call()
        except RequestError as error:
            if not error.temporary:
                raise
            await sleep(backoff.delay(attempt, error))
    return await call()
