"""`VirtualTime`: coroutines wait for as long as they like, and no time passes but that which a test lets pass."""

from __future__ import annotations

import asyncio
import socket

import pytest

from placewright.testing import VirtualTime
from placewright.testing.virtualtime import RestlessError


def test_timers_ring_in_order_each_at_its_moment() -> None:
    time, rang = VirtualTime(0.0), list[tuple[str, float]]()

    async def ring(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        rang.append((name, time()))

    for name, seconds in (("late", 86_400.5), ("soon", 0.25), ("next", 3.0), ("now", 0.0)):
        time.start(ring(name, seconds))
    time.settle()
    assert rang == [("now", 0.0)]
    time.advance(2.9)
    assert rang[1:] == [("soon", 0.25)]
    time.advance(1_000_000)
    assert rang[2:] == [("next", 3.0), ("late", 86_400.5)]
    assert time.now == 1_000_002.9


def test_a_timeout_is_a_timeout_in_virtual_seconds() -> None:
    time, found = VirtualTime(), list[float]()

    async def wait() -> None:
        try:
            async with asyncio.timeout(7):
                await asyncio.Event().wait()
        except TimeoutError:
            found.append(time())

    time.start(wait())
    time.advance(6.999)
    assert found == []
    time.advance(0.001)
    assert found == [107.0]


def test_what_a_coroutine_raises_is_raised_where_time_passes() -> None:
    async def break_later() -> None:
        await asyncio.sleep(1)
        raise ValueError("broken")

    time = VirtualTime()
    time.start(break_later())
    time.settle()
    with pytest.raises(ValueError, match="broken"):
        time.advance(1)
    time.advance(1)


def test_what_a_call_raises_is_raised() -> None:
    def break_now() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        VirtualTime().settle(break_now)


def test_coroutines_that_wake_each_other_for_ever_are_found() -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110 - it is to spin
            await asyncio.sleep(0)

    time = VirtualTime()
    task = time.start(spin())
    with pytest.raises(RestlessError, match="without a pause"):
        time.settle()
    task.cancel()
    time.settle()
    assert task.cancelled()


def test_it_opens_no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python may close the sockets of a loop that was dropped before it closes the loop, which then warns."""
    opened: list[object] = []
    pair = socket.socketpair
    monkeypatch.setattr(socket, "socketpair", lambda: opened.append("a pair") or pair())
    VirtualTime().settle(lambda: None)
    assert opened == []


async def test_inside_another_event_loop_it_refuses() -> None:
    with pytest.raises(RuntimeError, match="an event loop of its own"):
        VirtualTime().settle(lambda: None)
