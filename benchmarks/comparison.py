"""`--before` of the benchmarks: the same measurement of two checkouts, in turns, and which of them is faster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

import placewright
from benchmarks.beforeafter import CONFIDENCE, FEWEST_ROUNDS, BeforeAfter, TwoTrees, in_turns, named
from benchmarks.checkouts import Checkout, ChildFailed, checkout_named, running
from placewright.api.bad_input import printable
from placewright.cli.options import whole_number
from placewright.cli.terminal import plain, print_json

_MOST_ROUNDS: Final = 1000
#: Options that say how two checkouts are compared, and are not for the benchmark.
_OURS: Final = frozenset({"help", "before", "after", "rounds", "tolerance", "output"})


def add_before_options(parser: argparse.ArgumentParser) -> None:
    """Give the parser of a benchmark `--before` and its options; without it, the benchmark runs."""
    main = parser.get_default("main")
    group = parser.add_argument_group("before and after")
    tree = "a commit, or a folder with a checkout"
    group.add_argument("--before", metavar="COMMIT|FOLDER", help=f"measure another version, too, in turns with this one: {tree}")
    group.add_argument("--after", metavar="COMMIT|FOLDER", help="what to compare with it (default: the code that runs this)")
    rounds = f"turns of each, {FEWEST_ROUNDS} or more (default: {FEWEST_ROUNDS})"
    group.add_argument("--rounds", type=whole_number(FEWEST_ROUNDS, _MOST_ROUNDS), default=FEWEST_ROUNDS, metavar="N", help=rounds)
    tolerance = "exit code 1 where it is slower beyond doubt, and by more than this (default: 5)"
    group.add_argument("--tolerance", type=whole_number(0, 1000), default=5, metavar="PERCENT", help=tolerance)
    parser.set_defaults(main=lambda args: main(args) if args.before is None else _compare(args, parser))


def _compare(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Exit code 1 for a loss, and where nothing could be compared."""
    here = Path(placewright.__file__).resolve().parent
    with TemporaryDirectory(prefix="placewright-bench-") as folder:
        scratch = Path(folder)
        after = running(scratch) if args.after is None else checkout_named(args.after, scratch, here)
        before = checkout_named(args.before, scratch, here)
        for each in (before, after):
            each.check()
        try:
            trees = in_turns(before, after, list(_parts(args, parser)), args.rounds, _said)
        except ChildFailed as failed:
            sys.stderr.write(f"placewright: {printable(str(failed))}\n")
            return 1
    _print(trees, args)
    return int(not trees.measured or bool(trees.lost(args.tolerance / 100)))


def _said(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")


def _parts(args: argparse.Namespace, parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    """The words of each child: turns are the closer together, the less a child measures, so each workload and size has its own."""
    benchmark = parser.prog.rpartition(" ")[2]
    rest = list(_words(args, parser, _OURS | {"workloads", "nodes"}))
    nodes = getattr(args, "nodes", None)
    nodes = nodes if isinstance(nodes, tuple) else (nodes,)
    for workload in getattr(args, "workloads", (None,)):
        for number in nodes:
            workloads = [] if workload is None else ["--workloads", workload]
            yield [benchmark, *workloads, *([] if number is None else ["--nodes", str(number)]), *rest]


def _words(args: argparse.Namespace, parser: argparse.ArgumentParser, without: frozenset[str]) -> Iterator[str]:
    """The options that were given, as they were given; defaults are left to each checkout."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        value = getattr(args, action.dest, None)
        if action.dest not in without and value != action.default:
            yield action.option_strings[-1]
            if action.nargs != 0:
                yield ",".join(str(one) for one in value) if isinstance(value, tuple) else str(value)


def _print(trees: TwoTrees, args: argparse.Namespace) -> None:
    if args.output == "json":
        print_json(_as_data(trees, args.tolerance / 100))
        return
    out = Console()
    if trees.measured:
        out.print(_table(trees, args.rounds))
    for line in _notes(trees, args.tolerance):
        out.print(plain(line), soft_wrap=True)


def _table(trees: TwoTrees, rounds: int) -> Table:
    title = f"{_named(trees.before)} and then {_named(trees.after)}: processor time of the best run, ratio of {rounds} turns each"
    table = Table(title=plain(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("", "nodes", "before s", "after s", "ratio", f"at {CONFIDENCE:.0%}", "now"):
        table.add_column(column, justify="right", overflow="fold", no_wrap=not column)
    for one in trees.measured:
        table.add_row(*(plain(each) for each in _row(one)))
    return table


def _row(one: BeforeAfter) -> Iterator[str]:
    low, high = one.interval
    name = ", ".join(str(one.what[name]) for name in ("workload", "claims", "event") if name in one.what)
    yield f"{name}, {one.what['deployments']:,}" if "deployments" in one.what else name
    yield f"{one.what['nodes']:,}" if "nodes" in one.what else ""
    yield from (f"{min(turn.seconds for turn in side):.3f}" for side in (one.before, one.after))
    yield f"{one.ratio:.3f}"
    yield f"{low:.3f} to {high:.3f}"
    yield one.tendency


def _named(checkout: Checkout) -> str:
    return f"{checkout.name} ({checkout.commit[:7]})" if checkout.commit and checkout.commit[:7] not in checkout.name else checkout.name


def _notes(trees: TwoTrees, tolerance: int) -> Iterator[str]:
    yield from (f"not compared: {each}" for each in trees.left_out)
    yield from (f"the benchmark of {trees.after.name} measured both: {each}" for each in trees.borrowed)
    yield from (
        f"different work: {named(one.what)}: placed {_placed(one, 0)} before, {_placed(one, 1)} after"
        for one in trees.measured
        if not one.same_work
    )
    yield from (f"slower by more than {tolerance} %: {named(one.what)}: {one.ratio - 1:+.1%}" for one in trees.lost(tolerance / 100))


def _placed(one: BeforeAfter, side: int) -> str:
    return " or ".join(sorted({f"{turn.placed:,}" for turn in (one.before, one.after)[side] if turn.placed is not None})) or "nobody knows"


def _as_data(trees: TwoTrees, tolerance: float) -> dict[str, Any]:
    return {
        "before": {"name": trees.before.name, "commit": trees.before.commit},
        "after": {"name": trees.after.name, "commit": trees.after.commit},
        "measured": [
            {
                **one.what,
                "ratio": one.ratio,
                "interval": one.interval,
                "tendency": one.tendency,
                "lost": one.lost(tolerance),
                "same_work": one.same_work,
                "before": [turn.seconds for turn in one.before],
                "after": [turn.seconds for turn in one.after],
            }
            for one in trees.measured
        ],
        "left_out": trees.left_out,
        "borrowed": trees.borrowed,
    }
