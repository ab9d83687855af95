"""Random sequences of pods: kube-scheduler's node is one of our best, its messages are ours, and so are its victims.

From 1.36 on with the default profile, for all rules are the same; before, without the scores whose rules changed and without spread
constraints, and messages are not compared (test_same_answers.py knows 1.20's words). Where the server has groups of pods that go all or
none, some come between single pods. Two sequences, or as many as SAME_ANSWERS_SEQUENCES says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from e2e.answers.comparing import listed
from e2e.answers.grouped import COUNT, FEATURES, GROUPS, GroupStep, run_groups
from e2e.answers.sequences import PODS, SAME_RULES, Step, run_sequence
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from placewright_lab.controlplane.server import ControlPlane, Options
from programs import needs_alpha_gates, not_on_this_server


def seeds() -> range:
    """One after another from a fixed one on."""
    return range(1, 1 + int(os.environ.get("SAME_ANSWERS_SEQUENCES") or 2))


@pytest.fixture(scope="module")
def minor() -> int:
    """The version of the programs; skips where there is no kube-scheduler."""
    assets = from_environment(os.environ)
    if assets is None or assets.kube_scheduler is None:
        not_on_this_server(f"{VARIABLE} has no kube-scheduler")
    return assets.minor


@pytest.fixture(scope="module", params=seeds(), ids="seed {}".format)
def steps(request: pytest.FixtureRequest, minor: int) -> Iterator[list[Step]]:
    assets = from_environment(os.environ)
    assert assets is not None, "minor has looked"
    with ControlPlane(assets, Options(audit=False)) as plane:
        yield run_sequence(plane, request.param)


def test_the_node_is_one_of_our_best(steps: list[Step]) -> None:
    placed = [step for step in steps if step.node]
    problems = [
        f"{step.key}: kube-scheduler chose {step.node}, our best are {', '.join(step.ours.best) or step.ours.message or step.ours.error}"
        for step in placed
        if step.node not in step.ours.best
    ]
    assert not problems, listed(problems)


def test_a_pod_that_fits_nowhere_fits_nowhere_here(steps: list[Step]) -> None:
    problems = [f"{step.key}: {step.message!r}, and we place it on {step.ours.best}" for step in steps if not step.node and step.ours.best]
    assert not problems, listed(problems)


def test_it_is_told_so_in_the_same_words(steps: list[Step], minor: int) -> None:
    if minor < SAME_RULES:
        not_on_this_server(f"1.{minor} has other words")
    refused = [step for step in steps if not step.node]
    problems = [f"{step.key}: {step.message!r}, ours {step.ours.message!r}" for step in refused if step.message != step.ours.message]
    assert not problems, listed(problems)


def test_the_same_pods_have_to_go_for_it_from_the_same_node(steps: list[Step]) -> None:
    problems = [
        f"{step.key}: {', '.join(step.victims) or 'nobody'} from {step.nominated or 'nowhere'}, "
        f"ours {', '.join(step.ours.victims) or 'nobody'} from {step.ours.nominated_node or 'nowhere'}"
        for step in steps
        if not step.node and (step.nominated, step.victims) != (step.ours.nominated_node, step.ours.victims)
    ]
    assert not problems, listed(problems)


def test_a_pod_comes_to_be_where_room_was_made_for_it(steps: list[Step]) -> None:
    problems = [
        f"{step.key}: kube-scheduler nominated {step.nominated} and chose {step.landed or 'none'}, ours {step.expected_to_land_on}"
        for step in steps
        if step.nominated and step.landed not in step.expected_to_land_on
    ]
    assert not problems, listed(problems)


def test_the_sequence_was_worth_comparing(steps: list[Step]) -> None:
    assert len(steps) == PODS
    preempted, placed = sum(bool(step.victims) for step in steps), sum(bool(step.node) for step in steps)
    assert preempted >= 3, f"{preempted} pods preempted others"
    assert placed >= 0.4 * PODS, f"{placed} pods were placed at once"
    assert any(not step.node and not step.nominated for step in steps), "every pod was placed"


@pytest.fixture(scope="module", params=seeds(), ids="seed {}".format)
def groups(request: pytest.FixtureRequest, minor: int) -> Iterator[list[GroupStep]]:
    needs_alpha_gates(minor, GROUPS)
    assets = from_environment(os.environ)
    assert assets is not None, "minor has looked"
    with ControlPlane(assets, Options(audit=False, features=FEATURES)) as plane:
        yield run_groups(plane, request.param)


def test_a_group_finds_room_where_it_does_here_and_otherwise_none_of_it(groups: list[GroupStep]) -> None:
    problems = [
        f"{step.name}: kube-scheduler placed {step.placed} of {step.size}, ours {step.lacks or 'all'}"
        for step in groups
        if step.placed != (0 if step.lacks else step.size)
    ]
    assert not problems, listed(problems)


def test_the_groups_were_worth_comparing(groups: list[GroupStep]) -> None:
    assert len(groups) == COUNT
    assert sum(bool(step.placed) for step in groups) >= 5
    assert sum(not step.placed for step in groups) >= 2
