"""Single rows and many in step: what preemption's trials and nominated pods are told, and that nothing of it stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework.makers import Scene
from framework.scripts import Script, bare
from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import PreFilterResult, Reads, RowChecks
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.rowchecks import NoNominations
from placewright.framework.runtime.rowrejections import RowRejections
from placewright.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from placewright.testing import node, pod

FULL = unschedulable("node(s) were full")
PODS = Reads.NODE_AND_ITS_PODS


def room_for(most: int, name: str = "Room", reads: Reads = PODS, **more: Any) -> Script:
    """A filter that takes so many pods on a node."""
    return Script(name, reads=reads).filters(lambda _node, pods: FULL if len(pods) >= most else SUCCESS, **more)


def nominate(scene: Scene, nodes: str, priority: int = 5) -> Scene:
    """One nominee for each of these nodes, called after it."""
    for name in nodes.split():
        scene.nominated[NodeName(name)] = [pod(f"nominee-{name}", priority=priority).build()]
    return scene


def by_row(rejections: RowRejections | None) -> dict[int, Status]:
    return {row: status for status, rows in rejections.grouped() for row in rows.tolist()} if rejections else {}


def told(scene: Scene, checks: RowChecks) -> tuple[dict[str, Status], set[str]]:
    """By node why not, and the nodes of which it cannot be told; no row is told of twice."""
    names = scene.cluster.names
    rejected = [(str(names[row]), status) for status, rows in checks.rejections for row in rows.tolist()]
    unsettled = [str(names[row]) for row in checks.unsettled.tolist()]
    everything = [*(name for name, _ in rejected), *unsettled]
    assert len(everything) == len(set(everything))
    return dict(rejected), set(unsettled)


# --- one row --------------------------------------------------------------------------------------------------------------------------


def test_a_row_is_rejected_by_the_first_filter_that_objects_and_under_its_name() -> None:
    first, second = Script("A").filters({"b": FULL}), Script("B").filters({"a": FULL, "b": unresolvable("never")})
    checker = bare(first, second, nodes="a b c").evaluator().checker
    assert [checker.check_row(pod("p").build(), row) for row in range(3)] == [FULL.by("B"), FULL.by("A"), SUCCESS]
    assert second.asked("filter") == [("a",), ("c",)]
    assert (first.asked("explain"), second.asked("explain")) == ([("b",)], [("a",)])


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (Script("A").pre_filters(unschedulable("no")), unschedulable("no").by("A")),
        (Script("A").pre_filters(nodes="b"), unresolvable("node(s) didn't satisfy plugin(s) [A]")),
        (Script("A").pre_filters(nodes="a b"), SUCCESS),
        (Script("A").pre_filters(nodes="gone"), unresolvable("node(s) didn't satisfy plugin(s) [A]")),
        (Script("A").pre_filters(nodes=""), unresolvable("node(s) didn't satisfy plugin A").by("A")),
        (Script("A").pre_filters(SKIP).filters({"a": FULL}), SUCCESS),
    ],
)
def test_what_prefilter_says_holds_for_a_row_too(script: Script, said: Status) -> None:
    assert bare(script).evaluator().checker.check_row(pod("p").build(), 0) == said


def test_an_error_of_prefilter_ends_the_check() -> None:
    with pytest.raises(CycleError, match='running PreFilter plugin "A": broken'):
        bare(Script("A").pre_filters(error("broken"))).evaluator().checker.check_row(pod("p").build(), 0)


def test_a_row_is_checked_as_it_is_supposed_to_be() -> None:
    scene = bare(room_for(1)).place(pod("x"), "a")
    evaluator, running = scene.evaluator(), next(iter(scene.cluster.pods_on(NodeName("a"))))
    asked = pod("p").build()
    assert evaluator.checker.check_row(asked, 0) == FULL.by("Room")
    with scene.cluster.dry_run_on_row(remove=[running], row=0):
        assert evaluator.checker.check_row(asked, 0) == SUCCESS
    with scene.cluster.dry_run_on_row(add=[pod("y").build()], row=1):
        assert evaluator.checker.check_row(asked, 1) == FULL.by("Room")
    assert [evaluator.checker.check_row(asked, row).ok for row in (0, 1)] == [False, True]


@pytest.mark.parametrize(("reads", "calls"), [(Reads.NODE, 1), (PODS, 1), (Reads.CLUSTER, 3)])
def test_prefilter_is_asked_once_for_all_rows_of_a_pod_by_who_reads_no_more_than_a_node(reads: Reads, calls: int) -> None:
    script = Script("A", reads=reads).pre_filters().filters()
    checker = bare(script, nodes="a b c").evaluator().checker
    asked = pod("p").build()
    for row in range(3):
        checker.check_row(asked, row)
    assert len(script.asked("pre_filter")) == calls
    checker.check_row(pod("p").build(), 0)
    assert len(script.asked("pre_filter")) == calls + 1, "another object may be another pod"


def test_a_check_leaves_kept_columns_alone() -> None:
    script = room_for(1)
    scene = bare(script)
    evaluator = scene.evaluator()
    evaluator.evaluate(pod("p").build())
    script.calls.clear()
    with scene.cluster.dry_run_on_row(add=[pod("x").build()], row=0):
        evaluator.checker.check_row(pod("p").build(), 0)
    assert evaluator.evaluate(pod("p").build()).count == 2
    assert script.asked("filter") == [("a",)], "by the check alone"


# --- beside nominated pods ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("priority", "crowded"), [(4, True), (5, True), (6, False)])
def test_pods_nominated_at_least_as_high_take_room(priority: int, crowded: bool) -> None:
    scene = nominate(bare(room_for(1)), "a")
    evaluator, asked = scene.evaluator(), pod("p", priority=priority).build()
    assert evaluator.checker.with_nominated_pods(asked, 0) == (FULL.by("Room") if crowded else None)
    assert evaluator.checker.check_row(asked, 0).ok is not crowded
    assert evaluator.evaluate(asked).feasible.tolist() == [not crowded, True]
    assert evaluator.checker.with_nominated_pods(asked, 1) is None


def test_a_nominee_that_is_assumed_by_now_counts_where_it_stands_and_not_twice() -> None:
    scene = nominate(bare(room_for(2)), "a")
    assert scene.evaluator().evaluate(pod("p").build()).count == 2
    scene.place(scene.nominated[NodeName("a")][0], "a")
    evaluator = scene.evaluator()
    assert evaluator.checker.with_nominated_pods(pod("p").build(), 0) is None
    assert evaluator.evaluate(pod("p").build()).count == 2


def test_a_nominee_beside_whom_there_is_room_takes_nothing() -> None:
    scene = nominate(bare(room_for(2)), "a")
    assert scene.evaluator().checker.with_nominated_pods(pod("p").build(), 0) == SUCCESS


def test_a_row_that_is_free_or_a_node_that_is_gone_has_no_nominees() -> None:
    scene = nominate(bare(room_for(1)), "a gone")
    evaluator = scene.evaluator()
    scene.cluster.remove_node(NodeName("a"))
    assert evaluator.checker.with_nominated_pods(pod("p").build(), 0) is None
    assert evaluator.evaluate(pod("p").build()).feasible.tolist() == [False, True]


def test_who_is_crowded_out_is_told_and_blamed() -> None:
    scene = nominate(bare(room_for(1), nodes="a b"), "b")
    evaluator = scene.evaluator()
    evaluation = evaluator.evaluate(pod("p").build())
    assert by_row(evaluation.with_nominated_pods) == {1: FULL.by("Room")}
    diagnosis = evaluator.diagnose(evaluation)
    assert [(status, rows.tolist()) for status, rows in diagnosis.rejections] == [(FULL.by("Room"), [1])]
    assert diagnosis.unschedulable_plugins == {"Room"}


def test_a_node_that_prefilter_left_out_is_not_tried_beside_its_nominees() -> None:
    script = room_for(1)
    scene = nominate(bare(Script("A").pre_filters(nodes="a"), script), "a b")
    evaluator = scene.evaluator()
    assert by_row(evaluator.evaluate(pod("p").build()).with_nominated_pods) == {0: FULL.by("Room")}
    assert by_row(evaluator.checker.rejected_with_nominated_pods(pod("p").build(), frozenset())) == {}


def test_a_verdict_that_no_plugin_gave_blames_none() -> None:
    """Beside the nominee other nodes are named than without it; upstream's PreFilter is not asked again then."""

    def name(_state: Any, _pod: Any, cluster: Cluster) -> PreFilterResult:
        return PreFilterResult(nodes=frozenset({NodeName("b")}) if cluster.pod_count.any() else None)

    scene = nominate(bare(Script("A", reads=Reads.CLUSTER).pre_filters(name).filters()), "a")
    evaluator = scene.evaluator()
    evaluation = evaluator.evaluate(pod("p").build())
    assert by_row(evaluation.with_nominated_pods) == {0: unresolvable("node(s) didn't satisfy plugin(s) [A]")}
    assert evaluator.diagnose(evaluation).unschedulable_plugins == set()


