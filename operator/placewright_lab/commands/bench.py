"""`placewright bench`: how fast decisions are, without an API server and through one, and how fast profiles are reloaded."""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from placewright.api.bad_input import printable
from placewright.api.profile import ShadowSettings
from placewright.api.profilelimits import MAX_PERCENTAGE, MAX_SHADOW_BUDGET, MIN_SHADOW_BUDGET
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers, whole_number
from placewright.cli.terminal import plain, print_json
from placewright_lab.bench.against import FEWEST_NODES, BenchFailed, add_options, compare
from placewright_lab.bench.decisions import RUNS, DecisionBenchmark, Measurement
from placewright_lab.bench.deployments import ALL_DIFFERENT, DEPLOYMENT_WORKLOADS, DEPLOYMENTS, deployment_benchmarks
from placewright_lab.bench.devicedecisions import DEVICES_A_NODE, DeviceMeasurement, measure_devices
from placewright_lab.bench.devicedecisions import NODES as DEVICE_NODES
from placewright_lab.bench.devicedecisions import PODS as DEVICE_PODS
from placewright_lab.bench.end_to_end import EndToEnd, measure_end_to_end
from placewright_lab.bench.groupdecisions import MEMBERS, Groups, measure_groups
from placewright_lab.bench.groupdecisions import NODES as GANG_NODES
from placewright_lab.bench.groupdecisions import PODS as GANG_PODS
from placewright_lab.bench.groupdecisions import WANTED as GROUPS_WANTED
from placewright_lab.bench.moves import CLAIMS, GATED, HOLD_WANTED_MS, WAITING, Moves, measure_moves
from placewright_lab.bench.preemptions import ATTEMPTS, VARIETIES, WANTED_MS, Attempts, measure_attempts
from placewright_lab.bench.preemptionstory import NODES as FULL_NODES
from placewright_lab.bench.preemptionstory import PREEMPTORS, PreemptionStory, measure_story
from placewright_lab.bench.recordcost import SLICE, RecordCost, measure_records
from placewright_lab.bench.reload import Reloads, measure_reloads
from placewright_lab.bench.shadowcost import ShadowCost, measure_shadow
from placewright_lab.bench.turncost import NAMESPACES, TurnCost, measure_turns
from placewright_lab.bench.turncost import WAITING as TURNS_WAITING
from placewright_lab.bench.workloads import WORKLOADS
from placewright_lab.commands.beforeafter import add_before_options
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.schedulerperf import add_scheduler_perf

_MOST_NODES = 100_000
_MOST_PODS = 1_000_000
_MOST_RELOADS = 1_000
_MOST_SEED = 2**32
#: All workloads of `bench decisions`.
_DECISIONS = (*WORKLOADS, *DEPLOYMENT_WORKLOADS, ALL_DIFFERENT, *VARIETIES)


