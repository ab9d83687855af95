"""The operator in a process of its own, as a cluster would run it, for as long as a context is open."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kubesandbox.process import end_process

END_SECONDS: Final = 8.0
_LAST_LINES: Final = 5


def operator_command(kubeconfig: Path, console_port: int = 0) -> list[str]:
    """How the operator is started against a kubeconfig; it ends when its standard input does.

    Args:
        kubeconfig: of its cluster.
        console_port: port of loopback on which it serves its console; 0: it opens no port.

    Returns:
        The command.
    """
    command = [sys.executable, "-m", "placewright.cli.main", "run", "--kubeconfig", str(kubeconfig), "--exit-with-stdin"]
    console = ["--bind-address", "127.0.0.1", "--console"] if console_port else []
    return [*command, "--secure-port", str(console_port), *console]


class OperatorProcess:
    """`placewright run`, with its output in a log file.

    Attributes:
        log: where its output goes.
    """

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._process: Process | None = None
        self.log = log

    async def __aenter__(self) -> Self:
        with self.log.open("wb") as output:
            # A session of its own: Ctrl-C is ours to handle, and the operator is ended in order, before its API server.
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=output, stderr=output, start_new_session=True
            )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            await end_process(self._process, END_SECONDS)

    @property
    def pid(self) -> int:
        """Process id; 0 before the start."""
        return self._process.pid if self._process else 0

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.returncode if self._process else None

    async def ended(self) -> None:
        """Return when it has ended."""
        if self._process is not None:
            await self._process.wait()

    def last_words(self) -> str:
        """Return the end of its log, in one line."""
        with suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return " | ".join(line.strip() for line in lines[-_LAST_LINES:]) or "it said nothing"
        return "its log cannot be read"
