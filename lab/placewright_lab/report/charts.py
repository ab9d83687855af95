"""Drawings as numbers: the places of bars and lines, in the units of an SVG's view box. Pure; the template writes them.

Colour alone never has a meaning. Each profile has its own drawing with its name above it. The two lines of a timeline differ in their
dashes, and every bar has its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright_lab.figures.comparison import device_label, span
from placewright_lab.figures.figures import Figures, Timeline

WIDTH: Final = 320
HEIGHT: Final = 160
BINS: Final = 10
_LEFT, _RIGHT, _TOP, _BOTTOM = 10, 10, 18, 22
_INNER_WIDTH: Final = WIDTH - _LEFT - _RIGHT
#: Height of the tallest bar.
FULL: Final = HEIGHT - _TOP - _BOTTOM
#: Number of steps. More steps than points across a drawing show nothing.
_MOST_STEPS: Final = 300


class Bar(NamedTuple):
    """One bar. `label` is written above it, and `says` is its meaning in words."""

    x: float
    y: float
    width: float
    height: float
    label: str
    says: str


class Tick(NamedTuple):
    """A word below the axis. `anchor` is an SVG `text-anchor`."""

    x: float
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers of nodes by their use, under one profile. `summary` is the same in words."""

    profile: str
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """One resource: a histogram for each profile, all on one scale."""

    resource: str
    panels: tuple[Histogram, ...]


@dataclass(frozen=True, slots=True)
class Course:
    """One profile's timeline as two SVG paths."""

    profile: str
    waiting: str
    placed: str
    ticks: tuple[Tick, ...]
    top: int
    summary: str


def distributions(figures: Sequence[Figures]) -> tuple[Distribution, ...]:
    """Return the use of nodes, resource by resource."""
    return tuple(_distribution(name, figures) for name in dict.fromkeys(use.resource for each in figures for use in each.uses))


def _distribution(resource: str, figures: Sequence[Figures]) -> Distribution:
    counted = [(each.profile, _binned(use.shares)) for each in figures for use in each.uses if use.resource == resource]
    most = max(int(counts.max()) for _, counts in counted)
    return Distribution(device_label(resource), tuple(_histogram(profile, counts, most) for profile, counts in counted))


def _binned(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count nodes by their use. A node whose requests exceed its capacity counts as full."""
    counts, _ = np.histogram(np.clip(shares, 0, 1), bins=BINS, range=(0, 1))
    return counts.astype(np.int64)


def _histogram(profile: str, counts: NDArray[np.int64], most: int) -> Histogram:
    bars = tuple(_bar(index, int(count), most) for index, count in enumerate(counts))
    summary = "; ".join(bar.says for bar in bars if bar.height)
    return Histogram(profile, bars, _percent_ticks(), summary)


def _bar(index: int, count: int, most: int) -> Bar:
    step = _INNER_WIDTH / BINS
    height = FULL * count / most if most else 0.0
    height = max(height, 1.5) if count else 0.0  # one node among thousands stays visible
    says = f"{10 * index} to {10 * index + 10} %: {count} node{'s' if count != 1 else ''}"
    x = _LEFT + index * step
    return Bar(_short(x + 2), _short(_TOP + FULL - height), _short(step - 4), _short(height), str(count) if count else "", says)


def _percent_ticks() -> tuple[Tick, ...]:
    return (Tick(_LEFT, "0 %", "start"), Tick(WIDTH / 2, "50 %", "middle"), Tick(WIDTH - _RIGHT, "100 %", "end"))


def courses(figures: Sequence[Figures]) -> tuple[Course, ...]:
    """Return queue and placements over virtual time, or nothing if everything happens in one moment."""
    ends = [float(each.timeline.at[-1]) for each in figures if len(each.timeline.at)]
    end = max(ends, default=0.0)
    if end <= 0:
        return ()
    top = max((int(max(each.timeline.waiting.max(), each.timeline.placed.max())) for each in figures if len(each.timeline.at)), default=0)
    return tuple(_course(each, end, max(top, 1)) for each in figures)


def _course(figures: Figures, end: float, top: int) -> Course:
    line = _thinned(figures.timeline)
    most = int(figures.timeline.waiting.max(initial=0))
    summary = f"At most {most} pods wait at once; {figures.placed} are placed and {figures.pending} wait at the end."
    ticks = (Tick(_LEFT, "0 s", "start"), Tick(WIDTH - _RIGHT, span(end), "end"))
    return Course(figures.profile, _path(line.at, line.waiting, end, top), _path(line.at, line.placed, end, top), ticks, top, summary)


def _thinned(line: Timeline) -> Timeline:
    """Return every n-th step, and always the last one."""
    if len(line.at) <= _MOST_STEPS:
        return line
    kept = np.unique(np.linspace(0, len(line.at) - 1, _MOST_STEPS).astype(np.intp))
    return Timeline(line.at[kept], line.waiting[kept], line.placed[kept])


def _path(at: NDArray[np.float64], values: NDArray[np.int64], end: float, top: int) -> str:
    """Draw steps, in which a value holds until the next one."""
    return "".join(_steps(at, values, end, top))


def _steps(at: NDArray[np.float64], values: NDArray[np.int64], end: float, top: int) -> Iterator[str]:
    yield f"M{_LEFT} {_TOP + FULL}"
    for when, value in zip(at.tolist(), values.tolist(), strict=True):
        yield f"H{_short(_LEFT + _INNER_WIDTH * when / end)}V{_short(_TOP + FULL * (1 - value / top))}"
    yield f"H{WIDTH - _RIGHT}"


def _short(value: float) -> float:
    return round(value, 1)
