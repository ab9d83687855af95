"""Outcomes of one scenario side by side: the figures of each, and the changes of single pods under another profile. Pure functions.

Rows show the figures of several profiles: a label, a value for each profile, and its difference from the first one's.

Terminal, Markdown and page show the same rows, each in its form. Of several seeds a value is their mean, with the standard deviation after
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final, NamedTuple

from placewright.api.objects import NodeName, PodKey
from placewright_lab.figures.figures import (
    Figures,
    Fragmentation,
    ResourceUse,
    WaitingTimes,
    figures_of,
    fullest_moment,
    without_counts,
    workload,
)
from placewright_lab.readers.openb import GPU_MILLI
from placewright_lab.simulation.outcome import Fate, Outcome


class Move(NamedTuple):
    """A pod that both profiles place, each on another node."""

    pod: PodKey
    before: NodeName
    after: NodeName


class Waiting(NamedTuple):
    """A pod that waits under one profile and has a node under the other.

    Attributes:
        why: reason why it waits.
    """

    pod: PodKey
    why: str
    node: NodeName


@dataclass(frozen=True, slots=True)
class Change:
    """The changes of pods under a profile, compared with the first one, in the order in which pods came.

    Attributes:
        moves: pods on other nodes.
        appear: pods that only wait under this profile.
        disappear: pods that only wait under the first profile.
    """

    moves: tuple[Move, ...]
    appear: tuple[Waiting, ...]
    disappear: tuple[Waiting, ...]


class Repetition(NamedTuple):
    """The outcomes with another seed: each profile's figures, and the number of pods on other nodes than in the very first run."""

    figures: tuple[Figures, ...]
    moved: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProfileComparison:
    """Profiles on one scenario.

    Attributes:
        source: origin of the scenario.
        figures: figures of each profile with the first seed, under distinct names.
        changes: changes of every profile after the first, compared with the first.
        repetitions: repetition for each further seed.
    """

    source: str
    figures: tuple[Figures, ...]
    changes: tuple[Change, ...]
    repetitions: tuple[Repetition, ...] = ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds, in order."""
        return (self.figures[0].seed, *(each.figures[0].seed for each in self.repetitions))


def compare(source: str, outcomes: Sequence[Outcome], again: Iterable[Sequence[Outcome]] = ()) -> ProfileComparison:
    """Compare the outcomes of one scenario under several profiles, at least one.

    The figures of nodes are from the first outcome's fullest moment. `again` has the outcomes of the same profiles under further seeds.
    Only their figures are kept.
    """
    mix = workload(outcomes)
    first, *others = outcomes
    at = fullest_moment(first)
    figures = [replace(figures_of(outcome, mix, at), profile=name) for outcome, name in zip(outcomes, _told_apart(outcomes), strict=True)]
    repetitions = [
        Repetition(tuple(figures_of(each, mix, at) for each in run), tuple(len(_moves(first, each)) for each in run)) for run in again
    ]
    return ProfileComparison(source, tuple(figures), tuple(_change(first, other) for other in others), tuple(repetitions))


def _told_apart(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Return distinct names, because profiles of two files may have one name."""
    taken: set[str] = set()
    for outcome in outcomes:
        name, number = outcome.profile, 2
        while name in taken:
            name, number = f"{outcome.profile} ({number})", number + 1
        taken.add(name)
        yield name


def _both(before: Outcome, after: Outcome) -> list[tuple[Fate, Fate]]:
    return [(fate, after.fates[uid]) for uid, fate in before.fates.items() if uid in after.fates]


def _moves(before: Outcome, after: Outcome) -> tuple[Move, ...]:
    found = _both(before, after)
    return tuple(Move(old.pod.key, old.node, new.node) for old, new in found if old.node and new.node and old.node != new.node)


def _change(before: Outcome, after: Outcome) -> Change:
    both = _both(before, after)
    return Change(
        _moves(before, after),
        tuple(_waiting(new, old.node) for old, new in both if old.node and new.pending),
        tuple(_waiting(old, new.node) for old, new in both if old.pending and new.node),
    )


def _waiting(fate: Fate, node: NodeName) -> Waiting:
    return Waiting(fate.pod.key, without_counts(fate.message), node)


