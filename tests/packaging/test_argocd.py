"""What Argo CD makes of a profile: its health script, run by a real Lua interpreter on Argo CD's test data and on what we really write."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime

from placewright.api.profile import GROUP, KIND
from placewright.profiles.profilestate import ProfileStanding, Reason, status_of
from programs import program

FOLDER = Path(__file__).parents[2] / "manifests" / "argocd"
SCRIPT = (FOLDER / "health.lua").read_text()
CASES = yaml.safe_load((FOLDER / "health_test.yaml").read_text())["tests"]
NOW = "2026-11-01T10:00:00Z"


def health(manifest: dict[str, Any]) -> dict[str, str]:
    """As Argo CD runs it: Lua 5.1, the object as the global `obj`, neither files nor a system at hand."""
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    lua.execute("io, os, require, dofile, loadfile, package = nil")
    lua.globals().obj = lua.table_from(manifest, recursive=True)
    return dict(lua.execute(SCRIPT))


@pytest.mark.parametrize("case", CASES, ids=lambda case: Path(case["inputPath"]).stem)
def test_the_health_is_what_the_test_data_says(case: dict[str, Any]) -> None:
    assert health(yaml.safe_load((FOLDER / case["inputPath"]).read_text())) == case["healthStatus"]


def test_every_file_of_test_data_is_a_case() -> None:
    assert {case["inputPath"] for case in CASES} == {f"testdata/{file.name}" for file in (FOLDER / "testdata").iterdir()}


def reported(reason: Reason, generation: int = 3) -> dict[str, Any]:
    """A profile with the status that the operator writes."""
    status = status_of(ProfileStanding("batch", "batch", 3, 3, reason, f"because {reason}"), [], NOW)
    return {"metadata": {"name": "batch", "generation": generation}, "spec": {"schedulerName": "batch"}, "status": status}


@pytest.mark.parametrize("reason", list(Reason))
def test_what_the_operator_writes_is_understood(reason: Reason) -> None:
    expected = {Reason.ACTIVE: "Healthy", Reason.PAUSED: "Suspended", Reason.APPLYING: "Progressing"}.get(reason, "Degraded")
    assert health(reported(reason)) == {"status": expected, "message": f"because {reason}"}


@pytest.mark.parametrize("reason", list(Reason))
def test_a_generation_that_nobody_has_looked_at_is_in_progress_whatever_was_said_before(reason: Reason) -> None:
    assert health(reported(reason, generation=4))["status"] == "Progressing"


def test_the_component_adds_the_script_to_argo_cd_s_configuration(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "placewright")
    theirs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": {"url": "https://cd"},
    }
    (tmp_path / "theirs.yaml").write_text(yaml.safe_dump(theirs))
    root = {"resources": ["theirs.yaml"], "components": ["placewright"], "generatorOptions": {"disableNameSuffixHash": True}}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(root))
    built = subprocess.run([program("kubectl"), "kustomize", str(tmp_path)], capture_output=True, text=True, check=False, timeout=60)
    assert built.returncode == 0, built.stderr
    data = yaml.safe_load(built.stdout)["data"]
    assert data == {"url": "https://cd", f"resource.customizations.health.{GROUP}_{KIND}": SCRIPT}
