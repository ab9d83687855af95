"""`kubectl placewright`: a real kubectl finds the plugin, and the kubectl lines that it prints do the same as it does."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import tomllib
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kubectl.tool import DEADLINE, Kubectl
from placewright.cli.main import kubectl_plugin

pytestmark = pytest.mark.asyncio(loop_scope="session")
ROOT = Path(__file__).parents[2]
HandedOn = Callable[..., Awaitable[tuple[int, str, str]]]
TYPE = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile"}


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """PATH with the plugin on it, made of what pyproject.toml declares, as an installation does."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["kubectl-placewright"].partition(":")
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "kubectl-placewright"
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest_asyncio.fixture(loop_scope="session")
async def profile(profiles: Kubectl) -> str:
    """A profile of the test's own."""
    name = f"of-{profiles.namespace}"
    spec = {"schedulerName": name, "weights": {"TaintToleration": 4}}
    await profiles("apply", "-f", "-", given={**TYPE, "metadata": {"name": name}, "spec": spec})
    return name


async def plugin(kubectl: Kubectl, path: str, *words: str) -> tuple[int, str, str]:
    """As people type it: kubectl takes no option of its own before a plugin's name, and hands on what comes after."""
    return await ran([kubectl.binary, "placewright", *words], kubectl, path)


@pytest.fixture
def handed_on(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> HandedOn:
    """What the plugin makes of words that kubectl has handed on: it is the same, and the second process is not started again."""
    monkeypatch.setenv("KUBECONFIG", str(kubectl.kubeconfig))

    async def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["kubectl-placewright", *words])
        try:
            code = await asyncio.to_thread(kubectl_plugin)
        except SystemExit as left:
            code = int(left.code or 0)
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


