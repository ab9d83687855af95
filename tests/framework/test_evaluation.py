"""One pod against all nodes: what PreFilter says, who is nominated, what is kept, and what a broken plugin costs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np
import pytest

from framework.makers import Scene, names
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    FilterPlugin,
    IntColumn,
    MaxNormalised,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    Rejection,
    Rows,
    ScorePlugin,
)
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.framework.runtime.podcolumns import NOT_FEASIBLE
from placewright.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from placewright.testing import node, pod


class Says(PreFilterPlugin, PreScorePlugin):
    """Answers what the test says."""

    answers: ClassVar[dict[str, Any]] = {}

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        result: PreFilterResult = self.answers.get(self.name, PreFilterResult())
        return result

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        status: Status = self.answers.get(f"{self.name}.pre_score", SUCCESS)
        return status


class First(Says):
    name = "First"


class Second(Says):
    name = "Second"


def scene(*plugins: type[Plugin], **spec: Any) -> Scene:
    """Nodes a and b, under the default profile with these plugins after it."""
    enabled = [{"name": plugin.name} for plugin in plugins]
    return Scene(extra=plugins, spec={"plugins": {"multiPoint": {"enabled": enabled}}} | spec).with_nodes(node("a"), node("b"))


def asked(answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Scene, Evaluator, Evaluation]:
    monkeypatch.setattr(Says, "answers", answers)
    world = scene(First, Second)
    evaluator = world.evaluator()
    return world, evaluator, evaluator.evaluate(pod("p").build())


def only(*nodes: str) -> PreFilterResult:
    return PreFilterResult(nodes=frozenset(NodeName(name) for name in nodes))


# --- PreFilter -----------------------------------------------------------------------------------------------------------------


def test_nodes_outside_what_pre_filter_leaves_are_told_who_left_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    world, evaluator, evaluation = asked({"First": only("a", "gone"), "Second": only("a", "b")}, monkeypatch)
    assert names(world.cluster, evaluation.feasible) == {"a"}
    ((status, rows),) = evaluator.diagnose(evaluation).rejections
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't satisfy plugin(s) [First Second]",))
    assert names(world.cluster, rows) == {"b"}


@pytest.mark.parametrize(
    ("answers", "message", "blamed"),
    [
        ({"Second": only()}, "node(s) didn't satisfy plugin Second", {"Second"}),
        (
            {"First": only("a"), "Second": only("b")},
            "node(s) didn't satisfy plugin(s) [First Second] simultaneously",
            {"First", "Second"},
        ),
        ({"First": only(), "Second": PreFilterResult(unresolvable("never asked"))}, "node(s) didn't satisfy plugin First", {"First"}),
        ({"First": PreFilterResult(unschedulable("one")), "Second": only()}, "node(s) didn't satisfy plugin Second", {"Second"}),
    ],
)
def test_plugins_that_leave_no_node_between_them_refuse_the_pod(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], message: str, blamed: set[str]
) -> None:
    _, evaluator, evaluation = asked(answers, monkeypatch)
    diagnosis = evaluator.diagnose(evaluation)
    assert evaluation.count == 0
    assert diagnosis.prefilter_message == message
    assert diagnosis.absent is not None
    assert diagnosis.absent.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert diagnosis.unschedulable_plugins == blamed


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (unschedulable("one"), SUCCESS, "one"),
        (unschedulable("one"), unschedulable("two"), "two"),
        (unschedulable("one"), unresolvable("two"), "two"),
        (unresolvable("one"), unresolvable("two"), "one"),
    ],
)
def test_the_last_refusal_counts_and_a_hopeless_one_ends_it(
    monkeypatch: pytest.MonkeyPatch, first: Status, second: Status, message: str
) -> None:
    _, evaluator, evaluation = asked({"First": PreFilterResult(first), "Second": PreFilterResult(second)}, monkeypatch)
    assert evaluator.diagnose(evaluation).prefilter_message == message


def test_an_error_of_pre_filter_fails_the_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CycleError, match='running PreFilter plugin "First": broken'):
        asked({"First": PreFilterResult(error("broken"))}, monkeypatch)


def test_an_error_of_pre_score_fails_the_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    _, evaluator, evaluation = asked({"Second.pre_score": unschedulable("no")}, monkeypatch)
    with pytest.raises(CycleError, match='running PreScore plugin "Second": no'):
        evaluator.score(evaluation)


# --- nominated pods ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("priority", "fits"), [(5, {"b"}), (6, {"a", "b"}), (4, {"b"})])
def test_room_kept_for_a_nominated_pod_is_taken_only_from_pods_of_no_higher_priority(priority: int, fits: set[str]) -> None:
    world = scene()
    world.nominated[NodeName("a")] = [pod("nominee", cpu="3", priority=5).build()]
    evaluator = world.evaluator()
    evaluation = evaluator.evaluate(pod("p", cpu="2", priority=priority).build())
    assert names(world.cluster, evaluation.feasible) == fits
    said = [(s.plugin, s.reasons) for s, _ in evaluator.diagnose(evaluation).rejections]
    assert said == ([] if "a" in fits else [("NodeResourcesFit", ("Insufficient cpu",))])


def test_a_nominated_pod_does_not_stand_in_its_own_way() -> None:
    world = scene()
    nominee = pod("nominee", cpu="3", priority=5).build()
    world.nominated[NodeName("a")] = [nominee]
    assert names(world.cluster, world.evaluator().evaluate(nominee).feasible) == {"a", "b"}


def test_a_pod_must_also_fit_without_those_nominated_beside_it() -> None:
    """A nominated pod may be what a required affinity asks for; it is not there yet."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
    spec = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    world = Scene().with_nodes(node("a", labels={"zone": "z"}))
    world.nominated[NodeName("a")] = [pod("nominee", labels={"app": "db"}, priority=5).build()]
    assert world.evaluator().evaluate(pod("p", **spec).build()).count == 0
    assert not world.evaluator().checker.check_row(pod("p", **spec).build(), 0).ok
    world.place(pod("standing", labels={"app": "db"}), "a")
    assert world.evaluator().evaluate(pod("p", **spec).build()).count == 1


