"""The last hour in figures: decisions, bound pods, waiting pods and latencies, by profile and generation, in a bounded ring.

The section `time` has a row for each stretch of time, `[begin, length, all, profiles]`. Times are seconds since 1970. `all` is `[decisions,
bound, waiting, …]`: waiting pods by sub-queue, then median and 99th percentile of the times to decide and to bind. `profiles` has
`[schedulerName, generation, …the same…]` for each. The row `generations` has the same sums over the whole ring. Rows have sums alone and
names of profiles in effect, so all readers get them.

Stretches are a few seconds long in the last minutes; older ones are added up to longer ones. All that is kept can be added, so a long
stretch says exactly what its short ones said.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import add, sub
from typing import Any, Final, NamedTuple

import numpy as np

from placewright_console.pages.latencies import Counts, Seconds, counted, no_counts, quantiles

#: The sub-queues, in the order of a row's list. A recording has no sub-queues; all of its waiting pods are under the first.
PLACES: Final = ("active", "backoff", "unschedulable", "gated")
#: The profile of pods whose profile is not named: it is not in effect, or is one too many.
OTHERS: Final = ""
#: Profiles and generations that are named in a stretch, and in the whole ring. Further ones are added up.
MOST_SERIES: Final = 12
MOST_GENERATIONS: Final = 40
#: The key of the sums over the ring.
GENERATIONS: Final = "generations"
#: Seconds by which the clock may differ from what was computed of it before all times are told anew.
_CLOCK_STEP: Final = 1.5

#: A profile's schedulerName and its generation.
Series = tuple[str, int]
_OTHERS: Final[Series] = (OTHERS, 0)
#: Median and 99th percentile.
_SHARES: Final = (0.5, 0.99)


@dataclass(frozen=True, slots=True)
class Spans:
    """The lengths of the ring, seconds.

    Attributes:
        fine: the longest that neighbouring stretches are joined to in the last minutes.
        coarse: the same before.
        fine_for: time for which fine stretches are kept.
        kept: time for which stretches are kept at all.
    """

    fine: float = 6.0
    coarse: float = 32.0
    fine_for: float = 600.0
    kept: float = 3600.0

    @property
    def most_points(self) -> int:
        """Most stretches that there can be, because two neighbours together are longer than one may be."""
        return 2 * (math.ceil(self.fine_for / self.fine) + math.ceil((self.kept - self.fine_for) / self.coarse)) + 4


class Waiting(NamedTuple):
    """The waiting pods of a profile, by sub-queue."""

    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0


class StretchSums(NamedTuple):
    """Sums of one profile's generation over a stretch.

    Attributes:
        waiting: pods by sub-queue, times seconds; shape (places,).
        deciding: durations from the hand-out by the queue to the choice of a node, of bound pods.
        binding: durations from the first attempt to the end of the Binding.
    """

    decisions: int
    bound: int
    waiting: Seconds
    deciding: Counts
    binding: Counts

    def __add__(self, other: StretchSums) -> StretchSums:  # type: ignore[override]  # a tuple's sum would be longer
        return StretchSums(*map(add, self, other))

    def __sub__(self, other: StretchSums) -> StretchSums:
        return StretchSums(*map(sub, self, other))


class PlacementTally:
    """Counts attempts until the next tick takes the counts. Implements the metrics' `CountReader`, which is called for hundreds at once."""

    def __init__(self) -> None:
        self._parts: dict[Series, StretchSums] = {}
        self._failed: Counter[Series] = Counter()

    def placed(self, profile: str, generation: int, deciding: Seconds, binding: Seconds) -> None:
        """Count pods that were bound.

        Args:
            profile: its schedulerName.
            generation: generation of the profile.
            deciding: seconds to the choice of a node, shape (pods,); empty if they are not known.
            binding: seconds from the first attempt to the end, shape (pods,).
        """
        pods = len(binding)
        part = StretchSums(pods, pods, np.zeros(len(PLACES)), counted(deciding), counted(binding))
        self._parts = _sum(self._parts, {(profile, generation): part})

    def failed(self, profile: str, generation: int) -> None:
        """Count an attempt that bound nothing. It is called at each of them, so it does no more than that."""
        self._failed[profile, generation] += 1

    def take(self) -> dict[Series, StretchSums]:
        """Return the counts since the last call."""
        failed = {series: _no_part()._replace(decisions=attempts) for series, attempts in self._failed.items()}
        taken, self._parts, self._failed = _sum(self._parts, failed), {}, Counter()
        return taken


