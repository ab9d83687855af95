"""`placewright run` in a child process that may take only so much memory, and how much it took.

The limit is the kernel's (`RLIMIT_DATA`): memory that the process may write to and shares with nobody, so also what it has asked for and
not touched. An allocation beyond it fails, so that what takes too much ends with a `MemoryError` or by itself, and not the machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command

GIBI: Final = 2**30
MEBI: Final = 2**20
_LIMITED: Final = 'ulimit -d "$1" && shift && exec "$@"'


@dataclass(frozen=True, slots=True)
class LimitedOperator:
    """The process while it is limited. Sizes are bytes."""

    process: OperatorProcess
    log: Path

    @property
    def alive(self) -> bool:
        return self.process.exit_code is None

    @property
    def resident(self) -> int:
        """What it has in memory now."""
        return self._status("VmRSS")

    @property
    def peak(self) -> int:
        """The most that it ever had in memory."""
        return self._status("VmHWM")

    @property
    def data(self) -> int:
        """What counts against the limit now."""
        return self._status("VmData")

    def said(self, words: str) -> list[str]:
        """Lines of its log that have these words."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if words in line]

    def _status(self, field: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


@asynccontextmanager
async def limited_operator(kubeconfig: Path, folder: Path, most: int = GIBI, flags: Sequence[str] = ()) -> AsyncIterator[LimitedOperator]:
    """An operator that may take `most` bytes, for as long as this is open."""
    command = ["/bin/sh", "-c", _LIMITED, "sh", str(most // 1024), *operator_command(kubeconfig), *flags]
    log = folder / "limited-operator.log"
    async with OperatorProcess(command, log) as process:
        yield LimitedOperator(process, log)
