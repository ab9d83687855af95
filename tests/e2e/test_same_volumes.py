"""150 pods with volumes of all sorts, placed by a real kube-scheduler 1.20: its feasible nodes and its messages are ours.

That is for VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone and the four legacy limits, but for the changes that
`e2e.answers.volumerules` names. The seed is fixed; another one is tried as well when SAME_ANSWERS_SEED names it.
"""

from __future__ import annotations

from collections import Counter

import pytest

from e2e.answers.comparing import listed
from e2e.answers.recording import SEED, record, seeds
from e2e.answers.volumerecording import VolumeRecorder
from e2e.answers.volumerules import CHANGES, LEGACY, VolumeChange, VolumeScene, fitting, message_of_1_20
from placewright_lab.simulation.evaluation import Verdict

PLUGINS = {"VolumeRestrictions", "LimitsBefore", "VolumeBinding", "ZoneBefore", *LEGACY}


@pytest.fixture(scope="module", params=seeds(), ids="seed {}".format)
def scenes(request: pytest.FixtureRequest) -> list[VolumeScene]:
    return [VolumeScene(decision) for decision in record(VolumeRecorder, request.param)]


def by_node(verdict: Verdict) -> dict[str, tuple[str, ...]]:
    """Reasons by node; none where the pod fits."""
    assert not verdict.error, verdict.error
    return {each.node: each.reasons for each in verdict.nodes}


def test_the_same_nodes_can_hold_the_pod_with_the_named_changes_undone(scenes: list[VolumeScene]) -> None:
    problems = [
        f"{scene.decision.key}: 1.20 found {sorted(scene.decision.feasible)}, we {sorted(fitting(scene.with_old_rules))}; "
        f"{scene.decision.message}; {by_node(scene.with_old_rules)}; {scene.decision.pod['spec']['volumes']}"
        for scene in scenes
        if scene.decision.feasible != fitting(scene.with_old_rules)
    ]
    assert not problems, listed(problems)


def test_a_pod_that_fits_nowhere_is_told_so_in_the_same_words(scenes: list[VolumeScene]) -> None:
    rejected = [scene for scene in scenes if not scene.decision.node]
    problems = [
        f"{scene.decision.key}: {scene.decision.message!r}, expected {message_of_1_20(scene.with_old_rules)!r}"
        for scene in rejected
        if scene.decision.message != message_of_1_20(scene.with_old_rules)
    ]
    assert not problems, listed(problems)
    assert rejected, "no pod was rejected"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.plugin)
def test_where_a_rule_changed_ours_is_the_new_one(change: VolumeChange, scenes: list[VolumeScene]) -> None:
    problems = [
        f"{scene.decision.key}: we say {by_node(scene.ours)}, the new rule {by_node(scene.with_new_rule(change))}"
        for scene in scenes
        if by_node(scene.ours) != by_node(scene.with_new_rule(change))
    ]
    assert not problems, listed(problems)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.plugin)
def test_a_change_is_named_for_a_reason(change: VolumeChange, scenes: list[VolumeScene], request: pytest.FixtureRequest) -> None:
    met = any(by_node(scene.ours) != by_node(scene.with_old_rule(change)) for scene in scenes)
    assert met or request.node.callspec.params["scenes"] != SEED, "only with other seeds may it be that no pod meets the change"


def test_the_pods_were_worth_comparing(scenes: list[VolumeScene]) -> None:
    assert len(scenes) == VolumeRecorder.pods
    rejecting = Counter(each.plugin for scene in scenes for each in scene.with_old_rules.nodes if not each.fits)
    assert rejecting.keys() == PLUGINS
    assert all(count >= 3 for count in rejecting.values()), rejecting
    placed = sum(bool(scene.decision.node) for scene in scenes)
    assert 0.25 * VolumeRecorder.pods <= placed <= 0.95 * VolumeRecorder.pods, f"{placed} pods were placed"
    partly = [scene for scene in scenes if 0 < len(scene.decision.feasible) < len(scene.ours.nodes)]
    assert len(partly) >= 0.25 * VolumeRecorder.pods
