"""Delays before a repetition, and the log lines that say that the API server is away.

Delays grow exponentially with full jitter (uniform between 0 and the bound). So a thousand waiting callers do not come back together. A
server's `Retry-After` is a lower bound of the delay.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from placewright.kube.errors import ApiError, RequestError

T = TypeVar("T")
#: Waits so many seconds: `asyncio.sleep`, or a test's virtual clock.
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
        """Draw the delay after a failure.

        Args:
            attempt: number of the failure, from 0.
            error: the failure; its `Retry-After` is added.

        Returns:
            Seconds to wait.
        """
        # The exponent is bounded because a float overflows after thousands of attempts.
        bound = min(self.maximum, self.initial * self.factor ** min(attempt, 32))
        asked = error.retry_after if isinstance(error, ApiError) and error.retry_after else 0.0
        # The jitter is added to Retry-After: the server asked all its clients to wait for the same time.
        return asked + bound * self.uniform()


@dataclass(slots=True)
class AwayNotice:
    """Logs once that the API server is away, and once that it is back.

    Attributes:
        server: its address, for the message.
        clock: monotonic seconds.
        away_since: time of the first of the current failures; None while the server answers.
        level: level of the log lines; `logging.NOTSET` logs none.
    """

    server: str
    clock: Callable[[], float] = time.monotonic
    away_since: float | None = None
    level: int = logging.WARNING

    def failed(self, error: RequestError) -> None:
        """Note that a request got no answer, or a status that only a failing server gives (502, 503, 504)."""
        if self.away_since is None:
            self.away_since = self.clock()
            words = "API server %s is away: %s; it is asked again, nothing is lost"
            _log.log(self.level, words, self.server, error, extra={"about": self.server})

    def answered(self, asked: float | None = None) -> None:
        """Note that a request was answered.

        Args:
            asked: when the request was sent; None for now. The answer to a request that was sent before the server went away proves
                nothing.
        """
        if self.away_since is not None and (asked is None or asked > self.away_since):
            away = self.clock() - self.away_since
            _log.log(self.level, "API server %s is back after %.1f s", self.server, away, extra={"about": self.server})
            self.away_since = None


async def until_answered(call: Callable[[], Awaitable[T]], backoff: RetryBackoff, sleep: Sleep = asyncio.sleep) -> T:
    """Repeat `call` while the server is away or overloaded, without an end.

    Args:
        call: sends one request; it may be carried out several times.
        backoff: waits between two attempts.
        sleep: waits so many seconds.

    Raises:
        ApiError: a refusal that a repetition does not change.
    """
    return await with_retries(call, sys.maxsize, backoff, sleep)


async def with_retries(call: Callable[[], Awaitable[T]], attempts: int, backoff: RetryBackoff, sleep: Sleep = asyncio.sleep) -> T:
    """Repeat `call` while its errors are temporary.

    Only for requests that may be carried out twice: a lost answer does not mean that nothing happened.

    Args:
        call: sends one request.
        attempts: number of times that `call` is made at most, 1 or more.
        backoff: waits between two attempts.
        sleep: waits so many seconds.

    Raises:
        RequestError: the last attempt failed, or an error is not temporary.
    """
    for attempt in range(attempts - 1):
        try:
            return await call()
        except RequestError as error:
            if not error.temporary:
                raise
            await sleep(backoff.delay(attempt, error))
    return await call()


async def until_set(event: asyncio.Event, seconds: float | None) -> None:
    """Wait for an event, but no longer than so many seconds.

    Args:
        event: to wait for.
        seconds: None for ever.
    """
    # Not `wait_for`: until Python 3.12 it can swallow a cancellation that comes together with the event.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
