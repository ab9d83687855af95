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
from benchmarks.beforeafter import CONFIDENCE, FEWEST_ROUNDS, BeforeAfter, Turn, in_turns, named
from benchmarks.checkouts import ChildFailed, checkout_named, running
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
    """Exit code 1 for a loss, and if nothing could be compared."""
    here = Path(placewright.__file__).resolve().parent
    with TemporaryDirectory(prefix="placewright-bench-") as folder:
        scratch = Path(folder)
        after = running(scratch) if args.after is None else checkout_named(args.after, scratch, here)
        before = checkout_named(args.before, scratch, here)
        for each in (before, after):
            each.check()
        measured: list[BeforeAfter] = []
        left_out: list[str] = []
        try:
            for words in _parts(args, parser):
                both, lacking = in_turns(before, after, words, args.rounds, _said)
                measured += both
                left_out += lacking
        except ChildFailed as failed:
            _said(f"placewright: {failed}")
            return 1
    lost = [one for one in measured if one.lost(args.tolerance / 100)]
    if args.output == "json":
        print_json({"measured": [_as_data(one, one in lost) for one in measured], "left_out": left_out})
    else:
        out = Console()
        if measured:
            out.print(_table(f"{before.name} and then {after.name}", measured, args.rounds))
        for line in (*(f"not compared: {each}" for each in left_out), *_notes(measured, lost, args.tolerance)):
            out.print(plain(line), soft_wrap=True)
    return int(not measured or bool(lost))


def _said(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")


def _parts(args: argparse.Namespace, parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    """Yield the words of each child: turns are the closer together, the less a child measures, so each workload and size has its own."""
    benchmark = parser.prog.rpartition(" ")[2]
    rest = list(_words(args, parser, _OURS | {"workloads", "nodes"}))
    nodes = getattr(args, "nodes", None)
    nodes = nodes if isinstance(nodes, tuple) else (nodes,)
    for workload in getattr(args, "workloads", (None,)):
        for number in nodes:
            workloads = [] if workload is None else ["--workloads", workload]
            yield [benchmark, *workloads, *([] if number is None else ["--nodes", str(number)]), *rest]


def _words(args: argparse.Namespace, parser: argparse.ArgumentParser, without: frozenset[str]) -> Iterator[str]:
    """Yield the options that were given, as they were given; defaults are left to each checkout."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        value = getattr(args, action.dest, None)
        if action.dest not in without and value != action.default:
            yield action.option_strings[-1]
            if action.nargs != 0:
                yield ",".join(str(one) for one in value) if isinstance(value, tuple) else str(value)


def _table(sides: str, measured: list[BeforeAfter], rounds: int) -> Table:
    title = plain(f"{sides}: processor time of the best run, ratio of {rounds} turns each")
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("", "nodes", "before s", "after s", "ratio", f"at {CONFIDENCE:.0%}", "now"):
        table.add_column(column, justify="right", overflow="fold", no_wrap=not column)
    for one in measured:
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


def _notes(measured: list[BeforeAfter], lost: list[BeforeAfter], tolerance: int) -> Iterator[str]:
    for one in measured:
        if not one.same_work:
            yield f"different work: {named(one.what)}: placed {_placed(one.before)} before, {_placed(one.after)} after"
    yield from (f"slower by more than {tolerance} %: {named(one.what)}: {one.ratio - 1:+.1%}" for one in lost)


def _placed(turns: list[Turn]) -> str:
    return " or ".join(sorted({f"{turn.placed:,}" for turn in turns if turn.placed is not None}))


def _as_data(one: BeforeAfter, lost: bool) -> dict[str, Any]:
    return {
        **one.what,
        **{name: getattr(one, name) for name in ("ratio", "interval", "tendency", "same_work")},
        "lost": lost,
        **{side: [turn.seconds for turn in getattr(one, side)] for side in ("before", "after")},
    }
