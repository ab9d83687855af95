"""A sandbox in a process of its own, so that the code under test has an event loop to itself."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

START_SECONDS: Final = 30.0
END_SECONDS: Final = 5.0


class SandboxFailed(Exception):
    """The process ended, or was silent, before it was ready."""


class _Ready(msgspec.Struct):
    server: str
    kubeconfig: str


class SandboxProcess:
    """`python -m kubesandbox`, ready after entering the context. The process ends with the context, also after an error.

    The sandbox also ends if this process is killed, because the pipe between them then closes.
    """

    def __init__(self, *, nodes: int = 0, crds: Sequence[Path] = (), arguments: Sequence[str] = ()) -> None:
        self._arguments = ["--nodes", str(nodes), *arguments]
        for folder in crds:
            self._arguments += ["--crds", str(folder)]
        self._process: Process | None = None
        self.server = ""
        self.kubeconfig = Path()

    @property
    def pid(self) -> int:
        """Process id; 0 before the start."""
        return self._process.pid if self._process else 0

    async def __aenter__(self) -> Self:
        command = (sys.executable, "-m", "kubesandbox", "--exit-with-stdin", *self._arguments)
        # In a session of its own it gets no Ctrl-C of the terminal. Its parent ends it.
        self._process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        try:
            async with asyncio.timeout(START_SECONDS):
                assert self._process.stdout is not None
                line = await self._process.stdout.readline()
            ready = msgspec.json.decode(line, type=_Ready)
        except (TimeoutError, msgspec.MsgspecError) as error:
            await self.close()
            raise SandboxFailed(f"the sandbox did not start (exit code {self._process.returncode})") from error
        except BaseException:
            await self.close()
            raise
        self.server, self.kubeconfig = ready.server, Path(ready.kubeconfig)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Ask the process to end, and kill it after a while."""
        if self._process is not None:
            await end_process(self._process, END_SECONDS)


async def end_process(process: Process, seconds: float) -> None:
    """Ask a child process to end, and kill it if it has not ended after so many seconds. An ended process is no error."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
