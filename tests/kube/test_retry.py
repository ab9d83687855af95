from __future__ import annotations

import logging

import pytest
from fake_api import FakeApi, answer, refuse

from placewright.kube.errors import ApiError, AwayNotice, RetryBackoff, Unreachable, error_from_answer, until_answered


def test_bounds_double_up_to_the_maximum_and_jitter_takes_from_the_whole_range() -> None:
    highest = RetryBackoff(1.0, 10.0, uniform=lambda: 1.0)
    assert [highest.delay(n) for n in range(6)] == [1, 2, 4, 8, 10, 10]
    assert RetryBackoff(1.0, 10.0, uniform=lambda: 0.0).delay(3) == 0
    assert highest.delay(10_000) == 10


def test_retry_after_is_a_lower_bound() -> None:
    assert RetryBackoff(1.0, 10.0, uniform=lambda: 0.0).delay(0, ApiError(429, "", "", retry_after=7)) == 7


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        ("5", b"{}", 5),
        (None, b'{"details":{"retryAfterSeconds":3}}', 3),
        ("soon", b"", 0),
        ("-5", b"", 0),
        ("9999999", b"", 300),
        ("\u00b2", b"", 0),  # a digit to Python, and no number
        ("\u0663", b"", 0),
        ("9" * 100_000, b"", 300),
        (None, b'{"x":' + b"[" * 100_000, 0),
    ],
)
def test_what_the_server_asks_for_is_read_and_kept_within_reason(header: str | None, body: bytes, seconds: float) -> None:
    assert error_from_answer(429, body, header).retry_after == seconds


def test_a_proxys_page_becomes_an_error_of_one_short_text() -> None:
    error = error_from_answer(502, b"<html>" + b"x" * 10_000, None)
    assert error.status == 502 and len(str(error)) < 300


def test_an_absence_is_said_once_and_so_is_the_return(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    notice = AwayNotice("https://example", clock=lambda: now[0])
    with caplog.at_level(logging.INFO):
        notice.answered()
        notice.failed(Unreachable("refused"))
        now[0] = 104.5
        notice.failed(Unreachable("refused again"))
        notice.answered()
        notice.answered()
    assert len(caplog.messages) == 2
    assert "https://example is away: refused" in caplog.messages[0] and "back after 4.5 s" in caplog.messages[1]


async def test_a_server_away_at_the_start_is_waited_for() -> None:
    waits = 0

    async def sleep(_: float) -> None:
        nonlocal waits
        waits += 1

    async with FakeApi() as api, api.client() as client:
        api.on("GET /version", refuse(503), refuse(500), answer({"gitVersion": "v1.33.0"}))
        assert b"v1.33.0" in await until_answered(lambda: client.get("/version"), RetryBackoff(), sleep)
    assert waits == 2


async def test_a_refusal_is_not_waited_for() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /version", refuse(403, "Forbidden"))
        with pytest.raises(ApiError, match="403 Forbidden"):
            await until_answered(lambda: client.get("/version"), RetryBackoff())
