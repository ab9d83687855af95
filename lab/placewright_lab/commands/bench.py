"""`placewright bench`: the speed of decisions without an API server, through one, and compared with a kube-scheduler."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from placewright.api.bad_input import printable
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers
from placewright.cli.terminal import plain, print_json
from placewright_lab.bench import against, decisionworkloads, end_to_end
from placewright_lab.bench.benchmark import BenchFailed, Benchmark, ResultTable
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.schedulerperf import add_scheduler_perf

BENCHMARKS: Final[Mapping[str, Benchmark]] = {"decisions": decisionworkloads, "end-to-end": end_to_end, "against": against}


def register(subparsers: Subparsers) -> None:
    """Add the subcommand and its benchmarks."""
    parser = subparsers.add_parser("bench", help="measure how fast pods are placed")
    benchmarks = parser.add_subparsers(title="benchmarks", required=True, metavar="BENCHMARK")
    for name, benchmark in BENCHMARKS.items():
        add_benchmark(benchmarks, name, benchmark)
    add_scheduler_perf(benchmarks.add_parser("scheduler-perf", help="upstream's own workloads, beside a kube-scheduler"))
    describe(parser, "bench", TEXTS)


def add_benchmark(benchmarks: Subparsers, name: str, benchmark: Benchmark) -> argparse.ArgumentParser:
    """Add a benchmark to the subcommands, and return its parser."""
    parser = benchmarks.add_parser(name, help=benchmark.SUMMARY)
    benchmark.options(parser)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    parser.set_defaults(main=partial(_measure, benchmark))
    return parser


def _measure(benchmark: Benchmark, args: argparse.Namespace) -> int:
    """Print the tables of a benchmark. Return 1 if it failed or found a fault."""
    try:
        tables = benchmark.run(args)
    except BenchFailed as failed:
        sys.stderr.write(f"placewright: {printable(str(failed))}\n")
        return 1
    if args.output == "json":
        print_json([row for each in tables for row in each.rows])
    else:
        for each in tables:
            _print(each)
    faults = [fault for each in tables for fault in each.faults]
    for fault in faults:
        sys.stderr.write(f"placewright: {printable(fault)}\n")
    return int(bool(faults))


def _print(result: ResultTable) -> None:
    if not result.lines:
        return
    table = Table(title=plain(result.title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in result.lines[0]:
        table.add_column(column, justify="right", overflow="fold", no_wrap=column == "workload")  # a reader copies it into the next command
    for line in result.lines:
        table.add_row(*(plain(cell) for cell in line.values()))
    Console().print(table)
