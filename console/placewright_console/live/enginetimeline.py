"""The operator's time line: samples an engine every few seconds.

It does so without a reader, too. So a person who opens the console sees the last hour. A look costs microseconds and a sample less than a
millisecond. Both read existing numbers of the engine and its metrics.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from placewright.leadership.leaserule import real_seconds
from placewright.serving.schedulerview import SchedulerView
from placewright_console.pages.marks import AWAY, BEGUN, LEADER, STILL, GenerationMarks, Mark, Marks
from placewright_console.pages.shadowrows import SeenShadow
from placewright_console.pages.statedelta import Section
from placewright_console.pages.timeline import OTHERS, PlacementTally, Series, Timeline, Waiting

_log = logging.getLogger(__name__)

#: Seconds between two looks for changes that get a mark, and between two samples.
LOOK_SECONDS: Final = 1.0
SAMPLE_SECONDS: Final = 5.0
#: Seconds that a look may come late before it is marked.
_STILL_SECONDS: Final = 5.0


class EngineTimeline:
    """Keeps one engine's last hour.

    Example:
        timeline = EngineTimeline(view)
        task = asyncio.create_task(timeline.run())
        timeline.time(), timeline.marks()                # sections of the state
    """

    def __init__(
        self,
        view: SchedulerView,
        clock: Callable[[], float] = real_seconds,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin now.

        Args:
            view: view of the scheduler, with counts of its attempts, whose `tally` is set.
            clock: seconds of a clock that is never set.
            wall: seconds since 1970.
        """
        self._view = view
        assert view.attempts is not None
        self._attempts = view.attempts
        self._clock = clock
        self._wall = wall
        self._tally = PlacementTally()
        self._attempts.tally = self._tally
        self._timeline = Timeline()
        self._marks = Marks()
        self._generations = GenerationMarks(self._marks)
        self._led = view.leads
        self._looked = self._sampled = clock()
        self._timeline.tick(self._looked, wall(), {}, {})
        self._away: Mark | None = None
        self._marks.add(Mark(self._looked, BEGUN, "begun", "this replica began"))
        self._told: Section = {}

    async def run(self) -> None:
        """Look and sample until cancelled."""
        broken = False
        while True:
            try:
                self.look()
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - an error in a picture must not end other pictures, and is not worth a line a second
                if not broken:
                    _log.exception("the console's time line has gaps from here on")
                broken = True
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Mark the changes since the last look, and sample if it is time."""
        now = self._clock()
        at = self._timeline.place(now, self._wall())
        if now - self._looked > LOOK_SECONDS + _STILL_SECONDS:
            seconds = f"nothing ran for {now - self._looked:.0f} s: the event loop, the process or the machine stood still"
            self._marks.add(Mark(at - (now - self._looked), STILL, "still", seconds, until=at))
        self._looked = now
        self._look_for_leader(at)
        self._look_for_server(at)
        active = self._view.live.active
        changed = self._generations.look(at, {name: (each.profile.name, each.profile.generation) for name, each in active.items()})
        if changed or now - self._sampled >= SAMPLE_SECONDS:
            self._sample(now)
        told = self._marks.rows(self._timeline.time_of_day)
        if told != self._told:
            self._told = told

    def time(self) -> Section:
        """Return the section `time`."""
        return self._timeline.rows()

    def marks(self) -> Section:
        """Return the section `marks`; the same object until there is another mark."""
        return self._told

    def _sample(self, now: float) -> None:
        self._sampled = now
        self._attempts.settle()
        self._timeline.tick(now, self._wall(), self._tally.take(), self._waiting())

    def _waiting(self) -> dict[Series, Waiting]:
        """Count the waiting pods by profile. A schedulerName without a profile is not named, because it is the pods' own text."""
        active, found = self._view.live.active, dict[Series, Waiting]()
        for queue in self._view.queue.profile_queues():
            known = active.get(queue.name)
            series = (OTHERS, 0) if known is None else (queue.name, known.profile.generation)
            sizes = queue.sizes()
            found[series] = Waiting(*(one + more for one, more in zip(found.get(series, Waiting()), sizes, strict=True)))
        return found

    def _look_for_leader(self, at: float) -> None:
        leads = self._view.leads
        if leads != self._led:
            label, text = ("leads", "this replica leads from here") if leads else ("stands by", "this replica does not lead any more")
            self._marks.add(Mark(at, LEADER, label, text))
        self._led = leads

    def _look_for_server(self, at: float) -> None:
        since = self._view.away_since
        if since is not None and self._away is None:
            began = at - max(time.monotonic() - since, 0.0)
            self._away = self._marks.add(Mark(began, AWAY, "API away", "the API server does not answer", open=True))
        elif since is None and self._away is not None:
            self._away.until, self._away.open = at, False
            self._away.text = f"the API server was away for {at - self._away.at:.0f} s"
            self._away = None


def seen_shadows(view: SchedulerView) -> list[SeenShadow]:
    """Read the shadows at work."""
    return [
        SeenShadow(name, shadow.profile.shadows or "", shadow.profile.generation, shadow.report, tuple(shadow.figures.differences))
        for name, shadow in view.shadows.items()
    ]
