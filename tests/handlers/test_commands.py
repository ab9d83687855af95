"""The operator as a process: `placewright run`, `kopf run` with our handlers, and on a Kopf with the options that we propose."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from kubesandbox.server import Sandbox, SandboxOptions

from .patchedoperator import patched_kopf
from .stage import DEADLINE, Stage

RUN = ("-m", "placewright.cli.main", "run", "--secure-port", "0")
TESTS = Path(__file__).parents[1]
KOPF_RUN = ("-m", "kopf", "run", "-A", "-m", "placewright.handlers")


@asynccontextmanager
async def process(arguments: Sequence[str], kubeconfig: Path | str, *paths: Path) -> AsyncIterator[Process]:
    """A Python process that does not outlive the test; it looks for modules in these paths first."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": "/nonexistent"}
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(str(path) for path in paths)
    started = await asyncio.create_subprocess_exec(sys.executable, *arguments, env=environment, stdout=PIPE, stderr=STDOUT)
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            started.kill()
        await started.wait()


async def ended(running: Process) -> tuple[int | None, str]:
    """Exit code and output, once it has ended."""
    async with asyncio.timeout(DEADLINE):
        output, _ = await running.communicate()
    return running.returncode, output.decode()


@pytest.mark.parametrize("arguments", [RUN, KOPF_RUN], ids=["placewright run", "kopf run"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_order(stage: Stage, arguments: Sequence[str], number: signal.Signals) -> None:
    names = stage.pods(5)
    async with process(arguments, stage.sandbox.kubeconfig) as running:
        await stage.until(lambda: stage.placed(*names))
        running.send_signal(number)
        code, output = await ended(running)
    assert code == 0, output
    assert "Traceback" not in output
    assert "nclosed" not in output
    assert stage.peers() == set()
    assert stage.bound_twice() == []


@pytest.mark.parametrize("arguments", [RUN, KOPF_RUN], ids=["placewright run", "kopf run"])
async def test_it_can_be_ended_while_the_api_server_is_away(stage: Stage, arguments: Sequence[str]) -> None:
    stage.sandbox.faults.refuse_connections(3600.0)
    async with process(arguments, stage.sandbox.kubeconfig) as running:
        assert running.stdout is not None
        async with asyncio.timeout(DEADLINE):
            while b"is away" not in (line := await running.stdout.readline()):
                assert line, "it ended by itself"
        running.terminate()
        code, output = await ended(running)
    assert code in (0, 1), output  # Kopf calls a startup that was given up an error
    assert code == 0 or arguments is KOPF_RUN


async def test_without_a_cluster_there_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    async with process(RUN, tmp_path / "none") as running:
        code, output = await ended(running)
    assert code == 2
    (line,) = output.splitlines()
    assert line.startswith("placewright: error: ")


async def test_a_port_that_is_taken_is_one_line_and_exit_code_2(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = ("-m", "placewright.cli.main", "run", "--bind-address", "127.0.0.1", "--secure-port", port)
        async with process(arguments, stage.sandbox.kubeconfig) as running:
            code, output = await ended(running)
    assert code == 2
    (line,) = output.splitlines()
    assert line.startswith(f"placewright: error: --secure-port: found {port}, which cannot be bound at 127.0.0.1 (Address already in use)")


async def test_without_the_definitions_there_is_one_line_and_exit_code_2() -> None:
    async with Sandbox(SandboxOptions()) as sandbox, process(RUN, sandbox.kubeconfig) as running:
        code, output = await ended(running)
    assert code == 2
    assert "apply crds/ first" in output
    assert "Traceback" not in output


# --- on a Kopf with the patches of docs/upstream ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed Kopf, patched."""
    return patched_kopf(tmp_path_factory.mktemp("patched"))


async def test_on_a_patched_kopf_pods_are_placed_without_the_adapter_and_without_workers(stage: Stage, patched: Path) -> None:
    early = stage.pods(3)
    async with process(("-m", "handlers.patchedoperator"), stage.sandbox.kubeconfig, patched, TESTS) as running:
        await stage.until(lambda: stage.placed(*early))
        late = stage.pods(3)
        await stage.until(lambda: stage.placed(*late))
        running.terminate()
        code, output = await ended(running)
    assert code == 0, output
    workers, decoded = output.splitlines()[-2:]
    assert workers == "workers: schedulingprofiles"
    assert int(decoded.removeprefix("decoded: ")) >= len(early) + 2 * len(late), "each early pod leaves; each late one comes, too"


OPTIONS = """
import asyncio, kopf
from kopf._core.reactor.processing import get_direct_processor

async def handler(**_): pass
async def another(**_): pass
pods, registry, event = kopf.Resource("", "v1", "pods"), kopf.OperatorRegistry(), {"type": None, "object": {}}
found = lambda: get_direct_processor(registry=registry, memobase=None, resource=pods)
assert found() is None
kopf.on.event("pods", direct=True, registry=registry)(handler)
assert asyncio.run(found()(event)), "nothing is left to do for workers"
kopf.on.event("pods", registry=registry)(another)
assert not asyncio.run(found()(event)), "workers call the other handler"

for refused, why in [({"when": lambda **_: True}, "filtered"), ({"labels": {"app": "web"}}, "filtered"), ({}, "asynchronous")]:
    try:
        kopf.on.event("pods", direct=True, registry=registry, **refused)(handler if refused else lambda **_: None)
    except TypeError as problem:
        assert why in str(problem), problem
    else:
        raise AssertionError(refused)
"""


async def test_on_a_patched_kopf_a_handler_that_needs_a_worker_has_one_or_is_refused(patched: Path) -> None:
    async with process(("-c", OPTIONS), "/nonexistent", patched) as running:
        assert await ended(running) == (0, "")
