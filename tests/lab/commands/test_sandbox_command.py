"""`placewright sandbox` and `placewright run` as commands: processes that start, serve and end.

`sandbox --real` meets programs of three lines here, for what goes wrong; tests/e2e has it with real ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest
from rich.console import Console

from kubesandbox.faults import Rule
from kubesandbox.process import SandboxProcess
from kubesandbox.server import Sandbox
from placewright.cli.main import main
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.commands.sandbox import _announce, kubectl_lines, serves_openapi
from placewright_lab.demo.livestate import PROFILES_PATH
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command

REAL = [sys.executable, "-m", "placewright.cli.main", "sandbox", "--real"]


async def test_the_sandbox_serves_writes_a_kubeconfig_names_kubectl_lines_and_ends_with_sigterm(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    command = ["-m", "placewright.cli.main", "sandbox", "--nodes", "2", "--kubeconfig", str(kubeconfig)]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=PIPE, stderr=STDOUT)
    try:
        async with asyncio.timeout(30):
            assert process.stdout is not None
            said = [(await process.stdout.readline()).decode() for _ in range(7)]
            assert "embedded cluster with 2 nodes" in said[0]
            assert f"export KUBECONFIG={kubeconfig}" in said[1]
            assert "kubectl get nodes" in said[2]
            assert '"schedulerName": "default-scheduler"' in said[3]
            assert "placewright run" in said[6]
            assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
            async with ApiClient(load_config(str(kubeconfig))) as client:
                assert len(json.loads(await client.get("/api/v1/nodes"))["items"]) == 2
                assert json.loads(await client.get(PROFILES_PATH))["items"] == []
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()


async def test_a_server_that_does_not_describe_itself_is_noticed_and_the_next_step_still_works(capsys: pytest.CaptureFixture[str]) -> None:
    async with Sandbox() as server, ApiClient(load_config(str(server.kubeconfig))) as client:
        assert await serves_openapi(client)
        server.faults.add(Rule(path="/openapi/v2", code=503, times=1))
        assert await serves_openapi(client), "it only needed a moment"
        server.faults.add(Rule(path="/openapi/v2", code=503))
        assert not await serves_openapi(client, patience=0.1)
    kubeconfig = Path("config")
    assert [line for line in kubectl_lines(kubeconfig) if "--validate" in line] == []
    (applied,) = (line for line in kubectl_lines(kubeconfig, validates=False) if "--validate" in line)
    assert applied.endswith("| kubectl apply --validate=false -f -")
    _announce(Console(), "a real control plane", "https://127.0.0.1:1", kubeconfig, validates=False)
    told = capsys.readouterr().out
    assert applied in told
    assert told.endswith("\nthis API server does not serve /openapi/v2: kubectl apply and create want --validate=false\n")


def test_a_kubeconfig_that_cannot_be_written_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "--kubeconfig", "/nowhere/at/all"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("placewright: error: sandbox: ")
    assert err.count("\n") == 1


def programs(folder: Path, etcd: str) -> str:
    """Make a folder for KUBEBUILDER_ASSETS whose etcd runs these lines."""
    for name, lines in (("kube-apiserver", "echo Kubernetes v1.31.0"), ("etcd", etcd)):
        (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
        (folder / name).chmod(0o755)
    return str(folder)


def test_a_real_sandbox_whose_programs_are_not_there_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "/nowhere")
    assert main(["sandbox", "--real"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("placewright: error: KUBEBUILDER_ASSETS: found '/nowhere'")
    assert err.count("\n") == 1


def test_a_real_sandbox_has_no_simulated_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "--real", "--devices", "2"]) == 2
    assert "sandbox: --devices: only the embedded cluster has a simulated driver" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--devices", "-1"], ["--devices", "1025"], ["--device-kind", "half"]])
def test_devices_that_no_driver_has_are_one_line_and_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"placewright: error: argument {arguments[0]}:")
    assert err.count("\n") == 1


def test_a_real_sandboxs_kubeconfig_is_looked_at_before_anything_is_built_or_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "/nowhere")
    assert main(["sandbox", "--real", "--kubeconfig", "/no/such/folder/config"]) == 2
    assert capsys.readouterr().err == "placewright: error: sandbox: --kubeconfig: no file can be written to /no/such/folder\n"


async def test_a_real_sandbox_whose_store_does_not_start_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    environ = {**os.environ, "KUBEBUILDER_ASSETS": programs(tmp_path, "echo no room; exit 1")}
    process = await asyncio.create_subprocess_exec(*REAL, stdout=PIPE, stderr=PIPE, env=environ)
    out, err = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert err.decode() == "placewright: error: sandbox: etcd ended: no room\n"


async def test_a_real_sandbox_that_is_told_to_end_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    # In the middle of starting a program there is a moment at which nobody can end it; so the signal comes when that is over.
    asleep = 'until [ "$(sed "s/.*) //" /proc/$PPID/stat | cut -c 1)" = S ]; do :; done'
    store = f'echo $$ > "{tmp_path}/pid"; {asleep}; kill -TERM $PPID; exec sleep 1000'
    environ = {**os.environ, "KUBEBUILDER_ASSETS": programs(tmp_path, store), "TMPDIR": str(tmp_path / "tmp")}
    process = await asyncio.create_subprocess_exec(*REAL, stdout=PIPE, stderr=PIPE, env=environ)
    out, err = await process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert not list((tmp_path / "tmp").iterdir())


async def test_the_operator_ends_when_whoever_started_it_is_gone(tmp_path: Path) -> None:
    async with SandboxProcess() as sandbox:
        async with OperatorProcess(operator_command(sandbox.kubeconfig), tmp_path / "log") as operator:
            assert operator._process is not None
            assert operator._process.stdin is not None
            operator._process.stdin.close()
            async with asyncio.timeout(30):
                await operator.wait()
        # In order, or by the signal itself when it came before the operator had begun.
        assert operator.exit_code in (0, -signal.SIGTERM), operator.last_words()
