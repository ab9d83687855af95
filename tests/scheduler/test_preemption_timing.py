"""Preemption that waits for a time: refused, tried again when the time has come, in virtual time."""

from __future__ import annotations

from typing import Any

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState, Diagnosis, NoArgs, PostFilterPlugin, PostFilterResult
from placewright.framework.status import SUCCESS, unschedulable
from placewright.queue.queued import SubQueue
from placewright.testing import World, assert_bound, assert_evicted, assert_waiting, node, pod, profile


def world(**rules: Any) -> World:
    return World(nodes=[node("a", cpu="2")], profile=profile().spec(preemption=rules))


def running(name: str, started: str = "2026-01-01T00:00:00Z", **labels: str) -> Any:
    return pod(name, on="a", labels=labels).requests(cpu="1").status(startTime=started)


def important(name: str = "vip", priority: int = 100, cpu: str = "1") -> Any:
    return pod(name).requests(cpu=cpu).priority(priority)


def test_a_pod_preempts_when_it_has_waited_long_enough_and_not_before() -> None:
    stage = world(waitSeconds=45).add(running("x"), running("y"), important())
    assert_waiting(stage, "vip", because="preemption: not eligible due to spec.preemption.waitSeconds=45.")
    stage.advance(44)
    assert stage.evictor.evicted == []
    assert stage.place("vip") is SubQueue.UNSCHEDULABLE
    stage.advance(2)
    assert len(stage.evictor.evicted) == 1
    assert_bound(stage, "vip", on="a")


def test_a_pod_that_finds_room_while_it_waits_displaces_nobody() -> None:
    stage = world(waitSeconds=45).add(running("x"), running("y"), important()).advance(20)
    stage.remove("x")
    assert_bound(stage, "vip", on="a")
    assert stage.advance(600).evictor.evicted == []


def test_a_victim_leaves_when_it_has_run_long_enough() -> None:
    # The world's clock begins 100 s after 2026 does.
    stage = world(minRunSeconds=120).add(running("x", "2026-01-01T00:01:00Z"), running("y", "2026-01-01T00:01:30Z"), important())
    assert_waiting(stage, "vip", because="1 Victims have run less than spec.preemption.minRunSeconds=120")
    stage.advance(79)
    assert stage.evictor.evicted == []
    stage.advance(2)
    assert_evicted(stage, "x")
    assert_bound(stage, "vip", on="a")


def test_no_more_pods_leave_in_any_minute_than_the_profile_allows_and_the_most_important_come_first() -> None:
    nodes = [node(f"n{i}", cpu="1") for i in range(6)]
    low = [pod(f"low{i}", on=f"n{i}").requests(cpu="1") for i in range(6)]
    stage = World(nodes=nodes, profile=profile().spec(preemption={"maxEvictionsPerMinute": 2}))
    times: list[float] = []
    told = stage.cluster.told_to_leave
    stage.cluster.told_to_leave = lambda uid: (times.append(stage.now), told(uid))[1]  # type: ignore[method-assign, func-returns-value]
    stage.add(*low, *(important(f"vip{i}", 100 + i) for i in range(6)))
    assert len(stage.evictor.evicted) == 2
    assert_waiting(stage, "vip0", because="preemption: not eligible due to spec.preemption.maxEvictionsPerMinute=2.")
    stage.advance(59)
    assert len(stage.evictor.evicted) == 2
    stage.advance(11)
    assert len(stage.evictor.evicted) == 4
    stage.advance(70)
    assert len(stage.evictor.evicted) == 6
    assert all(sum(begin <= time < begin + 60 for time in times) <= 2 for begin in times)
    assert [each.pod.name for each in stage.log.attempts if each.schedule_result is not None] == [f"vip{i}" for i in range(5, -1, -1)]


def test_a_change_of_the_rules_has_waiting_pods_tried_again_at_once() -> None:
    stage = world(policy="Never").add(running("x"), running("y"), important())
    assert_waiting(stage, "vip", because="spec.preemption.policy=Never")
    stage.use(profile().generation(2))
    stage.advance(1)
    assert_bound(stage, "vip", on="a")


def test_a_time_that_was_stated_passes_without_effect_once_the_pod_is_gone_or_tried() -> None:
    stage = world(waitSeconds=45).add(running("x"), running("y"), important())
    assert len(stage.queue.wake_ups) == 1
    stage.remove("vip")
    assert (len(stage.queue.wake_ups), stage.queue.wake_ups.next) == (0, None)


class Ruthless(PostFilterPlugin[NoArgs]):
    """Evicts all pods of the node `a`, and asks no rules."""

    name = "Ruthless"

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        return PostFilterResult(SUCCESS, NodeName("a"), tuple(cluster.pods_on(NodeName("a"))))


class Patient(PostFilterPlugin[NoArgs]):
    """Makes no room, and wants to be asked again."""

    name = "Patient"

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        return PostFilterResult(unschedulable("a node is on its way"), retry_after=20.0)


def test_victims_of_a_plugin_that_asks_no_rules_are_held_to_them() -> None:
    def evicted(**rules: Any) -> list[str]:
        plain = profile().disable("DefaultPreemption").spec(preemption=rules)
        stage = World(Ruthless, nodes=[node("a", cpu="2")], profile=plain).add(running("x", app="web"), running("y"), important())
        if not stage.evictor.evicted:
            assert_waiting(stage, "vip", because="preemption: ")
        return [victim for victim, _, _ in stage.evictor.evicted]

    assert sorted(evicted()) == ["x", "y"]
    assert evicted(protect={"matchLabels": {"app": "web"}}) == []
    assert evicted(maxVictims=1) == []


def test_a_plugin_that_waits_for_a_time_is_asked_again_then() -> None:
    stage = World(Patient, nodes=[node("a", cpu="1")]).add(important(cpu="2"))
    assert_waiting(stage, "vip", because="a node is on its way")
    stage.advance(19)
    assert len(stage.log.attempts) == 1
    stage.advance(2)
    assert len(stage.log.attempts) == 2


def test_without_rules_no_time_is_stated_and_no_eviction_is_kept() -> None:
    stage = World(nodes=[node("a", cpu="2")]).add(running("x"), running("y"), important(), important("never", 0))
    assert_bound(stage, "vip", on="a")
    assert (len(stage.queue.wake_ups), len(stage.scheduler.evictions)) == (0, 0)