@dataclass(slots=True)
class _Point:
    """A stretch of time.

    Attributes:
        begin, end: places on the axis, seconds.
        figures: figures of all profiles, and of each. They are made with the stretch: to make all of them for a first reader takes long.
        row: the readers' form; None until it is asked for, and after the clock was set.
    """

    begin: float
    end: float
    parts: dict[Series, StretchSums]
    figures: tuple[list[Any], list[Any]] = field(init=False)
    row: list[Any] | None = None

    def __post_init__(self) -> None:
        whole = sum(self.parts.values(), _no_part())
        each = [[*series, *_figures(part, self.length)] for series, part in sorted(_bounded(self.parts).items())]
        self.figures = _figures(whole, self.length), each

    @property
    def length(self) -> float:
        """Seconds."""
        return self.end - self.begin


class Timeline:
    """Keeps the ring.

    Its axis goes with a clock that is never set, and the time of day is computed: where a person sets the clock, all times are told anew.

    Example:
        timeline.tick(monotonic(), time(), tally.take(), {("default-scheduler", 3): Waiting(active=12)})
        timeline.rows()
    """

    def __init__(self, spans: Spans = Spans()) -> None:
        """Begin without a stretch; the first `tick` begins one."""
        self._spans = spans
        self._fine: deque[_Point] = deque()
        self._coarse: deque[_Point] = deque()
        self._sums: dict[Series, StretchSums] = {}
        #: The begin and the end of the time that `_sums` are of, by the same keys.
        self._told: dict[Series, tuple[float, float]] = {}
        #: Counts of ticks between which no time passed.
        self._carried: dict[Series, StretchSums] = {}
        self._last: float | None = None
        self._shift = 0.0
        self._rows: dict[str, Any] | None = None
        #: The time of day at the axis' zero.
        self._zero: float | None = None

    def __len__(self) -> int:
        return len(self._fine) + len(self._coarse)

    def tick(self, now: float, wall: float, counts: Mapping[Series, StretchSums], waiting: Mapping[Series, Waiting]) -> None:
        """End a stretch, which began at the last tick.

        Args:
            now: seconds of a clock that is never set. If it goes back nevertheless, no time has passed.
            wall: the time of day, seconds since 1970.
            counts: since the last tick, without waiting pods.
            waiting: pods that wait now.
        """
        at = self.place(now, wall)
        begin, self._last = self._last, at
        parts = _sum(self._carried, counts)
        if begin is None or at == begin:
            self._carried = _bounded(parts)
            return
        held = {series: _no_part()._replace(waiting=np.array(pods) * (at - begin)) for series, pods in waiting.items() if any(pods)}
        self._carried = {}
        self._append(_Point(begin, at, _bounded(_sum(parts, held))))
        self._age(at)

    def place(self, now: float, wall: float) -> float:
        """Find the place of a moment on the axis.

        Args:
            now: clock of `tick`; not before the last tick.
            wall: time of day of `tick`.
        """
        at = now + self._shift
        if self._last is not None and at < self._last:
            self._shift += self._last - at
            at = self._last
        if self._zero is None or abs(wall - at - self._zero) > _CLOCK_STEP:
            self._zero, self._rows = wall - at, None
            for point in chain(self._coarse, self._fine):
                point.row = None
        return at

    def time_of_day(self, at: float) -> float:
        """Return the time of day at a place on the axis, seconds since 1970."""
        return round((self._zero or 0.0) + at, 2)

    def rows(self) -> dict[str, Any]:
        """Return the section `time`.

        Returns:
            The same object until the next tick, because it is asked for at each publication, for each class of rights. Rows of stretches
            that have not changed are the same objects as before.
        """
        if self._rows is None:
            self._rows = {f"{point.begin:.3f}": self._row(point) for point in chain(self._coarse, self._fine)}
            if self._sums:
                self._rows[GENERATIONS] = self._generations()
        return self._rows

    # --- the ring ----------------------------------------------------------------------------------------------------------------

    def _append(self, point: _Point) -> None:
        self._rows = None
        _join(self._fine, point, self._spans.fine)
        for series, part in point.parts.items():
            first, _ = self._told.get(series, (point.begin, 0.0))
            self._told[series] = (first, point.end)
            known = self._sums.get(series)
            self._sums[series] = part if known is None else known + part

    def _age(self, now: float) -> None:
        while self._fine and self._fine[0].end <= now - self._spans.fine_for:
            _join(self._coarse, self._fine.popleft(), self._spans.coarse)
        while self._coarse and self._coarse[0].end <= now - self._spans.kept:
            self._drop(self._coarse.popleft())

    def _drop(self, point: _Point) -> None:
        for series, part in point.parts.items():
            first, last = self._told[series]
            if last <= point.end:
                del self._told[series], self._sums[series]
            else:
                self._told[series] = (max(first, point.end), last)
                self._sums[series] -= part

    # --- rows --------------------------------------------------------------------------------------------------------------------

    def _row(self, point: _Point) -> list[Any]:
        if point.row is None:
            point.row = [self.time_of_day(point.begin), round(point.length, 3), *point.figures]
        return point.row

    def _generations(self) -> list[Any]:
        latest = sorted(self._sums, key=lambda series: (-self._told[series][1], series))[:MOST_GENERATIONS]
        told = []
        for series in sorted(latest):
            first, last = self._told[series]
            told.append([*series, self.time_of_day(first), self.time_of_day(last), *_figures(self._sums[series], last - first)])
        return told


