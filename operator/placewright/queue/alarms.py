"""Events for a stated time: what waiting pods are told because time has passed, and not because anything happened in the cluster.

An event may concern many pods, whichever wait when it happens. A single pod whose own attempt said when to look again is in `wakeups`.
An alarm rings once, at the first whole second after its moment, when the queue ends backoffs. A pod that it wakes is judged anew, so an
alarm that has lost its reason is not taken back. Where there are too many, the last one is left out: its pods are tried again after the
queue's five minutes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from placewright.framework.events import ClusterEvent

#: Alarms kept at most; a hundred bytes each.
MOST_ALARMS: Final = 16_384

Act = Callable[[], object]


class Alarms:
    """The alarms of one queue.

    Args:
        clock: seconds, monotonic; the queue's.
        move: tells waiting pods of an event: (event, object before, object after).
    """

    def __init__(self, clock: Callable[[], float], move: Callable[[ClusterEvent, Any, Any], object]) -> None:
        self._clock = clock
        self._move = move
        self._set: list[tuple[float, int, Act]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._set)

    @property
    def next(self) -> float | None:
        """When the next alarm rings, in seconds of the clock; None while none is set."""
        return self._set[0][0] if self._set else None

    def after(self, seconds: float, act: Act) -> None:
        """Set an alarm.

        Args:
            seconds: from now.
            act: called when it rings, between two decisions.

        Example:
            queue.alarms.after(30.0, lambda: queue.retry(uid))
        """
        if len(self._set) < MOST_ALARMS:
            heapq.heappush(self._set, (self._clock() + seconds, next(self._order), act))

    def wake_after(self, seconds: float, event: ClusterEvent, subject: Any) -> None:
        """Implements `Handle.wake_after`: waiting pods are told of the event when the alarm rings."""
        self.after(seconds, partial(self._move, event, None, subject))

    def ring(self) -> int:
        """Call the acts of all alarms that are due, in the order of their moments; return how many. Called at every whole second."""
        now, rung = self._clock(), 0
        while self._set and self._set[0][0] <= now:
            _, _, act = heapq.heappop(self._set)
            act()
            rung += 1
        return rung
