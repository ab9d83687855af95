"""Decides when a request may be sent: when it has a token, and while the API server does not refuse more important requests.

A token bucket limits requests a second, as client-go does (`--kube-api-qps`, `--kube-api-burst`). In one queue for everything a flood of
status writes would delay Bindings (kubernetes#135900). So waiting requests get their tokens by class, not in the order in which they came.
No class starves: a class that was passed over twenty times is next.

An answer 429 says "not before". The refused writer waits (`retry.RetryBackoff`), and through `Pacing` all less important classes wait, too.
So when Bindings are refused, statuses and events do not compete for the capacity that the server still has.
"""

from __future__ import annotations

import asyncio
import enum
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import Final

from placewright.kube.errors import Sleep

#: Tokens that other classes may get while a class waits; then the class gets one.
PASSED_OVER_AT_MOST: Final = 20
#: Part of a token that may be missing: the error of a sum of floats.
_CRUMB: Final = 1e-9


class Traffic(enum.IntEnum):
    """The class of a request; the first class gets its tokens first. Lease renewals have a client of their own, without a limit.

    BIND: Bindings, and reads that find out whether a Binding took effect.
    ROOM: evictions, volumes and claims, for which Bindings wait.
    ORDINARY: lists and other reads, profiles, history.
    STATUS: conditions and nominations of pods.
    EVENTS: Kubernetes events.
    """

    BIND = 0
    ROOM = 1
    ORDINARY = 2
    STATUS = 3
    EVENTS = 4


@dataclass(eq=False)
class TokenBucket:
    """Lets `burst` requests go at once and `qps` a second in the long run. Waiting requests go by class, then as they came.

    While the first class waits it gets at least four of five tokens; each other waiting class gets about one of twenty. Use it inside one
    event loop.

    Attributes:
        qps: tokens a second, more than 0.
        burst: tokens of the full bucket, 1 or more.
        clock: monotonic seconds.
        sleep: waits so many seconds.

    Raises:
        ValueError: `qps` or `burst` is out of range.
    """

    qps: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        if not (self.qps > 0 and self.burst >= 1):
            raise ValueError(f"found {self.qps} requests a second and a burst of {self.burst}; allowed more than 0, and 1 or more")
        self._tokens = float(self.burst)
        self._filled = self.clock()
        self._waiting: dict[Traffic, deque[asyncio.Future[None]]] = {traffic: deque() for traffic in Traffic}
        #: Tokens by class that other classes got while it waited.
        self._passed_over = dict.fromkeys(Traffic, 0)
        self._handing_out: asyncio.Task[None] | None = None

    async def take(self, traffic: Traffic = Traffic.ORDINARY) -> None:
        """Take a token, or wait for one. A caller that is cancelled gives its token back."""
        if self.take_now():
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

    def take_now(self) -> bool:
        """Take a token if one is there and no request waits. Returns whether it was taken."""
        self._fill()
        free = self._tokens >= 1 - _CRUMB and not self._who_waits()
        self._tokens -= free
        return free

    async def _hand_out(self) -> None:
        """Give out tokens as they come, until no request waits."""
        try:
            while waiting := self._who_waits():
                self._fill()
                if self._tokens < 1 - _CRUMB:
                    await self.sleep((1 - self._tokens) / self.qps)
                    continue
                self._tokens -= 1
                self._waiting[self._next(waiting)].popleft().set_result(None)
        finally:
            self._handing_out = None

    def _fill(self) -> None:
        now = self.clock()
        self._tokens = min(self.burst, self._tokens + (now - self._filled) * self.qps)
        self._filled = now

    def _who_waits(self) -> list[Traffic]:
        """Return the classes with a waiting request, most important first."""
        for queue in self._waiting.values():
            while queue and queue[0].done():
                queue.popleft()
        return [traffic for traffic, queue in self._waiting.items() if queue]

    def _next(self, waiting: list[Traffic]) -> Traffic:
        """Choose the most important class, unless another one was passed over too often."""
        longest = max(waiting, key=lambda traffic: self._passed_over[traffic])
        chosen = longest if self._passed_over[longest] >= PASSED_OVER_AT_MOST else waiting[0]
        for traffic in Traffic:
            self._passed_over[traffic] = self._passed_over[traffic] + 1 if traffic in waiting and traffic is not chosen else 0
        return chosen


#: Seconds for which new refusals prolong a hold. Then the class may try again, however busy the server is: a status must not wait for ever.
LONGEST_HOLD: Final = 30.0
#: Seconds over which held requests come back, so that they do not arrive together.
SPREAD: Final = 0.5
#: Classes that hold themselves back, too: they can be late without harm, so one refusal speaks for all requests of the class.
_BEST_EFFORT: Final = (Traffic.STATUS, Traffic.EVENTS)


@dataclass(eq=False)
class Pacing:
    """Holds back less important requests while the server refuses more important ones. One for each API server, shared by its clients.

    Attributes:
        limit: tokens that bound requests a second; None for no bound.
        clock: monotonic seconds.
        sleep: waits so many seconds.
        uniform: draws from [0, 1).
        limit: tokens that bound requests a second; None for no bound.
        held: number of requests by class that waited because a more important one was refused.
    """

    limit: TokenBucket | None = None
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    sleep: Sleep = asyncio.sleep
    uniform: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        self.held = dict.fromkeys(Traffic, 0)
        self._not_before = dict.fromkeys(Traffic, 0.0)
        self._held_since = dict.fromkeys(Traffic, 0.0)

    async def wait(self, traffic: Traffic) -> None:
        """Return when a request of this class may be sent."""
        if self._not_before[traffic]:
            await self._until_released(traffic)
        if self.limit is not None:
            await self.limit.take(traffic)

    def refused(self, traffic: Traffic, retry_after: float) -> None:
        """Hold back all less important classes after an answer 429.

        Args:
            traffic: class of the refused request.
            retry_after: seconds that the server asked to wait; 0 when it named none, and then nothing is held.
        """
        if retry_after <= 0:
            return
        now = self.clock()
        for other in Traffic:
            if other > traffic or (other is traffic and traffic in _BEST_EFFORT):
                self._hold(other, now, now + retry_after)

    def _hold(self, traffic: Traffic, now: float, until: float) -> None:
        if self._not_before[traffic] <= now:
            self._held_since[traffic], self._not_before[traffic] = now, until
        elif until - self._held_since[traffic] <= LONGEST_HOLD:
            self._not_before[traffic] = max(self._not_before[traffic], until)

    async def _until_released(self, traffic: Traffic) -> None:
        wait = self._not_before[traffic] - self.clock()
        if wait <= 0:
            return
        self.held[traffic] += 1
        while wait > 0:
            await self.sleep(wait + SPREAD * self.uniform())
            wait = self._not_before[traffic] - self.clock()
