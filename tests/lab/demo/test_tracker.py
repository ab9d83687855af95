"""What became of each pod, and when a run is over; on a clock that is only a number."""

from __future__ import annotations

from placewright.api.annotations import DECISION
from placewright.api.objects import ObjectMeta, Pod, PodSpec
from placewright_lab.demo.summary import State, Tracker

from .makers import a_pod, key, without_place

FULL = "0/1 nodes are available: 1 Insufficient cpu."


def tracker(*names: str) -> Tracker:
    made = Tracker([key(name) for name in names], quiet_seconds=4.0)
    for name in names:
        made.created(key(name), 0.0)
    return made


def test_a_run_is_not_over_while_a_pod_waits_for_its_first_decision_however_long_that_takes() -> None:
    run = tracker("a", "b")
    run.seen(a_pod("a", "n1"), 1.0)
    assert not run.finished(1000.0)


def test_a_pod_that_was_not_even_created_yet_keeps_the_run_open() -> None:
    run = Tracker([key("a"), key("b")])
    run.created(key("a"), 0.0)
    run.seen(a_pod("a", "n1"), 1.0)
    assert not run.finished(1000.0)


def test_a_run_is_over_at_once_when_every_pod_is_placed() -> None:
    run = tracker("a", "b")
    run.seen(a_pod("a", "n1"), 1.0)
    run.seen(a_pod("b", "n1"), 2.0)
    assert run.finished(2.0)


def test_with_a_pod_without_a_place_the_run_is_over_only_after_a_quiet_while() -> None:
    run = tracker("a", "b")
    run.seen(without_place("b", FULL), 1.0)
    run.seen(a_pod("a", "n1"), 5.0)
    assert not run.finished(8.9)
    assert run.finished(9.0)


def test_a_late_placement_starts_the_quiet_while_again() -> None:
    run = tracker("a", "b", "c")
    for name in "abc":
        run.seen(without_place(name, FULL), 0.0)
    assert run.finished(4.0)
    run.seen(a_pod("a", "n1"), 4.5)
    assert not run.finished(8.0)
    assert run.finished(8.5)


def test_the_same_refusal_told_again_does_not_keep_the_run_open() -> None:
    run = tracker("a")
    for second in range(4):
        run.seen(without_place("a", f"{FULL} ({second})"), float(second))
    assert run.finished(4.0)
    assert run.fates[key("a")].message == f"{FULL} (3)"


def test_a_gated_pod_is_settled_and_a_pod_whose_condition_says_neither_is_not() -> None:
    run = tracker("a")
    run.seen(without_place("a", "Scheduling is blocked", reason="SchedulingGated"), 0.0)
    assert run.finished(4.0)
    run.seen(without_place("a", "?", reason="SchedulerError"), 5.0)
    assert not run.finished(100.0)


def test_refused_and_deleted_pods_do_not_hold_up_the_run() -> None:
    run = tracker("a", "b")
    run.refused(key("a"), "refused by the API server: no", 1.0)
    run.gone(a_pod("b"), 1.0)
    assert run.finished(1.0)
    assert [fate.state for fate in run.fates.values()] == [State.REFUSED, State.GONE]


def test_a_placed_pod_stays_placed_whatever_comes_later() -> None:
    run = tracker("a")
    run.seen(a_pod("a", "n1", generation=1), 1.0)
    run.seen(a_pod("a", "n1", generation=2), 2.0)
    run.seen(without_place("a", FULL), 3.0)
    run.gone(a_pod("a", "n1"), 4.0)
    fate = run.fates[key("a")]
    assert (fate.state, fate.node, fate.bound) == (State.PLACED, "n1", 1.0)
    assert run.snapshot(5.0).generations == {("default", 1): 1}


def test_pods_of_others_are_not_counted() -> None:
    run = tracker("a")
    run.seen(a_pod("stranger", "n1"), 1.0)
    run.gone(a_pod("stranger"), 1.0)
    assert run.snapshot(2.0).placed == 0


def test_a_watch_that_is_faster_than_the_answer_to_the_creation_is_no_trouble() -> None:
    run = Tracker([key("a")])
    run.seen(a_pod("a", "n1", generation=3), 1.0)
    run.created(key("a"), 1.1)
    snapshot = run.snapshot(2.1)
    assert (snapshot.created, snapshot.placed, snapshot.generations) == (1, 1, {("default", 3): 1})
    assert run.finished(1.1)


def test_a_pod_that_is_seen_bound_before_the_answer_to_its_creation_was_not_bound_before_it_was_created() -> None:
    run = Tracker([key("a"), key("b")])
    run.seen(a_pod("a", "n1"), 1.0)
    run.created(key("a"), 1.5)
    run.created(key("b"), 2.0)
    run.seen(a_pod("b", "n1"), 4.0)
    assert run.times() == [(1.0, 1.0), (2.0, 4.0)]


def test_placements_without_a_readable_decision_count_for_generation_zero() -> None:
    run = tracker("a", "b")
    run.seen(a_pod("a", "n1"), 1.0)
    broken = ObjectMeta(name="b", namespace="default", annotations={DECISION: "{not json"})
    run.seen(Pod(metadata=broken, spec=PodSpec(node_name="n1")), 1.0)
    assert run.snapshot(1.0).generations == {("", 0): 2}


def test_the_snapshot_counts_time_and_rate_from_the_first_creation() -> None:
    run = Tracker([key("a"), key("b")])
    assert run.snapshot(50.0).elapsed == 0.0
    run.created(key("a"), 100.0)
    run.seen(a_pod("a", "n1"), 101.0)
    snapshot = run.snapshot(102.0)
    assert (snapshot.elapsed, snapshot.rate, snapshot.settled, snapshot.total) == (2.0, 0.5, 1, 2)
