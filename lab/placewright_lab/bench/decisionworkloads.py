"""`placewright bench decisions`: decisions about pods of all workloads, and attempts to preempt."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from placewright.api.profilelimits import MAX_PERCENTAGE
from placewright.cli.options import whole_number
from placewright_lab.bench.benchmark import MOST_PODS, ResultTable, counts, names, row_of, table
from placewright_lab.bench.decisions import ATTEMPTS, RUNS, VARIETIES, WANTED_MS, WORKLOADS, DecisionBenchmark, measure_attempts
from placewright_lab.bench.deployments import ALL_DIFFERENT, DEPLOYMENT_WORKLOADS, DEPLOYMENTS, deployment_benchmarks

SUMMARY: Final = "the scheduling cycle alone, without an API server"
_ALL: Final = (*WORKLOADS, *DEPLOYMENT_WORKLOADS, ALL_DIFFERENT, *VARIETIES)
_MOST_SEED: Final = 2**32
_DECIDED: Final = {
    "workload": "{name}",
    "nodes": "{nodes:,}",
    "running": "{running:,}",
    "pods": "{pods:,}",
    "decisions/s": "{per_second:,.0f}",
    "wanted": "≥ {wanted:,}",
    "placed": "{placed:,}",
}
_ATTEMPTED: Final = {
    "workload": "{workload}",
    "nodes": "{nodes:,}",
    "running": "{running:,}",
    "ms/attempt": "{median:.1f}",
    "wanted": f"≤ {WANTED_MS}",
    "slowest": "{slowest:.1f}",
    "victims": "{victims_each:,.1f}",
}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--workloads", type=names(_ALL), default=_ALL, metavar="W,W,...", help=f"some of: {', '.join(_ALL)}")
    parser.add_argument("--nodes", type=counts(1), metavar="N,N,...", help="default: 1000,5000,15000 for pods by themselves, else 5000")
    parser.add_argument("--pods", type=whole_number(1, MOST_PODS), help="default: 10000 for pods by themselves, else 3000")
    several = f"pods of deployments-* come from so many (default: {','.join(map(str, DEPLOYMENTS))})"
    parser.add_argument("--deployments", type=counts(1, MOST_PODS), default=DEPLOYMENTS, metavar="N,N,...", help=several)
    seed = "of the order in which pods of deployments-* and all-different come (default: 0)"
    parser.add_argument("--seed", type=whole_number(0, _MOST_SEED), default=0, help=seed)
    percentage = "the profile's percentageOfNodesToScore (default: 0, all nodes)"
    parser.add_argument("--percentage", type=whole_number(0, MAX_PERCENTAGE), default=0, help=percentage)


def run(args: argparse.Namespace) -> Sequence[ResultTable]:
    """Measure each workload on each number of nodes."""
    decided = [
        row_of(benchmark.measure(nodes, args.pods or benchmark.workload.count), "per_second", "name")
        for name in args.workloads
        if name not in VARIETIES
        for benchmark in _benchmarks(name, args)
        for nodes in args.nodes or benchmark.workload.sizes
    ]
    attempted = [
        row_of(measure_attempts(name, nodes), "median", "slowest", "victims_each")
        for name in args.workloads
        if name in VARIETIES
        for nodes in args.nodes or (5000,)
    ]
    return (
        table(f"decisions: all nodes evaluated, processor time, median of {RUNS} runs", decided, _DECIDED),
        table(f"attempts to preempt: processor time, median of {ATTEMPTS} on one full cluster", attempted, _ATTEMPTED),
    )


def _benchmarks(name: str, args: argparse.Namespace) -> list[DecisionBenchmark]:
    if name in WORKLOADS:
        return [DecisionBenchmark(name, WORKLOADS[name], percentage=args.percentage)]
    return deployment_benchmarks(name, args.deployments, args.seed, args.percentage)
