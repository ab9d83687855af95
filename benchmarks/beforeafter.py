"""Measures two checkouts in turns (A B B A, each turn a process), and computes the ratios of neighbouring turns.

A single figure says as much about the machine's other work as about the code. Two turns beside each other meet the same machine, so their
ratio stands. The median of several ratios has an interval that assumes nothing about their distribution.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from benchmarks.checkouts import Checkout, ChildFailed, WordsRefused

#: Fewest ratios whose median has an interval at `CONFIDENCE`.
FEWEST_ROUNDS: Final = 6
CONFIDENCE: Final = 0.95
#: Fields that distinguish the measurements of one benchmark, if a row of its JSON has them.
_IDENTITY: Final = ("workload", "claims", "event", "waiting", "deployments", "nodes", "running", "assigned", "groups", "members", "pods")


class Tendency(StrEnum):
    """The effect of the change, by the ratios."""

    SLOWER = "slower"
    FASTER = "faster"
    UNDECIDED = "no difference that stands out"


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement in one child.

    Attributes:
        seconds: processor time of the best of the runs that the child made.
        placed: number of pods or groups that got a node; None if the benchmark does not tell it.
    """

    seconds: float
    placed: int | None = None


@dataclass(slots=True)
class BeforeAfter:
    """One measurement, before and after.

    Attributes:
        what: its words and sizes.
        before, after: a turn a round, in the order of rounds.
    """

    what: dict[str, Any]
    before: list[Turn] = field(default_factory=list)
    after: list[Turn] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Seconds after by seconds before, round by round. Above 1 is slower."""
        return [after.seconds / before.seconds for before, after in zip(self.before, self.after, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of them."""
        return statistics.median(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that has the true median, with at least `CONFIDENCE`."""
        return median_interval(self.ratios)

    @property
    def tendency(self) -> Tendency:
        """Slower or faster if the whole interval says so."""
        low, high = self.interval
        if low > 1:
            return Tendency.SLOWER
        return Tendency.FASTER if high < 1 else Tendency.UNDECIDED

    @property
    def same_work(self) -> bool:
        """Whether equally many pods got a node on both sides. Otherwise the ratio compares different work."""
        return {turn.placed for turn in self.before} == {turn.placed for turn in self.after}

    def lost(self, tolerance: float) -> bool:
        """Whether it is slower beyond doubt, and by more than that part."""
        return self.tendency is Tendency.SLOWER and self.ratio > 1 + tolerance


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return two of the values that enclose the median of their distribution with a confidence of at least `CONFIDENCE`.

    Each value is as likely below that median as above, so the count of those below is binomial. Too few values leave it anywhere.
    """
    number, ordered = len(values), sorted(values)
    outside, rank = 0.0, 0
    while rank < number // 2:
        outside += 2 * math.comb(number, rank) / 2**number
        if outside > 1 - CONFIDENCE:
            break
        rank += 1
    return (ordered[rank - 1], ordered[number - rank]) if rank else (-math.inf, math.inf)


def in_turns(
    before: Checkout, after: Checkout, words: Sequence[str], rounds: int, told: Callable[[str], None] = lambda _: None
) -> tuple[list[BeforeAfter], list[str]]:
    """Run `python -m benchmarks WORDS` in so many rounds; `told` is called after each turn.

    Returns what both sides measured, and a line for what only one of them can. Raises `ChildFailed` if `after` breaks.
    """
    text, sides = " ".join(words), {"before": before, "after": after}
    for side, checkout in sides.items():
        try:
            checkout.run(words)  # a first turn on either side does not count
        except ChildFailed as failed:
            if side == "after" and not isinstance(failed, WordsRefused):
                raise
            return [], [f"{text}: cannot be measured {side}: {failed}"]
    found: dict[tuple[Any, ...], BeforeAfter] = {}
    for number in range(rounds):
        for side in sorted(sides, reverse=number % 2 == 0):
            rows = list(rows_of(words[0], sides[side].run(words, number)))
            for what, turn in rows:
                getattr(found.setdefault(tuple(what.items()), BeforeAfter(what)), side).append(turn)
            told(f"round {number + 1} of {rounds}: {text}: {side} {sum(turn.seconds for _, turn in rows):.3f} s")
    both = [one for one in found.values() if len(one.before) == len(one.after)]
    return both, [f"{named(one.what)}: measured on one side only" for one in found.values() if one not in both]


def named(what: dict[str, Any]) -> str:
    """Return a measurement in words: `plain, 5,000 nodes, 3,000 pods`."""
    return ", ".join(str(value) if isinstance(value, str) else f"{value:,} {name}" for name, value in what.items())


def rows_of(benchmark: str, data: Any) -> Iterator[tuple[dict[str, Any], Turn]]:
    """Yield the rows of a benchmark's JSON: the measured thing, and its time."""
    for row in data if isinstance(data, list) else [data]:
        what = {name: row[name] for name in _IDENTITY if row.get(name) is not None}
        named_so = {"workload", "claims", "event"} & set(what)
        yield what if named_so else {"workload": benchmark, **what}, Turn(_seconds(row), row.get("placed"))


def _seconds(row: dict[str, Any]) -> float:
    if "seconds" in row:
        return float(min(row["seconds"]) if isinstance(row["seconds"], list) else row["seconds"])
    if "milliseconds" in row:
        return float(statistics.median(row["milliseconds"])) / 1000
    return float(row["operator_cpu"])
