"""Readings of processes for the benchmarks, and the arithmetic of waiting times."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PEAK: Final = re.compile(r"^VmHWM:\s*(\d+) kB$", re.MULTILINE)


def percentiles(waits: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile, in the unit of `waits`, or zeros if it is empty."""
    if len(waits) < 2:
        return sum(waits), sum(waits)
    return statistics.median(waits), statistics.quantiles(waits, n=100, method="inclusive")[98]


def cpu_seconds(pid: int) -> float:
    """Return the user and system CPU seconds of a process (Linux; 0 elsewhere)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> float:
    """Return the CPU seconds of all processes on all cores of the machine (Linux; 0 elsewhere)."""
    try:
        user, nice, system, _idle, _iowait, *interrupts = Path("/proc/stat").read_text().partition("\n")[0].split()[1:8]
    except (OSError, ValueError):
        return 0.0
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes (Linux; 0 elsewhere)."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_bytes(pid: int) -> int:
    """Return the highest resident memory of a process in bytes (Linux; 0 elsewhere)."""
    try:
        found = _PEAK.search(Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0
