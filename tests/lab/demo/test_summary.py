"""The numbers at the end of a run."""

from __future__ import annotations

import pytest

from placewright.api.objects import Pod
from placewright_lab.demo.summary import State, Summary, Tracker, summarise
from placewright_lab.figures.figures import ResourceUse

from .makers import a_node, a_pod, key, without_place

NODES = [a_node("n1", cpu="4", memory="4Gi"), a_node("n2", cpu="2", memory="4Gi", gpu="1000")]


def run_of(*seen: tuple[Pod, float], quiet: float = 0.0) -> Summary:
    pods = {key(p.metadata.name): a_pod(p.metadata.name) for p, _ in seen}
    tracker = Tracker(pods)
    for name in pods:
        tracker.created(name, 0.0)
    for shown, when in seen:
        tracker.seen(shown, when)
    return summarise(tracker, NODES, pods)


def share(use: ResourceUse) -> tuple[float, ...]:
    """Nodes, empty nodes, min, mean, max and standard deviation."""
    return len(use.shares), use.empty, use.min, use.mean, use.max, use.deviation


def test_use_is_requested_over_allocatable_by_node() -> None:
    summary = run_of((a_pod("a", "n1", generation=1), 1.0), (a_pod("b", "n2", generation=1), 1.0))
    assert share(summary.use["cpu"]) == (2, 0, 0.25, 0.375, 0.5, 0.125)


def test_a_resource_is_counted_over_the_nodes_that_have_it() -> None:
    use = run_of((a_pod("a", "n1"), 1.0)).use
    assert share(use["gpu"]) == (1, 1, 0.0, 0.0, 0.0, 0.0)


def test_each_generation_of_each_profile_has_its_own_placements_and_use() -> None:
    summary = run_of(
        (a_pod("a", "n1", generation=1), 1.0),
        (a_pod("b", "n1", generation=2), 1.0),
        (a_pod("c", "n2", generation=2), 1.0),
        (a_pod("d", "n2", generation=1, profile="other"), 1.0),
        (a_pod("e", "n2"), 1.0),
    )
    found = [(g.profile, g.generation, g.placed, g.use["cpu"].max) for g in summary.generations]
    assert found == [("", 0, 1, 0.5), ("default", 1, 1, 0.25), ("default", 2, 2, 0.5), ("other", 1, 1, 0.5)]


def test_speed_is_from_the_first_creation_to_the_last_placement() -> None:
    speed = run_of(*((a_pod(f"p{i}", "n1"), 0.1 * (i + 1)) for i in range(10))).speed
    assert speed is not None
    assert speed.pods_per_second == pytest.approx(10.0)
    assert (speed.p50, speed.p99) == (pytest.approx(0.55), pytest.approx(0.991))


def test_nothing_placed_has_no_speed() -> None:
    summary = run_of((without_place("a", "no"), 1.0))
    assert summary.speed is None
    assert summary.use["cpu"].max == 0.0


def test_reasons_are_grouped_by_what_stood_in_the_way_most_frequent_first() -> None:
    summary = run_of(
        (without_place("a", "0/9 nodes are available: 9 Too many pods."), 1.0),
        (without_place("b", "0/9 nodes are available: 2 Insufficient cpu, 7 node(s) were unschedulable. preemption: x"), 1.0),
        (without_place("c", "0/9 nodes are available: 3 Insufficient cpu, 6 node(s) were unschedulable."), 1.0),
        (without_place("d", "no nodes available to schedule pods"), 1.0),
    )
    assert [(reason.what, reason.pods) for reason in summary.reasons] == [
        ("Insufficient cpu, node(s) were unschedulable", 2),
        ("Too many pods", 1),
        ("no nodes available to schedule pods", 1),
    ]
    assert summary.reasons[0].example.endswith("unschedulable. preemption: x")
    assert summary.states == {State.UNSCHEDULABLE: 4}


def test_a_message_without_end_is_cut() -> None:
    (reason,) = run_of((without_place("a", "x" * 100_000), 1.0)).reasons
    assert (len(reason.what), len(reason.example)) == (400, 400)


def test_a_run_is_honest_when_everybody_got_an_answer() -> None:
    assert run_of((a_pod("a", "n1"), 1.0), (without_place("b", "full"), 1.0)).honest
    assert not run_of((a_pod("a", "n1"), 1.0), (a_pod("b"), 1.0)).honest


def test_a_pod_on_a_node_that_we_did_not_make_counts_as_placed_and_for_no_nodes_use() -> None:
    summary = run_of((a_pod("a", "elsewhere"), 1.0))
    assert summary.states == {State.PLACED: 1}
    assert summary.use["cpu"].max == 0.0