NAMES = "a b c d e f"
TRUSTS: list[tuple[str, Any]] = [
    ("reads pods", {}),
    ("judges apart", {"reads": Reads.CLUSTER, "apart": True}),
    ("has no judge", {"reads": Reads.CLUSTER, "apart": False}),
    ("reads all", {"reads": Reads.CLUSTER}),
]


@pytest.mark.parametrize("nominated", ["", "a", "b d f", "a b c d", NAMES])
@pytest.mark.parametrize(("kind", "filters"), TRUSTS)
def test_however_many_are_nominated_and_whatever_filters_read_the_same_are_crowded_out(kind: str, filters: Any, nominated: str) -> None:
    """From four rows on they are tried together, as far as the filters allow."""
    scene = nominate(bare(room_for(2, **filters), nodes=NAMES), nominated)
    for name in "bcd":
        scene.place(pod(f"x-{name}"), name)
    found = by_row(scene.evaluator().checker.rejected_with_nominated_pods(pod("p").build(), None))
    assert {str(scene.cluster.names[row]): status for row, status in found.items()} == {
        name: FULL.by("Room") for name in "bcd" if name in nominated.split()
    }, kind


@pytest.mark.parametrize("nominated", ["a", "a b c d"])
def test_a_pod_that_is_refused_only_beside_nominees_is_refused_on_their_nodes(nominated: str) -> None:
    """A PreFilter plugin that counts the pods of the whole cluster."""

    def count(_state: Any, _pod: Any, cluster: Cluster) -> PreFilterResult:
        return PreFilterResult(unschedulable("too many") if any(map(cluster.pods_on, filter(None, cluster.names))) else SUCCESS)

    crowd = Script("A", reads=Reads.CLUSTER).pre_filters(count).filters()
    scene = nominate(bare(crowd, nodes=NAMES), nominated)
    evaluator = scene.evaluator()
    rejected = by_row(evaluator.checker.rejected_with_nominated_pods(pod("p").build(), None))
    assert rejected == dict.fromkeys(range(len(nominated.split())), unschedulable("too many").by("A"))
    assert evaluator.evaluate(pod("p").build()).count == 6 - len(nominated.split())


