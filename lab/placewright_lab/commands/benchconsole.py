"""`placewright bench console`: what readers of the console cost an operator."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from placewright.cli.options import Subparsers, whole_number
from placewright.cli.terminal import print_json
from placewright_lab.bench.consolecost import (
    NODES,
    RATE,
    READERS,
    ROUNDS,
    SECONDS,
    WAITING,
    WANTED_SHARE,
    ConsoleCost,
    measure_console,
)
from placewright_lab.commands.benchsides import collecting_as_the_operator
from placewright_lab.commands.benchtables import MOST_NODES, MOST_PODS, counts, print_table

#: Streams that an operator has at once.
_MOST_READERS = 100
_MOST_SLOW = 20


def register_console(benchmarks: Subparsers) -> argparse.ArgumentParser:
    """Add the benchmark.

    Args:
        benchmarks: of `placewright bench`.

    Returns:
        Its parser, for the options that all benchmarks have.
    """
    console = benchmarks.add_parser("console", help="what readers of the console cost: none, some and many of them, in turns")
    console.add_argument("--nodes", type=whole_number(1, MOST_NODES), default=NODES, help=f"default: {NODES}")
    console.add_argument("--waiting", type=whole_number(0, MOST_PODS), default=WAITING, help=f"pods that wait (default: {WAITING})")
    console.add_argument("--rate", type=whole_number(1, 10_000), default=RATE, help=f"decisions a second (default: {RATE})")
    readers = f"beside none (default: {','.join(map(str, READERS[1:]))})"
    console.add_argument("--readers", type=counts(1, _MOST_READERS), default=READERS[1:], metavar="N,N,...", help=readers)
    slow = "readers beside them that stop to read, and are dropped once 4 MiB wait for them (default: 0)"
    console.add_argument("--slow", type=whole_number(0, _MOST_SLOW), default=0, help=slow)
    seconds = f"of each turn (default: {SECONDS:g})"
    console.add_argument("--seconds", type=whole_number(1, 600), default=int(SECONDS), help=seconds)
    console.add_argument("--rounds", type=whole_number(1, 100), default=ROUNDS, help=f"turns of each number (default: {ROUNDS})")
    console.set_defaults(main=_console)
    return console


def _console(args: argparse.Namespace) -> int:
    with collecting_as_the_operator():
        measured = measure_console(
            args.nodes, args.waiting, (0, *args.readers), args.rate, args.seconds, args.rounds, args.slow
        )  # fmt: skip
    if args.output == "json":
        print_json([asdict(m) | {"per_second": m.per_second, "share": m.share, "cost": m.cost} for m in measured])
        return 0
    title = f"readers of the console, {args.nodes} nodes, {args.waiting} waiting pods, medians of {args.rounds} turns, processor time"
    print_table(title, [_console_row(m) for m in measured])
    if args.slow:
        print_table("slow readers", [{"of": args.slow, "dropped": measured[0].dropped}])
    return 0


def _console_row(m: ConsoleCost) -> dict[str, Any]:
    return {
        "readers": m.readers,
        "decisions/s": round(m.per_second),
        "µs/decision": round(m.median("decision") * 1e6),
        "core": f"{100 * m.share:.1f} %",
        "readers cost": f"{100 * m.cost:.1f} %",
        "wanted": f"< {100 * WANTED_SHARE:g} %" if m.readers else "",
        "loop held ms, p99": round(m.median("p99") * 1000, 1),
        "longest": round(m.median("longest") * 1000, 1),
        "MB/s read": round(m.median("read") / 1e6 / m.median("seconds"), 2),
    }
