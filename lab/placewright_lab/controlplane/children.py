"""Child processes that never outlive us, with their output in a file."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from placewright_lab.controlplane.flags import Ports

_END_SECONDS: Final = 10.0
_LAST_LINES: Final = 4
_LAST_BYTES: Final = 4096


class ControlPlaneFailed(Exception):
    """A program of the control plane ended by itself, or was not ready in time."""


class Child:
    """One running program. Start it from a thread that lives as long as it should: on Linux it dies with that thread."""

    def __init__(self, program: Path, flags: Sequence[str], folder: Path, name: str = "") -> None:
        """`folder` is where it works and has its log; `name`, of the log too, is the program's unless another is given."""
        self.name = name or program.name
        self.log = folder / f"{self.name}.log"
        with self.log.open("ab") as output:
            # A session of its own: Ctrl-C on the terminal is ours to handle, in order.
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
        """Whether it is gone."""
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self._process.poll()

    def end(self, seconds: float = _END_SECONDS) -> None:
        """Politely, then surely."""
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Surely."""
        self._process.kill()
        self._process.wait()

    def last_words(self) -> str:
        """Return the end of its log, in one line."""
        lines = self.log.read_bytes()[-_LAST_BYTES:].decode(errors="replace").strip().splitlines()
        return " | ".join(line.strip() for line in lines[-_LAST_LINES:]) or "it said nothing"


def free_ports(api_server: int = 0) -> Ports:
    """Loopback ports that were free a moment ago; `api_server` is taken as it is unless it is 0."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    numbers = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return Ports(api_server or numbers[0], numbers[1], numbers[2])


def _dying_with_us() -> list[str]:
    """Words before a command by which the kernel ends it when we are killed; none where the program for that is missing."""
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", "KILL", "--"] if program else []
