"""A limit on how many requests are sent a second: a bucket of tokens, as client-go has it (`--kube-api-qps`, `--kube-api-burst`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class TokenBucket:
    """Lets `burst` requests go at once, and `qps` a second in the long run; those that must wait go in the order in which they came.

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
        #: Below zero it is the number of those who wait.
        self._tokens = float(burst)
        self._filled = clock()

    async def take(self) -> None:
        """Return when the next request may be sent. Who gives up waiting gives the turn back."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._qps)
        self._filled = now
        self._tokens -= 1
        if self._tokens < 0:
            try:
                await self._sleep(-self._tokens / self._qps)
            except asyncio.CancelledError:
                self._tokens += 1
                raise
