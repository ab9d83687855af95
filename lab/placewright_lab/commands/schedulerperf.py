"""`placewright bench scheduler-perf`: upstream's own workloads, for ours and a kube-scheduler in turns, on a real API server."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from placewright.api.bad_input import InputError, bad_field, printable
from placewright.cli.options import whole_number
from placewright.cli.terminal import plain, print_json
from placewright_lab.bench.against import find_programs
from placewright_lab.bench.contenders import OUR_LABEL, label_of
from placewright_lab.bench.figurestamp import load_now, stamp_here
from placewright_lab.bench.schedulerperf.configuration import read_configurations
from placewright_lab.bench.schedulerperf.contests import ContestPlan, Say, contest
from placewright_lab.bench.schedulerperf.operations import LeftOutWorkload, PerfWorkload
from placewright_lab.bench.schedulerperf.perfreport import chosen, exchanged, markdown, notes, rows
from placewright_lab.bench.schedulerperf.verdicts import Contest, read_contests, write_contest
from placewright_lab.controlplane.assets import VARIABLE

_MOST_TURNS: Final = 100
_MOST_SECONDS: Final = 86_400


def add_scheduler_perf(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench scheduler-perf`."""
    folder = "with a performance-config.yaml of Kubernetes' test/integration/scheduler_perf, or above several"
    parser.add_argument("folder", type=Path, metavar="FOLDER", help=folder)
    parser.add_argument("--workloads", type=_pattern, metavar="REGEX", help="of TestCase/workload; the whole name, or what is found in it")
    parser.add_argument("--labels", type=_labels, default=(), metavar="L,-L,...", help="upstream's labels that a workload has, or has not")
    most = "leave out workloads with more nodes"
    parser.add_argument("--nodes", type=whole_number(1, 10**6), metavar="N", help=f"{most} (default: no limit)")
    parser.add_argument("--turns", type=whole_number(1, _MOST_TURNS), default=1, help="of each scheduler (default: 1)")
    limit = "after which a turn is ended, and reported as such (default: 600)"
    parser.add_argument("--limit", type=whole_number(1, _MOST_SECONDS), default=600, metavar="SECONDS", help=limit)
    default = "default: the one among the assets"
    parser.add_argument("--kube-scheduler", type=Path, metavar="PATH", help=f"the program to compare with ({default})")
    parser.add_argument("--assets", type=Path, metavar="DIR", help=f"default: {VARIABLE}, or what `make e2e` built")
    parser.add_argument("--save", type=Path, metavar="FILE", help="append what was measured, and do not measure again what is in it")
    parser.add_argument("--saved", action="store_true", help="measure nothing: show what is in --save")
    parser.add_argument("--page", type=Path, metavar="FILE", help="exchange the figures of this page, too")
    parser.add_argument("-o", "--output", choices=("table", "json", "markdown"), default="table", help="default: table")
    parser.set_defaults(main=_main)


def _main(args: argparse.Namespace) -> int:
    """Run the workloads. The exit code is 1 if a turn did not come to its end."""
    if not sys.platform.startswith("linux"):
        raise bad_field("bench scheduler-perf", sys.platform, "Linux: CPU and memory of processes are read from /proc")
    page = args.page.read_text(encoding="utf-8") if args.page else ""
    if args.page:
        exchanged(page, "")  # the error of a page is reported before hours of measuring
    known = _saved(args.save)
    found = _wanted(args)
    fresh = [] if args.saved else _measured(args, found, known)
    wanted = [each.name for each in found]
    contests = sorted((each for each in chosen([*known, *fresh]) if each.workload in wanted), key=lambda each: wanted.index(each.workload))
    run = {each.workload for each in contests}
    not_run = [name for name in wanted if name not in run]
    _show(contests, not_run, args.output)
    if args.page:
        args.page.write_text(exchanged(page, markdown(contests, not_run)), encoding="utf-8")
    return int(any(turn.ended for each in contests for turn in each.turns))


def _measured(args: argparse.Namespace, wanted: Sequence[PerfWorkload | LeftOutWorkload], known: Sequence[Contest]) -> list[Contest]:
    programs = find_programs(args.assets, args.kube_scheduler)
    labels = (OUR_LABEL, label_of(programs.minor))
    done = {each.workload for each in known if each.labels == labels}
    todo = [found for found in wanted if found.name not in done]
    plan = ContestPlan(programs, args.turns, args.limit, _made(programs.assets.minor))
    made = []
    with _progress(sum(isinstance(each, PerfWorkload) for each in todo) * 2 * args.turns) as (say, ended):
        for found in todo:
            made.append(contest(found, plan, say))
            ended(made[-1])
            if args.save:
                with args.save.open("ab") as file:
                    file.write(write_contest(made[-1]))
    return made