# --- many rows in step ----------------------------------------------------------------------------------------------------------------


def crowded(*scripts: Script) -> tuple[Scene, Evaluator]:
    """Every node has one pod."""
    scene = bare(*scripts, nodes=NAMES)
    for name in NAMES.split():
        scene.place(pod(f"x-{name}"), name)
    return scene, scene.evaluator()


@pytest.mark.parametrize(("kind", "filters"), TRUSTS)
def test_rows_emptied_together_are_judged_each_as_if_it_alone_were(kind: str, filters: Any) -> None:
    scene, evaluator = crowded(room_for(1, **filters))
    trials = evaluator.checker.trials(pod("p").build())
    with scene.cluster.dry_run() as dry_run:
        dry_run.remove([(row, other) for row in (0, 2) for other in scene.cluster.pods_on(scene.cluster.names[row])])  # type: ignore[arg-type]
        rejected, unsettled = told(scene, trials.check(np.arange(4)))
    settled = kind in ("reads pods", "judges apart")
    assert rejected == (dict.fromkeys("bd", FULL.by("Room")) if settled else {})
    assert unsettled == (set() if settled else {*"abcd"})
    assert trials.rows_are_apart is (kind == "reads pods")


def test_a_filter_that_cannot_judge_apart_is_left_out_with_all_that_come_after_it() -> None:
    first, wide = Script("A").filters({"a": FULL}), Script("W", reads=Reads.CLUSTER).filters({"b": FULL})
    last = Script("Z").filters({"c": FULL})
    scene, evaluator = crowded(first, wide, last)
    assert told(scene, evaluator.checker.trials(pod("p").build()).check(np.arange(4))) == ({"a": FULL.by("A")}, {*"bcd"})
    assert (wide.calls, last.calls) == ([], [])


def test_a_row_is_told_of_by_the_first_filter_that_objects() -> None:
    first, second = Script("A").filters({"a": FULL}), Script("B").filters({"a": unresolvable("never"), "b": unresolvable("never")})
    scene, evaluator = crowded(first, second)
    rejected, unsettled = told(scene, evaluator.checker.trials(pod("p").build()).check(np.arange(3)))
    assert (rejected, unsettled) == ({"a": FULL.by("A"), "b": unresolvable("never").by("B")}, set())
    assert second.asked("filter") == [("b", "c")]


def test_a_filter_that_skips_is_no_judge_of_rows() -> None:
    scene, evaluator = crowded(Script("A", reads=Reads.CLUSTER).pre_filters(SKIP).filters({"a": FULL}))
    trials = evaluator.checker.trials(pod("p").build())
    assert trials.rows_are_apart
    assert told(scene, trials.check(np.arange(6))) == ({}, set())


def test_rows_outside_what_prefilter_names_are_told_who_left_them_out() -> None:
    scene, evaluator = crowded(Script("A").pre_filters(nodes="a c"), room_for(1))
    rejected, unsettled = told(scene, evaluator.checker.trials(pod("p").build()).check(np.array([0, 1, 5])))
    elsewhere = unresolvable("node(s) didn't satisfy plugin(s) [A]")
    assert (rejected, unsettled) == ({"a": FULL.by("Room"), "b": elsewhere, "f": elsewhere}, set())


