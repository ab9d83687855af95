"""How scores become totals: weights, normalisation, skips, what is told of each plugin's part, and what each step took."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from framework.makers import Scene
from framework.scripts import Script, bare
from placewright.api.objects import NodeName
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.interface import CycleState, MaxNormalised, Reads, Rows
from placewright.framework.runtime.evaluation import Evaluation, Evaluator, PluginScore
from placewright.framework.runtime.podcolumns import NOT_FEASIBLE
from placewright.framework.status import SKIP, Code, Status, error, unresolvable, unschedulable
from placewright.framework.steps import Steps
from placewright.testing import node, pod

READS = [Reads.NODE, Reads.NODE_AND_ITS_PODS, Reads.CLUSTER]


def scored(scene: Scene, name: str = "p") -> tuple[Evaluator, Evaluation]:
    evaluator = scene.evaluator()
    evaluation = evaluator.evaluate(pod(name).build())
    evaluator.score(evaluation)
    return evaluator, evaluation


def totals(scene: Scene) -> dict[str, int]:
    """By node, as the evaluator has it after its first pod."""
    _, evaluation = scored(scene)
    assert evaluation.totals is not None
    return {str(scene.cluster.names[row]): total for row, total in enumerate(evaluation.totals.tolist())}


# --- totals ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reads", READS)
def test_a_total_is_the_sum_of_scores_times_weights(reads: Reads) -> None:
    first, second = Script("A", reads=reads).scores({"a": 3, "b": 100}), Script("B", reads=reads).scores({"a": 50})
    assert totals(bare(first, second, nodes="a b c", weights={"A": 2, "B": 5})) == {"a": 256, "b": 200, "c": 0}


@pytest.mark.parametrize("reads", READS)
def test_scores_are_scaled_by_the_highest_of_the_nodes_that_fit(reads: Reads) -> None:
    fits = Script("F").filters({"c": unschedulable("no")})
    scales = Script("A", reads=reads).scores({"a": 5, "b": 15, "c": 900}, scaled=True)
    assert totals(bare(fits, scales, nodes="a b c", weights={"A": 3})) == {"a": 3 * 33, "b": 300, "c": NOT_FEASIBLE}


@pytest.mark.parametrize("reads", READS)
def test_where_less_is_better_the_highest_gets_nothing(reads: Reads) -> None:
    scales = Script("A", reads=reads).scores({"a": 5, "b": 15}, reverse=True)
    assert totals(bare(scales, nodes="a b c")) == {"a": 67, "b": 0, "c": 100}


@pytest.mark.parametrize(("reverse", "everywhere"), [(False, 0), (True, 100)])
@pytest.mark.parametrize("reads", READS)
def test_where_nobody_scored_all_nodes_are_alike(reads: Reads, reverse: bool, everywhere: int) -> None:
    assert set(totals(bare(Script("A", reads=reads).scores(scaled=True, reverse=reverse))).values()) == {everywhere}


@pytest.mark.parametrize(
    ("raw", "reverse", "scaled"),
    [
        ([3, 1, 2], False, [100, 33, 66]),
        ([3, 1, 2], True, [0, 67, 34]),
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [100, 100]),
        ([7], False, [100]),
        ([-5, -1], False, [-5, -1]),
        ([], False, []),
    ],
)
def test_scaling_by_the_highest_is_kube_schedulers(raw: list[int], reverse: bool, scaled: list[int]) -> None:
    plugin: Any = Script("A").scores(scaled=True, reverse=reverse).kind(None, None)  # type: ignore[arg-type]
    column = np.array(raw, np.int64)
    assert isinstance(plugin, MaxNormalised)
    summary = plugin.summarise(CycleState(), column)
    assert summary == max([*raw, 0])
    assert plugin.normalise(CycleState(), column, summary).tolist() == scaled


def test_a_summary_of_none_leaves_scores_as_they_are() -> None:
    moody = Script("A").scores({"a": 5, "b": 50}).writing(summarise=lambda *_: None, normalise=lambda *_: np.zeros(2, np.int64))
    scene = bare(moody)
    assert totals(scene) == {"a": 5, "b": 50}
    evaluator, evaluation = scored(scene)
    assert evaluator.breakdown(evaluation, np.array([1])) == {"A": [PluginScore(50, 50, 1)]}
    assert evaluator.parts(evaluation)["A"].tolist() == [5, 50]


@pytest.mark.parametrize("reads", READS)
def test_a_column_that_is_normalised_may_be_of_zeros_and_still_count(reads: Reads) -> None:
    """A column of zeros is not added where it is not normalised; here it becomes one of hundreds."""
    plugin = Script("A", reads=reads).scores({}, reverse=True).fingerprints("same")
    evaluator, evaluation = scored(bare(plugin, weights={"A": 2}))
    assert evaluator.parts(evaluation)["A"].tolist() == [200, 200]


@pytest.mark.parametrize("reads", READS)
def test_without_a_node_that_fits_nothing_is_scaled_and_nothing_breaks(reads: Reads) -> None:
    nowhere = Script("F").filters(lambda *_: unschedulable("no"))
    assert totals(bare(nowhere, Script("A", reads=reads).scores({"a": 500}, scaled=True))) == {"a": NOT_FEASIBLE, "b": NOT_FEASIBLE}


def test_fewer_nodes_than_the_columns_let_fit_are_scaled_among_themselves() -> None:
    """A filter that reads the cluster leaves out the node with the highest score; the kept totals are of all three."""
    scales, strict = Script("A").scores({"a": 10, "b": 20, "c": 40}, scaled=True), Script("F", reads=Reads.CLUSTER).filters()
    scene = bare(scales, strict, nodes="a b c")
    evaluator = scene.evaluator()
    assert evaluator.score(evaluator.evaluate(pod("p").build())).tolist() == [25, 50, 100]
    strict.told["verdict"] = {"c": unschedulable("no")}
    narrowed = evaluator.evaluate(pod("q").build())
    assert evaluator.score(narrowed).tolist() == [50, 100, NOT_FEASIBLE]
    assert narrowed.summaries == {"A": 20}
    strict.told["verdict"] = {}
    again = evaluator.evaluate(pod("r").build())
    assert (evaluator.score(again).tolist(), again.summaries) == ([25, 50, 100], {"A": 40})


def test_fewer_nodes_with_the_same_highest_score_share_the_kept_totals() -> None:
    scales, strict = Script("A").scores({"a": 10, "b": 40, "c": 40}, scaled=True), Script("F", reads=Reads.CLUSTER).filters()
    evaluator = bare(scales, strict, nodes="a b c").evaluator()
    strict.told["verdict"] = {"c": unschedulable("no")}
    assert evaluator.score(evaluator.evaluate(pod("q").build())).tolist() == [25, 100, NOT_FEASIBLE]


# --- what is not asked ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reads", READS)
def test_a_plugin_that_skips_prescore_adds_nothing_and_is_not_asked(reads: Reads) -> None:
    skips, stays = Script("A", reads=reads).pre_scores(SKIP).scores({"a": 9}), Script("B", reads=reads).pre_scores().scores({"a": 4})
    scene = bare(skips, stays)
    evaluator, evaluation = scored(scene)
    assert evaluation.totals is not None
    assert evaluation.totals.tolist() == [4, 0]
    assert (skips.asked("score"), evaluation.state.skip_score) == ([], {"A"})
    assert evaluator.breakdown(evaluation, np.array([0])).keys() == {"B"}
    assert evaluator.parts(evaluation).keys() == {"B"}


def test_prescore_is_shown_the_nodes_that_fit_and_no_others() -> None:
    shown: list[list[int]] = []

    def look(_state: Any, _pod: Any, _cluster: Any, feasible: Rows) -> Status:
        shown.append(feasible.tolist())
        return SKIP

    local = Script("F").filters({"b": unschedulable("no")})
    wide = Script("G", reads=Reads.CLUSTER).filters({"d": unschedulable("no")})
    scored(bare(local, Script("A").pre_scores(look), nodes="a b c d"))
    scored(bare(local, wide, Script("A").pre_scores(look), nodes="a b c d"))
    assert shown == [[0, 2, 3], [0, 2]]


@pytest.mark.parametrize(("reads", "calls"), [(Reads.NODE, 1), (Reads.NODE_AND_ITS_PODS, 1), (Reads.CLUSTER, 2)])
def test_prescore_of_who_reads_no_more_than_a_node_is_asked_once_about_pods_that_look_alike(reads: Reads, calls: int) -> None:
    def remember(state: CycleState, pod: Any, *_: Any) -> Status:
        state.write("A", pod.name)
        return Status(Code.SUCCESS)

    plugin = Script("A", reads=reads).pre_scores(remember).scores()
    evaluator = bare(plugin).evaluator()
    known = []
    for name in ("p", "q"):
        evaluation = evaluator.evaluate(pod(name).build())
        evaluator.score(evaluation)
        known.append(evaluation.state.data["A"])
    assert len(plugin.asked("pre_score")) == calls
    assert known == (["p", "p"] if calls == 1 else ["p", "q"])


@pytest.mark.parametrize("failure", [error("no idea"), unschedulable("no"), unresolvable("never"), Status(Code.PENDING, ("later",))])
def test_whatever_else_prescore_says_fails_the_attempt_and_is_not_kept(failure: Status) -> None:
    plugin, later = Script("A").pre_scores(failure).scores(), Script("B").pre_scores().scores()
    evaluator = bare(plugin, later).evaluator()
    with pytest.raises(CycleError, match=f'^running PreScore plugin "A": {failure.message}$'):
        evaluator.score(evaluator.evaluate(pod("p").build()))
    assert later.calls == []
    plugin.told["pre_score"] = SKIP
    assert evaluator.score(evaluator.evaluate(pod("p").build())).tolist() == [0, 0]


# --- out of range ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [1, 16, 17, 40])
@pytest.mark.parametrize(("score", "right"), [(-1, False), (0, True), (100, True), (101, False)])
@pytest.mark.parametrize("reads", [Reads.NODE, Reads.CLUSTER])
def test_a_score_is_0_to_100_however_many_nodes_there_are(reads: Reads, score: int, right: bool, nodes: int) -> None:
    """Few scores are looked at one by one, many by their least and most."""
    scene = bare(Script("A", reads=reads).scores({"odd": score}), nodes=" ".join(["odd", *(f"n{i}" for i in range(nodes - 1))]))
    evaluator = scene.evaluator()
    evaluation = evaluator.evaluate(pod("p").build())
    if right:
        assert evaluator.score(evaluation)[0] == score
        assert evaluator.runtime.failures.total == 0
        return
    said = f'plugin "A" returns an invalid score {score}, it should in the range of [0, 100] after normalizing'
    with pytest.raises(InvalidScoreError) as wrong:
        evaluator.score(evaluation)
    assert str(wrong.value) == said
    assert evaluator.runtime.failures.last == {("A", "Score"): f"found score {score}; allowed 0 to 100"}


def test_of_scores_that_are_out_of_range_on_both_sides_the_lowest_is_told() -> None:
    with pytest.raises(InvalidScoreError, match="invalid score -7,"):
        scored(bare(Script("A").scores({"a": 400, "b": -7})))


# --- each plugin's part ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reads", READS)
def test_each_plugins_part_is_told_raw_scaled_and_weighted(reads: Reads) -> None:
    scales, plain = Script("A", reads=reads).scores({"a": 5, "c": 20}, scaled=True), Script("B", reads=reads).scores({"c": 8})
    fits = Script("F").filters({"b": unschedulable("no")})
    evaluator, evaluation = scored(bare(fits, scales, plain, nodes="a b c", weights={"A": 3, "B": 2}))
    assert evaluator.breakdown(evaluation, np.array([0, 2])) == {
        "A": [PluginScore(5, 25, 3), PluginScore(20, 100, 3)],
        "B": [PluginScore(0, 0, 2), PluginScore(8, 8, 2)],
    }
    assert evaluator.breakdown(evaluation, np.array([2]))["A"] == [PluginScore(20, 100, 3)]
    assert {name: part.tolist() for name, part in evaluator.parts(evaluation).items()} == {"A": [75, 300], "B": [0, 16]}
    assert PluginScore(20, 100, 3).product == 300


def test_who_reads_the_cluster_and_gives_nobody_anything_is_told_with_zeros_and_left_out_of_the_parts() -> None:
    evaluator, evaluation = scored(bare(Script("A", reads=Reads.CLUSTER).scores().fingerprints("same"), weights={"A": 4}))
    assert evaluator.breakdown(evaluation, np.array([0, 1])) == {"A": [PluginScore(0, 0, 4)] * 2}
    assert evaluator.parts(evaluation) == {}


@pytest.mark.parametrize("reads", [Reads.NODE, Reads.CLUSTER])
def test_parts_are_told_of_the_nodes_that_nominations_leave(reads: Reads) -> None:
    scales = Script("A", reads=reads).scores({"a": 10, "b": 20, "c": 40}, scaled=True)
    picky = Script("F", reads=Reads.NODE_AND_ITS_PODS).filters(lambda _name, pods: unschedulable("full") if pods else Status(Code.SUCCESS))
    scene = bare(scales, picky, nodes="a b c")
    scene.nominated[NodeName("c")] = [pod("nominee", priority=9).build()]
    evaluator, evaluation = scored(scene)
    assert evaluation.rows.tolist() == [0, 1]
    assert evaluator.parts(evaluation)["A"].tolist() == [50, 100]
    assert evaluator.breakdown(evaluation, np.array([1])) == {"A": [PluginScore(20, 100, 1)]}


# --- what it took ---------------------------------------------------------------------------------------------------------------------


def ticking() -> Callable[[], float]:
    """A clock that a second passes on whenever it is looked at."""
    seconds = count()
    return lambda: float(next(seconds))


def test_each_step_and_each_plugin_in_it_is_timed_once() -> None:
    wide, local = Script("W", reads=Reads.CLUSTER), Script("L")
    for script in (wide, local):
        script.pre_filters().filters().pre_scores().scores()
    scene, steps = bare(wide, local), Steps(ticking(), plugins=True)
    evaluator = scene.evaluator()
    evaluator.score(evaluator.evaluate(pod("p").build(), steps))
    assert [step.name for step in steps.taken] == ["PreFilter", "Filter", "PreScore", "Score"]
    assert steps.plugins is not None
    assert [(each.plugin, each.point) for each in steps.plugins] == [
        ("W", "PreFilter"), ("L", "PreFilter"), ("L", "Filter"), ("W", "Filter"),
        ("W", "PreScore"), ("L", "PreScore"), ("L", "Score"), ("W", "Score"),
    ]  # fmt: skip
    assert {each.seconds for each in steps.plugins} == {1.0}


@pytest.mark.parametrize("reads", READS)
def test_a_row_that_is_asked_about_again_is_timed_from_its_question_on(reads: Reads) -> None:
    plugin = Script("L", reads=reads).filters().scores({"a": 1}).fingerprints(lambda _state, cluster: cluster.node_journal.position)
    scene = bare(plugin)
    evaluator = scene.evaluator()
    evaluator.score(evaluator.evaluate(pod("p").build()))
    scene.with_nodes(node("b"))
    steps = Steps(ticking(), plugins=True)
    evaluator.score(evaluator.evaluate(pod("q").build(), steps))
    assert [(each.plugin, each.point, each.seconds) for each in steps.plugins or ()] == [("L", "Filter", 1), ("L", "Score", 1)]


def test_plugins_whose_answer_still_holds_are_not_timed() -> None:
    evaluator = bare(Script("L").pre_filters().filters().pre_scores().scores()).evaluator()
    evaluator.score(evaluator.evaluate(pod("p").build()))
    steps = Steps(ticking(), plugins=True)
    evaluator.score(evaluator.evaluate(pod("q").build(), steps))
    assert steps.plugins == []
    assert len(steps.taken) == 4


@pytest.mark.parametrize(
    ("script", "taken"),
    [
        (Script("A").pre_filters(unschedulable("no")), [("PreFilter", Code.UNSCHEDULABLE)]),
        (Script("A").pre_filters(unresolvable("no")), [("PreFilter", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)]),
        (Script("A").filters(lambda *_: unschedulable("no")), [("PreFilter", Code.SUCCESS), ("Filter", Code.UNSCHEDULABLE)]),
        (Script("A").filters({"a": unschedulable("no")}), [("PreFilter", Code.SUCCESS), ("Filter", Code.SUCCESS)]),
    ],
)
def test_a_step_ends_with_what_came_of_it(script: Script, taken: list[tuple[str, Code]]) -> None:
    steps = Steps(ticking())
    bare(script).evaluator().evaluate(pod("p").build(), steps)
    assert [(step.name, step.outcome) for step in steps.taken] == taken


def test_a_prefilter_that_fails_ends_its_step_with_an_error() -> None:
    steps = Steps(ticking())
    with pytest.raises(CycleError):
        bare(Script("A").pre_filters(error("no"))).evaluator().evaluate(pod("p").build(), steps)
    assert [(step.name, step.outcome) for step in steps.taken] == [("PreFilter", Code.ERROR)]


def test_steps_know_who_had_nothing_to_say() -> None:
    steps = Steps(ticking())
    evaluator = bare(Script("A").pre_filters(SKIP), Script("B").pre_scores(SKIP)).evaluator()
    evaluator.score(evaluator.evaluate(pod("p").build(), steps))
    assert (steps.skip_filter, steps.skip_score) == ({"A"}, {"B"})


def test_the_state_of_an_attempt_carries_its_steps() -> None:
    steps = Steps(ticking())
    assert bare().evaluator().evaluate(pod("p").build(), steps).state.steps is steps


# --- a filter that fails --------------------------------------------------------------------------------------------------------------


def failing(verdicts: dict[str, Status], name: str = "A") -> Script:
    """A filter that reads the cluster and reports an error for nodes that it alone rejects."""

    def failure(_self: Any, _state: Any, _pod: Any, cluster: Any, rows: Rows) -> Status:
        wrong = [str(cluster.names[row]) for row in rows]
        alone.append(wrong)
        return error(f"lost {' '.join(wrong)}")

    alone: list[list[str]] = []
    script = Script(name, reads=Reads.CLUSTER).filters(verdicts).writing(failure=failure)
    script.told["alone"] = alone
    return script


def test_a_row_that_one_filter_alone_rejects_may_end_the_attempt() -> None:
    steps = Steps(ticking())
    with pytest.raises(CycleError, match=r'^running "A" filter plugin: lost b$'):
        bare(failing({"b": unschedulable("no")})).evaluator().evaluate(pod("p").build(), steps)
    assert [(step.name, step.outcome) for step in steps.taken] == [("PreFilter", Code.SUCCESS), ("Filter", Code.ERROR)]


@pytest.mark.parametrize(
    "other",
    [
        Script("B").filters({"b": unschedulable("no")}),
        Script("B", reads=Reads.CLUSTER).filters({"b": unschedulable("no")}),
        Script("B").pre_filters(nodes="a"),
    ],
)
def test_a_row_that_another_rejects_too_ends_nothing(other: Script) -> None:
    script = failing({"b": unschedulable("no")})
    evaluation = bare(script, other).evaluator().evaluate(pod("p").build())
    assert (evaluation.count, script.told["alone"]) == (1, [])


def test_a_filter_that_finds_nothing_wrong_with_its_rows_goes_on() -> None:
    script = failing({"b": unschedulable("no"), "c": unschedulable("no")}).writing(failure=lambda *_: Status(Code.SUCCESS))
    assert bare(script, nodes="a b c").evaluator().evaluate(pod("p").build()).count == 1


def test_each_filter_is_asked_about_the_rows_that_it_alone_rejects() -> None:
    first, second = failing({"a": unschedulable("1"), "b": unschedulable("1")}, "A"), failing({"b": unschedulable("2")}, "B")
    with pytest.raises(CycleError, match=r'^running "A" filter plugin: lost a$'):
        bare(first, second, nodes="a b c").evaluator().evaluate(pod("p").build())
    assert (first.told["alone"], second.told["alone"]) == ([["a"]], [])


def test_a_filter_that_was_skipped_is_asked_about_no_failure() -> None:
    script = failing({"b": unschedulable("no")}).pre_filters(SKIP)
    assert bare(script).evaluator().evaluate(pod("p").build()).count == 2


def test_nodes_have_no_part_before_they_are_scored() -> None:
    evaluation = bare().evaluator().evaluate(pod("p").build())
    assert (evaluation.totals, evaluation.summaries, evaluation.cluster_scores, evaluation.rows.tolist()) == (None, {}, {}, [])
