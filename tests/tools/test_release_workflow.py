"""The workflow that a tag starts: it is off without its switch, asks for no right that it does not use, and names what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / ".github" / "workflows" / "release.yaml").read_text()
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
STEPS = [step for job in JOBS.values() for step in job["steps"]]
#: Actions whose digest could not be looked up.
BY_BRANCH = {"pypa/gh-action-pypi-publish@release/v1"}
#: What makes a right necessary: an action, or words of a command.
RIGHTS = {
    "contents: read": "actions/checkout",
    "contents: write": "gh release create",
    "packages: write": "docker login",
    "attestations: write": "actions/attest-build-provenance",
}
IDENTITY = ("actions/attest-build-provenance", "pypa/gh-action-pypi-publish", "cosign sign")


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_off_without_the_switch(job: str) -> None:
    assert JOBS[job]["if"] == "vars.PLACEWRIGHT_PUBLISH == 'true'"


def test_only_a_tag_of_a_version_starts_it() -> None:
    assert WORKFLOW[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}  # YAML 1.1 reads `on` as true


@pytest.mark.parametrize("job", JOBS)
def test_a_job_has_the_rights_that_its_steps_need_and_no_others(job: str) -> None:
    assert WORKFLOW["permissions"] == {}
    does = yaml.safe_dump(JOBS[job]["steps"])
    needed = {right for right, reason in RIGHTS.items() if reason in does}
    needed -= {"contents: read"} if "contents: write" in needed else set()
    needed |= {"id-token: write"} if any(each in does for each in IDENTITY) else set()
    assert {f"{name}: {level}" for name, level in JOBS[job]["permissions"].items()} == needed


def test_actions_are_named_by_digest() -> None:
    used = {step["uses"] for step in STEPS if "uses" in step}
    assert len(used) > 5
    assert {each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)} == BY_BRANCH
    assert len(re.findall(r"@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", TEXT, re.MULTILINE)) == TEXT.count("uses: ") - len(BY_BRANCH)


def test_what_the_commands_name_is_there() -> None:
    commands = "\n".join(step["run"] for step in STEPS if "run" in step)
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z0-9-]+)", commands))
    assert {"release", "test"} <= named <= targets
    paths = set(re.findall(r"(?:manifests|operator)/[\w./-]+", commands))
    assert len(paths) == 2
    assert all((ROOT / path).is_file() for path in paths)
    (base,) = re.findall(r"^base=(\S+:\S+)$", commands, re.MULTILINE)
    assert f"ARG PYTHON_IMAGE={base}\n" in (ROOT / "Dockerfile").read_text()


def test_each_python_that_is_supported_is_tried_before_anything_is_published() -> None:
    tried = JOBS["python"]["strategy"]["matrix"]["python"]
    (row,) = re.findall(r"^\| Python \| (\S+) to (\S+) \|", (ROOT / "docs" / "support.md").read_text(), re.MULTILINE)
    assert (tried[0], tried[-1]) == row
    needs = {name: job.get("needs") for name, job in JOBS.items()}
    assert needs == {"files": None, "python": "files", "pypi": "python", "registry": "python", "release": ["pypi", "registry"]}
