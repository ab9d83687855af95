"""One operator process behind its proxy, and what can be done to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from placewright_lab.demo.operatorprocess import operator_command

from .proxy import Proxy
from .warm import Forked

_END_SECONDS: Final = 10.0
#: A line that begins a record: time, level.
_RECORD: Final = re.compile(r"^\d{4}-\d\d-\d\d\S* ?\S* (?P<level>[A-Z]+) ")
_COMPARED: Final = re.compile(r"debug: (not )?compared with the API server: | could not be compared with the API server: ")
_FORGOTTEN: Final = re.compile(r" forgotten: pod |decided afresh: \d+; forgotten: [1-9]")
_OUR_FRAME: Final = re.compile(r'File ".*/operator/placewright/')
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def operator(kubeconfig: Path, lifetime: int, clock_ahead: float = 0.0, machine: str = "") -> list[str]:
    """`placewright run`, whose wall clock is some seconds ahead of ours; or on a `machine`: a script that is given the arguments."""
    command = [*operator_command(kubeconfig), "--secure-port", "0", "--leader-elect-lease-duration", f"{lifetime}s"]
    python, _module_option, _module, *arguments = command
    if machine:
        return [python, str(Path(__file__).with_name(machine)), *arguments]
    if not clock_ahead:
        return command
    return [python, str(Path(__file__).with_name("skewed.py")), str(clock_ahead), *arguments]


class Replica:
    """`placewright run`, with its output in a log file. It ends when this process does, however that ends.

    It begins as a fork. With `source` its packages come from another checkout, and it is loaded like any program.
    """

    def __init__(self, name: str, proxy: Proxy, command: Sequence[str], folder: Path, source: Path | None = None) -> None:
        self.name = name
        self.proxy = proxy
        #: Whether it ended without a chance to finish anything.
        self.killed = False
        #: When it was killed, or began to stand still, monotonic seconds.
        self.stopped: list[float] = []
        self.log = folder / f"{name}.log"
        self._command = command
        self._source = source
        self._process: Process | Forked | None = None

    async def start(self) -> None:
        environ = os.environ | {"POD_NAME": self.name}
        if self._source is None:
            self._process = Forked(self._command, self.log, environ)
            return
        environ |= {"PYTHONPATH": str(self._source)}
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=log, stderr=log, start_new_session=True, env=environ
            )

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def kill(self) -> None:
        """As a crash does it: nothing is finished, nobody is told. A process that stands still dies too."""
        if self.alive:
            self.killed = True
            self.stopped.append(time.monotonic())
            os.kill(self.pid, signal.SIGKILL)
            assert self._process is not None
            await self._process.wait()

    def freeze(self) -> None:
        self.stopped.append(time.monotonic())
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def end(self) -> int:
        """Ask it to end, as a rolling update does; its exit code. It is killed if it does not end."""
        assert self._process is not None
        if self.alive:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its exit code is on the way
                os.kill(self.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(_END_SECONDS):
                return await self._process.wait()
        except TimeoutError:
            await self.kill()
            raise AssertionError(f"{self.name} did not end within {_END_SECONDS:g} s of SIGTERM") from None

    def compare(self) -> None:
        """Ask it to compare what it believes with what the API server says."""
        os.kill(self.pid, signal.SIGUSR2)

    def comparisons(self) -> list[str]:
        """What it found each time, one line each."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if _COMPARED.search(line)]

    def forgotten(self) -> list[str]:
        """Pods that waited although they would have fitted, as it found them: a line each."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [f"{self.name}: {line}" for line in lines if _FORGOTTEN.search(line)]

    def memory(self) -> int:
        """Bytes that are resident; 0 when it has ended."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0

    def breakdowns(self) -> list[str]:
        """Records of the log that are critical, or have a traceback through our code.

        Kopf's own do not count: what breaks it only has it started again, and it leaves tasks to asyncio that failed.
        """
        records: list[list[str]] = [[""]]
        for line in self.log.read_text(errors="replace").splitlines():
            if _RECORD.match(line):
                records.append([line])
            else:
                records[-1].append(line)
        return [f"{self.name}: {first}" for first, *rest in records if _broke(first, "\n".join(rest))]


def _broke(first: str, rest: str) -> bool:
    begins = _RECORD.match(first)
    if begins and begins["level"] == "CRITICAL":
        return True
    return "Traceback (" in rest and _OUR_FRAME.search(rest) is not None and " kopf." not in first
