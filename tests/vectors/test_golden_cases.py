"""What kube-scheduler 1.36.2 decided, said and scored on the golden cases, Placewright decides, says and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from placewright.api.profile import SchedulingProfile
from placewright.framework.evaluation import Evaluator
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright.simulate.cases import answer
from placewright.simulate.world import World, offline_evaluator, world_from
from plugins.preemption_ties import cheapest
from vectors.golden import FOLDER, REGISTRY, REQUIRED, Case, differences, family, golden_cases, lacking

ABSENT = f"no golden cases in {FOLDER}; set PLACEWRIGHT_VECTORS to the folder that has them"


def compared() -> Iterator[Any]:
    """A parameter a case; those that need what this build lacks are skipped with the names of what is lacking."""
    for case in golden_cases():
        absent = lacking(case)
        marks = [pytest.mark.skip(reason=f"needs {', '.join(absent)}, which this build lacks")] if absent else []
        yield pytest.param(case, id=case["id"], marks=marks)
    if not golden_cases():
        yield pytest.param({}, id="none", marks=pytest.mark.skip(reason=ABSENT))


@pytest.mark.parametrize("case", list(compared()))
def test_a_golden_case_is_answered_as_kube_scheduler_answered_it(case: Case) -> None:
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
    world: World = world_from(case["objects"], case["id"])
    pod = world.pending[f"{case['namespace']}/{case['pod']}"]
    profile = read_profiles(case["config"], case["id"])[0] if case.get("config") else SchedulingProfile()
    evaluator: Evaluator = offline_evaluator(resolve(profile, REGISTRY), REGISTRY, world.cluster)
    return evaluator, world.cluster, pod, evaluator.diagnose(evaluator.evaluate(pod))


@pytest.mark.skipif(not golden_cases(), reason=ABSENT)
def test_no_case_of_the_required_families_is_left_out() -> None:
    counted = Counter(family(case) for case in golden_cases())
    left_out = Counter(family(case) for case in golden_cases() if lacking(case))
    assert all(counted[name] for name in REQUIRED)
    assert not any(left_out[name] for name in REQUIRED)


@pytest.mark.skipif(not golden_cases(), reason=ABSENT)
def test_only_volumes_keep_cases_from_being_compared() -> None:
    left_out = [case for case in golden_cases() if lacking(case)]
    assert {family(case) for case in left_out} <= {"volumes", "mixed"}
    assert all(name.startswith(("Volume", "NodeVolume")) for case in left_out for name in lacking(case))


@pytest.mark.skipif(not golden_cases(), reason=ABSENT)
def test_a_choice_of_preemption_that_does_not_tie_is_not_taken_for_parity() -> None:
    case = next(case for case in golden_cases() if "nominatedNode" in case["expect"] and not lacking(case))
    found = dict(answer(case, REGISTRY))
    assert not list(preemption_differences(case, found))
    assert list(preemption_differences(case, found | {"victims": ["default/somebody-else"]}))
    elsewhere = case | {"expect": case["expect"] | {"nominatedNode": "a-node-that-costs-more"}}
    assert list(preemption_differences(elsewhere, found))


@pytest.mark.skipif(not golden_cases(), reason=ABSENT)
def test_a_wrong_answer_is_shown_line_by_line() -> None:
    case = next(case for case in golden_cases() if case["expect"].get("best"))
    expected = case["expect"]
    node = expected["best"][0]
    wrong = expected | {"best": [], "nodes": expected["nodes"] | {node: {"code": "Unschedulable", "plugin": "X", "reasons": ["r"]}}}
    lines = list(differences(expected, wrong))
    assert f"node {node}: plugin: expected None, found X" in lines
    assert any(line.startswith("best: expected") for line in lines)
