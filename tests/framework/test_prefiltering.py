"""What PreFilter plugins make of a pod together: which nodes are left, who refuses, who is skipped, and what is asked only once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework.makers import names
from framework.scripts import Script, bare
from placewright.framework.errors import CycleError
from placewright.framework.interface import CycleState, PreFilterResult, Reads
from placewright.framework.runtime.evaluation import Evaluation
from placewright.framework.runtime.podcolumns import rows_named
from placewright.framework.runtime.rowrejections import outside
from placewright.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable, unschedulable
from placewright.testing import node, pod

PENDING = Status(Code.PENDING, ("wait for me",))


def evaluated(*scripts: Script, nodes: str = "a b c") -> Evaluation:
    return bare(*scripts, nodes=nodes).evaluator().evaluate(pod("p").build())


# --- which nodes are left -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "left", "narrowed_by"),
    [
        (None, None, None, ()),
        ("a b", None, {"a", "b"}, ("A",)),
        (None, "b c", {"b", "c"}, ("B",)),
        ("a b", "b c", {"b"}, ("A", "B")),
        ("a b", "a b c", {"a", "b"}, ("A", "B")),
        ("a gone", None, {"a", "gone"}, ("A",)),
    ],
)
def test_only_nodes_that_every_plugin_names_are_left(
    first: str | None, second: str | None, left: set[str] | None, narrowed_by: tuple[str, ...]
) -> None:
    found = evaluated(Script("A").pre_filters(nodes=first), Script("B").pre_filters(nodes=second))
    assert (found.candidates, found.narrowed_by) == (left, narrowed_by)
    assert found.count == (3 if left is None else len(left - {"gone"}))
    assert found.refusal is None


@pytest.mark.parametrize("code", [Code.SKIP, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE])
def test_the_nodes_of_a_plugin_that_does_not_agree_to_the_pod_are_not_heard(code: Code) -> None:
    """As in kube-scheduler: what comes with a skip or a rejection is ignored."""
    found = evaluated(Script("A").pre_filters(Status(code, ("why",)), nodes="a"), Script("B").pre_filters())
    assert (found.candidates, found.narrowed_by) == (None, ())
    assert found.count == (3 if code is Code.SKIP else 0)


def test_an_empty_set_with_a_skip_refuses_nobody() -> None:
    assert evaluated(Script("A").pre_filters(SKIP, nodes="")).count == 3


def test_once_no_node_is_left_nobody_else_is_asked() -> None:
    first, second = Script("A").pre_filters(nodes=""), Script("B").pre_filters()
    found = evaluated(first, second)
    assert (found.refusal, found.candidates) == (unresolvable("node(s) didn't satisfy plugin A").by("A"), frozenset())
    assert second.calls == []


def test_plugins_that_leave_nothing_together_are_told_in_the_order_of_their_names_and_the_first_to_run_speaks() -> None:
    found = evaluated(Script("Zoe").pre_filters(nodes="a"), Script("Yan").pre_filters(nodes="a b"), Script("Adam").pre_filters(nodes="b"))
    assert found.refusal == unresolvable("node(s) didn't satisfy plugin(s) [Adam Yan Zoe] simultaneously").by("Zoe")
    assert found.narrowed_by == ("Zoe", "Yan", "Adam")


def test_nobody_left_goes_before_a_refusal_heard_earlier() -> None:
    found = evaluated(Script("A").pre_filters(unschedulable("no")), Script("B").pre_filters(nodes=""))
    assert found.refusal == unresolvable("node(s) didn't satisfy plugin B").by("B")


def test_a_node_that_is_named_and_not_there_is_passed_over() -> None:
    cluster = bare(nodes="a b").cluster
    assert names(cluster, rows_named(cluster, ["b", "gone"])) == {"b"}  # type: ignore[list-item]
    assert rows_named(cluster, []).tolist() == [False, False]


def test_who_narrowed_the_choice_is_told_in_the_order_of_their_names() -> None:
    assert outside(("B", "A")) == unresolvable("node(s) didn't satisfy plugin(s) [A B]")


def test_a_node_that_a_plugin_named_and_that_comes_later_may_help_although_no_other_node_was_left_out() -> None:
    """kube-scheduler, too, blames who named nodes, whether or not that left one out."""
    scene = bare(Script("A").pre_filters(nodes="a gone"), Script("B").filters({"a": unschedulable("full")}), nodes="a")
    evaluator = scene.evaluator()
    diagnosis = evaluator.diagnose(evaluator.evaluate(pod("p").build()))
    assert diagnosis.unschedulable_plugins == {"A", "B"}
    assert [status for status, _ in diagnosis.rejections] == [unschedulable("full").by("B")]


# --- who refuses ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "asked", "refusal"),
    [
        ([SUCCESS, SUCCESS, SUCCESS], "ABC", None),
        ([SKIP, SUCCESS, SKIP], "ABC", None),
        ([unschedulable("1"), SUCCESS, SUCCESS], "ABC", unschedulable("1").by("A")),
        ([unschedulable("1"), unschedulable("2"), SKIP], "ABC", unschedulable("2").by("B")),
        ([SUCCESS, unresolvable("2"), unschedulable("3")], "AB", unresolvable("2").by("B")),
        ([unschedulable("1"), unresolvable("2"), SUCCESS], "AB", unresolvable("2").by("B")),
        ([PENDING, SUCCESS, SUCCESS], "ABC", PENDING.by("A")),
    ],
)
def test_a_pod_that_may_be_helped_is_shown_to_all_and_a_hopeless_one_to_no_more(
    answers: list[Status], asked: str, refusal: Status | None
) -> None:
    calls: list[Any] = []
    found = evaluated(*(Script(name, calls).pre_filters(answer) for name, answer in zip("ABC", answers, strict=True)))
    assert [plugin for plugin, _, _ in calls] == [*asked]
    assert found.refusal == refusal
    assert found.count == (3 if refusal is None else 0)
    assert found.feasible.shape == (3,)


def test_a_pod_that_is_refused_is_shown_to_no_filter() -> None:
    picky = Script("A").pre_filters(unschedulable("no")).filters()
    assert evaluated(picky).count == 0
    assert picky.asked("filter") == []


@pytest.mark.parametrize(("refusal", "pending"), [(unschedulable("no"), set()), (unresolvable("no"), set()), (PENDING, {"A"})])
def test_a_refusal_stands_for_all_nodes_and_blames_one_plugin(refusal: Status, pending: set[str]) -> None:
    evaluator = bare(Script("A").pre_filters(refusal), Script("B").pre_filters(nodes="a")).evaluator()
    diagnosis = evaluator.diagnose(evaluator.evaluate(pod("p").build()))
    assert (diagnosis.absent, diagnosis.prefilter_message) == (refusal.by("A"), refusal.message)
    assert (diagnosis.unschedulable_plugins, diagnosis.pending_plugins) == ({"A"}, pending)
    assert (diagnosis.rejections, diagnosis.node_count) == ([], 2)


@pytest.mark.parametrize("before", [SUCCESS, SKIP, unschedulable("no")])
def test_an_error_ends_the_attempt_whoever_spoke_before(before: Status) -> None:
    later = Script("C").pre_filters()
    with pytest.raises(CycleError, match=r'^running PreFilter plugin "B": out of ideas$'):
        evaluated(Script("A").pre_filters(before), Script("B").pre_filters(error("out of ideas")), later)
    assert later.calls == []


# --- who is skipped -------------------------------------------------------------------------------------------------------------------


def test_a_plugin_that_skips_is_not_asked_at_filter_and_others_are() -> None:
    skips, stays = Script("A").pre_filters(SKIP).filters({"a": unschedulable("no")}), Script("B").pre_filters().filters()
    scene = bare(skips, stays)
    evaluator = scene.evaluator()
    found = evaluator.evaluate(pod("p").build())
    assert (found.count, found.state.skip_filter, found.state.skip_score) == (2, {"A"}, set())
    assert (skips.asked("filter"), stays.asked("filter")) == ([], [("a", "b")])
    assert evaluator.diagnose(found).rejections == []
    assert evaluator.checker.check_row(pod("p").build(), 0) == SUCCESS


def test_a_skip_at_prefilter_keeps_nobody_from_scoring() -> None:
    both = Script("A").pre_filters(SKIP).filters({"a": unschedulable("no")}).scores({"a": 7})
    evaluator = bare(both).evaluator()
    assert evaluator.score(evaluator.evaluate(pod("p").build())).tolist() == [7, 0]


# --- what is asked once ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reads", "calls"), [(Reads.NODE, 1), (Reads.NODE_AND_ITS_PODS, 1), (Reads.CLUSTER, 3)])
def test_who_reads_no_more_than_a_node_is_asked_once_about_pods_that_look_alike(reads: Reads, calls: int) -> None:
    plugin = Script("A", reads=reads).pre_filters(nodes="a").filters()
    evaluator = bare(plugin).evaluator()
    assert [evaluator.evaluate(pod(name).build()).candidates for name in "pqr"] == [{"a"}] * 3
    assert len(plugin.asked("pre_filter")) == calls


def test_a_plugin_without_columns_is_asked_about_every_pod() -> None:
    plugin = Script("A").pre_filters()
    evaluator = bare(plugin).evaluator()
    for name in "pqr":
        evaluator.evaluate(pod(name).build())
    assert len(plugin.asked("pre_filter")) == 3


@pytest.mark.parametrize("reads", [Reads.NODE, Reads.CLUSTER])
def test_what_a_plugin_wrote_down_is_there_for_its_filter_also_when_prefilter_is_not_asked_again(reads: Reads) -> None:
    def remember(state: CycleState, pod: Any, _cluster: Any) -> PreFilterResult:
        state.write("A", f"seen {pod.name}")
        return PreFilterResult()

    def passes(state: CycleState, _pod: Any, _cluster: Any, rows: Any) -> Any:
        read.append(state.read("A", str))
        return np.ones(len(rows), np.bool_)

    read: list[str] = []
    plugin = Script("A", reads=reads).pre_filters(remember).filters()
    plugin.told["filter"] = passes
    scene = bare(plugin)
    evaluator = scene.evaluator()
    evaluator.evaluate(pod("p").build())
    scene.with_nodes(node("a").cordoned())
    evaluator.evaluate(pod("q").build())
    assert read == ["seen p", "seen p" if reads is Reads.NODE else "seen q"]


def test_a_refusal_is_kept_for_pods_that_look_alike_and_for_no_others() -> None:
    plugin = Script("A").pre_filters(unschedulable("no")).filters().signs(lambda pod: pod.labels.get("app"))
    evaluator = bare(plugin).evaluator()
    for name, app in (("p", "web"), ("q", "web"), ("r", "db")):
        assert evaluator.evaluate(pod(name, labels={"app": app}).build()).refusal == unschedulable("no").by("A")
    assert len(plugin.asked("pre_filter")) == 2


def test_an_error_is_not_kept() -> None:
    plugin = Script("A").pre_filters(ValueError("eh")).filters()
    evaluator = bare(plugin).evaluator()
    with pytest.raises(CycleError, match='running PreFilter plugin "A": ValueError: eh'):
        evaluator.evaluate(pod("p").build())
    plugin.told["pre_filter"] = PreFilterResult()
    assert evaluator.evaluate(pod("p").build()).count == 2


def test_an_error_by_its_own_account_is_not_kept_either() -> None:
    plugin = Script("A").pre_filters(error("the disk is full")).filters()
    evaluator = bare(plugin).evaluator()
    with pytest.raises(CycleError, match="the disk is full"):
        evaluator.evaluate(pod("p").build())
    plugin.told["pre_filter"] = PreFilterResult()
    assert evaluator.evaluate(pod("p").build()).count == 2