def test_scores_are_normalised_over_the_nodes_that_nominations_leave() -> None:
    soft = {"key": "k", "effect": "PreferNoSchedule"}
    world = Scene().with_nodes(
        node("clean"),
        node("soft", spec={"taints": [soft]}),
        node("worst", spec={"taints": [soft, soft | {"key": "l"}]}),
    )
    evaluator = world.evaluator()
    kept = evaluator.evaluate(pod("p", cpu="2").build())
    evaluator.score(kept)
    assert world.parts(evaluator, kept)["soft"]["TaintToleration"].normalised == 50
    world.nominated[NodeName("worst")] = [pod("nominee", cpu="3", priority=5).build()]
    narrowed = evaluator.evaluate(pod("q", cpu="2").build())
    totals = evaluator.score(narrowed)
    parts = world.parts(evaluator, narrowed)
    assert parts["soft"]["TaintToleration"].normalised == 0
    assert totals[1] == sum(score.product for score in parts["soft"].values())


# --- what is kept --------------------------------------------------------------------------------------------------------------


class Counts(FilterPlugin, ScorePlugin):
    """Notes which rows it is asked about; its columns follow `Counts.says`."""

    name = "Counts"
    calls: ClassVar[list[tuple[str, int]]] = []
    says: ClassVar[list[Hashable]] = [0]

    def sign(self, pod: PodInfo) -> Hashable | None:
        return pod.labels.get("sign", "") if pod.labels.get("sign") != "none" else None

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        self.calls.append(("filter", len(rows)))
        return np.ones(len(rows), np.bool_)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        return []

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        self.calls.append(("score", len(rows)))
        return np.zeros(len(rows), np.int64)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable | None:
        return self.says[0]


