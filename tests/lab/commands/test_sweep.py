"""Many simulations at once: each is what it is alone, however many run beside it, and what another process says comes back whole."""

from __future__ import annotations

import json
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from lab.commands.scenarios import profile_file, scenario_file
from lab.figures.test_group_figures import claims_and_pods, groups
from lab.simulation.scenarios import a_node, a_pod, a_profile, random_nodes, random_pod
from lab.snapshots.deviceworld import DeviceWorld
from lab.tune.answering import plugin_that_fails
from placewright.api.bad_input import InputError
from placewright.api.decode import convert
from placewright.api.profile import SchedulingProfile
from placewright.cli.main import main
from placewright.framework.errors import PluginError
from placewright.plugins.catalog import in_tree
from placewright_lab.commands.simulate import as_data
from placewright_lab.figures.comparison import compare
from placewright_lab.figures.figures import figures_of
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import Which, simulate
from placewright_lab.simulation.sweep import SimulationRun, Sweep, jobs_for, outcomes_of
from placewright_lab.simulation.workprocesses import WorkProcesses, usable_cores


def crowded(seed: int) -> Scenario:
    rng = random.Random(seed)
    return Scenario("crowded", [*random_nodes(rng, 5), *(random_pod(rng, f"p{index:02d}", 0) for index in range(20)), a_pod("large", "6")])


def declared(**spec: Any) -> tuple[SchedulingProfile, ...]:
    return (convert({"metadata": {"name": "p"}, "spec": {"schedulerName": "default-scheduler", **spec}}, SchedulingProfile),)


SCENARIOS = {
    "pods": crowded(1),
    "groups": Scenario("groups", groups()),
    "claims": Scenario("claims", claims_and_pods()),
    "devices": Scenario("devices", DeviceWorld(3).objects()),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_outcome_from_another_process_counts_as_it_did_there(name: str) -> None:
    outcome = simulate(SCENARIOS[name], a_profile(), in_tree())
    back = pickle.loads(pickle.dumps(outcome))
    assert repr(figures_of(back)) == repr(figures_of(outcome)), "repr, as figures hold arrays, and it has every digit"
    assert repr(figures_of(back, at=0.0)) == repr(figures_of(outcome, at=0.0))
    assert as_data(back) == as_data(outcome)
    places = [[(each.pod.key, each.node, each.assumed) for each in one.cluster.placements()] for one in (back, outcome)]
    assert places[0] == places[1]


def test_the_result_does_not_depend_on_how_many_run_at_once() -> None:
    both = [("as it is", declared()), ("packing", declared(preset="bin-packing"))]
    simulations = [SimulationRun(name, profiles, seed) for seed in range(4) for name, profiles in both]
    alike = Scenario("alike", [*(a_node(f"n{index}") for index in range(5)), *(a_pod(f"p{index}", "1") for index in range(8))])
    sweep = Sweep(alike, in_tree(), Which.PENDING)
    comparisons = []
    for jobs in (1, 2, 3):
        with outcomes_of(sweep, simulations, jobs) as outcomes:
            found = list(outcomes)
        comparison = compare("alike", found[:2], [found[at : at + 2] for at in range(2, len(found), 2)])
        comparisons.append(repr(comparison))
        assert len({repeated.moved for repeated in comparison.repetitions}) > 1, "seeds that all come to the same prove nothing"
    assert comparisons[0] == comparisons[1] == comparisons[2]


def test_a_comparison_over_seeds_prints_the_same_with_any_number_of_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(profile_file(tmp_path, "plain")), str(profile_file(tmp_path, "packing", preset="bin-packing"))]
    words = ["-f", str(scenario_file(tmp_path)), "--profile", files[0], "--profile", files[1], "-o", "json"]
    for command in (["compare", *words, "--seeds", "3"], ["simulate", *words]):
        printed = []
        for jobs in ("1", "2"):
            assert main([*command, "--jobs", jobs]) == 0
            printed.append(json.loads(capsys.readouterr().out))
        for each in printed:
            for one in each["profiles"]:
                one.pop("wallSeconds", None)
        assert printed[0] == printed[1]
    assert main(["diff", *files, *words[:2], "--jobs", "2"]) == 0


def test_what_a_plugin_does_wrong_in_another_process_is_one_line_here() -> None:
    with WorkProcesses(plugin_that_fails, 1) as running, pytest.raises(InputError, match="Odd"):
        list(running.results([0]))
    with pytest.raises(PluginError, match="no such luck"):
        plugin_that_fails(0)


def test_small_scenarios_run_one_after_the_other_and_large_ones_on_every_core() -> None:
    small = Scenario("small", [a_node("n"), a_pod("p")])
    large = Scenario("large", [a_node("n")] * 10_000)
    cores = usable_cores()
    assert [jobs_for(small, 9, None), jobs_for(small, 9, 3), jobs_for(small, 2, 3), jobs_for(small, 1, 8)] == [1, 3, 2, 1]
    assert [jobs_for(large, 1000, None), jobs_for(large, 1, None), jobs_for(large, 1000, 1)] == [cores, 1, 1]
    assert 1 <= cores <= (os.cpu_count() or 1)


@pytest.mark.parametrize("command", ["compare", "simulate", "tune", "diff"])
def test_every_command_that_simulates_more_than_once_can_be_told_how_many_at_once(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "--jobs N" in capsys.readouterr().out