def _wanted(args: argparse.Namespace) -> list[PerfWorkload | LeftOutWorkload]:
    """Return the chosen workloads, small clusters first. Raises `InputError` if there are none."""
    found = [each for each in read_configurations(args.folder) if _is_wanted(each, args)]
    if not found:
        raise InputError(f"no workload of {args.folder} is chosen by --workloads, --labels and --nodes")
    return sorted(found, key=lambda each: (each.nodes, each.pods) if isinstance(each, PerfWorkload) else (0, 0))


def _is_wanted(found: PerfWorkload | LeftOutWorkload, args: argparse.Namespace) -> bool:
    if args.workloads is not None and not args.workloads.search(found.name):
        return False
    if isinstance(found, LeftOutWorkload):
        return not args.labels
    labelled = all((label.removeprefix("-") in found.labels) != label.startswith("-") for label in args.labels)
    return labelled and (args.nodes is None or found.nodes <= args.nodes)


def _saved(file: Path | None) -> list[Contest]:
    if file is None or not file.exists():
        return []
    try:
        return read_contests(file.read_bytes().splitlines())
    except msgspec.MsgspecError as error:
        raise InputError(f"{file} was not written by bench scheduler-perf --save: {error}") from None


def _made(minor: int) -> dict[str, str]:
    """Note commit, machine, versions and date, because figures of several runs stand together."""
    stamp = stamp_here(load_now())
    versions = ", ".join(f"{name} {number}" for name, number in (stamp.versions or {}).items())
    return {
        "commit": stamp.commit[:12] + "+" * stamp.commit.endswith("+") or "unknown",
        "machine": (
            f"{stamp.cores} cores of {stamp.cpu}, {stamp.memory_bytes / 2**30:.0f} GiB, shared by API server, etcd, scheduler and benchmark"
        ),
        "versions": f"API server 1.{minor}, {versions}",
        "measured": stamp.date,
    }


@contextmanager
def _progress(turns: int) -> Iterator[tuple[Say, Callable[[Contest], None]]]:
    """Show a bar on a terminal, and elsewhere a line for each workload. Both are on stderr."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        whole = bars.add_task("turns", total=turns)
        pods = bars.add_task("", total=None)

        def say(workload: str, scheduler: str) -> Callable[[int, int], None]:
            bars.update(pods, description=printable(f"{workload}, {scheduler}"), completed=0, total=None)
            return lambda done, wanted: bars.update(pods, completed=done, total=wanted)

        def ended(made: Contest) -> None:
            bars.advance(whole, len(made.turns))
            bars.console.print(_line(made), markup=False, highlight=False, soft_wrap=True)

        yield say, ended


def _line(made: Contest) -> str:
    if made.left_out:
        return printable(f"{made.workload}: left out: {made.left_out}")
    rates = " / ".join(turn.ended or f"{turn.per_second:,.0f}" for turn in (made.turn(label) for label in made.labels))
    return printable(f"{made.workload}: {rates} pods/s: {made.verdict()}")


def _show(contests: Sequence[Contest], not_run: Sequence[str], output: str) -> None:
    if output == "json":
        print_json([each.to_json() for each in contests])
        return
    if output == "markdown":
        sys.stdout.write(markdown(contests, not_run))
        return
    out = Console()
    if found := rows(contests):
        title = "upstream's workloads: ours / theirs, each on an API server of its own"
        table = Table(title=plain(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
        for column in found[0]:
            table.add_column(column, justify="left" if column == "workload" else "right", overflow="fold")
        for row in found:
            table.add_row(*(plain(value) for value in row.values()))
        out.print(table)
    for line in notes(contests, not_run):
        out.print(plain(line), soft_wrap=True)


def _pattern(text: str) -> re.Pattern[str]:
    """Parse a regular expression for argparse."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed a regular expression ({error})") from None


def _labels(text: str) -> tuple[str, ...]:
    """Parse labels with commas between them for argparse."""
    return tuple(part for part in text.split(",") if part)
