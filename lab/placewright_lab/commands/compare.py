"""`placewright compare`: figures of profiles on the same cluster and pods, side by side, with `--report` also as a page."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

import msgspec

from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers, whole_number
from placewright.cli.terminal import console, print_data
from placewright.framework.registry import installed_plugins
from placewright.http.listener import bind
from placewright.plugins.catalog import in_tree
from placewright_console.commands.console import show
from placewright_console.local.localserver import LOOPBACK
from placewright_lab.commands.comparisonoutput import as_data, markdown_of, show_table
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.scenariooptions import (
    FailedPlugins,
    add_jobs_option,
    add_scenario_options,
    candidates,
    names_together,
    say_left_out,
    say_not_asked,
    scenario_of,
    write_text,
)
from placewright_lab.consolefiles.comparisonsource import ComparisonSource
from placewright_lab.figures.comparison import ProfileComparison, compare, rows_of
from placewright_lab.report.content import ReportContent, content_of
from placewright_lab.simulation.sweep import SimulationRun, Sweep, outcomes_of


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("compare", help="place the same pods under several profiles, and compare the outcomes")
    add_scenario_options(parser)
    profile = "a SchedulingProfile or KubeSchedulerConfiguration; repeatable, the first is what the others are compared to"
    parser.add_argument("--profile", action="append", type=Path, default=[], metavar="FILE", help=profile)
    seeds = "simulate with so many seeds, --seed and those after it: mean, spread, and what may be chance (default: 1)"
    parser.add_argument("--seeds", type=whole_number(1, 1000), default=1, metavar="N", help=seeds)
    add_jobs_option(parser)
    parser.add_argument("-o", "--output", choices=("table", "json", "markdown"), default="table", help="default: table")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write a page of HTML, too, that needs no network")
    parser.add_argument("--console", action="store_true", help="show the same in the browser afterwards, until Ctrl-C")
    parser.set_defaults(main=main)
    describe(parser, "compare", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Simulate under each profile, and print the differences."""
    registry = in_tree().with_installed(installed_plugins())
    tried = candidates(args.profile, registry, args.snapshot, args.record)
    scenario = scenario_of(args, tried)
    if args.report is not None:
        # Fail now, and not after minutes of simulation, if jinja2 is missing or the file cannot be written.
        from placewright_lab.report.page import page_of  # noqa: PLC0415

        write_text(args.report, "", "a")
    say_not_asked(tried, "compare")
    simulations = [SimulationRun(each.name, each.declared, seed) for seed in range(args.seed, args.seed + args.seeds) for each in tried]
    failed = FailedPlugins()
    with outcomes_of(Sweep(scenario, registry, args.which, names_together(tried, scenario)), simulations, args.jobs) as found:
        outcomes = failed.watch(found)
        runs = iter(lambda: list(islice(outcomes, len(tried))), [])
        first = next(runs)
        say_left_out(first)
        comparison = compare(scenario.source, first, runs)
    if args.report is not None:
        write_text(args.report, page_of(comparison))
    content = content_of(comparison)
    _print(comparison, content, args.output)
    if args.console:
        show(ComparisonSource(content, scenario.source), bind(LOOPBACK, 0, "--show"))
    return failed.exit_code()


def _print(comparison: ProfileComparison, content: ReportContent, output: str) -> None:
    if output == "json":
        print_data(as_data(comparison) | {"report": msgspec.to_builtins(content)}, output)
    elif output == "markdown":
        sys.stdout.write(markdown_of(rows_of(comparison), comparison.figures))
    else:
        show_table(console(), comparison)