def register(subparsers: Subparsers) -> None:
    """Add the subcommand and its two benchmarks."""
    parser = subparsers.add_parser("bench", help="measure how fast pods are placed")
    benchmarks = parser.add_subparsers(title="benchmarks", required=True, metavar="BENCHMARK")
    decisions = _register_decisions(benchmarks)
    end_to_end = benchmarks.add_parser("end-to-end", help="from created to bound, through a sandbox in another process")
    end_to_end.add_argument("--nodes", type=whole_number(1, _MOST_NODES), default=1000, help="default: 1000")
    end_to_end.add_argument("--pods", type=whole_number(1, _MOST_PODS), default=5000, help="default: 5000")
    end_to_end.add_argument(
        "--assigned", type=whole_number(0, _MOST_PODS), default=0, help="pods that are on nodes before the operator starts (default: 0)"
    )
    add_before_options(end_to_end, _end_to_end)
    reload = benchmarks.add_parser("reload", help="from a changed profile to the first decision under it, while pods arrive")
    reload.add_argument("--nodes", type=whole_number(1, _MOST_NODES), default=1000, help="default: 1000")
    reload.add_argument("--rate", type=whole_number(1, 10_000), default=300, help="pods that arrive a second (default: 300)")
    reload.add_argument("--reloads", type=whole_number(1, _MOST_RELOADS), default=200, help="changes of the profile (default: 200)")
    reload.set_defaults(main=_reload)
    records = benchmarks.add_parser("records", help="what decision records cost: with and without them, in turns")
    usual = ("plain", "openb-mix")
    records.add_argument("--workloads", type=_pod_workloads, default=usual, metavar="W,W,...", help=f"default: {','.join(usual)}")
    records.add_argument("--nodes", type=_counts(1), default=(1000, 5000), metavar="N,N,...", help="default: 1000,5000")
    slices = f"slices of {SLICE} pods on each side (default: 100)"
    records.add_argument("--slices", type=whole_number(2, 10_000), default=100, help=slices)
    records.set_defaults(main=_records)
    shadow = benchmarks.add_parser("shadow", help="what a shadow costs the live profile: with and without one, in turns")
    shadow.add_argument("--workloads", type=_pod_workloads, default=usual, metavar="W,W,...", help=f"default: {','.join(usual)}")
    shadow.add_argument("--nodes", type=_counts(1), default=(1000, 5000), metavar="N,N,...", help="default: 1000,5000")
    shadow.add_argument("--slices", type=whole_number(2, 10_000), default=100, help=slices)
    budget = f"the shadow's, in percent, {MIN_SHADOW_BUDGET:g} to {MAX_SHADOW_BUDGET:g} (default: {ShadowSettings().budget_percent:g})"
    shadow.add_argument("--budget", type=_budget, default=ShadowSettings().budget_percent, metavar="PERCENT", help=budget)
    shadow.set_defaults(main=_shadow)
    turns = _register_turns(benchmarks)
    gangs = benchmarks.add_parser("gangs", help="groups of pods that are placed all or none, without an API server")
    gangs.add_argument("--nodes", type=whole_number(1, _MOST_NODES), default=GANG_NODES, help=f"default: {GANG_NODES}, as openb has")
    gangs.add_argument("--groups", type=whole_number(1, _MOST_PODS), help=f"default: as many as {GANG_PODS} pods make, at least 1")
    gangs.add_argument("--members", type=whole_number(1, 10_000), default=MEMBERS, help=f"of each group (default: {MEMBERS})")
    add_before_options(gangs, _gangs)
    devices = benchmarks.add_parser("devices", help="pods with claims to devices, beside pods without")
    devices.add_argument("--nodes", type=whole_number(300, _MOST_NODES), default=DEVICE_NODES, help=f"default: {DEVICE_NODES}")
    devices.add_argument("--pods", type=whole_number(1, _MOST_PODS), default=DEVICE_PODS, help=f"for each line (default: {DEVICE_PODS})")
    add_before_options(devices, _devices)
    preemption, moves = _register_crowds(benchmarks)
    against = benchmarks.add_parser("against", help="beside a kube-scheduler, in turns, on one real API server")
    add_options(against, _counts(FEWEST_NODES))
    against.set_defaults(main=_against)
    add_scheduler_perf(benchmarks.add_parser("scheduler-perf", help="upstream's own workloads, beside a kube-scheduler"))
    for benchmark in (decisions, end_to_end, reload, records, shadow, turns, gangs, devices, preemption, moves, against):
        benchmark.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    describe(parser, "bench", TEXTS)


def _register_turns(benchmarks: Subparsers) -> argparse.ArgumentParser:
    turns = benchmarks.add_parser("turns", help="what turns of tenants cost while thousands of pods wait: with and without them, in turns")
    turns.add_argument("--nodes", type=_counts(1), default=(1000, 5000), metavar="N,N,...", help="default: 1000,5000")
    turns.add_argument("--waiting", type=whole_number(0, _MOST_PODS), default=TURNS_WAITING, help=f"pods (default: {TURNS_WAITING})")
    turns.add_argument("--namespaces", type=whole_number(1, 10_000), default=NAMESPACES, help=f"of the pods (default: {NAMESPACES})")
    turns.add_argument("--slices", type=whole_number(2, 10_000), default=100, help=f"of {SLICE} pods on each side (default: 100)")
    turns.set_defaults(main=_turns)
    return turns


