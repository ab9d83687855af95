"""A change of profiles for its reviewer: the differences in effect, and their result on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rich.console import Console

from placewright.cli.terminal import compact, plain, print_table, say, table
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.profiles.effective import Difference, differences
from placewright_lab.commands.comparisonoutput import as_data, escaped, markdown_of
from placewright_lab.figures.comparison import COUNT, Change, FigureRow, ProfileComparison, Waiting, moment_of, rows_of

#: Length of each list of pods, short enough for a comment on a pull request. JSON has all pods.
MOST_NAMED: Final = 10


class Named(NamedTuple):
    """A difference, and the name of its profile."""

    profile: str
    difference: Difference


@dataclass(frozen=True, slots=True)
class Review:
    """The effect of a change.

    Attributes:
        before, after: names of the two sides, for people.
        found: differences in effect, with a difference for each profile that one side does not have.
        comparison: comparison of the two on a cluster; None if nothing differs, because the result would be the same.
    """

    before: str
    after: str
    found: tuple[Named, ...]
    comparison: ProfileComparison | None

    @property
    def more_pending(self) -> int:
        """The growth of the number of pending pods, negative if it shrinks."""
        if self.comparison is None:
            return 0
        before, after = self.comparison.figures
        return after.pending - before.pending

    @property
    def summary(self) -> str:
        """One line. It leaves out pods that move, because they move by chance among nodes with equal scores."""
        if self.comparison is None:
            return "no difference in effect"
        before, after = self.comparison.figures
        return (
            f"{len(self.found)} difference{'s' if len(self.found) != 1 else ''} in effect; of {COUNT.text(before.pods)} pods "
            f"{COUNT.text(before.pending)} → {COUNT.text(after.pending)} pending; {len(self.rows())} figures change"
        )

    def rows(self) -> list[FigureRow]:
        """Return the figures that change."""
        return [] if self.comparison is None else [row for row in rows_of(self.comparison) if row.changes and row.values[0] is not None]


def effective(before: Sequence[ResolvedProfile], after: Sequence[ResolvedProfile]) -> tuple[Named, ...]:
    """Return the differences between two sets of profiles. Single profiles are compared under any names, several by name."""
    if len(before) == len(after) == 1:
        return tuple(Named(_name(after[0]), each) for each in differences(before[0], after[0]))
    old, new = ({_name(profile): profile for profile in side} for side in (before, after))
    return tuple(_differences(old, new))


def _differences(old: dict[str, ResolvedProfile], new: dict[str, ResolvedProfile]) -> Iterator[Named]:
    for name in dict.fromkeys([*old, *new]):
        if name in old and name in new:
            yield from (Named(name, each) for each in differences(old[name], new[name]))
        else:
            yield Named(name, Difference("the whole profile", *("there" if name in side else None for side in (old, new))))


def _name(profile: ResolvedProfile) -> str:
    return profile.name or profile.scheduler_name


def markdown(review: Review) -> str:
    """Return a comment for a pull request."""
    parts = [f"### Scheduling profiles: {escaped(review.summary)}\n"]
    if review.found:
        parts.append(_differences_table(review.found))
    if review.comparison is not None:
        parts += _on_the_cluster(review, review.comparison)
    return "\n".join(parts)


def _differences_table(found: Sequence[Named]) -> str:
    lines = ["| profile | what | before | after |", "| --- | --- | --- | --- |"]
    for profile, (what, before, after) in found:
        lines.append(f"| {' | '.join(escaped(text) for text in (profile, what, compact(before), compact(after)))} |")
    return "\n".join(lines) + "\n"


def _on_the_cluster(review: Review, comparison: ProfileComparison) -> Iterator[str]:
    before, after = comparison.figures
    yield (
        f"On {escaped(comparison.source)}, {COUNT.text(before.nodes)} nodes and {COUNT.text(before.pods)} pods to place, "
        f"seed {before.seed}; nodes as they stand {moment_of(before)}:\n"
    )
    rows = review.rows()
    yield markdown_of(rows, (before, after)) if rows else "No figure changes.\n"
    yield from _pods(comparison.changes[0])


def _pods(change: Change) -> Iterator[str]:
    for title, waiting in (("begin to wait", change.appear), ("cease to wait", change.disappear)):
        yield from _folded(f"Pods that {title}", ("pod", "why it waits", "node otherwise"), [(w.pod, w.why, w.node) for w in waiting])
    yield from _folded("Pods on another node, also by chance among nodes that score alike", ("pod", "before", "after"), change.moves)


def _folded(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield a list that GitHub and GitLab fold: a summary, and a table after an empty line."""
    if not rows:
        return
    some = f", the first {MOST_NAMED}" if len(rows) > MOST_NAMED else ""
    lines = [f"<details><summary>{title}: {COUNT.text(len(rows))}{some}</summary>", ""]
    lines += [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    lines += [f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows[:MOST_NAMED]]
    yield "\n".join([*lines, "", "</details>", ""])


def show(to: Console, review: Review) -> None:
    """Print the review on a terminal."""
    say(to, review.summary)
    if review.found:
        made = table("PROFILE", "WHAT", review.before, review.after)
        for profile, (what, before, after) in review.found:
            made.add_row(plain(profile), plain(what), plain(compact(before)), plain(compact(after)))
        print_table(to, made)
    if review.comparison is None:
        return
    say(to, "", f"on {review.comparison.source}:")
    made = table("FIGURE", "BEFORE", "AFTER", "DIFFERENCE", numbers=("BEFORE", "AFTER", "DIFFERENCE"))
    for row in review.rows():
        made.add_row(plain(f"{row.group}: {row.label}"), *map(plain, row.texts), plain(row.differences[1]))
    print_table(to, made)
    _show_pods(to, review.comparison.changes[0])


def _show_pods(to: Console, change: Change) -> None:
    def waiting(pods: Sequence[Waiting]) -> list[str]:
        return [f"{each.pod}: {each.why} (otherwise on {each.node})" for each in pods]

    moves = [f"{move.pod}: {move.before} → {move.after}" for move in change.moves]
    lists = {
        "begin to wait": waiting(change.appear),
        "cease to wait": waiting(change.disappear),
        "move, also by chance among nodes that score alike": moves,
    }
    for title, lines in lists.items():
        if lines:
            more = [f"  and {len(lines) - MOST_NAMED} more; all of them with -o json"] if len(lines) > MOST_NAMED else []
            say(to, "", f"{len(lines)} pods {title}:", *(f"  {line}" for line in lines[:MOST_NAMED]), *more)


def review_data(review: Review) -> dict[str, Any]:
    """Return the whole review as plain data."""
    return {
        "before": review.before,
        "after": review.after,
        "differences": [{"profile": name, **difference._asdict()} for name, difference in review.found],
        "pendingGrowsBy": review.more_pending,
        "simulation": None if review.comparison is None else as_data(review.comparison),
    }
