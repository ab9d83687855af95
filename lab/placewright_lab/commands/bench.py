"""`placewright bench`: how fast decisions are, without an API server and through one, and how fast profiles are reloaded."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from dataclasses import asdict
from typing import Any

from placewright.api.bad_input import printable
from placewright.api.profilelimits import MAX_PERCENTAGE
from placewright.cli.helptexts import describe
from placewright.cli.options import Subparsers, whole_number
from placewright.cli.terminal import print_json
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
from placewright_lab.bench.reload import Reloads, measure_reloads
from placewright_lab.bench.workloads import WORKLOADS
from placewright_lab.commands.beforeafter import add_before_options
from placewright_lab.commands.benchsides import register_sides
from placewright_lab.commands.benchtables import MOST_NODES, MOST_PODS, counts, print_table
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.schedulerperf import add_scheduler_perf

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
    end_to_end.add_argument("--nodes", type=whole_number(1, MOST_NODES), default=1000, help="default: 1000")
    end_to_end.add_argument("--pods", type=whole_number(1, MOST_PODS), default=5000, help="default: 5000")
    end_to_end.add_argument(
        "--assigned", type=whole_number(0, MOST_PODS), default=0, help="pods that are on nodes before the operator starts (default: 0)"
    )
    add_before_options(end_to_end, _end_to_end)
    reload = benchmarks.add_parser("reload", help="from a changed profile to the first decision under it, while pods arrive")
    reload.add_argument("--nodes", type=whole_number(1, MOST_NODES), default=1000, help="default: 1000")
    reload.add_argument("--rate", type=whole_number(1, 10_000), default=300, help="pods that arrive a second (default: 300)")
    reload.add_argument("--reloads", type=whole_number(1, _MOST_RELOADS), default=200, help="changes of the profile (default: 200)")
    reload.set_defaults(main=_reload)
    compared = register_sides(benchmarks)
    gangs = benchmarks.add_parser("gangs", help="groups of pods that are placed all or none, without an API server")
    gangs.add_argument("--nodes", type=whole_number(1, MOST_NODES), default=GANG_NODES, help=f"default: {GANG_NODES}, as openb has")
    gangs.add_argument("--groups", type=whole_number(1, MOST_PODS), help=f"default: as many as {GANG_PODS} pods make, at least 1")
    gangs.add_argument("--members", type=whole_number(1, 10_000), default=MEMBERS, help=f"of each group (default: {MEMBERS})")
    add_before_options(gangs, _gangs)
    devices = benchmarks.add_parser("devices", help="pods with claims to devices, beside pods without")
    devices.add_argument("--nodes", type=whole_number(300, MOST_NODES), default=DEVICE_NODES, help=f"default: {DEVICE_NODES}")
    devices.add_argument("--pods", type=whole_number(1, MOST_PODS), default=DEVICE_PODS, help=f"for each line (default: {DEVICE_PODS})")
    add_before_options(devices, _devices)
    moves = _register_moves(benchmarks)
    against = benchmarks.add_parser("against", help="beside a kube-scheduler, in turns, on one real API server")
    add_options(against, counts(FEWEST_NODES))
    against.set_defaults(main=_against)
    add_scheduler_perf(benchmarks.add_parser("scheduler-perf", help="upstream's own workloads, beside a kube-scheduler"))
    for benchmark in (decisions, end_to_end, reload, *compared, gangs, devices, moves, against):
        benchmark.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    describe(parser, "bench", TEXTS)


def _register_decisions(benchmarks: Subparsers) -> argparse.ArgumentParser:
    decisions = benchmarks.add_parser("decisions", help="the scheduling cycle alone, without an API server")
    known = ", ".join(_DECISIONS)
    decisions.add_argument("--workloads", type=_workloads, default=_DECISIONS, metavar="W,W,...", help=f"some of: {known}")
    decisions.add_argument("--nodes", type=counts(1), metavar="N,N,...", help="default: 1000,5000,15000 for pods by themselves, else 5000")
    decisions.add_argument("--pods", type=whole_number(1, MOST_PODS), help="default: 10000 for pods by themselves, else 3000")
    several = f"pods of deployments-* come from so many (default: {','.join(map(str, DEPLOYMENTS))})"
    decisions.add_argument("--deployments", type=counts(1, MOST_PODS), default=DEPLOYMENTS, metavar="N,N,...", help=several)
    seed = "of the order in which pods of deployments-* and all-different come (default: 0)"
    decisions.add_argument("--seed", type=whole_number(0, _MOST_SEED), default=0, help=seed)
    percentage = "the profile's percentageOfNodesToScore (default: 0, all nodes)"
    decisions.add_argument("--percentage", type=whole_number(0, MAX_PERCENTAGE), default=0, help=percentage)
    add_before_options(decisions, _decisions)
    return decisions


def _register_moves(benchmarks: Subparsers) -> argparse.ArgumentParser:
    moves = benchmarks.add_parser("moves", help="events while thousands of pods wait: their cost, and how long they hold the event loop")
    kinds = (("waiting", WAITING, "that wait for room"), ("claims", CLAIMS, "that wait for claims"), ("gated", GATED, "gated"))
    for option, count, what in kinds:
        moves.add_argument(f"--{option}", type=whole_number(20, MOST_PODS), default=count, help=f"pods {what} (default: {count})")
    add_before_options(moves, _moves)
    return moves


def _workloads(text: str) -> tuple[str, ...]:
    """An argparse type: names of workloads with commas between them."""
    names = tuple(text.split(","))
    for name in names:
        if name not in _DECISIONS:
            known = ", ".join(_DECISIONS)
            raise argparse.ArgumentTypeError(f"found {name!r}; allowed some of {known}, with commas between them")
    return names


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
        print_table(f"decisions: all nodes evaluated, processor time, median of {RUNS} runs", [_decision_row(m) for m in measured])
    if attempts:
        print_table(f"attempts to preempt: processor time, median of {ATTEMPTS} on one full cluster", [_attempt_row(m) for m in attempts])
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
        print_table("end to end, from created to bound; CPU and MB of the operator, CPU of the API server", [_end_to_end_row(measured)])
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
        print_table(title, [_device_row(m) for m in measured])
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
        print_table("reload: from a changed profile to the first pod decided under it", [_reload_row(measured)])
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


def _gangs(args: argparse.Namespace) -> int:
    measured = measure_groups(args.nodes, args.groups, args.members)
    if args.output == "json":
        print_json(asdict(measured) | {"per_second": measured.per_second, "microseconds": measured.microseconds})
    else:
        print_table(f"groups: members alike, processor time, median of {RUNS} runs", [_gangs_row(measured)])
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


def _moves(args: argparse.Namespace) -> int:
    measured = measure_moves(args.waiting, args.claims, args.gated)
    if args.output == "json":
        print_json([asdict(m) | {"microseconds": m.microseconds} for m in measured])
    else:
        print_table("events while pods wait: processor time, one run each", [_moves_row(m) for m in measured])
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
            print_table(compared.title(), compared.rows())
    return 0


def _failed(failed: BenchFailed) -> int:
    sys.stderr.write(f"placewright: {printable(str(failed))}\n")
    return 1
