"""A simulation whose pods take a while to become Ready, under a profile that limits how many start at a time."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from placewright.plugins.catalog import in_tree
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import simulate

from .scenarios import a_node, a_pod, a_profile, changes


def limited(**args: Any) -> dict[str, Any]:
    enabled = {"multiPoint": {"enabled": [{"name": "NodeStartRate"}]}}
    return {"plugins": enabled, "pluginConfig": [{"name": "NodeStartRate", "args": args}]}


def simulated(pods: int, start_seconds: float, *happenings: Any, **args: Any) -> Outcome:
    objects = [a_node("a"), *(a_pod(f"p{number}", "100m") for number in range(pods))]
    scenario = Scenario("test", objects, happenings, start_seconds=start_seconds)
    return simulate(scenario, a_profile(**(limited(**args) if args else {})), in_tree())


def bound(outcome: Outcome) -> list[float]:
    return sorted(fate.bound for fate in outcome.fates.values() if fate.bound is not None)


def test_pods_that_are_ready_at_once_are_limited_by_nothing() -> None:
    assert bound(simulated(4, 0.0, maxStarting=1)) == [0.0, 0.0, 0.0, 0.0]


def test_a_node_starts_one_pod_after_the_other_when_each_takes_a_minute() -> None:
    moments = bound(simulated(4, 60.0, maxStarting=1))
    assert len(moments) == 4
    assert [later - earlier >= 60.0 for earlier, later in itertools.pairwise(moments)] == [True, True, True]


def test_starts_that_take_long_change_nothing_without_the_plugin() -> None:
    assert bound(simulated(4, 60.0)) == [0.0, 0.0, 0.0, 0.0]


def test_pods_that_never_become_ready_give_their_places_up_however_long_that_takes() -> None:
    moments = bound(simulated(3, 80_000.0, maxStarting=1, startSeconds=2000))
    assert moments == pytest.approx([0.0, 2000.0, 4000.0], abs=15.0)


def test_a_change_of_a_pod_by_another_writer_leaves_it_as_ready_as_it_was() -> None:
    relabelled = a_pod("p0", "100m", meta={"labels": {"seen": "yes"}})
    assert len(bound(simulated(2, 0.0, changes(5.0, relabelled), maxStarting=1))) == 2
    moments = bound(simulated(2, 60.0, changes(5.0, relabelled), maxStarting=1))
    assert moments[1] >= 60.0
