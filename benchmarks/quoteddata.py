"""The benchmarks' figures that the README and the docs quote, as data: the benchmark, the kept columns, and the file.

A benchmark runs as `python -m benchmarks WORDS -o json` in a child, as a reader would run it. Kept are the columns that a table shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.checkouts import Checkout, ChildFailed
from placewright.api.bad_input import InputError
from placewright_lab.bench.figurestamp import FigureStamp, load_now, stamp_here

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Quoted:
    """The figures of one benchmark.

    Attributes:
        commands: words for `python -m benchmarks`, one run each; their rows come one after the other.
        columns: columns of each row that are kept.
        needs_server: whether it wants a real API server and a kube-scheduler, which are not at hand everywhere.
    """

    name: str
    commands: Sequence[str]
    columns: Sequence[str]
    needs_server: bool = False


#: Percentage of 100,000 nodes that kube-scheduler scores by default.
PERCENTAGE: Final = 5
_PAIRWISE: Final = "hard-spread,soft-spread,required-anti-affinity,required-affinity"
_PREEMPTION: Final = "preemption,preemption-hard-spread,preemption-anti-affinity,preemption-affinity,preemption-claims"
#: Nodes, and the pods on them.
_CLUSTERS: Final = ((50, 1_000), (500, 10_000), (5_000, 50_000), (50_000, 150_000))
_DEPLOYMENTS: Final = "deployments-plain,deployments-soft,deployments-hard,deployments-anti"

QUOTED: Final[dict[str, Quoted]] = {
    each.name: each
    for each in (
        Quoted("decisions", ("decisions --workloads plain,openb-mix",), ("workload", "nodes", "pods", "per_second")),
        Quoted("pairwise", (f"decisions --workloads {_PAIRWISE}",), ("workload", "nodes", "running", "per_second")),
        Quoted(
            "deployments",
            (f"decisions --workloads {_DEPLOYMENTS} --deployments 20,200,1000,3000",),
            ("workload", "deployments", "nodes", "running", "per_second"),
        ),
        Quoted(
            "sizes",
            (
                "decisions --workloads openb-mix --nodes 100000 --pods 3000",
                "decisions --workloads deployments-plain --deployments 1000 --nodes 15000,100000",
            ),
            ("workload", "deployments", "nodes", "per_second"),
        ),
        Quoted("all-different", ("decisions --workloads all-different",), ("workload", "nodes", "per_second")),
        Quoted(
            "percentage",
            (f"decisions --workloads all-different --nodes 100000 --pods 1000 --percentage {PERCENTAGE}",),
            ("workload", "nodes", "per_second"),
        ),
        Quoted(
            "large-groups",
            ("gangs --nodes 5000 --members 1000 --groups 3", "gangs --nodes 5000 --members 5000 --groups 1"),
            ("nodes", "groups", "members", "per_second"),
        ),
        Quoted("moves", ("moves",), ("event", "waiting", "hold")),
        Quoted("shares", ("decisions --workloads gpu-shares",), ("workload", "nodes", "per_second", "wanted")),
        Quoted("preemption", (f"decisions --workloads {_PREEMPTION}",), ("workload", "nodes", "running", "median")),
        Quoted("groups", ("gangs",), ("nodes", "members", "per_second")),
        Quoted("devices", ("devices",), ("claims", "nodes", "devices", "per_second", "wanted")),
        Quoted("reload", ("reload",), ("nodes", "rate", "reloads", "p50", "p99", "pods", "bound", "twice")),
        Quoted(
            "end-to-end",
            ("end-to-end", "end-to-end --nodes 5000", "end-to-end --nodes 5000 --pods 2000 --assigned 50000"),
            ("nodes", "assigned", "pods", "bound", "per_second", "operator_cpu", "operator_bytes"),
        ),
        Quoted(
            "memory",
            tuple(f"end-to-end --nodes {nodes} --pods 1000 --assigned {pods}" for nodes, pods in _CLUSTERS),
            ("nodes", "assigned", "pods", "operator_bytes"),
        ),
        Quoted(
            "against",
            ("against --nodes 100,1000,5000 --pods 4000",),
            ("nodes", "pods", "mode", "schedulers"),
            needs_server=True,
        ),
    )
}


class QuotedFigures(msgspec.Struct, frozen=True):
    """The file of one benchmark's figures.

    Attributes:
        stamp: under which circumstances they were measured.
        commands: the commands that were run.
        rows: the results.
    """

    stamp: FigureStamp
    commands: list[str]
    rows: list[Row]


def measure(quoted: Quoted, code: Checkout, told: Callable[[str], None]) -> QuotedFigures:
    """Run its commands, and keep their columns. Raises `ChildFailed`."""
    load, rows = load_now(), []
    for command in quoted.commands:
        told(f"{quoted.name}: python -m benchmarks {command}")
        answer = code.run(command.split())
        rows += [_kept(quoted, row) for row in (answer if isinstance(answer, list) else [answer])]
    return QuotedFigures(stamp_here(load), list(quoted.commands), rows)


def _kept(quoted: Quoted, row: Row) -> Row:
    missing = [column for column in quoted.columns if column not in row]
    if missing:
        raise ChildFailed(f"{quoted.name}: a row without {', '.join(missing)}")
    return {column: _rounded(row[column]) for column in quoted.columns}


def _rounded(value: Any) -> Any:
    """Round to five digits: the digits below change with every run."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def read_figures(folder: Path, name: str) -> QuotedFigures:
    """Read the figures that were measured last. Raises `InputError` if there are none, or they cannot be read."""
    file = folder / f"{name}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=QuotedFigures)
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{file}: {getattr(error, 'strerror', None) or error}; make it with: make figures ARGS={name}") from None


def write_figures(folder: Path, name: str, figures: QuotedFigures) -> None:
    """Write the file of one benchmark."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")
