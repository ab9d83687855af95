"""Errors of requests to the API server: it refused (`ApiError`), or it did not answer (`Unreachable`).

`RetryBackoff` has the delays before a repetition, and `AwayNotice` the log lines that say that the API server is away.

Delays grow exponentially with full jitter (uniform between 0 and the bound). So a thousand waiting callers do not come back together. A
server's `Retry-After` is a lower bound of the delay.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from placewright.api.bad_input import InputError
from placewright.api.decode import DECODE_ERRORS

CONFLICT: Final = 409
GONE: Final = 410
INVALID: Final = 422
TOO_MANY_REQUESTS: Final = 429
NOT_FOUND: Final = 404
BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
UNAUTHORIZED: Final = 401
#: Beginning of the API server's message about an object that a webhook denied.
_BY_A_WEBHOOK: Final = 'admission webhook "'
#: Statuses of proxies and starting servers: no API server has handled the request.
AWAY: Final = frozenset({502, 503, 504})


class ConfigError(InputError):
    """The configuration names no reachable cluster. The message is one line: the file, the value found, the values allowed."""


class RequestError(Exception):
    """A request failed. Base of `ApiError` and `Unreachable`.

    Attributes:
        temporary: True when the same request may succeed later.
    """

    temporary = False


class Unreachable(RequestError):
    """The server did not answer, or its answer broke off. A write may have been carried out all the same."""

    temporary = True


class ApiError(RequestError):
    """The server answered with an error.

    Attributes:
        status: HTTP status.
        reason: Kubernetes' word for it, such as `AlreadyExists`.
        message: the server's sentence.
        retry_after: seconds the server asked to wait, 0 when it did not.
        temporary: True for 429 and 5xx: the same request may succeed later.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.temporary = status == TOO_MANY_REQUESTS or status >= 500

    @property
    def of_a_webhook(self) -> bool:
        """True when an admission webhook refused the object. Such a refusal says nothing about the load of the API server.

        The API server puts the words `admission webhook "` before every webhook's message. Status and Retry-After come from the webhook.
        """
        return self.message.startswith(_BY_A_WEBHOOK)

    @property
    def gone_or_replaced(self) -> bool:
        """True when the object is gone, or when another object has its name now. A patch that names the old uid then gets 422."""
        return self.status in (NOT_FOUND, CONFLICT) or (self.status == INVALID and "metadata.uid" in self.message)


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: float | None = None


class _Status(msgspec.Struct, rename="camel"):
    reason: str | None = None
    message: str | None = None
    code: int | None = None
    details: _Details | None = None


_DECODER: Final = msgspec.json.Decoder(_Status)
_LONGEST_MESSAGE: Final = 2000


def error_from_answer(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Build an `ApiError` from an answer.

    The body is a Kubernetes Status, or the text of a proxy in between. A message is cut to 2,000 characters: it goes into logs and
    conditions.

    Args:
        status: HTTP status; 0 takes the code of the Status.
        body: the answer's body; text that is no Status is quoted, up to 200 bytes of it.
        retry_after: the header `Retry-After`, None without one.

    Returns:
        The error. Its `retry_after` is the larger of header and Status, in seconds, at most 300: no server may stop a writer for longer.
    """
    try:
        parsed = _DECODER.decode(body)
    except DECODE_ERRORS:
        parsed = _Status(message=body[:200].decode("utf-8", "replace").strip() or "no message")
    seconds = _seconds(retry_after)
    if parsed.details is not None and parsed.details.retry_after_seconds:
        seconds = max(seconds, parsed.details.retry_after_seconds)
    message = (parsed.message or "no message")[:_LONGEST_MESSAGE]
    return ApiError(status or parsed.code or 0, parsed.reason or "", message, min(max(seconds, 0.0), 300.0))


def _seconds(header: str | None) -> float:
    # The header may also be a date; API servers never send one.
    digits = (header or "").strip()
    return float(digits) if digits.isascii() and digits.isdigit() else 0.0


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
