"""The circumstances of figures: machine, commit, versions and date. Without them no two figures can be compared."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import kubesandbox
import placewright
import placewright_lab
from placewright_lab.bench.wavecomparison import proc_text
from placewright_lab.simulation.workprocesses import usable_cores

_MODEL: Final = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)
_MEMORY: Final = re.compile(r"^MemTotal:\s*(\d+) kB$", re.MULTILINE)
#: Distributions that the figures depend on, besides Python.
_STANDS_ON: Final = {"NumPy": "numpy", "Kopf": "kopf"}


@dataclass(frozen=True, slots=True)
class FigureStamp:
    """The circumstances of one measurement.

    Attributes:
        date: date of its end, UTC, such as 2026-11-23.
        commit: commit of the code, with "+" if the code was changed; "" if git does not know the code.
        cpu, cores, memory_bytes: machine, and the cores that this process may use.
        versions: versions by the name of the program.
        load: load average of one minute at the beginning, which shows other work on the machine.
        note: text instead of all these, for figures without a stamp.
    """

    date: str = ""
    commit: str = ""
    cpu: str = ""
    cores: int = 0
    memory_bytes: int = 0
    versions: Mapping[str, str] | None = None
    load: float = 0.0
    note: str = ""

    def sentence(self) -> str:
        """Return the sentence under a table."""
        if self.note:
            return self.note
        versions = ", ".join(f"{name} {number}" for name, number in (self.versions or {}).items())
        machine = f"{self.cpu}, {self.cores} cores, {self.memory_bytes / 2**30:.0f} GiB"
        code = self.commit[:7] + "+" * self.commit.endswith("+") or "an unknown commit"
        return f"Measured {self.date} at {code} on {machine}; {versions}; load {self.load:.1f} at the start."


def stamp_here(load: float) -> FigureStamp:
    """Return the stamp of this machine, this code and this day. `load` is the load at the beginning of the measurement."""
    versions = {"Python": platform.python_version(), **{name: version(distribution) for name, distribution in _STANDS_ON.items()}}
    return FigureStamp(
        datetime.now(UTC).date().isoformat(),
        commit_of(Path(str(each.__file__)).resolve().parent for each in (placewright, placewright_lab, kubesandbox)),
        _found(_MODEL, "cpuinfo") or platform.processor() or platform.machine(),
        usable_cores(),
        int(_found(_MEMORY, "meminfo") or 0) * 1024,
        versions,
        load,
    )


def load_now() -> float:
    """Return the machine's load average of the last minute, or 0 if the machine has none."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return 0.0


def _found(pattern: re.Pattern[str], file: str) -> str:
    match = pattern.search(proc_text(file))
    return match[1].strip() if match else ""


def commit_of(packages: Iterable[Path]) -> str:
    """Return the hash of the commit of these packages, with "+" if they were changed. Without git, return ""."""
    folders = list(packages)
    if any(git(each, "ls-files", "--error-unmatch", "__init__.py") is None for each in folders):
        return ""
    commit = git(folders[0], "rev-parse", "HEAD") or b""
    changed = any(git(each, "status", "--porcelain", "--untracked-files=no", ".") for each in folders)
    return commit.decode().strip() + ("+" if changed else "")


def git(folder: Path, *words: str) -> bytes | None:
    """Return git's output, or None if git fails or is missing."""
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True).stdout  # noqa: S603, S607 - no shell
    except (OSError, subprocess.SubprocessError):
        return None
