"""DefaultPreemption: who has to leave, where, and what is said when nobody can."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError
from placewright.framework.events import QueueingHint
from placewright.framework.interface import BoolColumn, CycleState, Diagnosis, FilterPlugin, Reads, Rejection, Rows
from placewright.framework.status import SUCCESS, Code, unresolvable, unschedulable
from placewright.plugins.defaultpreemption.plugin import DefaultPreemption, DefaultPreemptionArgs
from placewright.profiles.arguments import read_args
from placewright.profiles.problem import ProfileError
from plugins.preempting import Scene, a_pod

APP = {"matchLabels": {"app": "web"}}
WEB = {"app": "web"}


def test_the_pod_of_lowest_priority_leaves_and_the_others_stay() -> None:
    scene = Scene().node("n", a_pod("low", 1), a_pod("high", 5))
    result = scene.attempt(a_pod("new", 10))
    assert (result.status, result.nominated_node) == (SUCCESS, "n")
    assert [victim.name for victim in result.victims] == ["low"]


def test_pods_of_equal_or_higher_priority_are_never_evicted() -> None:
    result = Scene().node("n", a_pod("equal", 10), a_pod("higher", 11)).attempt(a_pod("new", 10))
    assert result.victims == ()
    assert result.status.message == (
        "no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_of_equal_priorities_the_pod_that_started_last_leaves() -> None:
    scene = Scene().node("n", a_pod("old", start="02"), a_pod("young", start="09"), a_pod("middle", start="05"), cpu="3")
    assert scene.victims(a_pod("new", 10)) == ["young"]


def test_a_pod_that_has_not_reported_its_start_counts_as_the_youngest() -> None:
    assert Scene().node("n", a_pod("starting"), a_pod("young", start="28")).victims(a_pod("new", 10)) == ["starting"]


def test_an_illegible_start_time_counts_as_not_reported() -> None:
    assert Scene().node("n", a_pod("odd", start="99"), a_pod("young", start="28")).victims(a_pod("new", 10)) == ["odd"]


def test_an_unimportant_pod_stays_when_only_a_more_important_one_is_in_the_way() -> None:
    scene = Scene().node("n", a_pod("big", 5, "2"), a_pod("small", 1, "100m"), cpu="2100m")
    assert scene.victims(a_pod("new", 10, "2")) == ["big"]


def test_victims_are_named_most_important_first() -> None:
    scene = Scene().node("n", a_pod("a", 1, start="03", labels=WEB), a_pod("b", 7), a_pod("c", 1, start="01"), cpu="3").budget(APP)
    assert scene.victims(a_pod("new", 10, "3")) == ["b", "c", "a"]


def test_a_victim_that_is_leaving_already_is_not_evicted_again() -> None:
    scene = Scene().node("n", a_pod("leaving", 1, leaving="EvictionByEvictionAPI"), a_pod("staying", 1))
    result = scene.attempt(a_pod("new", 10, "2"))
    assert result.nominated_node == "n"
    assert [victim.name for victim in result.victims] == ["staying"]


# --- disruption budgets --------------------------------------------------------------------------------------------------------


def test_a_pod_under_a_budget_stays_and_a_more_important_one_leaves() -> None:
    scene = Scene().node("n", a_pod("free", 5), a_pod("protected", 1, labels=WEB)).budget(APP)
    assert scene.victims(a_pod("new", 10)) == ["free"]


def test_a_budget_is_broken_where_nothing_else_helps() -> None:
    scene = Scene().node("n", a_pod("protected", 1, "2", labels=WEB)).budget(APP)
    assert scene.victims(a_pod("new", 10)) == ["protected"]


def test_a_budget_that_still_allows_an_eviction_protects_all_but_its_most_important_pod() -> None:
    """The most important pod uses the allowance up, so that it is the one without protection."""
    scene = Scene().node("n", a_pod("first", 5, labels=WEB), a_pod("second", 1, labels=WEB)).budget(APP, allowed=1)
    assert scene.victims(a_pod("new", 10)) == ["first"]


@pytest.mark.parametrize(
    "covers_nobody",
    [
        {"selector": {}},
        {"selector": None},
        {"selector": {"matchExpressions": [{"key": "app", "operator": "Nonsense"}]}},
        {"selector": APP, "namespace": "elsewhere"},
        {"selector": APP, "disrupted": ["marked"]},
        {"selector": APP, "allowed": 1},
    ],
)
def test_a_budget_that_does_not_cover_the_pod_does_not_protect_it(covers_nobody: dict[str, Any]) -> None:
    scene = Scene().node("n", a_pod("other", 5), a_pod("marked", 1, labels=WEB)).budget(**covers_nobody)
    assert scene.victims(a_pod("new", 10)) == ["marked"]


def test_a_pod_without_labels_is_under_no_budget() -> None:
    absent = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    assert Scene().node("n", a_pod("bare", 1), a_pod("other", 5, labels=WEB)).budget(absent).victims(a_pod("new", 10)) == ["bare"]


def test_every_matching_budget_is_used_up_not_only_the_first() -> None:
    scene = Scene().node("n", a_pod("a", 6, labels=WEB), a_pod("b", 5, labels=WEB | {"tier": "x"}), a_pod("c", 1), cpu="3")
    scene.budget({"matchLabels": {"tier": "x"}}, allowed=5, name="wide").budget(APP, allowed=1, name="narrow")
    assert scene.victims(a_pod("new", 10, "2")) == ["a", "c"]


# --- which node ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        pytest.param([("w", 1, "2", WEB)], [("b", 9, "2", {})], id="fewer broken budgets"),
        pytest.param([("w", 5, "2", {})], [("b1", 4, "1", {}), ("b2", 4, "1", {})], id="a less important top victim"),
        pytest.param([("w1", 5, "1", {}), ("w2", 4, "1", {})], [("b1", 5, "1", {}), ("b2", 1, "1", {})], id="a smaller sum of priorities"),
        pytest.param([("w1", 5, "1", {}), ("w2", -(2**31), "1", {})], [("b", 5, "2", {})], id="fewer victims"),
    ],
)
def test_the_node_is_chosen_by(worse: list[tuple[Any, ...]], better: list[tuple[Any, ...]]) -> None:
    """The worse node's name comes first, so that it would win a tie."""
    scene = Scene().budget(APP)
    for name, running in (("a-worse", worse), ("b-better", better)):
        scene.node(name, *[a_pod(n, priority, cpu, labels=labels) for n, priority, cpu, labels in running])
    assert scene.attempt(a_pod("new", 10, "2")).nominated_node == "b-better"


