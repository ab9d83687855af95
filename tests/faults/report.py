"""One JSON line a run, and the table that they come to: `python -m faults.report FILE`."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from .audit import Findings

_HEAD: Final = (
    "fault", "runs", "pods", "doubly bound", "lost", "over-committed", "without the lead", "untrue",
    "groups", "split", "claims", "devices astray", "time to recover, s (median, worst)"
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run of one fault."""

    fault: str
    seed: int
    pods: int
    bound: int
    doubly_bound: int
    lost: int
    overcommitted: int
    unled: int
    untrue: int
    untold: int
    #: How often a replica took the Lease.
    terms: int
    recovery: float | None
    #: None: there were none to look at.
    groups: int | None = None
    split: int | None = None
    #: Groups with fewer members on nodes than they need, for a reason that is known.
    halfway: int = 0
    claims: int | None = None
    astray: int | None = None

    @classmethod
    def of(cls, fault: str, seed: int, found: Findings, recovery: float | None) -> Run:
        counts = {name: len(getattr(found, name)) for name in ("doubly_bound", "lost", "overcommitted", "unled", "untrue", "untold")}
        seconds = None if recovery is None else round(recovery, 2)
        groups = None if found.groups is None else len(found.split)
        claims = None if found.claims is None else len(found.astray)
        return cls(
            fault, seed, found.pods, found.bound, **counts, terms=found.terms, recovery=seconds,
            groups=found.groups, split=groups, halfway=found.halfway, claims=found.claims, astray=claims,
        )  # fmt: skip

    def append_to(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as report:
            report.write(json.dumps(asdict(self)) + "\n")


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
