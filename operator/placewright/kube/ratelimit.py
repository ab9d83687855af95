"""When a request may be sent: as soon as a token is there, and not while the API server is too busy for more important ones.

A bucket of tokens limits how many requests are sent a second, as client-go has it (`--kube-api-qps`, `--kube-api-burst`). One bucket for
everything would let a flood of status writes stand before the Bindings (kubernetes#135900), so those who wait for a token do not go in the
order in which they came, but in the order of what they are good for. Nobody starves: who was passed over often enough is next.

An answer 429 says "not before": to whoever asked, who obeys by waiting (`retry.Backoff`), and through `Pacing` to everybody who is less
important. So when Bindings are refused, statuses and events stand aside instead of competing for what the server can still take.
"""

from __future__ import annotations

import asyncio
import enum
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from placewright.kube.retry import Sleep

#: Tokens that may go to others while a class waits; then it gets one.
PASSED_OVER_AT_MOST: Final = 20
#: Parts of a token that are no reason to wait on: sums of floats.
_CRUMB: Final = 1e-9


class Traffic(enum.IntEnum):
    """What a request is for; what comes first goes first. Lease renewals have a client of their own, and no limit.

    BIND: Bindings, and finding out what became of them.
    ROOM: evictions, volumes: what Bindings wait for.
    ORDINARY: lists and other reads, profiles, history.
    STATUS: conditions and nominations of pods.
    EVENTS: Kubernetes events.
    """

    BIND = 0
    ROOM = 1
    ORDINARY = 2
    STATUS = 3
    EVENTS = 4


class TokenBucket:
    """Lets `burst` requests go at once, and `qps` a second in the long run; those that must wait go by class, then as they came.

    While the first class waits, it gets at least four of five tokens: each other class that waits, one of some twenty.
    To be used inside one event loop.
    """

    def __init__(
        self,
        qps: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`qps`: tokens a second, more than 0. `burst`: how many the full bucket holds, 1 or more. `clock`: monotonic seconds."""
        if not (qps > 0 and burst >= 1):
            raise ValueError(f"found {qps} requests a second and a burst of {burst}; allowed more than 0, and 1 or more")
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._sleep = sleep
        self._tokens = float(burst)
        self._filled = clock()
        self._waiting: dict[Traffic, deque[asyncio.Future[None]]] = {traffic: deque() for traffic in Traffic}
        #: How many tokens went to others while a class waited.
        self._passed_over = dict.fromkeys(Traffic, 0)
        self._handing_out: asyncio.Task[None] | None = None

    async def take(self, traffic: Traffic = Traffic.ORDINARY) -> None:
        """Return when the next request may be sent. Who gives up waiting gives the turn back."""
        self._fill()
        if self._tokens >= 1 - _CRUMB and not self._who_waits():
            self._tokens -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting[traffic].append(turn)
        if self._handing_out is None:
            self._handing_out = asyncio.create_task(self._hand_out(), name="requests a second")
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._tokens += 1
            raise

    async def _hand_out(self) -> None:
        """Give tokens as they come, until nobody waits."""
        try:
            while waiting := self._who_waits():
                self._fill()
                if self._tokens < 1 - _CRUMB:
                    await self._sleep((1 - self._tokens) / self._qps)
                    continue
                self._tokens -= 1
                self._waiting[self._next(waiting)].popleft().set_result(None)
        finally:
            self._handing_out = None

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._qps)
        self._filled = now

    def _who_waits(self) -> list[Traffic]:
        """Classes in which somebody still waits, the first first."""
        for queue in self._waiting.values():
            while queue and queue[0].done():
                queue.popleft()
        return [traffic for traffic, queue in self._waiting.items() if queue]

    def _next(self, waiting: list[Traffic]) -> Traffic:
        """The first class, unless another one was passed over too often."""
        longest = max(waiting, key=lambda traffic: self._passed_over[traffic])
        chosen = longest if self._passed_over[longest] >= PASSED_OVER_AT_MOST else waiting[0]
        for traffic in Traffic:
            self._passed_over[traffic] = self._passed_over[traffic] + 1 if traffic in waiting and traffic is not chosen else 0
        return chosen


#: Seconds until which a hold is prolonged by new answers; then a class may try again, however busy the server is for others.
LONGEST_HOLD: Final = 30.0
#: Those who were held do not come back at the same moment, but within this many seconds.
SPREAD: Final = 0.5
#: What can be late without harm holds itself back, too: one refusal speaks for all of its kind.
_BEST_EFFORT: Final = (Traffic.STATUS, Traffic.EVENTS)


class Pacing:
    """One for each API server and budget; shared by all clients of it.

    Attributes:
        limit: of requests a second, None for none.
        held: how often a request had to wait because a more important one was refused, by class.
    """

    def __init__(
        self,
        limit: TokenBucket | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        """`clock`: monotonic seconds. `uniform`: draws from [0, 1)."""
        self.held = dict.fromkeys(Traffic, 0)
        self.limit = limit
        self._clock = clock
        self._sleep = sleep
        self._uniform = uniform
        self._not_before = dict.fromkeys(Traffic, 0.0)
        self._held_since = dict.fromkeys(Traffic, 0.0)

    async def turn(self, traffic: Traffic) -> None:
        """Return when a request of this class may be sent."""
        if self._not_before[traffic]:
            await self._until_released(traffic)
        if self.limit is not None:
            await self.limit.take(traffic)

    def refused(self, traffic: Traffic, retry_after: float) -> None:
        """A request of this class was answered 429; `retry_after` in seconds, 0 when the server did not say."""
        if retry_after <= 0:
            return
        now = self._clock()
        for other in Traffic:
            if other > traffic or (other is traffic and traffic in _BEST_EFFORT):
                self._hold(other, now, now + retry_after)

    def _hold(self, traffic: Traffic, now: float, until: float) -> None:
        if self._not_before[traffic] <= now:
            self._held_since[traffic], self._not_before[traffic] = now, until
        elif until - self._held_since[traffic] <= LONGEST_HOLD:
            self._not_before[traffic] = max(self._not_before[traffic], until)

    async def _until_released(self, traffic: Traffic) -> None:
        wait = self._not_before[traffic] - self._clock()
        if wait <= 0:
            return
        self.held[traffic] += 1
        while wait > 0:
            await self._sleep(wait + SPREAD * self._uniform())
            wait = self._not_before[traffic] - self._clock()