Value = float | None

#: Text for a profile that has no such number.
NOTHING: Final = "–"
_MOST_REASONS: Final = 8


@dataclass(frozen=True, slots=True)
class Unit:
    """The form of numbers of a kind: a scale, a number of decimals and a suffix."""

    scale: float = 1
    decimals: int = 0
    suffix: str = ""

    def text(self, value: Value) -> str:
        """Return `81.2 %`, with separators between thousands."""
        return NOTHING if value is None else f"{self._scaled(value):,.{self.decimals}f}{self.suffix}"

    def difference(self, value: Value, first: Value) -> str:
        """Return `+12`, `−0.4`, or nothing if both have the same text. Differences of percent are percentage points."""
        if value is None or first is None:
            return ""
        by = round(self._scaled(value), self.decimals) - round(self._scaled(first), self.decimals)
        text = f"{abs(by):,.{self.decimals}f}"
        return f"{'+' if by > 0 else '−'}{text}" if float(text.replace(",", "")) else ""

    def deviation(self, value: float) -> str:
        """Return a standard deviation like `text`, without the suffix."""
        return f"{self._scaled(value):,.{self.decimals}f}"

    def _scaled(self, value: float) -> float:
        return value * self.scale


COUNT: Final = Unit()
SHARE: Final = Unit(100, 1, " %")
SECONDS: Final = Unit(1, 2, " s")
DEVICES: Final = Unit(1, 1)
THOUSANDTHS: Final = Unit(0.001, 1)


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One figure of all profiles.

    Attributes:
        values: value of each profile; of several seeds their mean.
        samples: values of each profile under each seed, in order; empty for a single seed.
    """

    group: str
    label: str
    unit: Unit
    values: tuple[Value, ...]
    samples: tuple[tuple[float, ...], ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Every profile's value for people: `81.2 %`, or `81.2 % ± 0.3` if seeds differ."""
        spreads = (f" ± {self.unit.deviation(by)}" if by else "" for by in self.deviations)
        return tuple(self.unit.text(value) + spread for value, spread in zip(self.values, spreads, strict=True))

    @property
    def deviations(self) -> tuple[float, ...]:
        """Every profile's standard deviation over the seeds, that of a sample; 0 for a single one."""
        several = self.samples or ((),) * len(self.values)
        return tuple(stdev(sample) if len(sample) > 1 else 0.0 for sample in several)

    @property
    def within_spread(self) -> tuple[bool, ...]:
        """True for a profile whose difference from the first is no larger than between seeds. Then the ranges overlap."""
        if not self.samples or not self.samples[0]:
            return (False,) * len(self.values)
        low, high = min(self.samples[0]), max(self.samples[0])
        overlap = (bool(sample) and min(sample) <= high and max(sample) >= low for sample in self.samples)
        return tuple(bool(by) and shared for by, shared in zip(self.differences, overlap, strict=True))

    @property
    def differences(self) -> tuple[str, ...]:
        """Differences from the first profile. They are empty for itself and for values with the same text."""
        return tuple(self.unit.difference(value, self.values[0]) for value in self.values)

    @property
    def changes(self) -> bool:
        """True if a profile's value has another text than the first one's."""
        return len(set(self.texts)) > 1

    def over(self, profiles: int) -> FigureRow:
        """Turn values of all profiles, seed by seed, into a value for each profile with its values under the seeds."""
        samples = tuple(tuple(value for value in self.values[place::profiles] if value is not None) for place in range(profiles))
        whole = self.unit.decimals or all(len(set(sample)) <= 1 for sample in samples)
        unit = self.unit if whole else replace(self.unit, decimals=1)
        return replace(self, unit=unit, values=tuple(fmean(sample) if sample else None for sample in samples), samples=samples)


