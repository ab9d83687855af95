"""A comparison of profiles for terminals, for pull requests and for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placewright.api.bad_input import printable
from placewright.cli.terminal import plain, print_table, say
from placewright_lab.figures.comparison import Change, FigureRow, ProfileComparison, moment_of, rows_of
from placewright_lab.figures.figures import Figures
from placewright_lab.figures.groups import company_data

#: Characters with a meaning in a line of Markdown or HTML. `@` mentions people, `#` other requests, and addresses become links.
_MARKDOWN: Final = re.compile(r"[\\`*_\[\]<>#|~&@$]|:(?=//)|(?<=www)\.", re.IGNORECASE)
_AS_REFERENCE: Final = frozenset("<>&@#|:.$")


def show_table(to: Console, comparison: ProfileComparison) -> None:
    """Print every figure side by side, with its difference from the first profile."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for figures in comparison.figures:
        table.add_column(plain(figures.profile), justify="right", overflow="fold")
    group = ""
    for row in rows_of(comparison):
        if row.group != group:
            group = row.group
            table.add_row(plain(group, "bold"))
        table.add_row(Text("  ").append_text(plain(row.label)), *(_cell(row, index) for index in range(len(row.values))))
    print_table(to, table)
    say(to, f"Nodes as they stand {moment_of(comparison.figures[0])}.")
    if comparison.repetitions:
        say(to, f"Mean ± standard deviation over {in_words(comparison.seeds)}; ~: values of both profiles overlap, it may be chance.")


def in_words(seeds: Sequence[int]) -> str:
    """Return `seeds 0 to 4` for seeds that follow each other."""
    return f"seeds {seeds[0]} to {seeds[-1]}"


def _cell(row: FigureRow, index: int) -> Text:
    by = row.differences[index] + (" ~" if row.within_spread[index] else "")
    return Text(row.texts[index]).append(f" ({by})" if by else "", style="dim")


def markdown_of(rows: Iterable[FigureRow], figures: Sequence[Figures]) -> str:
    """Format rows as a Markdown table that GitHub and GitLab show."""
    lines = [_line(["", *(escaped(each.profile) for each in figures)]), _line(["---", *("---:" for _ in figures)])]
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            lines.append(_line([f"**{escaped(group)}**", *("" for _ in figures)]))
        by = [each + (", within the spread" if chance else "") for each, chance in zip(row.differences, row.within_spread, strict=True)]
        lines.append(_line([escaped(row.label), *map(_both, row.texts, by)]))
    return "\n".join(lines) + "\n"


def _both(text: str, by: str) -> str:
    return f"{text} ({by})" if by else text


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: object) -> str:
    """Escape other people's text for Markdown. It stays on one line, and cannot link, mention a person or open HTML."""
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};" if found[0] in _AS_REFERENCE else f"\\{found[0]}", printable(str(text)))


def as_data(comparison: ProfileComparison) -> dict[str, Any]:
    """Return the whole comparison as plain data, in the columns' own units. Shares are from 0 to 1, times virtual seconds."""
    first, *others = (figures.profile for figures in comparison.figures)
    changes = zip(others, comparison.changes, strict=True)
    data = {
        "scenario": comparison.source,
        "profiles": [figures_data(figures) for figures in comparison.figures],
        "changes": [{"profile": name, "against": first, **change_data(change)} for name, change in changes],
    }
    return data | ({"seeds": list(comparison.seeds), "overSeeds": _over_seeds(comparison)} if comparison.repetitions else {})


def _over_seeds(comparison: ProfileComparison) -> list[dict[str, Any]]:
    """Return every row with the value of each profile under each seed."""
    names = [figures.profile for figures in comparison.figures]
    return [
        {
            "figure": f"{row.group}: {row.label}",
            "profiles": [
                {
                    "profile": name,
                    "mean": value,
                    "standardDeviation": deviation,
                    "min": min(sample, default=None),
                    "max": max(sample, default=None),
                    "values": list(sample),
                    "differenceWithinSpread": chance,
                }
                for name, value, deviation, sample, chance in zip(
                    names, row.values, row.deviations, row.samples, row.within_spread, strict=True
                )
            ],
        }
        for row in rows_of(comparison)
    ]


def figures_data(figures: Figures) -> dict[str, Any]:
    """Return one profile's figures as plain data, without single nodes and steps in time."""
    return {
        "profile": figures.profile,
        "seed": figures.seed,
        "nodesAtSeconds": figures.at,
        "pods": figures.pods,
        "placed": figures.placed,
        "pending": figures.pending,
        "gone": figures.gone,
        "preempted": figures.preempted,
        "reasons": [asdict(reason) for reason in figures.reasons],
        **company_data(figures.groups, figures.claims),
        "nodes": figures.nodes,
        "emptyNodes": figures.empty_nodes,
        "use": [
            {
                "resource": use.resource,
                "nodes": len(use.shares),
                "allocatable": use.allocatable,
                "requested": use.requested,
                "min": use.min,
                "mean": use.mean,
                "max": use.max,
                "standardDeviation": use.deviation,
            }
            for use in figures.uses
        ],
        "fragmentation": [asdict(found) | {"rate": found.rate} for found in figures.fragmentations],
        "devices": {name: {"placedBeforeRejection": of.before_rejection, "placed": of.in_all} for name, of in figures.devices.items()},
        "zones": {"pods": dict(figures.zones), "skew": figures.zone_skew},
        "scoreShares": dict(figures.score_shares),
        "secondsToPlace": None if figures.times is None else asdict(figures.times),
    }


def change_data(change: Change) -> dict[str, Any]:
    """Return the changes of single pods, as plain data."""
    return {
        "moves": [move._asdict() for move in change.moves],
        "nowPending": [each._asdict() for each in change.appear],
        "noLongerPending": [each._asdict() for each in change.disappear],
    }