def _register_decisions(benchmarks: Subparsers) -> argparse.ArgumentParser:
    decisions = benchmarks.add_parser("decisions", help="the scheduling cycle alone, without an API server")
    known = ", ".join(_DECISIONS)
    decisions.add_argument("--workloads", type=_workloads, default=_DECISIONS, metavar="W,W,...", help=f"some of: {known}")
    decisions.add_argument("--nodes", type=_counts(1), metavar="N,N,...", help="default: 1000,5000,15000 for pods by themselves, else 5000")
    decisions.add_argument("--pods", type=whole_number(1, _MOST_PODS), help="default: 10000 for pods by themselves, else 3000")
    several = f"pods of deployments-* come from so many (default: {','.join(map(str, DEPLOYMENTS))})"
    decisions.add_argument("--deployments", type=_counts(1, _MOST_PODS), default=DEPLOYMENTS, metavar="N,N,...", help=several)
    seed = "of the order in which pods of deployments-* and all-different come (default: 0)"
    decisions.add_argument("--seed", type=whole_number(0, _MOST_SEED), default=0, help=seed)
    percentage = "the profile's percentageOfNodesToScore (default: 0, all nodes)"
    decisions.add_argument("--percentage", type=whole_number(0, MAX_PERCENTAGE), default=0, help=percentage)
    add_before_options(decisions, _decisions)
    return decisions


