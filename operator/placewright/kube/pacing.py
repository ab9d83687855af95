"""When a request may be sent: as soon as a token is there, and not while the API server is too busy for more important ones.

An answer 429 says "not before": to whoever asked, who obeys by waiting (`retry.Backoff`), and through this object to everybody who is less
important. So when Bindings are refused, statuses and events stand aside instead of competing for what the server can still take.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final

from placewright.kube.ratelimit import TokenBucket, Traffic
from placewright.kube.retry import Sleep

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