async def ran(command: list[str], kubectl: Kubectl, path: str) -> tuple[int, str, str]:
    environment = {**os.environ, "PATH": path, "HOME": str(kubectl.home), "KUBECONFIG": str(kubectl.kubeconfig)}
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment)
    async with asyncio.timeout(DEADLINE):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def read(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """With its managedFields, which kubectl hides, or does not, by its version."""
    found: dict[str, Any] = json.loads(await kubectl("get", "--raw", f"/apis/placewright.dev/v1alpha1/schedulingprofiles/{name}"))
    return found


async def test_kubectl_lists_profiles_through_the_plugin(kubectl: Kubectl, path: str, profile: str) -> None:
    code, out, err = await plugin(kubectl, path, "profiles", "list")
    assert (code, err) == (0, "")
    assert [profile, profile, "Unknown", "none", "of", "1"] in [line.split()[:6] for line in out.splitlines()]
    assert "\x1b" not in out
    assert "kubectl-placewright" in (await ran([kubectl.binary, "plugin", "list"], kubectl, path))[1]


async def test_help_and_errors_are_in_the_words_that_were_typed(handed_on: HandedOn) -> None:
    code, out, _ = await handed_on("profiles", "set", "--help")
    assert (code, out.split("[")[0]) == (0, "usage: kubectl placewright profiles set ")
    code, _, err = await handed_on("profiles", "set", "x")
    assert code == 2
    assert "see kubectl placewright profiles set --help" in err


async def test_a_context_is_named_as_kubectl_has_it(profiles: Kubectl, handed_on: HandedOn) -> None:
    contexts = (await profiles("config", "get-contexts", "-o", "name")).split()
    assert (await handed_on("profiles", "list", "--context", contexts[0]))[0] == 0
    code, _, err = await handed_on("profiles", "list", "--context", "elsewhere")
    assert code == 2
    assert "--context: found 'elsewhere'" in err


def kubectl_line(out: str) -> str:
    lines = out.splitlines()
    return lines[lines.index("with kubectl:") + 1].strip()


async def test_the_kubectl_line_of_set_does_the_same(kubectl: Kubectl, path: str, profile: str, handed_on: HandedOn) -> None:
    dry = await plugin(kubectl, path, "profiles", "set", profile, "NodeAffinity=5", "--dry-run", "server")
    assert dry[0] == 0, dry[2]
    line = kubectl_line(dry[1])
    assert line.startswith("echo ")
    assert (await ran(["sh", "-c", line], kubectl, path))[0] == 0
    by_kubectl = await read(kubectl, profile)
    assert by_kubectl["spec"]["weights"] == {"TaintToleration": 4, "NodeAffinity": 5}
    again = await handed_on("profiles", "set", profile, "NodeAffinity=5")
    assert again[1] == f"profile {profile}: nothing to change\n"
    entries = {each["manager"]: each["operation"] for each in by_kubectl["metadata"]["managedFields"]}
    assert entries["placewright-cli"] == "Apply"
    await handed_on("profiles", "set", profile, "NodeAffinity-", "--wait", "0")
    assert (await read(kubectl, profile))["spec"]["weights"] == {"TaintToleration": 4}


async def test_the_kubectl_line_of_a_patch_does_the_same(kubectl: Kubectl, path: str, profile: str, handed_on: HandedOn) -> None:
    words = ("profiles", "set", profile, "TaintToleration-", "--force-conflicts", "--dry-run", "server")
    dry = await handed_on(*words)
    line = kubectl_line(dry[1])
    assert line.startswith("kubectl patch ")
    assert (await ran(["sh", "-c", line], kubectl, path))[0] == 0
    assert not (await read(kubectl, profile))["spec"].get("weights")


@pytest.mark.parametrize("way", [("create",), ("apply",), ("apply", "--server-side"), ("create", "patch")], ids="+".join)
async def test_set_needs_no_flag_for_a_profile_that_was_made_with_kubectl(
    kubectl: Kubectl, profile: str, handed_on: HandedOn, way: tuple[str, ...]
) -> None:
    name = f"{profile}-by-hand"
    spec = {"schedulerName": name, "weights": {"TaintToleration": 4, "ImageLocality": 2}}
    made = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": name}, "spec": spec}
    words = [word for word in way if word != "patch"]
    await kubectl(*words, "-f", "-", given=made)
    if "patch" in way:
        await kubectl("patch", "schedprof", name, "--type=merge", "-p", '{"spec": {"weights": {"TaintToleration": 6}}}')
    try:
        code, _, err = await handed_on("profiles", "set", name, "TaintToleration=5", "--wait", "0")
        assert (code, err) == (0, "")
        code, _, err = await handed_on("profiles", "set", name, "ImageLocality-", "--wait", "0")
        assert (code, err) == (0, "")
        assert (await read(kubectl, name))["spec"]["weights"] == {"TaintToleration": 5}
    finally:
        await kubectl("delete", "schedprof", name)


async def test_history_and_rollback_through_kubectl(kubectl: Kubectl, path: str, profile: str, handed_on: HandedOn) -> None:
    body = await read(kubectl, profile)
    namespace = kubectl.namespace
    spec = {"schedulerName": profile, "weights": {"TaintToleration": 4, "ImageLocality": 9}}
    data = {"profile": profile, "uid": body["metadata"]["uid"], "generation": 1, "changedBy": "kubectl", "spec": spec}
    labels, notes = {"placewright.dev/profile": profile}, {"placewright.dev/result": "Active"}
    revision = {"metadata": {"name": f"{profile}-1", "labels": labels, "annotations": notes}, "revision": 1, "data": data}
    await kubectl("create", "-f", "-", given={"apiVersion": "apps/v1", "kind": "ControllerRevision", **revision})
    shown = await handed_on("profiles", "history", profile, "-n", namespace, "-o", "json")
    assert [each["changedBy"] for each in json.loads(shown[1])] == ["kubectl"]
    back = await plugin(kubectl, path, "profiles", "rollback", profile, "-n", namespace, "--wait", "0")
    assert back[0] == 0, back[2]
    assert (await read(kubectl, profile))["spec"]["weights"] == {"TaintToleration": 4, "ImageLocality": 9}
