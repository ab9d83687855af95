"""Child processes that never outlive us, with their output in a file."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from placewright_lab.controlplane.flags import Ports

_END_SECONDS: Final = 10.0
_LAST_LINES: Final = 4
_LAST_BYTES: Final = 4096


class ControlPlaneFailed(Exception):
    """A program of the control plane ended by itself, or was not ready in time."""


class Child:
    """One running program. On Linux it dies with the thread that started it."""

    def __init__(self, program: Path, flags: Sequence[str], folder: Path, name: str = "") -> None:
        """Take the `folder` in which it works and has its log, and its `name`, by default the program's."""
        self.name = name or program.name
        self.log = folder / f"{self.name}.log"
        with self.log.open("ab") as output:
            # A session of its own leaves Ctrl-C on the terminal to us, so that everything ends in order.
            self._process = subprocess.Popen(  # noqa: S603 - a program of the user's own choice, no shell
                [*_dying_with_us(), program, *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """True once it has ended."""
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs, and negative for the signal that ended it."""
        return self._process.poll()

    def end(self, seconds: float = _END_SECONDS) -> None:
        """Ask it to end, and kill it after a while."""
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def last_words(self) -> str:
        """Return the end of its log, in one line."""
        lines = self.log.read_bytes()[-_LAST_BYTES:].decode(errors="replace").strip().splitlines()
        return " | ".join(line.strip() for line in lines[-_LAST_LINES:]) or "it said nothing"


class Background:
    """A child that a subclass starts in `__enter__`, and that ends with the context."""

    _child: Child | None = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._child is not None:
            self._child.end()

    @property
    def pid(self) -> int:
        """Process id; 0 before the start."""
        return self._child.pid if self._child else 0

    @property
    def ended(self) -> bool:
        """True once it has ended by itself."""
        return self._child is not None and self._child.ended

    def last_words(self) -> str:
        """Return the end of its log, in one line."""
        return self._child.last_words() if self._child else "it was not started"


def free_ports(api_server: int = 0) -> Ports:
    """Return loopback ports that are free for now. `api_server` is the first of them unless it is 0."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    numbers = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return Ports(api_server or numbers[0], numbers[1], numbers[2])


def _dying_with_us() -> list[str]:
    """Return words before a command so that the kernel ends it when we are killed. Without the program for that, there are none."""
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", "KILL", "--"] if program else []
