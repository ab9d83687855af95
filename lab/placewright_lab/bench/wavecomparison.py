"""The comparison of waves of pods through two schedulers: order, medians, ratios, rows of a table. Pure functions.

Readings of processes for the benchmarks, and the arithmetic of waiting times.
"""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

_PEAK: Final = re.compile(r"^VmHWM:\s*(\d+) kB$", re.MULTILINE)


def percentiles(waits: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile, in the unit of `waits`, or zeros if it is empty."""
    if len(waits) < 2:
        return sum(waits), sum(waits)
    return statistics.median(waits), statistics.quantiles(waits, n=100, method="inclusive")[98]


def proc_text(name: str) -> str:
    """Return a file of `/proc`. The text is empty for a process that has ended, and on other systems than Linux."""
    try:
        return Path("/proc", name).read_text(encoding="utf-8")
    except OSError:
        return ""


def cpu_seconds(pid: int) -> float:
    """Return the user and system CPU seconds of a process (Linux; 0 elsewhere)."""
    fields = proc_text(f"{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def machine_seconds() -> float:
    """Return the CPU seconds of all processes on all cores of the machine (Linux; 0 elsewhere)."""
    fields = proc_text("stat").partition("\n")[0].split()[1:8]
    return sum(map(int, (*fields[:3], *fields[5:]))) / os.sysconf("SC_CLK_TCK")  # without idle and waiting for I/O


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes (Linux; 0 elsewhere)."""
    fields = proc_text(f"{pid}/statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def peak_bytes(pid: int) -> int:
    """Return the highest resident memory of a process in bytes (Linux; 0 elsewhere)."""
    found = _PEAK.search(proc_text(f"{pid}/status"))
    return int(found[1]) * 1024 if found else 0


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds of each process."""

    scheduler: float
    api_server: float
    etcd: float
    bench: float

    def __sub__(self, earlier: Spent) -> Self:
        return type(self)(*(now - before for now, before in zip(astuple(self), astuple(earlier), strict=True)))


@dataclass(frozen=True, slots=True)
class Wave:
    """The measurement of one wave of pods through one scheduler.

    Attributes:
        scheduler: label of the scheduler.
        pods: number of pods that were created; all of them were bound.
        events: pods that have a `Scheduled` event.
        per_second: pods bound a second; `WaveOutcome.wave` tells the span.
        settled_per_second: the same until the last event was written, too.
        p50, p99: seconds from sending a pod's creation to seeing its binding; None for a backlog.
        cpu: CPU seconds until the last event was written.
        peak_bytes: highest memory of the scheduler, bytes.
    """

    scheduler: str
    pods: int
    events: int
    per_second: float
    settled_per_second: float
    p50: float | None
    p99: float | None
    cpu: Spent
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class WaveOutcome:
    """The times of a wave, on one clock in seconds, and its cost.

    Attributes:
        sent, bound: times at which each pod's creation was sent and its binding was seen, by name.
        settled: time at which the last event was written.
    """

    sent: dict[str, float]
    bound: dict[str, float]
    settled: float
    events: int
    cpu: Spent
    peak_bytes: int

    def wave(self, scheduler: str, *, backlog: bool) -> Wave:
        """Compute the figures of the wave.

        Pods of a burst come while the scheduler runs, so its time begins with the first creation. Pods of a backlog come before the
        scheduler starts. So its time begins with the first binding, and the first pod does not count.
        """
        sent, first, last = len(self.sent), min((self.bound if backlog else self.sent).values()), max(self.bound.values())
        bound, settled = (_rate(sent - backlog, end - first) for end in (last, max(last, self.settled)))
        waits = [] if backlog else [self.bound[name] - at for name, at in self.sent.items()]
        p50, p99 = percentiles(waits) if waits else (None, None)
        return Wave(scheduler, sent, self.events, bound, settled, p50, p99, self.cpu, self.peak_bytes)


@dataclass(frozen=True, slots=True)
class WaveComparison:
    """All waves over one number of nodes.

    Attributes:
        waves: waves in the order in which they ran.
        labels: our label, then the label of the other scheduler.
        mode: way in which pods came: "burst", "backlog", or so many a second.
    """

    nodes: int
    pods: int
    waves: Sequence[Wave]
    labels: tuple[str, str]
    mode: str = "burst"

    def to_json(self) -> dict[str, Any]:
        """Return medians, ratios (ours by theirs), and every wave. Units are seconds and bytes, or stand in the name."""
        return {
            "nodes": self.nodes,
            "pods": self.pods,
            "mode": self.mode,
            "schedulers": {label: self.figures(label) for label in self.labels},
            "ratio": self.ratios(),
            "waves": [asdict(wave) for wave in self.waves],
        }

    def figures(self, label: str) -> dict[str, float | None]:
        """Return the median of each figure over the waves of one scheduler."""
        figures = [_figures(wave) for wave in self.waves if wave.scheduler == label]
        return {name: _median([each[name] for each in figures]) for name in figures[0]}

    def ratios(self) -> dict[str, float | None]:
        """Return our median by theirs for each figure; None if there is nothing to divide."""
        mine, theirs = (self.figures(label) for label in self.labels)
        return {name: _ratio(mine[name], theirs[name]) for name in mine}

    def title(self) -> str:
        """Return the heading of the table."""
        waves = len(self.waves) // len(self.labels)
        measured = f"median of {waves} waves each" if waves > 1 else "one wave each"
        return f"{self.nodes:,} nodes, {self.pods:,} pods, {self.mode}, {measured}"

    def rows(self) -> list[dict[str, str]]:
        """Return a row of the table for each figure: ours, theirs, and the ratio."""
        mine, theirs = (self.figures(label) for label in self.labels)
        ratios = self.ratios()
        return [
            {
                "": title,
                self.labels[0]: _shown(mine[name], decimals),
                self.labels[1]: _shown(theirs[name], decimals),
                "ratio": _shown(ratios[name], 2),
            }
            for name, title, decimals in _ROWS
        ]


#: Figure, its name in a table, decimals.
_ROWS: Final = (
    ("per_second", "pods/s, until the last binding", 0),
    ("settled_per_second", "pods/s, until the last event", 0),
    ("p50_ms", "creation to binding, p50 ms", 0),
    ("p99_ms", "creation to binding, p99 ms", 0),
    ("scheduler_cpu_ms", "CPU ms/pod, scheduler", 2),
    ("api_server_cpu_ms", "CPU ms/pod, API server", 2),
    ("etcd_cpu_ms", "CPU ms/pod, etcd", 2),
    ("bench_cpu_ms", "CPU ms/pod, feed and watch of the bench", 2),
    ("peak_mb", "peak memory of the scheduler, MB", 0),
    ("events_per_pod", "Scheduled events a pod", 2),
)


def order_of_waves(first: T, second: T, each: int) -> list[T]:
    """Alternate as first, second, second, first, until each had `each` waves. So drift of the machine hits both."""
    pairs = [(first, second) if number % 2 == 0 else (second, first) for number in range(each)]
    return [one for pair in pairs for one in pair]


def _figures(wave: Wave) -> dict[str, float | None]:
    cpu = {f"{process}_cpu_ms": seconds * 1000 / wave.pods for process, seconds in asdict(wave.cpu).items()}
    return {
        "per_second": wave.per_second,
        "settled_per_second": wave.settled_per_second,
        "events_per_pod": wave.events / wave.pods,
        "p50_ms": None if wave.p50 is None else wave.p50 * 1000,
        "p99_ms": None if wave.p99 is None else wave.p99 * 1000,
        **cpu,
        "peak_mb": wave.peak_bytes / 1e6,
    }


def _rate(done: int, seconds: float) -> float:
    return done / seconds if seconds > 0 else 0.0


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _ratio(mine: float | None, theirs: float | None) -> float | None:
    return mine / theirs if mine is not None and theirs else None


def _shown(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:,.{decimals}f}"
