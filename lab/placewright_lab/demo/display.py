"""The output of a run for people: progress while it runs, and a summary at its end.

On a terminal, progress is a live bar. Elsewhere it is a plain line now and then. Names and messages come from the cluster, so the output
shows them as plain text only. It reads no markup in them, and escapes control characters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from placewright.api.bad_input import printable
from placewright.cli.terminal import plain
from placewright_lab.demo.summary import RunState, State, Summary
from placewright_lab.figures.figures import Reason, ResourceUse

_REFRESH_SECONDS: Final = 0.2
_LINE_SECONDS: Final = 2.0
MOST_REASONS: Final = 12
#: Factor between the standard deviations of nodes' use, from which a generation packs or spreads pods.
_CLEARLY: Final = 2.0
#: States in the order of the output: successes first, pending pods last.
_STATES: Final = (State.PLACED, State.UNSCHEDULABLE, State.GATED, State.REFUSED, State.GONE, State.WAITING)


def make_progress(console: Console) -> PlainProgress:
    """Return the live display on a terminal, and plain lines elsewhere."""
    return LiveProgress(console) if console.is_terminal else PlainProgress(console)


class PlainProgress:
    """Prints a line when something has changed, for logs and pipes. It is a context manager.

    Attributes:
        interval: seconds between two useful calls of `update`.
    """

    interval = _LINE_SECONDS

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return

    def update(self, snapshot: RunState) -> None:
        """Print the counts, unless they are those of the last line."""
        counts = _counts(snapshot)
        if counts != self._last:
            self._last = counts
            self._console.print(f"{snapshot.elapsed:6.1f}s  {counts}", markup=False, highlight=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Print one line."""
        self._console.print(Text(printable(text)), soft_wrap=True)


class LiveProgress(PlainProgress):
    """Draws a bar and the counts over themselves. Its context leaves the terminal whole."""

    interval = _REFRESH_SECONDS

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.stop()

    def update(self, snapshot: RunState) -> None:
        """Print the counts, unless the last line had the same."""
        bar = ProgressBar(total=max(snapshot.total, 1), completed=snapshot.settled, width=60)
        first = Table.grid(padding=(0, 1))
        first.add_row(Text(f"{snapshot.elapsed:6.1f}s"), bar)
        self._live.update(Group(first, Text(f"         {_counts(snapshot)}")), refresh=True)

    def say(self, text: str) -> None:
        """Print one line above the bar."""
        self._live.console.print(Text(printable(text)))


def _counts(snapshot: RunState) -> str:
    parts = [f"created {snapshot.created}/{snapshot.total}", f"placed {snapshot.placed}"]
    parts += [f"{state} {snapshot.states[state]}" for state in _STATES[1:-1] if snapshot.states.get(state)]
    if snapshot.generations:
        parts += [f"{_name(*by)}: {count}" for by, count in sorted(snapshot.generations.items())]
    parts.append(f"{snapshot.rate:.0f} pods/s")
    return "  ".join(parts)


def show_summary(console: Console, summary: Summary, change: str = "") -> None:
    """Print a run's outcome. `change` describes the change half-way."""
    states = ", ".join(f"{summary.states[state]} {state}" for state in _STATES if summary.states.get(state))
    console.print()
    console.print(plain(f"{summary.pods} pods on {summary.nodes} nodes: {states}"), style="bold")
    if summary.speed is not None:
        speed = summary.speed
        console.print(
            f"{speed.pods_per_second:.0f} pods/s from the first created to the last bound; "
            f"created to bound: p50 {_duration(speed.p50)}, p99 {_duration(speed.p99)}",
            highlight=False,
            soft_wrap=True,
        )
    for line in change.splitlines():
        console.print(Text(printable(line)), soft_wrap=True)
    console.print(_generation_table(summary))
    if said := _what_changed(summary):
        console.print(plain(said), soft_wrap=True)
    show_reasons(console, "without a place:", summary.reasons)


def _what_changed(summary: Summary) -> str:
    """Return a sentence if the last generation packs or spreads pods and the first did not, else an empty text."""
    if len(summary.generations) < 2:
        return ""
    first, last = summary.generations[0], summary.generations[-1]
    for resource, before in first.use.items():
        after = last.use.get(resource)
        if after is None or not before.deviation or not after.deviation:
            continue
        packs = after.deviation / before.deviation
        if max(packs, 1 / packs) >= _CLEARLY:
            became = "Spread became packed" if packs > 1 else "Packed became spread"
            return (
                f"{became}: of {len(after.shares)} nodes, pods of {_name(last.profile, last.generation)} leave {after.empty} empty, pods of"
                f" {_name(first.profile, first.generation)} left {before.empty}. They fill {100 * after.min:.0f} to {100 * after.max:.0f} %"
                f" of a node's {resource}, and filled {100 * before.min:.0f} to {100 * before.max:.0f} %."
            )
    return ""


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _generation_table(summary: Summary) -> Table:
    table = Table(title="use of nodes, percent of allocatable", title_justify="left", show_edge=False)
    for heading, right in (("pods of", False), ("placed", True), ("resource", False), ("nodes", True)):
        table.add_column(heading, justify="right" if right else "left")
    for heading in ("min", "mean", "max", "std dev"):
        table.add_column(heading, justify="right")
    for generation in summary.generations:
        _add_rows(table, _name(generation.profile, generation.generation), generation.placed, generation.use)
    _add_rows(table, "all together", summary.states.get(State.PLACED, 0), summary.use)
    return table


def _name(profile: str, generation: int) -> str:
    return printable(f"{profile} gen. {generation}") if profile else "no decision noted"


def _add_rows(table: Table, title: str, placed: int, use: Mapping[str, ResourceUse]) -> None:
    first, count = plain(title), str(placed)
    for resource, of in use.items():
        figures = (f"{100 * value:.1f}" for value in (of.min, of.mean, of.max, of.deviation))
        table.add_row(first, count, resource, str(len(of.shares)), *figures)
        first, count = Text(""), ""
    table.add_section()


def show_reasons(console: Console, heading: str, reasons: Sequence[Reason], all_of_them: str = "") -> None:
    """Print the reasons why pods have no node behind a heading, the first dozen in full.

    Args:
        console: output.
        heading: first line.
        reasons: the most frequent first; none for no output.
        all_of_them: words about where the others are.
    """
    if not reasons:
        return
    console.print(plain(heading, "bold"), soft_wrap=True)
    for reason in reasons[:MOST_REASONS]:
        console.print(Text(f"{reason.pods:6d}  ").append_text(plain(reason.what)), soft_wrap=True)
        if reason.example != reason.what:
            console.print(Text("        such as: ").append_text(plain(reason.example)), soft_wrap=True)
    if rest := reasons[MOST_REASONS:]:
        console.print(f"        and {len(rest)} more reasons for {sum(reason.pods for reason in rest)} pods{all_of_them}")


def show_notes(say: Callable[[str], None], notes: Sequence[str], heading: str) -> None:
    """Print the notes behind a heading, the first dozen in full."""
    for note in notes[:MOST_REASONS]:
        say(f"{heading}: {note}")
    if len(notes) > MOST_REASONS:
        say(f"{heading}: and {len(notes) - MOST_REASONS} more")
