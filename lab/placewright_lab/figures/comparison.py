"""Outcomes of one scenario side by side: the figures of each, and the changes of single pods under another profile. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from placewright.api.objects import NodeName, PodKey
from placewright_lab.figures.figures import Figures, figures_of, fullest_moment, without_counts, workload
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