class CountsOnNode(Counts):
    name = "CountsOnNode"
    reads = Reads.NODE


class CountsPods(Counts):
    name = "CountsPods"
    reads = Reads.NODE_AND_ITS_PODS


class CountsAll(Counts):
    name = "CountsAll"
    reads = Reads.CLUSTER


def counting(kind: type[Counts]) -> tuple[Scene, Evaluator]:
    world = scene(kind)
    Counts.calls.clear()
    Counts.says[0] = 0
    return world, world.evaluator()


def place_one(evaluator: Evaluator, name: str, **labels: str) -> list[tuple[str, int]]:
    """Evaluate and score a pod; which rows the plugin was asked about."""
    Counts.calls.clear()
    evaluator.score(evaluator.evaluate(pod(name, labels=labels).build()))
    return list(Counts.calls)


def test_only_rows_that_changed_are_asked_about_again() -> None:
    world, evaluator = counting(CountsPods)
    assert place_one(evaluator, "p") == [("filter", 2), ("score", 2)]
    assert place_one(evaluator, "q") == []
    world.place(pod("x"), "a")
    assert place_one(evaluator, "r") == [("filter", 1), ("score", 1)]
    world.with_nodes(node("c"))
    assert place_one(evaluator, "s") == [("filter", 3), ("score", 3)]


def test_pods_that_come_do_not_concern_a_plugin_that_reads_only_the_node() -> None:
    world, evaluator = counting(CountsOnNode)
    place_one(evaluator, "p")
    world.place(pod("x"), "a")
    assert place_one(evaluator, "q") == []
    world.with_nodes(node("a").cordoned())
    assert place_one(evaluator, "r") == [("filter", 1), ("score", 1)]


def test_columns_over_the_cluster_hold_as_long_as_their_fingerprint() -> None:
    _, evaluator = counting(CountsAll)
    assert place_one(evaluator, "p") == [("filter", 2), ("score", 2)]
    assert place_one(evaluator, "q") == []
    Counts.says[0] = 1
    assert place_one(evaluator, "r") == [("filter", 2), ("score", 2)]
    Counts.says[0] = None
    place_one(evaluator, "s")
    assert len(place_one(evaluator, "t")) == 2, "None promises nothing"


def test_pods_that_look_different_or_have_no_signature_share_nothing() -> None:
    _, evaluator = counting(CountsPods)
    place_one(evaluator, "p")
    assert place_one(evaluator, "q", sign="other") != []
    assert place_one(evaluator, "r", sign="other") == []
    assert place_one(evaluator, "s", sign="none") != []
    assert place_one(evaluator, "t", sign="none") != []
    assert len(evaluator.kept) == 2


def test_the_columns_that_nobody_asked_for_lately_are_forgotten_first() -> None:
    _, evaluator = counting(CountsPods)
    for sign in "12":
        place_one(evaluator, "p", sign=sign)
    evaluator.kept.budget.limit = evaluator.kept.nbytes
    assert place_one(evaluator, "p", sign="1") == []
    place_one(evaluator, "p", sign="3")
    assert place_one(evaluator, "p", sign="1") == []
    assert len(evaluator.kept) == 2
    assert place_one(evaluator, "p", sign="2") != []


def test_one_signature_is_kept_even_where_its_columns_take_more_than_is_allowed() -> None:
    _, evaluator = counting(CountsPods)
    evaluator.kept.budget.limit = 1
    place_one(evaluator, "p")
    assert place_one(evaluator, "q") == []
    place_one(evaluator, "p", sign="1")
    assert len(evaluator.kept) == 1


# --- scores out of range -------------------------------------------------------------------------------------------------------


class Wild(ScorePlugin):
    """Scores the number in the node's label `score`."""

    name = "Wild"

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        return cluster.label("score").gather(rows, lambda value: int(value or 0))


class WildCluster(Wild):
    name = "WildCluster"
    reads = Reads.CLUSTER


class WildNormalised(Wild, MaxNormalised):
    """Normalised by the maximum: only negative scores are out of range."""

    name = "WildNormalised"


