"""The time line of a world: refusals, pods that got their nodes, by profile, how long that took, and pods that waited.

A world has no attempts and no sub-queues, so it tells less than an operator does. Of attempts it has the conditions of refused pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final, Self

import numpy as np

from placewright_console.local.seenworld import SeenWorld
from placewright_console.pages.marks import GenerationMarks, Marks
from placewright_console.pages.statedelta import Section
from placewright_console.pages.timeline import PlacementTally, Series, Spans, Timeline, Waiting

#: The figures that there are, for the pages.
FIGURES: Final = ("refusals", "bound", "waiting", "binding")
#: Seconds of a stretch of a world that goes on as it is looked at.
_STEP: Final = 5.0
_HOUR: Final = Spans()
#: Stretches that a recording is cut into, about.
_STRETCHES: Final = 240
#: Lengths of a stretch that people read easily, seconds.
_LENGTHS: Final = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


class WorldTimeline:
    """Follows a world as changes are applied to it."""

    def __init__(self, world: SeenWorld, step: float = _STEP, spans: Spans = _HOUR) -> None:
        """Begin at the world's beginning.

        Args:
            world: world with no change applied yet.
            step: seconds of a stretch.
            spans: spans of the ring.
        """
        self._world = world
        self._step = step
        self._timeline = Timeline(spans)
        self._marks = Marks()
        self._generations = GenerationMarks(self._marks)
        self._last = 0.0
        world.take_placed()
        world.take_refused()
        self._timeline.tick(0.0, world.began, {}, {})
        self._generations.look(0.0, world.in_effect)

    @classmethod
    def of_recording(cls, world: SeenWorld, seconds: float) -> Self:
        """Make the time line of a whole recording.

        Args:
            world: world at its beginning.
            seconds: length of the recording.

        Returns:
            The time line, which drops nothing.
        """
        step = next((each for each in _LENGTHS if each * _STRETCHES >= seconds), seconds / _STRETCHES)
        whole = seconds + 2 * step
        return cls(world, step, Spans(step * 1.1, step * 1.1, whole, whole))

    def until(self, at: float) -> None:
        """End the stretches that are over at a moment. It is called before the changes of that moment are applied.

        Args:
            at: seconds after the beginning, not before the last call's.
        """
        if at >= self._last + self._step:
            self._tick(self._last + self._step)
        # Where nothing happened for long, the rest is one stretch, so that it does not thin out the stretch before.
        if at >= self._last + self._step:
            self._tick(self._last + self._step * ((at - self._last) // self._step))

    def finish(self, at: float) -> None:
        """End the last stretch.

        Args:
            at: the end of the recording, seconds after the beginning.
        """
        self.until(at)
        if at > self._last:
            self._tick(at)

    def changed(self, at: float) -> None:
        """Mark another generation of a profile. It is called after a change was applied.

        Args:
            at: seconds after the beginning.
        """
        self._generations.look(at, self._world.in_effect)

    def time(self) -> Section:
        """Return the section `time`."""
        return self._timeline.rows()

    def marks(self) -> Section:
        """Return the section `marks`."""
        return self._marks.rows(self._timeline.time_of_day)

    def _tick(self, at: float) -> None:
        self._last = at
        tally = PlacementTally()
        durations: dict[Series, list[float]] = defaultdict(list)
        for series, seconds in self._world.take_placed():
            durations[series].append(seconds)
        for (name, generation), each in durations.items():
            tally.placed(name, generation, np.array([]), np.array(each))
        for series in self._world.take_refused().elements():
            tally.failed(*series)
        waiting = Counter(self._world.series(pod.scheduler_name) for pod in self._world.pending.values())
        waits = {series: Waiting(active=pods) for series, pods in waiting.items()}
        self._timeline.tick(at, self._world.began + at, tally.take(), waits)
