"""A shell that is typed into, as a reader does, and a terminal in which something stays."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubectl.page import Block, same, shows

DEADLINE: Final = 40.0
END_SECONDS: Final = 15.0
_DONE: Final = "--done--"
#: What a page starts listens where everybody's does, unless it is told: two pages at once would be in each other's way.
_RUN: Final = "placewright run "
_PORT: Final = re.compile(r"(127\.0\.0\.1|localhost):10259")
#: Between two looks at what has not come yet. Each is a process or several, which take the time that it needs to come.
_PAUSE: Final = 0.1


@dataclass(frozen=True)
class Desk:
    """Where the reader sits: a home, and the programs that the page names.

    The search path begins with the kubectl under test and the placewright of this checkout. With a `port`, the operator listens
    there, and kubectl forwards to it: a sandbox starts no container in which the operator could be.
    """

    home: Path
    binary: str
    port: int = 0

    @property
    def folder(self) -> Path:
        return self.home / "placewright-tutorial"

    def prepare(self) -> None:
        self.folder.mkdir()
        programs = self.home / "bin"
        programs.mkdir()
        kubectl = programs / "kubectl"
        if self.port:
            forwarding = f'echo "Forwarding from 127.0.0.1:{self.port} -> 10259"; exec sleep 600'
            kubectl.write_text(f'#!/bin/sh\ncase " $* " in *" port-forward "*) {forwarding};; esac\nexec {self.binary} "$@"\n')
            kubectl.chmod(0o755)
        else:
            kubectl.symlink_to(self.binary)

    def environment(self) -> Mapping[str, str]:
        """Nothing of who runs the tests, but for the search path."""
        path = f"{self.home / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        # Python's own output is not held back, as in a terminal.
        return {"HOME": str(self.home), "PATH": path, "PYTHONUNBUFFERED": "1", "COLUMNS": "160"}


@asynccontextmanager
async def _bash(desk: Desk, *arguments: str, stdin: int, stdout: int) -> AsyncIterator[Process]:
    """A bash in a session of its own. On leaving nothing of the session is left."""
    process = await asyncio.create_subprocess_exec(
        "bash", "--norc", *arguments,
        stdin=stdin, stdout=stdout, stderr=STDOUT, cwd=desk.folder, env=dict(desk.environment()), start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


class Shell:
    """One bash for the whole page: variables and folders stay from block to block."""

    def __init__(self, process: Process, desk: Desk) -> None:
        self._process = process
        self._desk = desk
        self._script = desk.home / "typed"

    async def run(self, commands: str) -> tuple[bool, str]:
        """Whether every command succeeded, and what they printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._script.write_text(_PORT.sub(rf"\1:{self._desk.port}", commands))
        self._process.stdin.write(f". '{self._script}' </dev/null; printf '\\n{_DONE}%s\\n' \"$failed\"; failed=\n".encode())
        lines: list[str] = []
        async with asyncio.timeout(DEADLINE):
            while not (line := (await self._process.stdout.readline()).decode()).startswith(_DONE):
                assert line, f"the shell ended: {''.join(lines)}"
                lines.append(line)
        return line == f"{_DONE}\n", "".join(lines)[:-1]


@asynccontextmanager
async def shell(desk: Desk) -> AsyncIterator[Shell]:
    """The reader's shell, for as long as the context is open."""
    async with _bash(desk, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"set -o pipefail -o errtrace; failed=; trap 'failed=yes' ERR\n")
        yield Shell(process, desk)


async def until_serving(typed: Shell) -> None:
    """Wait for the sandbox of a page, as a reader opens the next terminal when this one says that it is ready."""
    worked, printed = await typed.run("until [ -s sandbox.yaml ]; do sleep 0.05; done")
    assert worked, printed


@asynccontextmanager
async def terminal(desk: Desk, commands: str) -> AsyncIterator[Process]:
    """Another terminal, in which the last command stays. It gets a Ctrl-C on leaving, and must end by it."""
    with (desk.home / "terminals").open("ab") as output:
        anywhere = commands.replace(_RUN, f"{_RUN}--secure-port {desk.port} --bind-address 127.0.0.1 ")
        async with _bash(desk, "-ec", anywhere, stdin=DEVNULL, stdout=output.fileno()) as process:
            yield process
            os.killpg(process.pid, signal.SIGINT)
            async with asyncio.timeout(END_SECONDS):
                await process.wait()


async def work_through(typed: Shell, block: Block, reading: tuple[str, ...]) -> str:
    """Run a block and compare; answers what it printed.

    One whose commands only read is run again until it shows what it should: news take a moment.
    """
    end = asyncio.get_running_loop().time() + DEADLINE
    while True:
        worked, printed = await typed.run(block.commands)
        assert worked == (block.kind != "refused"), f"{block}: {printed}"
        if block.shown is None or shows(block.shown, printed):
            return printed
        again = all(line.startswith(reading) for line in block.commands.splitlines())
        late = asyncio.get_running_loop().time() > end
        assert again and not late, f"{block}\n--- the page\n{same(block.shown)}\n--- printed\n{same(printed)}\n{printed}"
        await asyncio.sleep(_PAUSE)