def _register_crowds(benchmarks: Subparsers) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Benchmarks of thousands of pods that preempt, or wait."""
    preemption = benchmarks.add_parser("preemption", help="from a full cluster to the last preemptor's Binding, without an API server")
    preemption.add_argument("--nodes", type=whole_number(1, _MOST_NODES), default=FULL_NODES, help=f"default: {FULL_NODES}")
    preemption.add_argument("--pods", type=whole_number(1, _MOST_PODS), default=PREEMPTORS, help=f"that preempt (default: {PREEMPTORS})")
    preemption.set_defaults(main=_preemption)
    moves = benchmarks.add_parser("moves", help="events while thousands of pods wait: their cost, and how long they hold the event loop")
    kinds = (("waiting", WAITING, "that wait for room"), ("claims", CLAIMS, "that wait for claims"), ("gated", GATED, "gated"))
    for option, count, what in kinds:
        moves.add_argument(f"--{option}", type=whole_number(20, _MOST_PODS), default=count, help=f"pods {what} (default: {count})")
    add_before_options(moves, _moves)
    return preemption, moves


def _counts(least: int, most: int = _MOST_NODES) -> Callable[[str], tuple[int, ...]]:
    """An argparse type: whole numbers with commas between them."""
    one = whole_number(least, most)
    return lambda text: tuple(one(part) for part in text.split(","))


def _workloads(text: str) -> tuple[str, ...]:
    """An argparse type: names of workloads with commas between them."""
    names = tuple(text.split(","))
    for name in names:
        if name not in _DECISIONS:
            known = ", ".join(_DECISIONS)
            raise argparse.ArgumentTypeError(f"found {name!r}; allowed some of {known}, with commas between them")
    return names


def _pod_workloads(text: str) -> tuple[str, ...]:
    """An argparse type: of the names of workloads those without preemption."""
    names = _workloads(text)
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


def _decisions(args: argparse.Namespace) -> int:
    measured = [
        benchmark.measure(nodes, args.pods or benchmark.workload.count)
        for name in args.workloads
        if name not in VARIETIES
        for benchmark in _benchmarks(name, args)
        for nodes in args.nodes or benchmark.workload.sizes
    ]
    attempts = [measure_attempts(name, nodes) for name in args.workloads if name in VARIETIES for nodes in args.nodes or (5000,)]
    if args.output == "json":
        decided = [asdict(m) | {"per_second": m.per_second} for m in measured]
        print_json([*decided, *(asdict(m) | {"median": m.median} for m in attempts)])
        return 0
    if measured:
        _print_table(f"decisions: all nodes evaluated, processor time, median of {RUNS} runs", [_decision_row(m) for m in measured])
    if attempts:
        _print_table(f"attempts to preempt: processor time, median of {ATTEMPTS} on one full cluster", [_attempt_row(m) for m in attempts])
    return 0


def _benchmarks(name: str, args: argparse.Namespace) -> list[DecisionBenchmark]:
    if name in WORKLOADS:
        return [DecisionBenchmark(name, WORKLOADS[name], percentage=args.percentage)]
    return deployment_benchmarks(name, args.deployments, args.seed, args.percentage)


def _decision_row(m: Measurement) -> dict[str, Any]:
    return {
        "workload": m.workload if m.deployments is None else f"{m.workload} of {m.deployments}",
        "nodes": m.nodes,
        "running": m.running,
        "pods": m.pods,
        "decisions/s": round(m.per_second),
        "wanted": "" if m.wanted is None else f"≥ {m.wanted:,}",
        "placed": m.placed,
    }


def _attempt_row(m: Attempts) -> dict[str, Any]:
    return {
        "workload": m.workload,
        "nodes": m.nodes,
        "running": m.running,
        "ms/attempt": round(m.median, 1),
        "wanted": f"≤ {WANTED_MS}",
        "slowest": round(max(m.milliseconds), 1),
        "victims": round(m.victims / len(m.milliseconds), 1),
    }


def _end_to_end(args: argparse.Namespace) -> int:
    measured = asyncio.run(measure_end_to_end(args.nodes, args.pods, args.assigned))
    if args.output == "json":
        print_json(asdict(measured))
    else:
        _print_table("end to end, from created to bound; CPU and MB of the operator, CPU of the API server", [_end_to_end_row(measured)])
    return 0


def _end_to_end_row(m: EndToEnd) -> dict[str, Any]:
    return {
        "nodes": m.nodes,
        "assigned": m.assigned,
        "pods": m.pods,
        "bound": m.bound,
        "pods/s": round(m.per_second),
        "p50 ms": round(m.p50 * 1000),
        "p99 ms": round(m.p99 * 1000),
        "CPU ms/pod": round(m.operator_cpu * 1000 / m.pods, 2),
        "server": round(m.server_cpu * 1000 / m.pods, 2),
        "MB": round(m.operator_bytes / 1e6),
    }


def _devices(args: argparse.Namespace) -> int:
    measured = measure_devices(args.nodes, args.pods)
    if args.output == "json":
        print_json([asdict(m) | {"per_second": m.per_second} for m in measured])
    else:
        title = f"claims to devices: {args.nodes} nodes with {DEVICES_A_NODE} devices each, processor time, median of {RUNS} runs in turns"
        _print_table(title, [_device_row(m) for m in measured])
    return 0


def _device_row(m: DeviceMeasurement) -> dict[str, Any]:
    return {
        "each pod claims": m.claims,
        "pods": m.pods,
        "placed": m.placed,
        "decisions/s": round(m.per_second),
        "wanted": "" if m.wanted is None else f"≥ {m.wanted:,}",
    }


def _reload(args: argparse.Namespace) -> int:
    """Exit code 1 when the audit found anything: then the figures mean nothing."""
    try:
        measured = asyncio.run(measure_reloads(args.nodes, args.rate, args.reloads))
    except BenchFailed as failed:
        return _failed(failed)
    if args.output == "json":
        print_json(asdict(measured))
    else:
        _print_table("reload: from a changed profile to the first pod decided under it", [_reload_row(measured)])
    for line in measured.torn:
        sys.stderr.write(f"placewright: {printable(line)}\n")
    return int(bool(measured.torn or measured.twice or measured.bound < measured.pods))


def _reload_row(m: Reloads) -> dict[str, Any]:
    return {
        "nodes": m.nodes,
        "pods/s": round(m.per_second),
        "reloads": m.reloads,
        "p50 ms": round(m.p50 * 1000),
        "p99 ms": round(m.p99 * 1000),
        "pods": m.pods,
        "lost": m.pods - m.bound,
        "twice": m.twice,
        "torn": len(m.torn),
    }


@contextmanager
def _collecting_as_the_operator() -> Iterator[None]:
    """Collect garbage as seldom as the operator does: the cost of code that keeps objects depends on it."""
    from placewright.handlers.operator import GC_THRESHOLDS  # noqa: PLC0415 - it brings Kopf along

    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _records(args: argparse.Namespace) -> int:
    with _collecting_as_the_operator():
        measured = [measure_records(name, nodes, args.slices) for name in args.workloads for nodes in args.nodes]
    if args.output == "json":
        keys = ("ratio", "quartiles", "microseconds_without")
        print_json([asdict(m) | {key: getattr(m, key) for key in keys} for m in measured])
    else:
        title = "decision records: processor time with them over that without, of median slices; quartiles of neighbouring ones"
        _print_table(title, [_record_row(m) for m in measured])
    return 0


def _record_row(m: RecordCost) -> dict[str, Any]:
    low, high = m.quartiles
    return {
        "workload": m.workload,
        "nodes": m.nodes,
        "pods": m.pods,
        "records": m.records,
        "µs without": round(m.microseconds_without),
        "ratio": f"{m.ratio:.3f}",
        "quartiles": f"{low:.3f} to {high:.3f}",
        "wanted": "≤ 1.05",
    }


def _turns(args: argparse.Namespace) -> int:
    with _collecting_as_the_operator():
        measured = [measure_turns(nodes, args.waiting, args.namespaces, args.slices) for nodes in args.nodes]
    if args.output == "json":
        keys = ("ratio", "quartiles", "microseconds_without")
        print_json([asdict(m) | {key: getattr(m, key) for key in keys} for m in measured])
    else:
        title = "turns of tenants: processor time with them over that without, of median slices; quartiles of neighbouring ones"
        _print_table(title, [_turns_row(m) for m in measured])
    return 0


def _turns_row(m: TurnCost) -> dict[str, Any]:
    low, high = m.quartiles
    return {
        "nodes": m.nodes,
        "waiting": m.waiting,
        "namespaces": m.namespaces,
        "µs without": round(m.microseconds_without),
        "ratio": f"{m.ratio:.3f}",
        "quartiles": f"{low:.3f} to {high:.3f}",
    }


def _shadow(args: argparse.Namespace) -> int:
    with _collecting_as_the_operator():
        measured = [measure_shadow(name, nodes, args.slices, args.budget) for name in args.workloads for nodes in args.nodes]
    if args.output == "json":
        print_json([asdict(m) | {"per_second": m.per_second, "ratio": m.ratio} for m in measured])
    else:
        title = "shadows: decisions a second of the live profile, processor time, medians; ratio of all slices with a shadow to without"
        _print_table(title, [_shadow_row(m) for m in measured])
    return 0


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


def _gangs(args: argparse.Namespace) -> int:
    measured = measure_groups(args.nodes, args.groups, args.members)
    if args.output == "json":
        print_json(asdict(measured) | {"per_second": measured.per_second, "microseconds": measured.microseconds})
    else:
        _print_table(f"groups: members alike, processor time, median of {RUNS} runs", [_gangs_row(measured)])
    return 0


def _gangs_row(m: Groups) -> dict[str, Any]:
    return {
        "nodes": m.nodes,
        "groups": m.groups,
        "members": m.members,
        "groups/s": round(m.per_second) if m.per_second >= 10 else round(m.per_second, 2),
        "wanted": f"≥ {GROUPS_WANTED}" if m.members == MEMBERS else "",
        "µs/pod": round(m.microseconds),
        "arriving µs/pod": round(1e6 * statistics.median(m.arrivals)),
        "loop held ms": round(1000 * max(m.holds), 1),
        "placed": m.placed,
    }


def _preemption(args: argparse.Namespace) -> int:
    measured = measure_story(args.nodes, args.pods)
    if args.output == "json":
        print_json(asdict(measured) | {"per_second": measured.per_second})
    else:
        _print_table("preemption: a full cluster, evictions and Bindings that succeed at once, processor time", [_preemption_row(measured)])
    return 0


def _preemption_row(m: PreemptionStory) -> dict[str, Any]:
    return {
        "nodes": m.nodes,
        "preemptors": m.preemptors,
        "pods/s": round(m.per_second),
        "evicted": m.evicted,
        "decisions": m.attempts,
        "hints asked": m.asked,
        "loop held ms": round(1000 * m.hold, 1),
    }


def _moves(args: argparse.Namespace) -> int:
    measured = measure_moves(args.waiting, args.claims, args.gated)
    if args.output == "json":
        print_json([asdict(m) | {"microseconds": m.microseconds} for m in measured])
    else:
        _print_table("events while pods wait: processor time, one run each", [_moves_row(m) for m in measured])
    return 0


def _moves_row(m: Moves) -> dict[str, Any]:
    return {
        "event": m.event,
        "waiting": m.waiting,
        "events": m.events,
        "moved": m.moved,
        "hints asked": m.asked,
        "µs/event": round(m.microseconds),
        "held ms": round(1000 * m.hold, 1),
        "wanted": f"≤ {HOLD_WANTED_MS}",
    }


def _against(args: argparse.Namespace) -> int:
    try:
        comparisons = compare(args)
    except BenchFailed as failed:
        return _failed(failed)
    if args.output == "json":
        print_json([comparison.to_json() for comparison in comparisons])
    else:
        for compared in comparisons:
            _print_table(compared.title(), compared.rows())
    return 0


def _failed(failed: BenchFailed) -> int:
    sys.stderr.write(f"placewright: {printable(str(failed))}\n")
    return 1


def _print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=plain(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in rows[0]:
        table.add_column(column, justify="right", overflow="fold", no_wrap=column == "workload")  # it is copied into the next command
    for row in rows:
        table.add_row(*(plain(f"{value:,}" if isinstance(value, int) else value) for value in row.values()))
    Console().print(table)
