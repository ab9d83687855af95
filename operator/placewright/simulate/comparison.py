"""Outcomes of one scenario side by side: each one's figures, and what becomes of single pods under another profile. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from placewright.api.objects import NodeName, PodKey
from placewright.simulate.figures import Figures, figures_of, fullest_moment, without_counts, workload
from placewright.simulate.outcome import Fate, Outcome


class Move(NamedTuple):
    """A pod that both profiles place, each on another node."""

    pod: PodKey
    before: NodeName
    after: NodeName


class Waiting(NamedTuple):
    """A pod that waits under one profile and has a node under the other; `why` is what it waits for."""

    pod: PodKey
    why: str
    node: NodeName


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of pods under a profile, against the first one; in the order in which pods came.

    Attributes:
        moves: pods on other nodes.
        appear: pods that wait now and did not.
        disappear: pods that waited and do not any more.
    """

    moves: tuple[Move, ...]
    appear: tuple[Waiting, ...]
    disappear: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Profiles on one scenario.

    Attributes:
        source: where the scenario comes from.
        figures: one for each profile, their names told apart.
        changes: of every profile but the first, against the first.
    """

    source: str
    figures: tuple[Figures, ...]
    changes: tuple[Change, ...]


def compare(source: str, outcomes: Sequence[Outcome]) -> Comparison:
    """Compare what came of one scenario under several profiles; at least one outcome.

    Nodes are looked at in the first one's fullest moment, whichever profile placed the pods.
    """
    mix = workload(outcomes)
    first, *others = outcomes
    at = fullest_moment(first)
    figures = [replace(figures_of(outcome, mix, at), profile=name) for outcome, name in zip(outcomes, _told_apart(outcomes), strict=True)]
    return Comparison(source, tuple(figures), tuple(_change(first, other) for other in others))


def _told_apart(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Profiles of two files may have one name."""
    taken: set[str] = set()
    for outcome in outcomes:
        name, number = outcome.profile, 2
        while name in taken:
            name, number = f"{outcome.profile} ({number})", number + 1
        taken.add(name)
        yield name


def _change(before: Outcome, after: Outcome) -> Change:
    both = [(fate, after.fates[uid]) for uid, fate in before.fates.items() if uid in after.fates]
    return Change(
        tuple(Move(old.pod.key, old.node, new.node) for old, new in both if old.node and new.node and old.node != new.node),
        tuple(_waiting(new, old.node) for old, new in both if old.node and new.pending),
        tuple(_waiting(old, new.node) for old, new in both if old.pending and new.node),
    )


def _waiting(fate: Fate, node: NodeName) -> Waiting:
    return Waiting(fate.pod.key, without_counts(fate.message), node)
