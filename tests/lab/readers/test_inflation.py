"""More pods than a trace has, and how much of each device was placed."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulation.scenarios import a_profile
from placewright.api.bad_input import InputError
from placewright.plugins.catalog import in_tree
from placewright_lab.figures.figures import Placed, figures_of
from placewright_lab.readers.inflation import inflated
from placewright_lab.readers.openb import GPU_MILLI, node_manifest, pod_manifest
from placewright_lab.simulation.scenario import Act, Happening, Scenario
from placewright_lab.simulation.simulation import simulate


def gpu_pod(name: str, gpu_milli: int) -> dict[str, Any]:
    return pod_manifest(name, cpu_milli=1000, memory_mib=100, gpu_milli=gpu_milli, labels={})


def gpu_node(name: str, gpus: int) -> dict[str, Any]:
    return node_manifest(name, cpu_milli=64_000, memory_mib=64_000, gpus=gpus)


SCENARIO = Scenario("test", [gpu_node("n", 4), gpu_pod("half", 500), gpu_pod("whole", 1000), gpu_pod("none", 0)])


def asked(scenario: Scenario) -> list[int]:
    """Return the thousandths of GPUs of each pod."""
    pods = [each for each in scenario.objects if each["kind"] == "Pod"]
    return [int(pod["spec"]["containers"][0]["resources"]["requests"].get(GPU_MILLI, "0")) for pod in pods]


@pytest.mark.parametrize("percent", [50, 130, 1000])
def test_pods_are_drawn_until_they_ask_for_so_much_and_no_longer(percent: int) -> None:
    amounts = asked(inflated(SCENARIO, percent, seed=3))
    wanted = 40 * percent
    assert sum(amounts) >= wanted > sum(amounts[:-1])
    assert set(amounts) <= {0, 500, 1000}


def test_drawn_pods_have_names_of_their_own_and_nothing_else_changes() -> None:
    found = inflated(SCENARIO, 300, seed=0)
    names = [each["metadata"]["name"] for each in found.objects]
    assert len(set(names)) == len(names) > 10
    assert found.objects[0] == SCENARIO.objects[0]
    assert {name.rpartition("-")[0] for name in names[1:]} == {"half", "whole", "none"}


def test_equal_seeds_draw_the_same_pods_and_others_do_not() -> None:
    first, again, other = (asked(inflated(SCENARIO, 500, seed)) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (Scenario("cpus", [gpu_node("n", 0), gpu_pod("a", 500)]), "nodes that have GPUs"),
        (Scenario("idle", [gpu_node("n", 1), gpu_pod("a", 0)]), "pods without a node that ask for some"),
        (Scenario("film", SCENARIO.objects, [Happening(1.0, Act.ADDED, gpu_pod("b", 1))]), "a snapshot, manifests or a trace"),
    ],
)
def test_what_cannot_be_inflated_is_said_in_a_line(scenario: Scenario, said: str) -> None:
    with pytest.raises(InputError, match=f"^--inflate: .*{said}"):
        inflated(scenario, 100, 0)


def test_what_came_before_the_first_rejection_is_told_apart_from_what_was_placed_in_all() -> None:
    pods = [gpu_pod("a", 1000), gpu_pod("b", 600), gpu_pod("big", 4000), gpu_pod("c", 300)]
    outcome = simulate(Scenario("test", [gpu_node("n", 4), *pods]), a_profile(), in_tree())
    assert figures_of(outcome).devices == {GPU_MILLI: Placed(before_rejection=1600, in_all=1900)}


def test_shares_of_two_gpus_do_not_add_up_where_devices_are_told_apart() -> None:
    pods = [gpu_pod("a", 600), gpu_pod("b", 600), gpu_pod("c", 800)]
    scenario = Scenario("test", [gpu_node("n", 2), *pods])
    by_sum, by_device = (simulate(scenario, a_profile(**spec), in_tree()) for spec in ({}, {"preset": "gpu-fragmentation"}))
    assert figures_of(by_sum).devices[GPU_MILLI].in_all == 2000
    assert figures_of(by_device).devices[GPU_MILLI].in_all == 1200
