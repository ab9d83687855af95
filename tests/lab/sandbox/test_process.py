"""A sandbox in a process of its own: it starts, says where it is, and ends in every way it should."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubesandbox.__main__ import main
from kubesandbox.process import SandboxFailed, SandboxProcess
from kubesandbox.server import Sandbox, SandboxOptions
from lab.sandbox.http import client_of
from programs import on_linux

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.test}
spec:
  group: example.test
  scope: Cluster
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
"""


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[tuple[Process, dict[str, str]]]:
    """Start a process, and yield it with its first line. It is gone afterwards, even if the test fails."""
    command = (sys.executable, "-m", "kubesandbox", *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    try:
        yield process, json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def ended(process: Process) -> int:
    return await asyncio.wait_for(process.wait(), 10)


async def test_it_serves_what_was_asked_for_and_is_gone_afterwards(tmp_path: Path) -> None:
    (tmp_path / "widgets.yaml").write_text(DEFINITION)
    devices = ["--devices", "2", "--device-kind", "shares"]
    async with SandboxProcess(nodes=2, crds=[tmp_path], arguments=devices) as sandbox, client_of(sandbox.kubeconfig) as client:
        assert client.server == sandbox.server
        assert len((await client.expect(200, "GET", "/api/v1/nodes"))["items"]) == 2
        await client.expect(200, "GET", "/apis/example.test/v1/widgets")
        for slices in (await client.expect(200, "GET", "/apis/resource.k8s.io/v1/resourceslices"))["items"]:
            found = [(each["name"], each["allowMultipleAllocations"]) for each in slices["spec"]["devices"]]
            assert found == [("gpu-0", True), ("gpu-1", True)]
        pid, kubeconfig = sandbox.pid, sandbox.kubeconfig
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not kubeconfig.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_good_order_with_a_watch_open(number: signal.Signals, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    async with started("--kubeconfig", str(kubeconfig)) as (process, said), client_of(kubeconfig) as client:
        assert said["kubeconfig"] == str(kubeconfig)
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        stream = await client.session.get(client.server + "/api/v1/pods?watch=1")
        process.send_signal(number)
        assert await stream.content.read() == b""
        assert await ended(process) == 0
        assert process.stderr is not None
        assert await process.stderr.read() == b""


async def test_it_ends_when_its_parent_closes_the_pipe() -> None:
    async with started("--exit-with-stdin") as (process, _):
        assert process.stdin is not None
        process.stdin.write(b"noise is not the end\n")
        await process.stdin.drain()
        assert process.returncode is None
        process.stdin.close()
        assert await ended(process) == 0


@on_linux
async def test_it_ends_when_its_parent_is_killed() -> None:
    parent = (
        "import asyncio, sys\n"
        "from kubesandbox.process import SandboxProcess\n"
        "async def main():\n"
        "    async with SandboxProcess() as sandbox:\n"
        "        print(sandbox.pid, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", parent, stdout=PIPE)
    assert process.stdout is not None
    child = os.pidfd_open(int(await asyncio.wait_for(process.stdout.readline(), 30)))
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(child, gone.set)
    try:
        process.kill()
        await asyncio.wait_for(gone.wait(), 10)
    finally:
        asyncio.get_running_loop().remove_reader(child)
        os.close(child)
        await process.wait()


async def test_a_start_that_fails_says_why_in_a_line(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("kind: [")
    with pytest.raises(SandboxFailed):
        async with SandboxProcess(crds=[tmp_path]):
            pass
    said = capfd.readouterr().err
    assert "bad.yaml: not YAML" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("just words", "bad.yaml: a Kubernetes object with a kind is expected"),
        (DEFINITION.replace("Cluster", "Everywhere"), "spec.scope"),
        (DEFINITION + "---" + DEFINITION, "already exists"),
    ],
)
async def test_definitions_that_make_no_sense_are_refused_at_the_start(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ValueError, match=why):
        async with Sandbox(SandboxOptions(crds=[tmp_path])):
            pass


@pytest.mark.parametrize("arguments", [("--crds", "/nowhere/to/be/found"), ("--port", "many"), ("--nodes", "-3"), ("--port", "70000")])
def test_arguments_that_make_no_sense_are_refused(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended_with:
        main(arguments)
    assert ended_with.value.code == 2
    assert arguments[0] in capsys.readouterr().err


async def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = (sys.executable, "-m", "kubesandbox", "--port", port)
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
        _, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert len(said.splitlines()) == 1
