"""Paces work so that it takes no more than a share of the time, however much of it there is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from placewright.framework.interface import Seconds
from placewright.scheduler.ports import Clock

#: Seconds that decisions lose by a second of a shadow's work: that second, and time to refill the processor's caches. The measured cost is
#: lower; the rest is a margin.
COST_OF_WORK: Final = 2.0
#: Seconds that decisions lose by a second of noting: that second, and the cost of memory that the tape keeps from reuse. The measured cost
#: is lower; the rest is a margin.
COST_OF_NOTES: Final = 1.75


class ShadowPace:
    """Decides when the next piece of work may begin. After each piece there is a pause that keeps the work within its share.

    So the share holds from the first piece on, however long a piece takes.

    Attributes:
        due: time at which the next piece may begin, in seconds of the clock.
        spent: seconds that all pieces have cost so far.
    """

    def __init__(self, share: float, clock: Clock) -> None:
        """Let the first piece begin at once.

        Args:
            share: share of the time, above 0 and at most 1.
            clock: seconds, finer than a microsecond.
        """
        self.due: Seconds = clock()
        self.spent: Seconds = 0.0
        self._share = share
        self._clock = clock

    @contextmanager
    def piece(self) -> Iterator[None]:
        """Measure a piece of work, also if it raises an exception."""
        began = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            took = (ended - began) * COST_OF_WORK
            self.spent += took
            self.due = began + took / self._share

    def charge(self, seconds: Seconds, now: Seconds) -> None:
        """Charge time that the scheduler spent on notes for this work.

        Args:
            seconds: seconds that the notes took.
            now: time of the clock.
        """
        took = seconds * COST_OF_NOTES
        self.spent += took
        self.due = max(self.due, now) + took / self._share
