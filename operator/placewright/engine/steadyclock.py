"""Wall time that no step of the system's clock moves.

Limits in seconds compare timestamps of the API server with the time here: how long a pod has been starting, when a rejection is forgotten,
when a pod is given up. A clock that is set back by an hour would keep such a limit for an hour more. A clock that is set forward would end
all of them at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

#: Seconds by which the steady clock may approach the system's clock in each second. After a step, limits are off by this share at most.
_SLEW: Final = 0.01


class SteadyClock:
    """Seconds since 1970, as the system's clock had them at the start, counted on by the monotonic clock.

    If the system's clock differs, this one follows it slowly. So a clock that was wrong at the start is right in the end.

    Args:
        wall: the system's clock, seconds since 1970.
        clock: monotonic seconds.
    """

    def __init__(self, wall: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._clock = wall, clock
        self._now, self._read = wall(), clock()

    def __call__(self) -> float:
        """Return the time now; never less than before.

        Returns:
            Seconds since 1970.
        """
        read = self._clock()
        passed, self._read = read - self._read, read
        self._now += passed
        most = _SLEW * passed
        self._now += min(max(self._wall() - self._now, -most), most)
        return self._now