def test_the_node_is_chosen_whose_top_victims_started_last() -> None:
    scene = Scene()
    scene.node("a", a_pod("a1", 5, start="02"), a_pod("a2", 5, start="20"), a_pod("a3", 1, start="25"), cpu="3")
    scene.node("b", a_pod("b1", 5, start="03"), a_pod("b2", 5, start="19"), a_pod("b3", 1, start="01"), cpu="3")
    assert scene.attempt(a_pod("new", 10, "3")).nominated_node == "b"


@pytest.mark.parametrize("names", ["abc", "cba", "bac"])
def test_where_all_criteria_tie_the_first_name_wins(names: str) -> None:
    scene = Scene()
    for name in names:
        scene.node(name, a_pod(f"on-{name}", 1, "2", start="01"))
    assert scene.attempt(a_pod("new", 10)).nominated_node == "a"


# --- how many nodes are tried --------------------------------------------------------------------------------------------------


def many_nodes(count: int, **kwargs: Any) -> Scene:
    scene = Scene(args={"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}, **kwargs)
    for i in range(count):
        scene.node(f"n{i:03}", a_pod(f"p{i}", 1, "2", labels=WEB, start="01"))
    return scene


def test_the_search_begins_at_a_random_node_and_ends_with_enough_candidates() -> None:
    evaluator, evaluation, diagnosis = many_nodes(50).diagnosed(a_pod("new", 10))
    chosen = {evaluator.runtime.run_post_filter(evaluation.state, a_pod("new", 10), diagnosis).nominated_node for _ in range(20)}
    assert len(chosen) > 5


def test_two_runs_with_one_seed_choose_alike() -> None:
    one, other = (many_nodes(50).attempt(a_pod("new", 10)).nominated_node for _ in range(2))
    assert one == other


def test_the_search_goes_on_while_every_candidate_breaks_a_budget() -> None:
    scene = many_nodes(150).budget(APP)
    scene.node("unprotected", a_pod("p", 9, "2"))
    evaluator, evaluation, diagnosis = scene.diagnosed(a_pod("new", 10))
    for _ in range(5):
        assert evaluator.runtime.run_post_filter(evaluation.state, a_pod("new", 10), diagnosis).nominated_node == "unprotected"


def test_no_more_candidates_that_break_a_budget_are_compared_than_are_wanted() -> None:
    scene = many_nodes(50).budget(APP).node("cheapest", a_pod("p", 0, "2", labels=WEB))
    evaluator, evaluation, diagnosis = scene.diagnosed(a_pod("new", 10))
    chosen = {evaluator.runtime.run_post_filter(evaluation.state, a_pod("new", 10), diagnosis).nominated_node for _ in range(20)}
    assert len(chosen) > 5


@pytest.mark.parametrize(("nodes", "wanted"), [(50, 50), (100, 100), (500, 100), (1000, 100), (5000, 500)])
def test_a_tenth_of_the_nodes_but_at_least_a_hundred_are_wanted(nodes: int, wanted: int) -> None:
    assert DefaultPreemptionArgs().candidates_wanted(nodes) == wanted


# --- who may preempt -----------------------------------------------------------------------------------------------------------


def test_a_pod_whose_policy_is_never_does_not_preempt_and_keeps_its_nomination() -> None:
    result = Scene().node("n", a_pod("low", 0, "2")).attempt(a_pod("new", 10, spec={"preemptionPolicy": "Never"}))
    assert result.status.message == "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert result.nominated_node is None


def test_a_pod_waits_for_its_earlier_victims_to_leave() -> None:
    scene = Scene().node("n", a_pod("victim", 1, "2", leaving="PreemptionByScheduler")).node("m", a_pod("low", 1, "2"))
    result = scene.attempt(a_pod("new", 10, nominated="n"))
    assert result.status.reasons[-1] == "preemption: not eligible due to a terminating pod on the nominated node."
    assert result.nominated_node is None


def marked_but_not_leaving() -> PodInfo:
    leaving = a_pod("d", 1, "2", leaving="PreemptionByScheduler").pod
    return PodInfo(msgspec.structs.replace(leaving, metadata=msgspec.structs.replace(leaving.metadata, deletion_timestamp=None)))


@pytest.mark.parametrize(
    "unrelated",
    [
        a_pod("a", 1, "2", leaving="EvictionByEvictionAPI"),
        a_pod("b", 10, "2", leaving="PreemptionByScheduler"),
        a_pod("c", 1, "2"),
        marked_but_not_leaving(),
    ],
    ids=["leaves for another reason", "is as important", "stays", "is marked but was never deleted"],
)
def test_a_pod_does_not_wait_for_one_that(unrelated: PodInfo) -> None:
    scene = Scene().node("n", unrelated).node("m", a_pod("low", 0, "2"))
    assert scene.attempt(a_pod("new", 10, nominated="n")).nominated_node == "m"


def test_a_pod_does_not_wait_when_its_nominated_node_has_become_hopeless() -> None:
    scene = Scene().node("n", a_pod("victim", 1, "2", leaving="PreemptionByScheduler"), unschedulable=True).node("m", a_pod("low", 1, "2"))
    assert scene.attempt(a_pod("new", 10, nominated="n")).nominated_node == "m"


def test_a_nominated_node_that_is_gone_is_no_reason_to_wait() -> None:
    assert Scene().node("m", a_pod("low", 1, "2")).attempt(a_pod("new", 10, nominated="gone")).nominated_node == "m"


# --- what is said --------------------------------------------------------------------------------------------------------------


def test_nodes_where_preemption_cannot_help_are_counted_and_the_nomination_is_cleared() -> None:
    scene = Scene().node("closed", a_pod("low", 1), unschedulable=True).node("full", a_pod("equal", 10, "2")).node("small", cpu="500m")
    result = scene.attempt(a_pod("new", 10))
    assert result.status.code is Code.UNSCHEDULABLE
    assert result.status.reasons == (
        "no new claims to deallocate",
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
    )
    assert result.nominated_node == ""


def test_the_reasons_that_remain_with_everybody_gone_are_given() -> None:
    scene = Scene().node("n", a_pod("low", 1), a_pod("boss", 20, "1500m"), cpu="2500m").node("m", a_pod("other-boss", 20, "2"))
    assert scene.attempt(a_pod("new", 10, "2")).status.reasons[-1] == (
        "preemption: 0/2 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod."
    )


def test_when_prefilter_rejected_the_pod_everywhere_every_other_node_is_tried() -> None:
    scene = Scene().node("n", a_pod("low", 1, "2")).node("m", a_pod("lower", 0, "2"))
    evaluator, evaluation, _ = scene.diagnosed(a_pod("new", 10))
    spoken_for = [Rejection(unresolvable("no"), np.array([scene.cluster.row(NodeName("m"))], np.intp))]
    diagnosis = Diagnosis(2, spoken_for, absent=unschedulable("not now"))
    assert evaluator.runtime.run_post_filter(evaluation.state, a_pod("new", 10), diagnosis).nominated_node == "n"


def test_when_prefilter_rejected_the_pod_for_good_no_node_is_tried() -> None:
    scene = Scene().node("n", a_pod("low", 1, "2"))
    evaluator, evaluation, _ = scene.diagnosed(a_pod("new", 10))
    result = evaluator.runtime.run_post_filter(evaluation.state, a_pod("new", 10), Diagnosis(1, absent=unresolvable("never")))
    assert result.status.reasons[-1] == "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


# --- beside others -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("priority", "chosen"), [(10, "other"), (11, "other"), (9, "spoken-for")])
def test_room_that_was_made_for_a_pod_of_at_least_this_priority_is_not_taken(priority: int, chosen: str) -> None:
    scene = Scene().node("spoken-for", a_pod("low", 1, "2")).node("other", a_pod("dear", 5, "2"))
    scene.nominated[NodeName("spoken-for")] = [a_pod("earlier", priority, "2")]
    assert scene.attempt(a_pod("new", 10, "2")).nominated_node == chosen


def test_a_pods_own_earlier_nomination_does_not_stand_in_its_way() -> None:
    scene = Scene().node("n", a_pod("low", 1, "2"))
    preemptor = a_pod("new", 10, "2", nominated="n")
    scene.nominated[NodeName("n")] = [preemptor]
    assert scene.attempt(preemptor).nominated_node == "n"


class Fragile(FilterPlugin):
    """Breaks when it is asked about a node without pods."""

    name = "Fragile"
    reads = Reads.NODE_AND_ITS_PODS

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        if (cluster.pod_count[rows] == 0).any():
            raise CycleError("broken")
        return np.ones(len(rows), np.bool_)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        return []


def test_an_error_during_the_trial_is_an_error_and_leaves_everything_as_it_was() -> None:
    scene = Scene(extra=(Fragile,)).node("n", a_pod("low", 1, "2"))
    evaluator, evaluation, diagnosis = scene.diagnosed(a_pod("new", 10))
    filters = evaluator.runtime.filter
    evaluator.runtime.filter = (*filters, Fragile(None, filters[0].handle))
    before = picture(scene.cluster)
    result = evaluator.runtime.run_post_filter(evaluation.state, a_pod("new", 10), diagnosis)
    assert result.status.code is Code.ERROR
    assert result.status.message == "preemption: broken"
    assert picture(scene.cluster) == before


def picture(cluster: Cluster) -> tuple[Any, ...]:
    """Everything that a trial changes on the way."""
    resources = {name: cluster.resources.column(name).requested.tolist() for name in cluster.resources.names()}
    groups = {group: dict(cluster.pairwise_counts.rows(group)) for group in cluster.pairwise_counts}
    counts = (cluster.pod_count.tolist(), cluster.scoring_cpu.tolist(), cluster.scoring_memory.tolist())
    journals = (cluster.node_journal.position, cluster.pod_journal.position)
    return resources, groups, counts, journals, sorted(placement.pod.key for placement in cluster.placements())


def test_an_attempt_changes_nothing() -> None:
    scene = many_nodes(10).budget(APP)
    scene.node("n", a_pod("a", 1, "1"), a_pod("b", 2, "1", labels=WEB))
    before = picture(scene.cluster)
    assert scene.attempt(a_pod("new", 10)).status.ok
    assert picture(scene.cluster) == before


# --- the plugin in its profile -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percentage", "absolute", "wrong"),
    [
        (10, 100, []),
        (0, 1, []),
        (100, 0, []),
        (-1, 1, ["minCandidateNodesPercentage"]),
        (101, 1, ["minCandidateNodesPercentage"]),
        (1, -1, ["minCandidateNodesAbsolute"]),
        (0, 0, ["minCandidateNodesPercentage"]),
    ],
)
def test_arguments_out_of_range_are_named(percentage: int, absolute: int, wrong: list[str]) -> None:
    given, found = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}, []
    try:
        read_args(DefaultPreemption, given)
    except ProfileError as error:
        found = [problem.path for problem in error.problems]
    assert found == wrong


def test_no_event_of_its_own_brings_a_pod_back() -> None:
    plugin = next(p for p in Scene().node("n").evaluator().runtime.post_filter if isinstance(p, DefaultPreemption))
    assert [interest.hint(a_pod("new"), a_pod("gone"), None) for interest in plugin.events()] == [QueueingHint.SKIP]
