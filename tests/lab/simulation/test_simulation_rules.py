"""A simulation preempts under the rules of `spec.preemption`, in virtual time."""

from __future__ import annotations

from typing import Any

from .scenarios import Manifest, a_node, a_pod, comes, run

BUDGET: Manifest = {
    "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": {"disruptionsAllowed": 1},
}  # fmt: skip


def full(*objects: Manifest, **rules: Any) -> Any:
    """Make two nodes that two pods fill, and an important pod at second 10."""
    pods = [a_pod("x", "2", on="a", meta={"labels": {"app": "web"}}), a_pod("y", "2", on="b", meta={"labels": {"app": "web"}})]
    scenario = [a_node("a", cpu="2"), a_node("b", cpu="2"), *pods, *objects]
    return run(scenario, [comes(10, a_pod("vip", "2", priority=10)), comes(11, a_pod("too", "2", priority=9))], preemption=rules)


def test_a_pod_waits_before_it_displaces_another_however_long_that_is() -> None:
    outcome = full(waitSeconds=1000)
    assert [fate.bound for fate in (outcome.fates["uid-vip"], outcome.fates["uid-too"])] == [1010, 1011]


def test_nobody_is_displaced_in_a_profile_that_never_preempts_and_the_pod_says_why() -> None:
    outcome = full(policy="Never")
    assert outcome.evicted == []
    assert outcome.fates["uid-vip"].message.endswith("preemption: not eligible due to spec.preemption.policy=Never.")


def test_pods_that_started_in_the_simulation_have_run_since_then() -> None:
    outcome = run(
        [a_node("a", cpu="2")],
        [comes(100, a_pod("low", "2")), comes(110, a_pod("vip", "2", priority=10))],
        preemption={"minRunSeconds": 500},
    )
    assert (outcome.fates["uid-low"].left, outcome.fates["uid-vip"].bound) == (600, 600)


def test_a_minute_has_as_many_evictions_as_it_may() -> None:
    outcome = full(maxEvictionsPerMinute=1)
    assert [fate.bound for fate in (outcome.fates["uid-vip"], outcome.fates["uid-too"])] == [10, 70]


def test_a_budget_is_not_violated() -> None:
    outcome = full(BUDGET, disruptionBudgets="Strict")
    assert len(outcome.evicted) == 1
    assert len(full(BUDGET).evicted) == 2


def test_protected_pods_stay() -> None:
    outcome = full(protect={"matchLabels": {"app": "web"}})
    assert outcome.evicted == []
    assert "2 Victims are protected by spec.preemption.protect" in outcome.fates["uid-vip"].message
