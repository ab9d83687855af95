"""Work that takes no more than a share of the time, however much of it there is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from placewright.framework.interface import Seconds
from placewright.scheduler.ports import Clock

#: What others lose by a second of work: that second, and what it took of the processor's caches.
AFTERMATH: Final = 2.0
#: What they lose by a second that they spend noting for it: that second, and what is kept in memory that they would have used again.
#: Measured, both are less; the rest is the margin.
KEEPSAKES: Final = 1.75


class ShadowPace:
    """Says when the next piece of work may begin: after each, so much time belongs to others that this one was its share of both.

    So it holds from the first piece on, over any time that begins and ends with a piece's beginning, and however long a piece takes.

    Attributes:
        due: when the next piece may begin, seconds of the clock.
        spent: seconds that all pieces cost so far.
    """

    def __init__(self, share: float, clock: Clock) -> None:
        """`share`: of the time, above 0 and at most 1. `clock`: seconds, finer than a microsecond."""
        self.due: Seconds = clock()
        self.spent: Seconds = 0.0
        self._share = share
        self._clock = clock

    @contextmanager
    def piece(self) -> Iterator[None]:
        """A piece of work; its time counts whatever becomes of it."""
        began = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            took = (ended - began) * AFTERMATH
            self.spent += took
            self.due = began + took / self._share

    def charge(self, seconds: Seconds, now: Seconds) -> None:
        """Others did something for this work, which counts as its own."""
        took = seconds * KEEPSAKES
        self.spent += took
        self.due = max(self.due, now) + took / self._share
