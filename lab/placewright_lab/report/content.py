"""The content of a comparison for people: figures as texts, drawings as numbers, and lists that are cut.

The page of HTML and the console's page have the same content. It can be written as JSON and read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

import msgspec

from placewright_lab.figures.comparison import SHARE, Change, ProfileComparison, Waiting, moment_of, pending_by_reason, rows_of
from placewright_lab.figures.figures import Figures
from placewright_lab.report.charts import HEIGHT, WIDTH, Course, Distribution, courses, distributions

#: Number of named pods that move, of named pods that wait, and of reasons. `-o json` also has all of them.
MOST_NAMED: Final = 200
#: Groups of rows with a section of their own.
_DRAWN: Final = frozenset({"Pending, and why", "Share of the scores"})


class _Told(msgspec.Struct, frozen=True, rename="camel"):
    """A part of the content."""


class ProfileCard(_Told, frozen=True):
    """A profile's outcome in a line."""

    profile: str
    placed: int
    pending: int
    pods: int
    empty_nodes: int
    nodes: int
    seed: int


class ShownRow(_Told, frozen=True):
    """A figure of all profiles.

    Attributes:
        texts: each profile's value.
        differences: each profile's difference from the first; empty if there is none.
        within_spread: True if the difference may be chance.
    """

    label: str
    texts: tuple[str, ...]
    differences: tuple[str, ...]
    within_spread: tuple[bool, ...]


class ShownGroup(_Told, frozen=True):
    """Figures under one heading."""

    name: str
    rows: tuple[ShownRow, ...]


class ShownReason(_Told, frozen=True):
    """A reason why pods wait, and the number of pods under each profile."""

    what: str
    counts: tuple[int, ...]


class ShownMessage(_Told, frozen=True):
    """A message in full, and the number of pods with a similar one."""

    pods: int
    text: str


class ShownMessages(_Told, frozen=True):
    """The messages under one profile."""

    profile: str
    messages: tuple[ShownMessage, ...]


class ShownScore(_Told, frozen=True):
    """A plugin's part in the scores under each profile, from 0 to 1, and as texts."""

    plugin: str
    parts: tuple[float, ...]
    texts: tuple[str, ...]


class PodList(_Told, frozen=True):
    """Pods as rows of three texts each.

    Attributes:
        count: number of all pods, more than the rows if the list is cut.
        columns: names of the columns.
    """

    title: str
    count: int
    columns: tuple[str, str, str]
    rows: tuple[tuple[str, str, str], ...]


class ProfileChange(_Told, frozen=True):
    """The changes of pods under a profile, compared with the first one."""

    profile: str
    summary: str
    lists: tuple[PodList, ...]


class ReportContent(_Told, frozen=True):
    """A comparison.

    Attributes:
        seeds: all seeds; drawings are of the first.
        moment: time at which nodes are looked at.
        more_reasons: number of reasons that are left out.
        most_pending: highest number of pods that wait for one reason or for all, as the scale of the bars.
        width, height: size of the drawings.
    """

    source: str
    profiles: tuple[str, ...]
    seeds: tuple[int, ...]
    moment: str
    cards: tuple[ProfileCard, ...]
    groups: tuple[ShownGroup, ...]
    distributions: tuple[Distribution, ...]
    reasons: tuple[ShownReason, ...]
    more_reasons: int
    most_pending: int
    messages: tuple[ShownMessages, ...]
    scores: tuple[ShownScore, ...]
    courses: tuple[Course, ...]
    changes: tuple[ProfileChange, ...]
    width: int = WIDTH
    height: int = HEIGHT


def content_of(comparison: ProfileComparison) -> ReportContent:
    """Collect the content of a comparison."""
    figures = comparison.figures
    groups = groupby((row for row in rows_of(comparison) if row.group not in _DRAWN), key=lambda row: row.group)
    shown = tuple(
        ShownGroup(name, tuple(ShownRow(row.label, row.texts, row.differences, row.within_spread) for row in rows)) for name, rows in groups
    )
    reasons = [ShownReason(what, counts) for what, counts in pending_by_reason(figures).items()]
    return ReportContent(
        source=comparison.source,
        profiles=tuple(each.profile for each in figures),
        seeds=comparison.seeds,
        moment=moment_of(figures[0]),
        cards=tuple(
            ProfileCard(each.profile, each.placed, each.pending, each.pods, each.empty_nodes, each.nodes, each.seed) for each in figures
        ),
        groups=shown,
        distributions=distributions(figures),
        reasons=tuple(reasons[:MOST_NAMED]),
        more_reasons=max(len(reasons) - MOST_NAMED, 0),
        most_pending=max((each.pending for each in figures), default=0),
        messages=tuple(_messages(each) for each in figures if each.reasons),
        scores=_scores(figures),
        courses=courses(figures),
        changes=tuple(
            _change(figures[0].profile, each.profile, change) for each, change in zip(figures[1:], comparison.changes, strict=True)
        ),
    )


def _messages(figures: Figures) -> ShownMessages:
    told = tuple(ShownMessage(reason.pods, reason.example or reason.what) for reason in figures.reasons[:MOST_NAMED])
    return ShownMessages(figures.profile, told)


def _scores(figures: Iterable[Figures]) -> tuple[ShownScore, ...]:
    shares = [each.score_shares for each in figures]
    plugins = dict.fromkeys(plugin for each in shares for plugin in each)
    parts = {plugin: tuple(each.get(plugin, 0.0) for each in shares) for plugin in plugins}
    return tuple(ShownScore(plugin, each, tuple(map(SHARE.text, each))) for plugin, each in parts.items())


def _change(first: str, profile: str, change: Change) -> ProfileChange:
    moves, appear, gone = len(change.moves), len(change.appear), len(change.disappear)
    summary = f"{moves:,} on another node, {appear:,} that wait now and did not, {gone:,} that waited and do not any more."
    moved = tuple((each.pod, each.before, each.after) for each in change.moves[:MOST_NAMED])
    lists = (
        _waiting(f"Wait now under {profile}", change.appear),
        _waiting(f"Do not wait any more under {profile}", change.disappear),
        PodList(f"On another node under {profile}", moves, ("Pod", first, profile), moved),
    )
    return ProfileChange(profile, summary, tuple(each for each in lists if each.count))


def _waiting(title: str, pods: tuple[Waiting, ...]) -> PodList:
    told = tuple((each.pod, each.why, each.node) for each in pods[:MOST_NAMED])
    return PodList(title, len(pods), ("Pod", "Why it waits", "Node otherwise"), told)
