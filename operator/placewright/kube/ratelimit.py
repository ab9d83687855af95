"""A limit on how many requests are sent a second: a bucket of tokens, as client-go has it (`--kube-api-qps`, `--kube-api-burst`).

One bucket for everything would let a flood of status writes stand before the Bindings (kubernetes#135900), so those who wait for a token
do not go in the order in which they came, but in the order of what they are good for. Nobody starves: who was passed over often enough is
next.
"""

from __future__ import annotations

import asyncio
import enum
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

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
