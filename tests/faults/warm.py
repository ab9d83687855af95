"""Python processes that begin with what an operator loads: one process loads it, once, and forks them.

Most of what a replica costs here is what loading costs. A fork is a process of its own all the same: it can be stopped, killed and left
alone, has its own sockets, clocks and random numbers, and does what `python -m ...` would do from there on.

The process that forks is this module run as a program. It is asked through a socket, and ends when that is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, Final

#: What `placewright run` and `python -m kubesandbox` import, now or later, but the modules that are run by name.
_LOADED: Final = (
    "placewright.cli.run", "placewright.handlers.operator", "kubesandbox.server",
    "placewright.observability.decisionlog", "placewright.serving.endpoints", "placewright.observability.tracing",
)  # fmt: skip
_LONGEST_REQUEST: Final = 2**16
#: How long an API server may take to be there, and to be gone.
_START_SECONDS, _END_SECONDS = 30.0, 10.0
#: Its first words are in a file, which is looked at this often, seconds.
_LOOK_SECONDS: Final = 0.01


class Forked:
    """A process that was forked. `returncode`: None while it runs, negative for a signal."""

    def __init__(self, pid: int, stdin: int, ended: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._over = asyncio.Event()
        self._stdin = stdin
        self._ended = ended
        asyncio.get_running_loop().add_reader(ended, self._take_code)

    async def wait(self) -> int:
        await self._over.wait()
        assert self.returncode is not None
        return self.returncode

    def _take_code(self) -> None:
        self.returncode = int(os.read(self._ended, 16) or -signal.SIGKILL)  # nothing to read: the process that forks is gone
        asyncio.get_running_loop().remove_reader(self._ended)
        for descriptor in (self._stdin, self._ended):
            os.close(descriptor)
        self._over.set()


class Warm:
    """The process that forks, from here."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def start(self, command: Sequence[str], output: IO[bytes], environ: Mapping[str, str]) -> Forked:
        """A command of this Python, with a module or a script, in a session of its own; its standard input ends when it does, or we do."""
        request = json.dumps({"command": list(command), "environ": dict(environ)}).encode()
        assert len(request) < _LONGEST_REQUEST
        (source, stdin), (ended, ends) = os.pipe(), os.pipe()
        try:
            socket.send_fds(self._control, [request], [source, output.fileno(), ends])
            return Forked(int(self._control.recv(16)), stdin, ended)
        finally:
            os.close(source)
            os.close(ends)


@contextmanager
def warm() -> Iterator[Warm]:
    """A process that forks while this is open."""
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen([sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        assert ours.recv(16), f"it ended with {process.wait()}"
        yield Warm(ours)
        ours.close()


@asynccontextmanager
async def api_server(forking: Warm, folder: Path, arguments: Sequence[str]) -> AsyncIterator[Path]:
    """A sandbox in a process of its own, as long as this is open; where its kubeconfig is."""
    said = folder / "api-server.log"
    with said.open("wb") as output:
        process = forking.start([sys.executable, "-m", "kubesandbox", "--exit-with-stdin", *arguments], output, os.environ)
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


def _serve(control: socket.socket) -> None:
    """Fork what is asked for, until the other side is gone. In a process that was forked this does not come back."""
    for name in _LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the pages of everything
    tellers: dict[int, int] = {}

    def reap(*_: object) -> None:
        while tellers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with suppress(BrokenPipeError), os.fdopen(tellers.pop(pid), "wb") as teller:
                teller.write(str(os.waitstatus_to_exitcode(status)).encode())

    signal.signal(signal.SIGCHLD, reap)
    control.sendall(b"ready")
    while True:
        text, descriptors, *_ = socket.recv_fds(control, _LONGEST_REQUEST, 3)
        if not text:
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if not pid:
            control.close()
            for teller in (*tellers.values(), descriptors.pop()):
                os.close(teller)
            _become(**json.loads(text), descriptors=descriptors)
        tellers[pid] = descriptors.pop()
        for each in descriptors:
            os.close(each)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        control.sendall(str(pid).encode())


def _become(command: list[str], environ: dict[str, str], descriptors: list[int]) -> None:
    """What the command says; `descriptors`: standard input, and where all output goes."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    os.setsid()
    source, output = descriptors
    for own, given in ((0, source), (1, output), (2, output)):
        os.dup2(given, own)
    for given in descriptors:
        os.close(given)
    os.environ.clear()
    os.environ.update(environ)
    _python, *words = command
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
