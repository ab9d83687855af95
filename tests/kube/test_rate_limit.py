"""The limit on requests a second, on a clock that stands still until somebody sleeps."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient
from placewright.kube.ratelimit import TokenBucket, Traffic


class Clock:
    """Time passes only when told to, or in `sleep`, which wakes sleepers in order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        for _ in range(3):  # those who were woken go first
            await asyncio.sleep(0)
        self.now += seconds


def bucket(clock: Clock, qps: float, burst: int) -> TokenBucket:
    return TokenBucket(qps, burst, clock, clock.sleep)


async def test_a_burst_goes_at_once_and_the_next_waits_for_its_token() -> None:
    clock = Clock()
    limit = bucket(clock, 10, 3)
    for _ in range(3):
        await limit.take()
    assert clock.slept == []
    await limit.take()
    assert clock.slept == [pytest.approx(0.1)]


async def test_an_idle_time_fills_the_bucket_but_not_beyond_the_burst() -> None:
    clock = Clock()
    limit = bucket(clock, 10, 2)
    clock.now = 3600.0
    for _ in range(2):
        await limit.take()
    assert clock.slept == []
    await limit.take()
    assert clock.slept


async def test_those_who_wait_go_in_the_order_in_which_they_came() -> None:
    clock = Clock()
    limit = bucket(clock, 5, 1)
    went: list[tuple[int, float]] = []

    async def send(number: int) -> None:
        await limit.take()
        went.append((number, clock.now))

    await asyncio.gather(*(send(number) for number in range(4)))
    assert went == [(0, 0.0), (1, pytest.approx(0.2)), (2, pytest.approx(0.4)), (3, pytest.approx(0.6))]


async def test_who_gives_up_waiting_gives_the_turn_back() -> None:
    clock = Clock()
    limit = bucket(clock, 5, 1)
    await limit.take()
    for _ in range(3):
        waiting = asyncio.create_task(limit.take())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    began = clock.now
    await limit.take()
    assert clock.now - began <= 0.2 + 1e-9


@pytest.mark.parametrize("turns", range(12))
async def test_no_token_is_lost_whenever_somebody_gives_up(turns: int) -> None:
    """After so many turns of the loop: while it waits, with the token in its hand, or when it has gone already."""
    clock = Clock()
    limit = bucket(clock, 5, 1)
    await limit.take()
    waiting = asyncio.create_task(limit.take())
    for _ in range(turns):
        await asyncio.sleep(0)
    gave_up = waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    began = clock.now
    await limit.take()
    assert clock.now <= (0.2 if gave_up else began + 0.2) + 1e-9


@given(st.floats(0.5, 200), st.integers(1, 50), st.lists(st.floats(0, 2), max_size=60))
@settings(max_examples=200)
def test_never_more_than_the_burst_and_the_rate_allow(qps: float, burst: int, pauses: list[float]) -> None:
    clock = Clock()
    sent: list[float] = []

    async def send() -> None:
        limit = bucket(clock, qps, burst)
        for pause in pauses:
            clock.now += pause
            await limit.take()
            sent.append(clock.now)

    asyncio.run(send())
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            assert last - first + 1 <= burst + (sent[last] - sent[first]) * qps + 1e-6


@pytest.mark.parametrize(("qps", "burst"), [(0.0, 1), (-1.0, 1), (float("nan"), 1), (1.0, 0)])
def test_a_limit_that_lets_nothing_through_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="allowed more than 0, and 1 or more"):
        TokenBucket(qps, burst)


class Counting(TokenBucket):
    def __init__(self) -> None:
        super().__init__(1, 1)
        self.taken = 0

    async def take(self, traffic: Traffic = Traffic.ORDINARY) -> None:
        self.taken += 1


async def test_ordinary_requests_take_a_token_and_watches_do_not() -> None:
    limit = Counting()
    access = ClusterAccess(server="http://127.0.0.1:1", tls=True)
    async with ApiClient(access, limit=limit) as client:
        for call in (client.get("/version"), client.post("/x", {}), client.delete("/x")):
            with pytest.raises(Exception, match="127"):
                await call
        assert limit.taken == 3
        with pytest.raises(Exception, match="127"):
            async with client.stream("/api/v1/pods", {}, limit=1.0):
                pass
    assert limit.taken == 3
