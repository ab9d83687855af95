"""`placewright simulate`: shows the effect of profiles on a cluster and its pods, without changing either."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers
from placewright.cli.terminal import plain, print_json
from placewright.framework.registry import installed_plugins
from placewright.plugins.catalog import in_tree
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.scenariooptions import (
    FailedPlugins,
    add_jobs_option,
    add_scenario_options,
    candidates,
    left_out,
    say_not_asked,
    scenario_of,
)
from placewright_lab.demo.display import MOST_REASONS, show_reasons
from placewright_lab.figures.figures import Reason, figures_of
from placewright_lab.figures.groups import ClaimFigures, GroupFigures, company_data
from placewright_lab.simulation.outcome import Fate, Outcome
from placewright_lab.simulation.sweep import SimulationRun, Sweep, outcomes_of

#: Number of reasons for one profile. A line sums up the rest.
_NUMBERS: Final = ("PODS", "PLACED", "PENDING", "GONE", "PREEMPTED", "VIRTUAL", "WALL")
_UNITS: Final = (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1))


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("simulate", help="place pods by the scheduler's own engine in virtual time, without a cluster")
    add_scenario_options(parser)
    profile = "a SchedulingProfile or KubeSchedulerConfiguration; repeatable: each is tried on its own"
    parser.add_argument("--profile", action="append", type=Path, default=[], metavar="FILE", help=profile)
    add_jobs_option(parser)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    parser.set_defaults(main=main)
    describe(parser, "simulate", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Run each profile on the same scenario, and print the results."""
    registry = in_tree().with_installed(installed_plugins())
    tried = candidates(args.profile, registry, args.snapshot, args.record)
    scenario = scenario_of(args, tried)
    say_not_asked(tried, "simulate")
    simulations = [SimulationRun(candidate.name, candidate.declared, args.seed) for candidate in tried]
    failed = FailedPlugins()
    with outcomes_of(Sweep(scenario, registry, args.which), simulations, args.jobs) as found:
        outcomes = list(failed.watch(found))
    if args.output == "json":
        data = {"scenario": scenario.source, "seed": args.seed, "profiles": [as_data(outcome) for outcome in outcomes]}
        print_json(data)
    else:
        show(Console(), outcomes)
    return failed.exit_code()


def show(console: Console, outcomes: list[Outcome]) -> None:
    """Print a line for each profile, then the reasons why pods are pending."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("PROFILE", overflow="fold")
    for column in _NUMBERS:
        table.add_column(column, justify="right", no_wrap=True)
    reasons: list[tuple[str, tuple[Reason, ...]]] = []
    company: list[tuple[str, GroupFigures | None, ClaimFigures | None]] = []
    for outcome in outcomes:
        figures = figures_of(outcome)
        reasons.append((outcome.profile, figures.reasons))
        company.append((outcome.profile, figures.groups, figures.claims))
        counts = (figures.pods, figures.placed, figures.pending, figures.gone, figures.preempted)
        table.add_row(plain(outcome.profile), *map(str, counts), _time(outcome.ended), f"{outcome.wall_seconds:.1f} s")
    console.print(table)
    for profile, groups, claims in company:
        _show_company(console, profile, groups, claims)
    for profile, found in reasons:
        show_reasons(console, f"pending with {profile}:", found, "; all of them with -o json")
    for outcome in outcomes:
        if given_up := [fate for fate in outcome.fates.values() if fate.given_up]:
            left = sum(fate.pending for fate in given_up)
            console.print(plain(f"given up with {outcome.profile}: {len(given_up)} pods; {left} have no node at the end"), soft_wrap=True)
        if outcome.passed_over:
            console.print(plain(left_out(outcome)), soft_wrap=True)


def _show_company(console: Console, profile: str, groups: GroupFigures | None, claims: ClaimFigures | None) -> None:
    """Print figures of groups and claims, if there are any."""
    if groups is not None:
        told = f"groups with {profile}: {groups.placed} of {groups.groups} placed, {groups.pending} pending"
        console.print(plain(told, "bold"), soft_wrap=True)
        for what, count in list(groups.reasons.items())[:MOST_REASONS]:
            console.print(Text(f"{count:6d}  ").append_text(plain(what)), soft_wrap=True)
    if claims is not None:
        told = f"claims with {profile}: {claims.allocated} of {claims.claims} have devices at the end"
        console.print(plain(told, "bold"), soft_wrap=True)
        for (driver, name), count in claims.devices.items():
            console.print(Text(f"{count:6d}  ").append_text(plain(f"devices of {driver}, class {name}")), soft_wrap=True)


def _time(seconds: float) -> str:
    """Return virtual seconds for people: `42 s`, `5 min 30 s`, `149 d 8 h`."""
    total = int(seconds)
    for large, of_large, small, of_small in _UNITS:
        if total >= of_large:
            return f"{total // of_large} {large} {total % of_large // of_small} {small}"
    return f"{seconds:g} s"


def as_data(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain data. Times are seconds."""
    figures = figures_of(outcome)
    return {
        "profile": outcome.profile,
        "pods": figures.pods,
        **company_data(figures.groups, figures.claims),
        "placed": figures.placed,
        "pending": figures.pending,
        "gone": figures.gone,
        "preempted": figures.preempted,
        "evicted": outcome.evicted,
        "passedOver": outcome.passed_over,
        "pluginFailures": outcome.plugin_failures,
        "endedSeconds": outcome.ended,
        "wallSeconds": round(outcome.wall_seconds, 3),
        "reasons": [{"what": reason.what, "pods": reason.pods, "example": reason.example} for reason in figures.reasons],
        "fates": [_fate(fate) for fate in outcome.fates.values()],
    }


def _fate(fate: Fate) -> dict[str, Any]:
    return {
        "pod": fate.pod.key,
        "uid": fate.pod.uid,
        "created": fate.created,
        "node": fate.node,
        "bound": fate.bound,
        "left": fate.left,
        "attempts": fate.attempts,
        "message": fate.message,
        "plugins": sorted(fate.plugins),
        "score": fate.score,
        "parts": fate.parts,
        "preempted": fate.preempted,
        **({"givenUp": True} if fate.given_up else {}),
        "preemptedOthers": fate.preempted_others,
    }