def test_of_a_pod_that_is_refused_nothing_is_settled() -> None:
    script = Script("A").pre_filters(unschedulable("no")).filters({"a": FULL})
    scene, evaluator = crowded(script)
    assert told(scene, evaluator.checker.trials(pod("p").build()).check(np.arange(3))) == ({}, {*"abc"})
    assert script.asked("filter") == []


def test_prefilter_is_asked_before_anything_is_supposed_and_never_again() -> None:
    script = Script("A", reads=Reads.CLUSTER).pre_filters().filters(apart=True)
    _, evaluator = crowded(script)
    trials = evaluator.checker.trials(pod("p").build())
    for _ in range(3):
        trials.check(np.arange(6))
    assert (len(script.asked("pre_filter")), len(script.asked("judge"))) == (1, 1)


@pytest.mark.parametrize(("kind", "filters"), TRUSTS)
def test_rows_with_nominees_must_hold_the_pod_with_them_and_without(kind: str, filters: Any) -> None:
    """Rows a to d are emptied; a has one nominee, b two, and f, which stays as it is, one."""
    scene, _ = crowded(room_for(2, **filters))
    nominate(scene, "a f").nominated[NodeName("b")] = [pod("first", priority=5).build(), pod("second", priority=5).build()]
    evaluator, asked = scene.evaluator(), pod("p").build()
    trials = evaluator.checker.trials(asked)
    with scene.cluster.dry_run() as dry_run:
        dry_run.remove([(row, pod(f"x-{name}").build()) for row, name in enumerate("abcd")])
        rejected, unsettled = told(scene, trials.check(np.arange(6)))
        alone = {name: evaluator.checker.check_row(asked, row) for row, name in enumerate(NAMES.split())}
    assert alone == {"a": SUCCESS, "b": FULL.by("Room"), "c": SUCCESS, "d": SUCCESS, "e": SUCCESS, "f": FULL.by("Room")}
    if kind in ("reads pods", "judges apart"):
        assert (rejected, unsettled) == ({name: status for name, status in alone.items() if not status.ok}, set())
    else:
        assert (rejected, unsettled) == ({}, {*"abcdef"})
    assert not scene.cluster.dry_run_rows()


def test_a_filter_that_has_a_say_only_beside_nominees_leaves_their_rows_unsettled() -> None:
    """It skipped the pod as the cluster stood; with the nominees there it might not."""
    moody = Script("A", reads=PODS).filters(lambda _node, pods: FULL if pods else SUCCESS)
    moody.pre_filters(lambda _state, _pod, cluster: PreFilterResult(SUCCESS if cluster.pod_count.any() else SKIP))
    scene = nominate(bare(moody, nodes="a b c"), "b")
    evaluator = scene.evaluator()
    assert told(scene, evaluator.checker.trials(pod("p").build()).check(np.arange(3))) == ({}, {"b"})
    assert evaluator.checker.check_row(pod("p").build(), 1) == FULL.by("A")


def test_no_rows_are_told_nothing_about() -> None:
    scene, evaluator = crowded(room_for(1))
    nobody = np.zeros(0, np.intp)
    assert told(scene, evaluator.checker.trials(pod("p").build()).check(nobody)) == ({}, set())
    assert told(nominate(scene, "a"), scene.evaluator().checker.trials(pod("p").build()).check(nobody)) == ({}, set())


def test_an_error_in_a_trial_takes_back_what_was_supposed() -> None:
    script = room_for(2)
    scene = nominate(bare(script, nodes=NAMES), NAMES)
    trials = scene.evaluator().checker.trials(pod("p").build())
    script.told["filter"] = ValueError("eh")
    with pytest.raises(CycleError, match="eh"):
        trials.check(np.arange(6))
    assert scene.cluster.pod_count.tolist() == [0] * 6
    assert not scene.cluster.dry_run_rows()


# --- nobody is nominated --------------------------------------------------------------------------------------------------------------


def test_outside_a_running_scheduler_nobody_is_nominated() -> None:
    nobody = NoNominations()
    assert (list(nobody.nodes()), list(nobody.pods_on(NodeName("a"))), "p" in nobody.making_room_for) == ([], [], False)


def test_a_queue_without_nominations_is_asked_all_the_same() -> None:
    """An empty one is false; nominations that come later must be seen."""
    scene = bare(room_for(1))
    evaluator = scene.evaluator()
    assert evaluator.evaluate(pod("p").build()).count == 2
    nominate(scene, "a")
    assert evaluator.evaluate(pod("p").build()).count == 1
    scene.with_nodes(node("c"))
    profile = evaluator.runtime.profile
    alone = ProfileHandle(scene.cluster).evaluator(profile, scene.registry)
    assert alone.evaluate(pod("p").build()).count == 3