def rows_of(comparison: ProfileComparison) -> list[FigureRow]:
    """Return every figure, in groups. A figure that no profile has makes no row."""
    several = comparison.repetitions
    figures = [*comparison.figures, *(each for repetition in several for each in repetition.figures)]
    moved = [None, *(len(change.moves) for change in comparison.changes), *(count for each in several for count in each.moved)]
    rows = [*_pods(figures, moved), *_groups(figures), *_claims(figures), *_nodes(figures), *_zones(figures)]
    rows += [*_scores(figures), *_times(figures)]
    rows = [row for row in rows if any(value is not None for value in row.values)]
    return [row.over(len(comparison.figures)) for row in rows] if several else rows


def moment_of(figures: Figures) -> str:
    """Return the moment at which nodes are looked at, in words."""
    return "at the end" if figures.at is None else f"after {span(figures.at)}, when most pods stand"


def span(seconds: float) -> str:
    """Return a duration in the largest unit that leaves a number over 1.

    Examples:
        >>> span(90), span(7200)
        ('1.5 min', '2 h')
    """
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def device_label(resource: str) -> str:
    """Return the device's usual name, that of GPUs for the trace's thousandths."""
    return "GPU" if resource == GPU_MILLI else resource


def device_unit(resource: str) -> Unit:
    """Return the unit of whole devices."""
    return THOUSANDTHS if resource == GPU_MILLI else DEVICES


def pending_by_reason(figures: Sequence[Figures]) -> dict[str, tuple[int, ...]]:
    """Return the reasons why pods wait under any profile, and their numbers under each, the most frequent first."""
    counts = [{reason.what: reason.pods for reason in each.reasons} for each in figures]
    most: Counter[str] = Counter()
    for one in counts:
        most.update(one)
    return {what: tuple(one.get(what, 0) for one in counts) for what, _ in most.most_common()}


def _row(group: str, label: str, unit: Unit, figures: Sequence[Figures], value: Callable[[Figures], Value]) -> FigureRow:
    return FigureRow(group, label, unit, tuple(value(each) for each in figures))


def _pods(figures: Sequence[Figures], moved: Sequence[int | None]) -> Iterator[FigureRow]:
    yield _row("Pods", "to place", COUNT, figures, lambda f: f.pods)
    yield _row("Pods", "placed", COUNT, figures, lambda f: f.placed)
    yield _row("Pods", "pending", COUNT, figures, lambda f: f.pending)
    if any(each.gone for each in figures):
        yield _row("Pods", "left before they had a node", COUNT, figures, lambda f: f.gone)
    yield _row("Pods", "preempted", COUNT, figures, lambda f: f.preempted)
    if len(moved) > 1:
        yield FigureRow("Pods", "on another node than under the first", COUNT, tuple(moved))
    yield from _reasons(figures)


def _reasons(figures: Sequence[Figures]) -> Iterator[FigureRow]:
    reasons = list(pending_by_reason(figures).items())
    for what, counts in reasons[:_MOST_REASONS]:
        yield FigureRow("Pending, and why", what, COUNT, counts)
    if rest := reasons[_MOST_REASONS:]:
        totals = zip(*(counts for _, counts in rest), strict=True)
        yield FigureRow("Pending, and why", f"{len(rest)} other reasons", COUNT, tuple(map(sum, totals)))


def _groups(figures: Sequence[Figures]) -> Iterator[FigureRow]:
    """Yield the figures of groups, none if no pod names a group."""
    label = "Groups of pods"
    yield _row(label, "to place", COUNT, figures, lambda f: f.groups.groups if f.groups else None)
    yield _row(label, "placed", COUNT, figures, lambda f: f.groups.placed if f.groups else None)
    yield _row(label, "pending", COUNT, figures, lambda f: f.groups.pending if f.groups else None)
    reasons: Counter[str] = Counter()
    for each in figures:
        reasons.update(each.groups.reasons if each.groups else {})
    for what, _ in reasons.most_common(_MOST_REASONS):
        counts = tuple(each.groups.reasons.get(what, 0) if each.groups else None for each in figures)
        yield FigureRow("Groups pending, and why", what, COUNT, counts)


