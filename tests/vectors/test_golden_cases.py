"""What kube-scheduler 1.36.2 decided, said and scored on the golden cases, Placewright decides, says and scores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placewright.api.profile import default_profile
from placewright.framework.runtime.evaluation import Evaluator
from placewright.offline.world import OfflineCluster, offline_evaluator, world_from
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright_lab.readers.goldencases import answer, read_cases
from plugins.preemption_ties import cheapest
from vectors.golden import FILES, REGISTRY, Case, Golden, differences, golden_cases

FAMILIES = frozenset({
    "resources", "taints", "nodeaffinity", "ports", "images", "podaffinity",
    "spread", "defaultspread", "volumes", "preemption", "config", "mixed",
})  # fmt: skip


@pytest.mark.parametrize("golden", golden_cases(), ids=lambda golden: golden.id)
def test_a_golden_case_is_answered_as_kube_scheduler_answered_it(golden: Golden) -> None:
    case = golden.read()
    found = answer(case, REGISTRY)
    wrong = list(differences(case["expect"], found))
    if found.get("nominatedNode") != case["expect"].get("nominatedNode") or found.get("victims") != case["expect"].get("victims"):
        wrong += preemption_differences(case, found)
    assert not wrong, "\n".join([f"{case['id']}:", *wrong])


def preemption_differences(case: Case, found: Case) -> Iterator[str]:
    """Where preemption chose otherwise: fine among nodes that tie under all criteria, which upstream picks from in a map's order."""
    expected = case["expect"]
    node, victims = found.get("nominatedNode"), found.get("victims")
    ties = cheapest(*attempt(case)) if node and expected.get("nominatedNode") else {}
    if expected.get("nominatedNode") not in ties or node not in ties:
        yield f"nominatedNode: expected {expected.get('nominatedNode')}, found {node}; the cheapest are {sorted(ties)}"
    elif ties[expected["nominatedNode"]] != expected["victims"] or ties[str(node)] != victims:
        yield f"victims: expected {expected['victims']}, found {victims} on {node}; the cheapest are {ties}"


def attempt(case: Case) -> Any:
    """What the proof of a tie wants to know."""
    world: OfflineCluster = world_from(case["objects"], case["id"])
    pod = world.pending[f"{case['namespace']}/{case['pod']}"]
    profile = read_profiles(case["config"], case["id"])[0] if case.get("config") else default_profile()
    evaluator: Evaluator = offline_evaluator(resolve(profile, REGISTRY), REGISTRY, world.cluster)
    return evaluator, world.cluster, pod, evaluator.diagnose(evaluator.evaluate(pod))


def test_the_reader_of_cases_finds_them_all() -> None:
    assert [case["id"] for file in FILES for case in read_cases(file)] == [golden.id for golden in golden_cases()]


def test_there_are_cases_of_every_family() -> None:
    assert {golden.family for golden in golden_cases()} == FAMILIES


def test_a_clone_without_the_cases_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    here = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(here), f"--rootdir={here.parents[1]}"]
    run = subprocess.run(command, env=os.environ | {"PLACEWRIGHT_VECTORS": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert run.returncode == pytest.ExitCode.INTERRUPTED, run.stdout
    assert f"no golden cases in {tmp_path}" in run.stdout


def test_a_choice_of_preemption_that_does_not_tie_is_not_taken_for_parity() -> None:
    case = next(case for golden in golden_cases() if "nominatedNode" in (case := golden.read())["expect"])
    found = dict(answer(case, REGISTRY))
    assert not list(preemption_differences(case, found))
    assert list(preemption_differences(case, found | {"victims": ["default/somebody-else"]}))
    elsewhere = case | {"expect": case["expect"] | {"nominatedNode": "a-node-that-costs-more"}}
    assert list(preemption_differences(elsewhere, found))


def test_a_wrong_answer_is_shown_line_by_line() -> None:
    case = next(case for golden in golden_cases() if (case := golden.read())["expect"].get("best"))
    expected = case["expect"]
    node = expected["best"][0]
    wrong = expected | {"best": [], "nodes": expected["nodes"] | {node: {"code": "Unschedulable", "plugin": "X", "reasons": ["r"]}}}
    lines = list(differences(expected, wrong))
    assert f"node {node}: plugin: expected None, found X" in lines
    assert any(line.startswith("best: expected") for line in lines)
