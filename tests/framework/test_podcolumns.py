"""What is kept of a column, what makes it stale, and what must not: held to calls that a plugin gets and to a plain sum over nodes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.scripts import Script, bare
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.journal import Journal
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.interface import PreFilterResult, Reads
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.podcolumns import NOT_FEASIBLE
from placewright.framework.status import SKIP, SUCCESS, unschedulable
from placewright.testing import node, pod
from randomcases import cases

NO = unschedulable("no")
ALL_READS = [Reads.NODE, Reads.NODE_AND_ITS_PODS, Reads.CLUSTER]


class Kept:
    """One plugin that filters and scores, in a scene of its own; `again` evaluates one more pod and tells what was asked."""

    def __init__(self, reads: Reads, nodes: str = "a b c", **scores: Any) -> None:
        self.script = Script("A", reads=reads).filters().scores(**scores)
        self.scene = bare(self.script, nodes=nodes)
        self.evaluator = self.scene.evaluator()
        self.totals: list[int] = []
        self.again()

    def again(self, **pod_of: Any) -> dict[str, list[str]]:
        """By method, the nodes of each call that evaluating one more pod takes, joined; methods that are not called are left out."""
        self.script.calls.clear()
        evaluation = self.evaluator.evaluate(pod("p", **pod_of).build())
        self.totals = self.evaluator.score(evaluation).tolist()
        found: dict[str, list[str]] = {}
        for _, method, nodes in self.script.calls:
            found.setdefault(method, []).append(" ".join(nodes))
        return found


def both(rows: str) -> dict[str, list[str]]:
    """Filter and Score, asked once about these nodes."""
    return {"filter": [rows], "score": [rows]}


# --- what makes a row stale -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reads", "asked"), [(Reads.NODE, {}), (Reads.NODE_AND_ITS_PODS, both("b")), (Reads.CLUSTER, both("a b c"))])
def test_a_pod_that_comes_concerns_the_row_of_its_node_where_pods_are_read(reads: Reads, asked: dict[str, list[str]]) -> None:
    kept = Kept(reads)
    kept.scene.place(pod("x"), "b")
    assert kept.again() == asked


@pytest.mark.parametrize(("reads", "asked"), [(Reads.NODE, {}), (Reads.NODE_AND_ITS_PODS, both("b"))])
def test_a_pod_that_goes_does_so_too(reads: Reads, asked: dict[str, list[str]]) -> None:
    kept = Kept(reads)
    kept.scene.place(pod("x"), "b")
    kept.again()
    kept.scene.cluster.remove_pod("uid-x")
    assert kept.again() == asked


@pytest.mark.parametrize("reads", [Reads.NODE, Reads.NODE_AND_ITS_PODS])
def test_a_node_that_changes_concerns_its_row_once_however_often_it_did(reads: Reads) -> None:
    kept = Kept(reads)
    kept.scene.with_nodes(node("c"), node("a"), node("c", cpu="8"))
    assert kept.again() == both("a c")
    assert kept.again() == {}


def test_rows_whose_node_changed_and_rows_whose_pods_did_are_each_asked_of_whom_they_concern() -> None:
    node_only, pods_too = Script("N").filters().scores(), Script("P", reads=Reads.NODE_AND_ITS_PODS).filters().scores()
    scene = bare(node_only, pods_too, nodes="a b c")
    evaluator = scene.evaluator()
    evaluator.score(evaluator.evaluate(pod("p").build()))
    scene.with_nodes(node("a")).place(pod("x"), "c")
    evaluator.score(evaluator.evaluate(pod("q").build()))
    assert (node_only.asked("filter")[1:], node_only.asked("score")[1:]) == ([("a",)], [("a",)])
    assert (pods_too.asked("filter")[1:], pods_too.asked("score")[1:]) == ([("a", "c")], [("a", "c")])


@pytest.mark.parametrize("reads", [Reads.NODE, Reads.NODE_AND_ITS_PODS])
def test_a_node_that_takes_the_row_of_another_is_asked_about(reads: Reads) -> None:
    kept = Kept(reads)
    kept.script.told |= {"verdict": {"new": NO}, "rating": {"a": 4}}
    kept.scene.cluster.remove_node(NodeName("b"))
    assert kept.again() == both("None")
    kept.scene.with_nodes(node("new"))
    assert kept.again() == both("new")
    assert kept.totals == [0, NOT_FEASIBLE, 0], "a's row did not change: what it scored stays"


@pytest.mark.parametrize("reads", ALL_READS)
def test_more_rows_than_before_are_all_asked_about(reads: Reads) -> None:
    kept = Kept(reads)
    kept.script.fingerprints("same")
    kept.scene = bare(kept.script, nodes="a b c")
    kept.evaluator = kept.scene.evaluator()
    kept.again()
    kept.scene.with_nodes(node("d"))
    assert kept.again() == both("a b c d")


@pytest.mark.parametrize("journal", ["node_journal", "pod_journal"])
def test_who_has_fallen_behind_the_journal_asks_about_all_rows(journal: str) -> None:
    kept = Kept(Reads.NODE_AND_ITS_PODS)
    setattr(kept.scene.cluster, journal, Journal(keep=1))
    kept.evaluator = kept.scene.evaluator()
    kept.again()
    for _ in range(4):
        kept.scene.with_nodes(node("a"))
        kept.scene.place(pod("x"), "b").cluster.remove_pod("uid-x")
    assert kept.again() == both("a b c")
    assert kept.again() == {}


@pytest.mark.parametrize("reads", [Reads.NODE, Reads.NODE_AND_ITS_PODS])
def test_what_is_only_supposed_makes_nothing_stale(reads: Reads) -> None:
    kept = Kept(reads)
    with kept.scene.cluster.dry_run_on_row(add=[pod("x").build()], row=1):
        pass
    assert kept.again() == {}


def test_pods_that_look_different_have_rows_of_their_own() -> None:
    kept = Kept(Reads.NODE_AND_ITS_PODS)
    kept.script.signs(lambda pod: pod.labels.get("app"))
    kept.scene = bare(kept.script, nodes="a b c")
    kept.evaluator = kept.scene.evaluator()
    assert kept.again(labels={"app": "web"}) == both("a b c")
    kept.scene.place(pod("x"), "a")
    assert kept.again(labels={"app": "db"}) == both("a b c")
    assert kept.again(labels={"app": "web"}) == both("a")


# --- columns over the cluster ---------------------------------------------------------------------------------------------------------


def test_a_column_over_the_cluster_holds_while_its_fingerprint_does() -> None:
    kept = Kept(Reads.CLUSTER, ratings={"b": 9})
    kept.script.fingerprints(lambda *_: seen[0])
    seen: list[Any] = ["one"]
    kept.scene = bare(kept.script, nodes="a b c")
    kept.evaluator = kept.scene.evaluator()
    assert kept.again() == both("a b c")
    kept.scene.place(pod("x"), "a")
    assert (kept.again(), kept.totals) == ({}, [0, 9, 0])
    seen[0] = "two"
    assert kept.again() == both("a b c")
    seen[0] = None
    assert [kept.again() for _ in range(2)] == [both("a b c")] * 2
    seen[0] = "two"
    kept.again()
    assert (kept.again(), kept.totals) == ({}, [0, 9, 0])


def test_who_promises_nothing_is_asked_to_score_only_nodes_that_fit_and_who_promises_all() -> None:
    wide = Script("A", reads=Reads.CLUSTER).scores({"a": 1, "b": 2, "c": 3})
    evaluator = bare(Script("F").filters({"b": NO}), wide, nodes="a b c").evaluator()
    assert evaluator.score(evaluator.evaluate(pod("p").build())).tolist() == [1, NOT_FEASIBLE, 3]
    promising = Script("A", reads=Reads.CLUSTER).scores({"a": 1, "b": 2, "c": 3}).fingerprints("same")
    evaluator = bare(Script("F").filters({"b": NO}), promising, nodes="a b c").evaluator()
    assert evaluator.score(evaluator.evaluate(pod("p").build())).tolist() == [1, NOT_FEASIBLE, 3]
    assert (wide.asked("score"), promising.asked("score")) == ([("a", "c")], [("a", "b", "c")])


def test_a_kept_column_serves_whichever_nodes_fit() -> None:
    picky = Script("F", reads=Reads.NODE_AND_ITS_PODS).filters(lambda _name, pods: NO if pods else SUCCESS)
    wide = Script("A", reads=Reads.CLUSTER).scores({"a": 1, "b": 2, "c": 3}).fingerprints("same")
    scene = bare(picky, wide, nodes="a b c")
    evaluator = scene.evaluator()
    assert evaluator.score(evaluator.evaluate(pod("p").build())).tolist() == [1, 2, 3]
    scene.place(pod("x"), "b")
    assert evaluator.score(evaluator.evaluate(pod("q").build())).tolist() == [1, NOT_FEASIBLE, 3]
    assert len(wide.asked("score")) == 1


def test_filter_and_score_of_one_plugin_keep_their_fingerprints_apart() -> None:
    """Both have the same name; what the score promised is no promise of the filter."""
    kept = Kept(Reads.CLUSTER)
    kept.script.fingerprints(lambda *_: next(turns))
    turns = iter(["f1", "s1", "f2", "s1", "f2", "s2"])
    kept.scene = bare(kept.script, nodes="a b c")
    kept.evaluator = kept.scene.evaluator()
    assert [sorted(kept.again()) for _ in range(3)] == [["filter", "score"], ["filter"], ["score"]]


def test_a_column_of_zeros_is_kept_as_one_and_asked_about_again_when_the_promise_changes() -> None:
    kept = Kept(Reads.CLUSTER)
    seen = ["one"]
    kept.script.fingerprints(lambda *_: seen[0])
    kept.scene = bare(kept.script, nodes="a b c", weights={"A": 3})
    kept.evaluator = kept.scene.evaluator()
    kept.again()
    assert (kept.again(), kept.totals) == ({}, [0, 0, 0])
    seen[0], kept.script.told["rating"] = "two", {"c": 4}
    assert (kept.again(), kept.totals) == (both("a b c"), [0, 0, 12])


# --- what normalisation has to look at again ------------------------------------------------------------------------------------------


def summaries_counted(reads: Reads) -> tuple[Script, list[int]]:
    """A plugin that is normalised by its highest score, and a list of how many scores it was shown each time."""

    def summarise(_self: Any, _state: Any, raw: Any) -> int:
        shown.append(len(raw))
        return max(int(raw.max(initial=0)), 0)

    shown: list[int] = []
    return Script("A", reads=reads).scores({"a": 10, "b": 20}, scaled=True).writing(summarise=summarise), shown


def test_scores_that_pods_cannot_change_are_summarised_once_until_other_nodes_fit() -> None:
    script, shown = summaries_counted(Reads.NODE)
    room = Script("F", reads=Reads.NODE_AND_ITS_PODS).filters(lambda _name, pods: NO if len(pods) > 1 else SUCCESS)
    scene = bare(room, script)
    evaluator = scene.evaluator()

    def totals() -> list[int]:
        return evaluator.score(evaluator.evaluate(pod("p").build())).tolist()

    assert (totals(), shown) == ([50, 100], [2])
    scene.place(pod("x"), "b")
    assert (totals(), shown) == ([50, 100], [2]), "a pod more, and all nodes still fit"
    scene.place(pod("y"), "b")
    assert (totals(), shown) == ([100, NOT_FEASIBLE], [2, 1])
    scene.cluster.remove_pod("uid-y")
    assert (totals(), shown) == ([50, 100], [2, 1, 2])


def test_scores_that_pods_change_are_summarised_each_time_and_a_row_is_written_where_the_highest_stays() -> None:
    script, shown = summaries_counted(Reads.NODE_AND_ITS_PODS)
    script.told["rating"] = lambda name, pods: 20 if name == "a" else 5 * len(pods)
    scene = bare(script)
    evaluator = scene.evaluator()
    found = []
    for name in "xyzuvw":
        found.append(evaluator.score(evaluator.evaluate(pod("p").build())).tolist())
        scene.place(pod(name), "b")
    assert found == [[100, 0], [100, 25], [100, 50], [100, 75], [100, 100], [80, 100]]
    assert shown == [2] * 6


def test_one_plugin_whose_scores_pods_change_is_reason_enough_to_sum_up_again() -> None:
    crowd = Script("A", reads=Reads.NODE_AND_ITS_PODS).scores(lambda _name, pods: 10 + len(pods), scaled=True)
    scene = bare(crowd, Script("B").scores({"a": 1}, scaled=True), Script("C", reads=Reads.NODE_AND_ITS_PODS).scores())
    evaluator = scene.evaluator()
    assert evaluator.score(evaluator.evaluate(pod("p").build())).tolist() == [200, 100]
    for name in "uvwxy":
        scene.place(pod(name), "b")
    assert evaluator.score(evaluator.evaluate(pod("q").build())).tolist() == [100 + 66, 100]


def test_where_no_row_changed_the_totals_are_those_of_before() -> None:
    script, _ = summaries_counted(Reads.NODE)
    evaluator = bare(script).evaluator()
    first, second = (evaluator.evaluate(pod(name).build()) for name in "pq")
    evaluator.score(first)
    evaluator.score(second)
    assert first.columns is second.columns
    assert first.columns.totals is second.columns.totals


# --- when something breaks in between -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["filter", "score"])
def test_a_row_that_could_not_be_asked_about_is_asked_about_the_next_time(method: str) -> None:
    first = Script("A", reads=Reads.NODE_AND_ITS_PODS).filters().scores(lambda _name, pods: len(pods))
    second = Script("B", reads=Reads.NODE_AND_ITS_PODS).filters().scores(lambda _name, pods: 10 * len(pods))
    scene = bare(first, second)
    evaluator = scene.evaluator()
    evaluator.score(evaluator.evaluate(pod("p").build()))
    right = second.told[method]
    scene.place(pod("x"), "a")
    second.told[method] = ValueError("eh")
    with pytest.raises(CycleError, match="eh"):
        evaluator.score(evaluator.evaluate(pod("q").build()))
    second.told[method] = right
    assert evaluator.score(evaluator.evaluate(pod("r").build())).tolist() == [11, 0]


def test_a_score_out_of_range_is_told_each_time_until_the_node_changes() -> None:
    script = Script("A", reads=Reads.NODE_AND_ITS_PODS).scores(lambda _name, pods: 60 * len(pods))
    scene = bare(script)
    evaluator = scene.evaluator()
    evaluator.score(evaluator.evaluate(pod("p").build()))
    scene.place(pod("x"), "a").place(pod("y"), "a")
    for _ in range(2):
        with pytest.raises(InvalidScoreError, match="invalid score 120"):
            evaluator.score(evaluator.evaluate(pod("q").build()))
    scene.cluster.remove_pod("uid-y")
    assert evaluator.score(evaluator.evaluate(pod("r").build())).tolist() == [60, 0]


# --- any history ----------------------------------------------------------------------------------------------------------------------


class Plain:
    """Numbers on nodes and pods beside them; plugins that read these, and the same sums written out node by node."""

    WEIGHTS = {"Mark": 2, "Crowd": 3, "Sum": 1, "Wide": 5, "Anew": 4}  # noqa: RUF012 - read only

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.marks: dict[str, int] = {}
        self.pods: dict[str, str] = {}
        scripts = [
            Script("Mark").filters(lambda name, _: NO if self.marks[name] % 5 == 0 else SUCCESS).scores(self.mark, scaled=True),
            Script("Crowd", reads=Reads.NODE_AND_ITS_PODS).filters(lambda _, pods: NO if len(pods) > 2 else SUCCESS)
            .scores(lambda _, pods: 10 * len(pods), reverse=True).pre_scores(lambda _state, pod, *_: SKIP if self.calm(pod) else SUCCESS),
            Script("Sum", reads=Reads.NODE_AND_ITS_PODS).scores(lambda name, pods: self.marks[name] + len(pods)),
            Script("Wide", reads=Reads.CLUSTER).filters(lambda name, _: NO if self.wide(name) % 7 == 0 else SUCCESS)
            .scores(lambda name, _: self.wide(name), scaled=True).fingerprints(lambda *_: (len(self.pods), tuple(self.marks.items()))),
            Script("Anew", reads=Reads.CLUSTER).scores(lambda name, _: self.wide(name) % 11),
            Script("Named").pre_filters(lambda _state, pod, _cluster: PreFilterResult(nodes=self.named(pod))),
        ]  # fmt: skip
        for script in scripts:
            script.signs(lambda pod: (self.calm(pod), self.named(pod)))
        self.scene = bare(*scripts, nodes="", weights=self.WEIGHTS)
        self.scene.cluster.node_journal, self.scene.cluster.pod_journal = Journal(keep=3), Journal(keep=4)
        for name in ("n0", "n1", "n2"):
            self.marks[name] = 1 + dice.randrange(4)
            self.scene.with_nodes(node(name))

    def mark(self, name: str, _pods: Any) -> int:
        return self.marks[name]

    def wide(self, name: str) -> int:
        return 3 * self.marks[name] + len(self.pods)

    @staticmethod
    def calm(pod: PodInfo) -> bool:
        return "calm" in pod.labels

    @staticmethod
    def named(pod: PodInfo) -> frozenset[NodeName] | None:
        return frozenset(map(NodeName, pod.labels["only"].split("."))) if "only" in pod.labels else None

    # --- what happens --------------------------------------------------------------------------------------------------------

    def happen(self) -> None:
        name, came = f"n{self.dice.randrange(5)}", self.dice.choice("stuvwxyz")
        match self.dice.randrange(12):
            case 0:
                self.marks[name] = self.dice.randrange(40)
                self.scene.with_nodes(node(name))
            case 1 if name in self.marks and self.dice.random() < 0.4:
                del self.marks[name]
                self.scene.cluster.remove_node(NodeName(name))
            case 2 | 3 | 4 | 5 | 6 if came not in self.pods:
                self.pods[came] = name
                self.scene.place(pod(came), name)
            case _:
                self.pods.pop(came, None)
                self.scene.cluster.remove_pod(f"uid-{came}")

    def pending(self) -> PodInfo:
        labels = ({"calm": ""} if self.dice.random() < 0.3 else {}) | ({"only": "n0.n2.n3"} if self.dice.random() < 0.3 else {})
        return pod("p", labels=labels).build()

    # --- node by node --------------------------------------------------------------------------------------------------------

    def fits(self, asked: PodInfo) -> set[str]:
        crowd, named = list(self.pods.values()), self.named(asked)
        return {
            name for name, mark in self.marks.items()
            if mark % 5 and crowd.count(name) <= 2 and self.wide(name) % 7 and (named is None or name in named)
        }  # fmt: skip

    def totals(self, asked: PodInfo, among: set[str]) -> dict[str, int]:
        crowd = list(self.pods.values())
        raw = {name: {"Mark": self.marks[name], "Crowd": 10 * crowd.count(name), "Wide": self.wide(name)} for name in among}
        most = {plugin: max((of[plugin] for of in raw.values()), default=0) for plugin in ("Mark", "Crowd", "Wide")}
        found = {}
        for name, of in raw.items():
            part = {plugin: 100 * of[plugin] // most[plugin] if most[plugin] else 0 for plugin in most}
            part |= {"Crowd": 0 if self.calm(asked) else 100 - part["Crowd"]}
            part |= {"Sum": self.marks[name] + crowd.count(name), "Anew": of["Wide"] % 11}
            found[name] = sum(self.WEIGHTS[plugin] * score for plugin, score in part.items())
        return found


def assert_evaluated_as_summed(world: Plain, evaluator: Evaluator) -> None:
    asked, cluster = world.pending(), world.scene.cluster
    evaluation = evaluator.evaluate(asked)
    left = world.fits(asked)
    assert {str(cluster.names[row]) for row in np.flatnonzero(evaluation.feasible)} == left
    rejected = [str(cluster.names[row]) for _, rows in evaluator.diagnose(evaluation).rejections for row in rows]
    assert sorted(rejected) == sorted(world.marks.keys() - left) if evaluation.refusal is None else not left
    if world.dice.random() < 0.3:  # as where a profile wants only a sample of nodes scored
        left = {name for name in sorted(left) if world.dice.random() < 0.5}
        evaluation.feasible = np.array([name in left for name in cluster.names], np.bool_)
    totals = evaluator.score(evaluation)
    assert {str(cluster.names[row]): totals[row] for row in evaluation.rows} == world.totals(asked, left)
    assert (totals == NOT_FEASIBLE).sum() == cluster.size - len(left)


@settings(max_examples=cases(30))
@given(st.integers(0, 2**32))
def test_columns_kept_through_any_history_are_the_sums_over_nodes(seed: int) -> None:
    world = Plain(random.Random(seed))
    evaluator = world.scene.evaluator()
    evaluator.kept.budget.limit = world.dice.choice((1, 100, 1 << 30))
    for _ in range(30):
        for _ in range(world.dice.choice((0, 1, 1, 1, 2, 7))):
            world.happen()
        assert_evaluated_as_summed(world, evaluator)
