"""Python processes that begin with what an operator loads: the fork server of `multiprocessing` loads it, once, and forks them.

Most of what a replica costs here is what loading costs. A fork is a process of its own all the same: it can be stopped, killed and left
alone, has its own sockets, clocks and random numbers, and does what `python -m ...` would do from there on.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

_FORKING: Final = multiprocessing.get_context("forkserver")
#: What `placewright run` and `python -m kubesandbox` import, now or later, but the modules that are run by name; and what a fork imports.
_FORKING.set_forkserver_preload([
    "placewright.cli.run", "placewright.handlers.operator", "kubesandbox.server",
    "placewright.observability.decisionlog", "placewright.serving.endpoints", "placewright.observability.tracing", "pytest",
])  # fmt: skip
#: How long an API server may take to be there, and to be gone.
_START_SECONDS, _END_SECONDS = 30.0, 10.0
#: Its first words, and the end of a process, are looked at this often, seconds.
_LOOK_SECONDS: Final = 0.01


class Forked:
    """A command of this Python, with a module or a script, in a session of its own. Its standard input ends when it does, or we do."""

    def __init__(self, command: Sequence[str], log: Path, environ: Mapping[str, str]) -> None:
        """Fork it. What it says is appended to the log."""
        log.touch()
        source, self._stdin = _FORKING.Pipe(duplex=False)
        self._process = _FORKING.Process(target=_become, args=(list(command), dict(environ), source, log), daemon=True)
        self._process.start()
        source.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs, negative for a signal."""
        return self._process.exitcode

    async def wait(self) -> int:
        while (code := self.returncode) is None:  # noqa: ASYNC110 - two may wait for it
            await asyncio.sleep(_LOOK_SECONDS)
        return code


@asynccontextmanager
async def api_server(folder: Path, arguments: Sequence[str]) -> AsyncIterator[Path]:
    """A sandbox in a process of its own, as long as this is open; where its kubeconfig is."""
    said = folder / "api-server.log"
    process = Forked([sys.executable, "-m", "kubesandbox", "--exit-with-stdin", *arguments], said, os.environ)
    try:
        async with asyncio.timeout(_START_SECONDS):
            while not (line := said.read_text()).endswith("\n"):
                assert process.returncode is None, f"the API server ended with {process.returncode}: {line}"
                await asyncio.sleep(_LOOK_SECONDS)
        yield Path(json.loads(line)["kubeconfig"])
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its exit code is on the way
                os.kill(process.pid, signal.SIGTERM)
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()


def _become(command: list[str], environ: dict[str, str], source: Connection, log: Path) -> None:
    """What the command says."""
    gc.freeze()  # a collection in a fork would copy the pages of everything
    os.setsid()
    os.dup2(source.fileno(), sys.stdin.fileno())
    with log.open("ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.clear()
    os.environ.update(environ)
    _python, *words = command
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
