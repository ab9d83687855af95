"""200 random pods, placed by a real kube-scheduler 1.20: its scores, its feasible nodes and its messages are ours, but for named changes.

The seed is fixed; another one is tried as well when SAME_ANSWERS_SEED names it.
"""

from __future__ import annotations

import pytest

from e2e.answers.comparing import listed
from e2e.answers.legacy import REJECTING
from e2e.answers.podrecording import NODES, PodRecorder
from e2e.answers.recording import record, seeds
from e2e.answers.scene import ByNode, Scene, message_of_1_20
from e2e.answers.spreading import IN_1_20, IN_1_36, allowed
from e2e.answers.table import TABLE, Line


@pytest.fixture(scope="module", params=seeds(), ids="seed {}".format)
def scenes(request: pytest.FixtureRequest) -> list[Scene]:
    return [Scene(decision) for decision in record(PodRecorder, request.param)]


@pytest.fixture(scope="module")
def scored(scenes: list[Scene]) -> list[Scene]:
    """The decisions with scores to compare: where both found the same nodes, two or more."""
    return [scene for scene in scenes if scene.scored and scene.decision.feasible == scene.our_feasible]


def differences(scene: Scene, plugin: str, found: ByNode, expected: ByNode, words: str) -> list[str]:
    """One line a node, with both scores."""
    return [
        f"{scene.decision.key}, {plugin}, {node}: " + words.format(found.get(node), expected.get(node))
        for node in sorted(found.keys() | expected.keys())
        if found.get(node) != expected.get(node)
    ]


@pytest.mark.parametrize("line", [line for line in TABLE if line.logged], ids=str)
def test_kube_scheduler_scores_as_we_do_but_for_the_named_change(line: Line, scored: list[Scene]) -> None:
    ours = f"before the change ({line.change.name}) we would say" if line.change else f"our {line.ours} says"
    problems = []
    for scene in scored:
        theirs = scene.theirs(line.logged, line.weight)
        problems += differences(scene, line.logged, theirs, line.expected(scene), f"1.20 says {{}}, {ours} {{}}")
    assert not problems, listed(problems)


@pytest.mark.parametrize("line", [line for line in TABLE if line.change], ids=str)
def test_where_a_rule_changed_ours_is_the_new_one(line: Line, scored: list[Scene]) -> None:
    assert line.change is not None
    problems = []
    for scene in scored:
        expected = line.change.after(scene)
        problems += differences(scene, line.ours, scene.scores(line.ours), expected, "we say {}, the new rule {}")
    assert not problems, listed(problems)


def test_every_plugin_that_scores_has_a_line(scored: list[Scene]) -> None:
    logged = {plugin for scene in scored for plugin in scene.decision.scores}
    assert logged == {line.logged for line in TABLE} - {""}
    ours = {name for scene in scored for verdict in scene.verdict.nodes for name in verdict.scores}
    assert ours == {line.ours for line in TABLE} - {""}


def test_the_same_nodes_can_hold_the_pod_but_for_how_hard_constraints_count(scenes: list[Scene]) -> None:
    problems = []
    for scene in scenes:
        basis = scene.fitting_without_hard_spreading
        for whose, found, version in (("1.20", scene.decision.feasible, IN_1_20), ("we", scene.our_feasible, IN_1_36)):
            problems += [
                f"{scene.decision.key}, {node}: {whose} {'can' if node in found else 'cannot'} place it there, against expectation"
                for node in sorted(found ^ (basis & allowed(scene, version)))
            ]
    assert not problems, listed(problems)


def test_a_pod_that_fits_nowhere_is_told_so_in_the_same_words_but_for_those_that_changed(scenes: list[Scene]) -> None:
    rejected = [scene for scene in scenes if not scene.decision.node]
    told = [s for s in rejected if not _named_by_field(s) and allowed(s, IN_1_20) == allowed(s, IN_1_36)]
    problems = [
        f"{scene.decision.key}: {scene.decision.message!r}, expected {message_of_1_20(scene)!r}"
        for scene in told
        if scene.decision.message != message_of_1_20(scene)
    ]
    assert not problems, listed(problems)
    assert told, "no pod was rejected"


def _named_by_field(scene: Scene) -> bool:
    """Later versions do not look at nodes that no term names; these share a reason of their own."""
    return "matchFields" in str(scene.decision.pod["spec"])


def test_the_chosen_node_is_among_the_best_by_our_scores_with_the_changes_undone(scored: list[Scene]) -> None:
    problems = []
    for scene in scored:
        expected = [(line.weight, line.expected(scene)) for line in TABLE]
        totals = {node: sum(weight * scores[node] for weight, scores in expected) for node in scene.our_feasible}
        chosen, best = totals[scene.decision.node], max(totals.values())
        if chosen != best:
            problems.append(f"{scene.decision.key}: 1.20 chose {scene.decision.node} with {chosen}, the best has {best}")
    assert not problems, listed(problems)


def test_the_pods_were_worth_comparing(scenes: list[Scene], scored: list[Scene]) -> None:
    assert len(scenes) == PodRecorder.pods
    assert len(scenes[0].nodes) == NODES
    assert len(scored) >= 0.75 * PodRecorder.pods
    assert all(allowed(s, IN_1_20) != allowed(s, IN_1_36) for s in scenes if s.scored and s not in scored)
    assert any(not scene.decision.node for scene in scenes)
    for line in TABLE:
        if line.ours and line.logged:
            telling = sum(len(set(scene.theirs(line.logged, line.weight).values())) > 1 for scene in scored)
            assert telling >= 10, f"{line.logged} told nodes apart for {telling} pods only"
        if line.change:
            assert any(line.change.before(scene) != line.change.after(scene) for scene in scored), line.change.name
    for plugin in REJECTING:
        telling = sum(any(verdict.plugin == plugin for verdict in scene.verdict.nodes) for scene in scenes)
        assert telling >= 10, f"{plugin} rejected nodes for {telling} pods only"