def _claims(figures: Sequence[Figures]) -> Iterator[FigureRow]:
    """Yield the figures of claims, none if there are no claims."""
    label = "Claims to devices, at the end"
    yield _row(label, "claims", COUNT, figures, lambda f: f.claims.claims if f.claims else None)
    yield _row(label, "with devices", COUNT, figures, lambda f: f.claims.allocated if f.claims else None)
    for driver, name in dict.fromkeys(each for one in figures if one.claims for each in one.claims.devices):
        counts = tuple(one.claims.devices.get((driver, name), 0) if one.claims else None for one in figures)
        yield FigureRow(label, f"devices of {driver}, class {name}", COUNT, counts)


def _nodes(figures: Sequence[Figures]) -> Iterator[FigureRow]:
    yield _row("Nodes", "nodes", COUNT, figures, lambda f: f.nodes)
    yield _row("Nodes", "left empty", COUNT, figures, lambda f: f.empty_nodes)
    for resource in dict.fromkeys(use.resource for each in figures for use in each.uses):
        yield from _uses(figures, resource)
    for resource in dict.fromkeys(resource for each in figures for resource in each.devices):
        yield from _placed(figures, resource)
    for resource in dict.fromkeys(found.resource for each in figures for found in each.fragmentations):
        yield from _devices(figures, resource)


def _uses(figures: Sequence[Figures], resource: str) -> Iterator[FigureRow]:
    found = [next((use for use in each.uses if use.resource == resource), None) for each in figures]
    parts: Mapping[str, Callable[[ResourceUse], float]] = {
        "of all of it": lambda use: use.requested / use.allocatable,
        "of a node, min": lambda use: use.min,
        "of a node, mean": lambda use: use.mean,
        "of a node, max": lambda use: use.max,
        "of a node, standard deviation": lambda use: use.deviation,
    }
    for label, part in parts.items():
        yield FigureRow(f"{device_label(resource)} asked for", label, SHARE, tuple(None if use is None else part(use) for use in found))


def _placed(figures: Sequence[Figures], resource: str) -> Iterator[FigureRow]:
    found = [each.devices.get(resource) for each in figures]
    label, unit = f"{device_label(resource)} placed", device_unit(resource)
    yield FigureRow(label, "before the first rejection", unit, tuple(None if one is None else one.before_rejection for one in found))
    yield FigureRow(label, "in all", unit, tuple(None if one is None else one.in_all for one in found))


def _devices(figures: Sequence[Figures], resource: str) -> Iterator[FigureRow]:
    found = [next((one for one in each.fragmentations if one.resource == resource), None) for each in figures]
    label, unit = device_label(resource), device_unit(resource)
    parts: Mapping[str, tuple[Unit, Callable[[Fragmentation], float]]] = {
        "free": (unit, lambda one: one.free),
        "stranded": (unit, lambda one: one.stranded),
        "useless to the next pod, expected": (unit, lambda one: one.expected),
        "fragmentation rate": (SHARE, lambda one: one.rate),
    }
    for what, (shown, part) in parts.items():
        yield FigureRow(f"{label} left over", what, shown, tuple(None if one is None else part(one) for one in found))


def _zones(figures: Sequence[Figures]) -> Iterator[FigureRow]:
    for zone in dict.fromkeys(zone for each in figures for zone in each.zones):
        yield FigureRow("Pods by zone", zone, COUNT, tuple(each.zones.get(zone) for each in figures))
    yield _row("Pods by zone", "skew", COUNT, figures, lambda f: f.zone_skew)


def _scores(figures: Sequence[Figures]) -> Iterator[FigureRow]:
    for plugin in dict.fromkeys(plugin for each in figures for plugin in each.score_shares):
        yield FigureRow("Share of the scores", plugin, SHARE, tuple(each.score_shares.get(plugin, 0.0) for each in figures))


def _times(figures: Sequence[Figures]) -> Iterator[FigureRow]:
    """Yield the times, none if no pod waits, for instance because all come at once and have room."""
    if not any(each.times is not None and each.times.max for each in figures):
        return
    parts: Mapping[str, Callable[[WaitingTimes], float]] = {
        "mean": lambda times: times.mean,
        "median": lambda times: times.p50,
        "99th percentile": lambda times: times.p99,
        "max": lambda times: times.max,
    }
    for label, part in parts.items():
        yield FigureRow("Virtual time to place", label, SECONDS, tuple(None if f.times is None else part(f.times) for f in figures))
