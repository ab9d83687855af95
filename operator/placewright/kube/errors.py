"""Errors of requests to the API server: it refused (`ApiError`), or it did not answer (`Unreachable`)."""

from __future__ import annotations

from typing import Final

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
