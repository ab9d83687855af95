"""The assertions say what was expected, what is there, and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from placewright.testing import (
    World,
    assert_bound,
    assert_event,
    assert_evicted,
    assert_gated,
    assert_placed,
    assert_waiting,
    node,
    pod,
    profile,
    state_of,
)


def said(asserts: Callable[[], None]) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        asserts()
    return str(caught.value).splitlines()


def test_a_pod_without_a_node_is_told_with_each_node_s_reason() -> None:
    world = World(nodes=[node("a", cpu="1"), node("b").taint("gpu"), node("c", cpu="1").cordoned()])
    world.add(pod("web").requests(cpu="2"))
    assert said(lambda: assert_placed(world, "web", on="a")) == [
        "pod default/web: expected on node a, found in the queue: unschedulable",
        "  attempt 1: unschedulable",
        "  0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. "
        "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        "  a: NodeResourcesFit: Insufficient cpu",
        "  b: TaintToleration: node(s) had untolerated taint(s)",
        "  c: NodeUnschedulable: node(s) were unschedulable",
    ]


def test_a_pod_that_prefilter_rejects_is_told_for_every_node() -> None:
    world = World(nodes=[node("a"), node("b")]).add(pod("web").volume_claims("data"))
    lines = said(lambda: assert_placed(world, "web"))
    assert lines[0] == "pod default/web: expected on a node, found in the queue: unschedulable"
    assert [line.strip() for line in lines[-2:]] == [
        f'{name}: VolumeRestrictions: persistentvolumeclaim "data" not found' for name in ("a", "b")
    ]


def test_a_pod_on_another_node_is_told_with_the_scores_of_both() -> None:
    world = World(nodes=[node("a"), node("b", cpu="64")], profile=profile().only("NodeResourcesFit"))
    world.add(pod("web").requests(cpu="2"))
    # (64 - 2) / 64 is 96 percent of the CPUs, 2 of 4 are 50; memory is left whole but for the 200 MiB that count where a pod says nothing
    assert said(lambda: assert_bound(world, "web", on="a")) == [
        "pod default/web: expected bound to node a, found on node b",
        "  attempt 1: scheduled",
        "  b: score 97: NodeResourcesFit 97",
        "  a: score 74: NodeResourcesFit 74",
    ]


def test_one_feasible_node_is_not_scored() -> None:
    world = World(nodes=[node("a")]).add(pod("web"))
    assert state_of(world, "web").splitlines()[1:] == ["  attempt 1: scheduled", "  a: not scored, as it was the only feasible node"]


def test_a_pod_in_mid_binding_is_not_bound() -> None:
    world = World(nodes=[node("a")])
    world.binder.hold("web")
    world.add(pod("web"))
    assert_placed(world, "web")
    assert said(lambda: assert_bound(world, "web"))[0] == (
        "pod default/web: expected bound to a node, found on node a, its binding cycle not ended"
    )


def test_a_gated_pod_is_told_with_what_gates_it() -> None:
    world = World(nodes=[node("a")]).add(pod("web").gates("quota"))
    assert_gated(world, "web")
    assert said(lambda: assert_waiting(world, "web"))[:2] == [
        "pod default/web: expected waiting, found in the queue: gated",
        "  SchedulingGates: waiting for scheduling gates: [quota]",
    ]


def test_a_pod_that_waits_is_not_gated_and_waits_for_its_own_reason() -> None:
    world = World(nodes=[node("a", cpu="1")]).add(pod("web").requests(cpu="2"))
    assert_waiting(world, "web")
    assert said(lambda: assert_gated(world, "web"))[0] == "pod default/web: expected gated, found in the queue: unschedulable"
    assert said(lambda: assert_waiting(world, "web", because="memory"))[0].startswith(
        "pod default/web: expected waiting because of 'memory', found"
    )
    assert said(lambda: assert_waiting(world, "web", plugin="NodeName"))[0].startswith(
        "pod default/web: expected waiting rejected by NodeName, found"
    )


def test_a_pod_that_nobody_knows_is_asked_about() -> None:
    assert said(lambda: assert_placed(World(), "shop/web", on="a"))[0] == (
        "pod shop/web: expected on node a, found neither in the queue nor on a node: was it shown to this world?"
    )


def test_pods_of_two_namespaces_are_told_apart() -> None:
    world = World(nodes=[node("a")]).add(pod("web").namespace("shop"))
    assert_bound(world, "shop/web", on="a")
    assert said(lambda: assert_placed(world, "web"))


def test_an_event_that_is_missing_is_told_with_those_that_are_there() -> None:
    world = World(nodes=[node("a")]).add(pod("web"))
    assert_event(world, "web", "Scheduled", "to a")
    assert said(lambda: assert_event(world, "web", "Scheduled", "to b")) == [
        "pod web: expected an event Scheduled with 'to b', found",
        "  Normal Scheduled: Successfully assigned default/web to a",
    ]
    assert said(lambda: assert_event(world, "other", "Scheduled")) == ["pod other: expected an event Scheduled, found none"]


def test_victims_are_told_with_whom_they_leave_for() -> None:
    world = World(nodes=[node("a", cpu="1")], pods=[pod("low").requests(cpu="1").on("a")])
    assert_evicted(world)
    world.add(pod("high").requests(cpu="1").priority(10))
    assert said(lambda: assert_evicted(world)) == ["expected to be evicted: nobody; found", "  low on a, for high"]
