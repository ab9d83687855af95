"""`placewright sandbox --real` as a process: what it gives to whoever plays with it, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from placewright_lab.demo.livestate import PROFILES_PATH
from programs import not_on_this_server, on_linux

PODS = "/api/v1/namespaces/default/pods"
DEADLINE = 60.0


@pytest.fixture(autouse=True)
def _assets() -> None:
    if not os.environ.get(VARIABLE):
        not_on_this_server(f"{VARIABLE} does not name its programs")


@asynccontextmanager
async def sandbox(kubeconfig: Path, *more: str) -> AsyncIterator[Process]:
    """The command, ready; killed at the end if the test has not ended it."""
    command = ["-m", "placewright.cli.main", "sandbox", "--real", "--kubeconfig", str(kubeconfig), *more]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=PIPE)
    try:
        async with asyncio.timeout(DEADLINE):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def said(process: Process) -> list[str]:
    """Its first seven lines: by then it serves."""
    assert process.stdout is not None
    return [(await process.stdout.readline()).decode() for _ in range(7)]


def children(process: Process) -> list[int]:
    """Ids of the programs that it runs."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(each) for each in listed.split()]


async def gone(pid: int) -> None:
    """Waits until a process has ended."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(handle, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)


async def test_it_has_nodes_and_our_definitions_and_says_what_the_embedded_one_says(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    async with sandbox(kubeconfig, "--nodes", "2") as process:
        lines = await said(process)
        assert lines[0].startswith("a real control plane, Kubernetes 1.")
        assert "with 2 nodes serves on https://127.0.0.1:" in lines[0]
        assert f"export KUBECONFIG={kubeconfig}" in lines[1]
        assert "placewright run" in lines[6]
        async with ApiClient(load_config(str(kubeconfig))) as client:
            nodes = json.loads(await client.get("/api/v1/nodes"))["items"]
            assert [each["metadata"]["name"] for each in nodes] == ["node-0000", "node-0001"]
            assert nodes[0]["status"]["conditions"][0]["type"] == "Ready"
            assert json.loads(await client.get(PROFILES_PATH))["items"] == []


async def test_what_it_says_comes_next_works(tmp_path: Path) -> None:
    """Its own lines, up to the two that stay in the foreground."""
    assets = from_environment(os.environ)
    assert assets is not None
    if assets.kubectl is None:
        not_on_this_server(f"{VARIABLE} has no kubectl")
    kubeconfig = tmp_path / "config"
    async with sandbox(kubeconfig, "--nodes", "1") as process:
        export, nodes, profile, run, *_ = [line.strip() for line in (await said(process))[1:]]
        path = f"{assets.folder}:{os.environ['PATH']}"
        for line in (nodes, profile, run):
            made = await asyncio.create_subprocess_shell(f"{export}; {line}", stdout=PIPE, stderr=STDOUT, env={**os.environ, "PATH": path})
            told, _ = await made.communicate()
            assert made.returncode == 0, f"{line}: {told.decode()}"
        async with ApiClient(load_config(str(kubeconfig))) as client:
            names = [each["metadata"]["name"] for each in json.loads(await client.get(PROFILES_PATH))["items"]]
            assert names == ["default"]
            assert json.loads(await client.get(f"{PODS}/web"))["spec"]["schedulerName"] == "default-scheduler"


async def test_a_pod_that_gets_a_node_runs_there(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    async with sandbox(kubeconfig, "--nodes", "1") as process:
        await said(process)
        async with ApiClient(load_config(str(kubeconfig))) as client:
            spec = {"nodeName": "node-0000", "containers": [{"name": "main", "image": "example.test/main"}]}
            await client.post(PODS, {"metadata": {"name": "web"}, "spec": spec})
            watch = {"watch": "true", "fieldSelector": "metadata.name=web"}
            async with client.stream(PODS, watch, limit=DEADLINE) as stream:
                while json.loads(await stream.readline())["object"]["status"].get("phase") != "Running":
                    pass
            web = json.loads(await client.get(f"{PODS}/web"))
            assert (web["spec"]["nodeName"], web["status"]["phase"]) == ("node-0000", "Running")


@on_linux
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)], ids=str)
async def test_it_ends_with_all_that_it_runs(tmp_path: Path, number: signal.Signals, code: int) -> None:
    async with sandbox(tmp_path / "config", "--nodes", "0") as process:
        lines = await said(process)
        assert "with 0 nodes" in lines[0]
        running = children(process)
        assert len(running) == 2
        process.send_signal(number)
        assert await process.wait() == code
        for each in running:
            await gone(each)


@on_linux
async def test_it_ends_when_one_of_its_programs_dies(tmp_path: Path) -> None:
    async with sandbox(tmp_path / "config", "--nodes", "0") as process:
        await said(process)
        etcd, api_server = children(process)
        os.kill(api_server, signal.SIGKILL)
        assert await process.wait() == 1
        await gone(etcd)
