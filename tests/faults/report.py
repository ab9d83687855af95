"""One JSON line a run, and the table that they come to: `python -m faults.report FILE`."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from .audit import Findings

_HEAD: Final = (
    "fault", "runs", "pods", "doubly bound", "lost", "over-committed", "without the lead", "untrue",
    "groups", "split", "claims", "devices astray", "time to recover, s (median, worst)"
)  # fmt: skip


def append(file: Path, fault: str, seed: int, found: Findings, recovery: float | None) -> None:
    """A line for one run of one fault: how much was found of each. What there could be none of is null."""
    counts = {name: len(value) if isinstance(value, list) else value for name, value in asdict(found).items()}
    counts |= {name: None for name, of in (("split", found.groups), ("astray", found.claims)) if of is None}
    seconds = None if recovery is None else round(recovery, 2)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as report:
        report.write(json.dumps({"fault": fault, "seed": seed, **counts, "recovery": seconds}) + "\n")


def table(lines: Iterable[str]) -> str:
    """Markdown, a row a fault, in the order in which they first come."""
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        run = json.loads(line)
        runs[run["fault"]].append(run)
    rows = [_HEAD, tuple("---" for _ in _HEAD), *(_row(fault, each) for fault, each in runs.items())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(fault: str, runs: list[dict[str, Any]]) -> tuple[str, ...]:
    sums = [str(sum(run[name] for run in runs)) for name in ("pods", "doubly_bound", "lost", "overcommitted", "unled", "untrue")]
    times = [run["recovery"] for run in runs if run["recovery"] is not None]
    recovery = f"{statistics.median(times):.2f}, {max(times):.2f}" if times else "–"
    sums += [_sum_of([run.get(name) for run in runs]) for name in ("groups", "split", "claims", "astray")]
    return (fault, str(len(runs)), *sums, recovery)


def _sum_of(counts: list[int | None]) -> str:
    known = [count for count in counts if count is not None]
    return str(sum(known)) if known else "–"


if __name__ == "__main__":
    print(table(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()))  # noqa: T201 - what it is for