def _no_part() -> StretchSums:
    return StretchSums(0, 0, np.zeros(len(PLACES)), no_counts(), no_counts())


def _sum(one: Mapping[Series, StretchSums], other: Mapping[Series, StretchSums]) -> dict[Series, StretchSums]:
    added = dict(one)
    for series, part in other.items():
        known = added.get(series)
        added[series] = part if known is None else known + part
    return added


def _bounded(parts: dict[Series, StretchSums]) -> dict[Series, StretchSums]:
    """Name `MOST_SERIES`, the ones with most decisions and waiting pods, and add up the rest."""
    named = [series for series in parts if series != _OTHERS]
    if len(named) <= MOST_SERIES:
        return parts
    named.sort(key=lambda series: (-parts[series].decisions, -float(parts[series].waiting.sum()), series))
    kept = {series: parts[series] for series in named[:MOST_SERIES]}
    for series in parts.keys() - kept.keys():
        kept = _sum(kept, {_OTHERS: parts[series]})
    return kept


def _join(points: deque[_Point], point: _Point, longest: float) -> None:
    """Append a stretch, or make the last one longer by it."""
    if points and point.end - points[-1].begin <= longest:
        last = points.pop()
        point = _Point(last.begin, point.end, _sum(last.parts, point.parts))
    points.append(point)


def _figures(part: StretchSums, seconds: float) -> list[Any]:
    """Return decisions, bound pods, the mean of waiting pods by sub-queue, and the quantiles of both latencies."""
    waiting = [round(float(pods) / seconds, 1) for pods in part.waiting]
    latencies = [each for counts in (part.deciding, part.binding) for each in quantiles(counts, _SHARES)]
    return [part.decisions, part.bound, waiting, *(None if each is None else float(f"{each:.3g}") for each in latencies)]