@pytest.mark.parametrize("kind", [Wild, WildCluster])
@pytest.mark.parametrize("score", [-1, 101])
def test_a_score_out_of_range_fails_the_cycle_in_kube_schedulers_words(kind: type[Wild], score: int) -> None:
    world = scene(kind).with_nodes(node("c", labels={"score": str(score)}))
    evaluator = world.evaluator()
    with pytest.raises(InvalidScoreError) as wrong:
        evaluator.score(evaluator.evaluate(pod("p").build()))
    said = f'plugin "{kind.name}" returns an invalid score {score}, it should in the range of [0, 100] after normalizing'
    assert str(wrong.value) == said


def test_the_score_of_a_node_that_cannot_hold_the_pod_does_not_matter() -> None:
    evaluator = scene(Wild).with_nodes(node("c", labels={"score": "500"}).cordoned()).evaluator()
    totals = evaluator.score(evaluator.evaluate(pod("p").build()))
    assert totals[-1] == NOT_FEASIBLE
    assert (totals[:-1] >= 0).all()


def test_after_a_score_out_of_range_the_kept_totals_are_not_those_of_another_maximum() -> None:
    world = Scene(extra=(WildNormalised,), spec={"plugins": {"multiPoint": {"enabled": [{"name": "WildNormalised"}]}}})
    world.with_nodes(node("a", labels={"score": "50"}), node("b", labels={"score": "100"}))
    evaluator = world.evaluator()
    evaluator.score(evaluator.evaluate(pod("p").build()))
    world.with_nodes(node("b", labels={"score": "-9"}))
    with pytest.raises(InvalidScoreError):
        evaluator.score(evaluator.evaluate(pod("q").build()))
    world.with_nodes(node("b", labels={"score": "0"}))
    kept = evaluator.score(evaluator.evaluate(pod("r").build()))
    assert list(kept) == list(world.evaluator().score(world.evaluator().evaluate(pod("r").build())))


# --- corners -------------------------------------------------------------------------------------------------------------------


def test_without_nodes_nothing_fits_and_nothing_breaks() -> None:
    evaluator = Scene().evaluator()
    evaluation = evaluator.evaluate(pod("p").build())
    assert evaluation.count == 0
    assert evaluator.diagnose(evaluation).rejections == []
    assert list(evaluator.score(evaluation)) == []


def test_a_node_is_rejected_by_the_first_filter_that_objects() -> None:
    world = Scene().with_nodes(node("n", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}, cpu="0").cordoned())
    evaluator = world.evaluator()
    evaluation = evaluator.evaluate(pod("p", cpu="1").build())
    assert [(s.plugin, s.message) for s, _ in evaluator.diagnose(evaluation).rejections] == [
        ("NodeUnschedulable", "node(s) were unschedulable")
    ]
    assert evaluator.checker.check_row(pod("p", cpu="1").build(), 0).plugin == "NodeUnschedulable"


def test_all_resources_that_are_short_are_named_and_hopeless_nodes_apart() -> None:
    world = Scene().with_nodes(node("small", cpu="1", memory="1Gi"), node("busy"), node("full", pods="1"))
    world.place(pod("x", cpu="3"), "busy").place(pod("y", cpu="3"), "full")
    evaluator = world.evaluator()
    diagnosis = evaluator.diagnose(evaluator.evaluate(pod("p", cpu="2").build()))
    said = {next(iter(names(world.cluster, rows))): (s.code.name, s.reasons) for s, rows in diagnosis.rejections}
    assert said == {
        "small": ("UNSCHEDULABLE_AND_UNRESOLVABLE", ("Insufficient cpu",)),
        "busy": ("UNSCHEDULABLE", ("Insufficient cpu",)),
        "full": ("UNSCHEDULABLE", ("Too many pods", "Insufficient cpu")),
    }
    assert diagnosis.unschedulable_plugins == {"NodeResourcesFit"}
