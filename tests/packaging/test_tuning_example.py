"""The example of a search by several workers: it builds, is valid and restricted, and its command does what the page says."""

from __future__ import annotations

import tomllib
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from placewright.cli.main import main

from .building import manifests_of, one, restrictions_broken
from .schemas import ROOT, problems

EXAMPLE = ROOT / "manifests" / "examples" / "tuning"
INDEX = "$(JOB_COMPLETION_INDEX)"


@pytest.fixture(name="built")
def _built() -> list[dict[str, Any]]:
    return manifests_of(EXAMPLE)


def pod_spec(built: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = one(built, "Job")["spec"]["template"]["spec"]
    return spec


def arguments(built: list[dict[str, Any]], inputs: Path, study: Path, index: int) -> list[str]:
    """What a worker is given, in folders of the test's own."""
    (container,) = pod_spec(built)["containers"]
    folders = {INDEX: str(index), "/inputs/": f"{inputs}/", "/study/": f"{study}/"}
    words = [reduce(lambda text, part: text.replace(*part), folders.items(), word) for word in container["args"]]
    assert not any("$" in word for word in words)
    return words


def test_it_is_valid_and_restricted_and_has_no_token(built: list[dict[str, Any]]) -> None:
    assert {each["kind"] for each in built} == {"ConfigMap", "Job", "PersistentVolumeClaim"}
    assert [line for each in built for line in problems(each)] == []
    assert restrictions_broken(pod_spec(built)) == []
    assert pod_spec(built)["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod_spec(built)


def test_as_many_workers_as_it_completes_write_to_one_volume_and_may_start_again(built: list[dict[str, Any]]) -> None:
    job, claim = one(built, "Job")["spec"], one(built, "PersistentVolumeClaim")
    assert (job["completionMode"], job["parallelism"]) == ("Indexed", job["completions"])
    assert job["backoffLimit"] >= job["completions"]
    assert pod_spec(built)["restartPolicy"] == "Never"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    volumes = {volume["name"]: volume for volume in pod_spec(built)["volumes"]}
    assert volumes["study"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert volumes["inputs"]["configMap"]["name"] == one(built, "ConfigMap")["metadata"]["name"], "with the hash that kustomize gives it"
    mounted = {mount["name"]: mount["mountPath"] for mount in pod_spec(built)["containers"][0]["volumeMounts"]}
    assert mounted == {"inputs": "/inputs", "study": "/study", "tmp": "/tmp"}


def test_the_workers_share_one_search_and_each_writes_the_same_best(
    built: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in one(built, "ConfigMap")["data"].items():
        (tmp_path / name).write_text(text)
    workers = one(built, "Job")["spec"]["completions"]
    shorter = ["--trials", str(2 * workers), "-o", "json"]
    found = []
    for index in range(workers):
        assert main([*arguments(built, tmp_path, tmp_path, index), *shorter]) == 0
        found.append(capsys.readouterr().out)
    assert len(set(found)) == 1
    written = [(tmp_path / f"best-{index}.yaml").read_text() for index in range(workers)]
    assert len(set(written)) == 1
    assert main(["validate", str(tmp_path / "best-0.yaml")]) == 0


def test_the_image_can_be_built_with_what_a_search_needs() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (said,) = [line for line in (EXAMPLE / "job.yaml").read_text().splitlines() if "EXTRAS=" in line]
    named = said.partition("EXTRAS=")[2].split()[0].split(",")
    assert set(named) <= set(extras)
    assert "lab" in named
    needs = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]["dependencies"]
    assert any(each.startswith("optuna") for each in needs)
    assert "ARG EXTRAS=" in (ROOT / "Dockerfile").read_text()
