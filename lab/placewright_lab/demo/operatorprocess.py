"""The operator in a process of its own, like in a cluster, while a context is open."""

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
    """Return the command that starts the operator against a kubeconfig. The operator ends when its standard input ends.

    It serves its console on the loopback port `console_port`. If that is 0, it opens no port.
    """
    command = [sys.executable, "-m", "placewright.cli.main", "run", "--kubeconfig", str(kubeconfig), "--exit-with-stdin"]
    console = ["--bind-address", "127.0.0.1", "--console"] if console_port else []
    return [*command, "--secure-port", str(console_port), *console]


class OperatorProcess:
    """`placewright run`, with its output in a log file.

    Attributes:
        log: file with its output.
    """

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._process: Process | None = None
        self.log = log

    async def __aenter__(self) -> Self:
        with self.log.open("wb") as output:
            # A session of its own gets no Ctrl-C of the terminal. So the operator ends in order, before its API server.
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
        """Exit code; None while it runs."""
        return self._process.returncode if self._process else None

    @property
    def ended(self) -> bool:
        """True once it has ended by itself."""
        return self.exit_code is not None

    async def wait(self) -> None:
        """Return when it has ended."""
        if self._process is not None:
            await self._process.wait()

    def last_words(self) -> str:
        """Return the end of its log, in one line."""
        with suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return " | ".join(line.strip() for line in lines[-_LAST_LINES:]) or "it said nothing"
        return "its log cannot be read"
