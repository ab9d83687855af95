"""`placewright bench records` and `shadow`: what something costs, with it and without it in turns."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, TypeVar

from placewright.api.profile import ShadowSettings
from placewright.api.profilelimits import MAX_SHADOW_BUDGET, MIN_SHADOW_BUDGET
from placewright.cli.options import Subparsers, whole_number
from placewright.cli.terminal import print_json
from placewright_lab.bench.recordcost import SLICE, RecordCost, measure_records
from placewright_lab.bench.shadowcost import ShadowCost, measure_shadow
from placewright_lab.bench.workloads import WORKLOADS
from placewright_lab.commands.benchtables import counts, print_table

M = TypeVar("M", RecordCost, ShadowCost)

_USUAL = ("plain", "openb-mix")


def register_sides(benchmarks: Subparsers) -> Sequence[argparse.ArgumentParser]:
    """Add the benchmarks.

    Args:
        benchmarks: of `placewright bench`.

    Returns:
        Their parsers, for the options that all benchmarks have.
    """
    records = benchmarks.add_parser("records", help="what decision records cost: with and without them, in turns")
    records.add_argument("--workloads", type=_workloads, default=_USUAL, metavar="W,W,...", help=f"default: {','.join(_USUAL)}")
    records.set_defaults(main=_records)
    shadow = benchmarks.add_parser("shadow", help="what a shadow costs the live profile: with and without one, in turns")
    shadow.add_argument("--workloads", type=_workloads, default=_USUAL, metavar="W,W,...", help=f"default: {','.join(_USUAL)}")
    budget = f"the shadow's, in percent, {MIN_SHADOW_BUDGET:g} to {MAX_SHADOW_BUDGET:g} (default: {ShadowSettings().budget_percent:g})"
    shadow.add_argument("--budget", type=_budget, default=ShadowSettings().budget_percent, metavar="PERCENT", help=budget)
    shadow.set_defaults(main=_shadow)
    for benchmark in (records, shadow):
        benchmark.add_argument("--nodes", type=counts(1), default=(1000, 5000), metavar="N,N,...", help="default: 1000,5000")
        benchmark.add_argument("--slices", type=whole_number(2, 10_000), default=100, help=f"of {SLICE} pods on each side (default: 100)")
    return records, shadow


def _workloads(text: str) -> tuple[str, ...]:
    """An argparse type: names of workloads of pods by themselves, with commas between them."""
    names = tuple(text.split(","))
    for name in names:
        if name not in WORKLOADS:
            raise argparse.ArgumentTypeError(f"found {name!r}; allowed some of {', '.join(WORKLOADS)}, with commas between them")
    return names


def _budget(text: str) -> float:
    """An argparse type: what `spec.shadow.budgetPercent` may be."""
    try:
        percent = float(text)
    except ValueError:
        percent = 0.0
    if not MIN_SHADOW_BUDGET <= percent <= MAX_SHADOW_BUDGET:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed {MIN_SHADOW_BUDGET:g} to {MAX_SHADOW_BUDGET:g}")
    return percent


@contextmanager
def collecting_as_the_operator() -> Iterator[None]:
    """Collect garbage as seldom as the operator does, while the context is open: the cost of code that keeps objects depends on it."""
    from placewright.handlers.operator import GC_THRESHOLDS  # noqa: PLC0415 - it brings Kopf along

    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _records(args: argparse.Namespace) -> int:
    with collecting_as_the_operator():
        measured = [measure_records(name, nodes, args.slices) for name in args.workloads for nodes in args.nodes]
    title = "decision records: processor time with them over that without, of median slices; quartiles of neighbouring ones"
    return _told(args, measured, title, _record_row, ("ratio", "quartiles", "microseconds_without"))


def _told(args: argparse.Namespace, measured: Sequence[M], title: str, row: Callable[[M], dict[str, Any]], derived: Sequence[str]) -> int:
    """Print measurements as a table, or as JSON with what is derived from them."""
    if args.output == "json":
        print_json([asdict(each) | {name: getattr(each, name) for name in derived} for each in measured])
    else:
        print_table(title, [row(each) for each in measured])
    return 0


def _record_row(m: RecordCost) -> dict[str, Any]:
    return {
        "workload": m.workload,
        "nodes": m.nodes,
        "pods": m.pods,
        "records": m.records,
        "µs without": round(m.microseconds_without),
        "ratio": f"{m.ratio:.3f}",
        "quartiles": _between(m.quartiles),
        "wanted": "≤ 1.05",
    }


def _between(quartiles: tuple[float, float]) -> str:
    low, high = quartiles
    return f"{low:.3f} to {high:.3f}"


def _shadow(args: argparse.Namespace) -> int:
    with collecting_as_the_operator():
        measured = [measure_shadow(name, nodes, args.slices, args.budget) for name in args.workloads for nodes in args.nodes]
    title = "shadows: decisions a second of the live profile, processor time, medians; ratio of all slices with a shadow to without"
    return _told(args, measured, title, _shadow_row, ("per_second", "ratio"))


def _shadow_row(m: ShadowCost) -> dict[str, Any]:
    alone, beside = m.per_second
    return {
        "workload": m.workload,
        "nodes": m.nodes,
        "pods": m.pods,
        "budget": f"{m.budget_percent:g} %",
        "alone/s": round(alone),
        "with a shadow/s": round(beside),
        "ratio": f"{m.ratio:.3f}",
        "wanted": f"≥ {1 - m.budget_percent / 100:.3f}",
        "decided": m.decided,
    }
