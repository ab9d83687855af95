"""Tuning: the front and the best against every combination tried one by one, the same search twice, and processes that end."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import product

import pytest

from lab.simulation.scenarios import a_node, a_pod, a_profile, nodes_of, random_nodes, random_pod
from placewright.api.bad_input import InputError
from placewright.api.decode import convert
from placewright.api.profile import SchedulingProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.problem import ProfileError
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import simulate
from placewright_lab.simulation.workprocesses import WorkProcesses
from placewright_lab.tune import weightsearch
from placewright_lab.tune.sharedstudy import tune
from placewright_lab.tune.weightsearch import OBJECTIVES, STRATEGY, Search, Settings, Task, TunedSetting, parse_objectives, with_settings

from .answering import end_or_answer

WEIGHTS = (TunedSetting("NodeResourcesFit", range(4)), TunedSetting("NodeResourcesBalancedAllocation", range(4)))


def world(seed: int) -> Scenario:
    """A crowded cluster: where small pods go decides whether large ones have room."""
    rng = random.Random(seed)
    pods = [random_pod(rng, f"p{index:02d}", 0) for index in range(14)]
    return Scenario("random", [*random_nodes(rng, 5), *pods, a_pod("large", "6")])


def spec(**fields: object) -> SchedulingProfile:
    return convert({"metadata": {"name": "base"}, "spec": {"schedulerName": "default-scheduler", **fields}}, SchedulingProfile)


def task(
    scenario: Scenario, *knobs: TunedSetting, objectives: str = "pending,empty-nodes", seed: int = 0, base: SchedulingProfile | None = None
) -> Task:
    return Task(scenario, base or spec(), knobs, parse_objectives(objectives), in_tree(), seed)


def searched(of: Task, trials: int, processes: int = 1) -> Search:
    search = Search(of)
    tune(search, trials, processes)
    return search


def told(search: Search) -> list[tuple[int, Settings, tuple[float, ...]]]:
    return [(trial.number, dict(trial.settings), trial.result.values) for trial in search.trials]


def counted(outcome: Outcome, scenario: Scenario) -> tuple[int, int]:
    """Return the number of waiting pods and of nodes without a pod, from names alone."""
    used = nodes_of(outcome)
    names = {each["metadata"]["name"] for each in scenario.objects if each["kind"] == "Node"}
    return sum(name is None for name in used.values()), len(names - {*used.values()})


@pytest.mark.parametrize("seed", range(3))
def test_the_front_is_the_true_one_where_trials_cover_every_combination(seed: int) -> None:
    scenario = world(seed)
    strategies = ("LeastAllocated", "MostAllocated")
    all_: dict[tuple[object, ...], tuple[int, int]] = {}
    for fit, balanced, kind in product(range(3), range(2), strategies):
        chosen = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": kind}}}]
        tried = a_profile(weights={"NodeResourcesFit": fit, "NodeResourcesBalancedAllocation": balanced}, pluginConfig=chosen)
        all_[fit, balanced, kind] = counted(simulate(scenario, tried, in_tree()), scenario)
    values = {*all_.values(), counted(simulate(scenario, a_profile(), in_tree()), scenario)}
    true = {(p, e) for p, e in values if not any((q <= p and f >= e) and (q, f) != (p, e) for q, f in values)}

    knobs = (
        TunedSetting("NodeResourcesFit", range(3)),
        TunedSetting("NodeResourcesBalancedAllocation", range(2)),
        TunedSetting(STRATEGY, strategies),
    )
    search = searched(task(scenario, *knobs, seed=0), 12)
    assert {tuple(trial.settings.values()): trial.result.values for trial in search.trials[1:]} == all_
    assert {trial.result.values for trial in search.front} == true
    assert search.best.result.values == min(values, key=lambda one: (one[0], -one[1]))
    assert len(values) > 1, "a scenario in which nothing matters proves nothing"


def test_a_search_finds_the_same_again_and_with_any_number_of_processes() -> None:
    first, again, beside = (searched(task(world(1), *WEIGHTS, seed=3), 11, processes) for processes in (1, 1, 2))
    assert len(first.trials) == 12
    assert told(first) == told(again) == told(beside)
    assert told(first) != told(searched(task(world(1), *WEIGHTS, seed=4), 11))


def test_a_search_tries_no_setting_twice_and_as_many_as_it_may() -> None:
    search = searched(task(world(2), *WEIGHTS), 15)
    tried = [tuple(trial.settings.items()) for trial in search.trials[1:]]
    assert len(tried) == len(set(tried)) == 15


def test_trial_0_is_the_profile_as_it_is_so_that_nothing_worse_is_the_best() -> None:
    base = spec(weights={"NodeResourcesFit": 7}, preset="bin-packing")
    scenario = world(0)
    search = searched(task(scenario, TunedSetting("NodeResourcesBalancedAllocation", range(50, 53)), base=base), 3)
    before = counted(simulate(scenario, a_profile(preset="bin-packing", weights={"NodeResourcesFit": 7}), in_tree()), scenario)
    assert (search.trials[0].settings, search.trials[0].result.values) == ({}, before)
    assert search.losses(search.best) <= search.losses(search.trials[0])


def test_of_equals_the_profile_as_it_is_stays_the_best() -> None:
    search = searched(task(Scenario("one", [a_node("n"), a_pod("p")]), *WEIGHTS), 16)
    assert (search.best.number, [trial.number for trial in search.front]) == (0, [0])


def test_settings_go_over_the_profile_and_leave_the_rest_of_it() -> None:
    resources = [{"name": "cpu", "weight": 3}]
    config = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "LeastAllocated", "resources": resources}}}]
    base = spec(weights={"NodeAffinity": 9, "NodeResourcesFit": 1}, pluginConfig=config)
    changed = with_settings(base, {"NodeResourcesFit": 4, STRATEGY: "MostAllocated"}).spec
    assert changed.weights == {"NodeAffinity": 9, "NodeResourcesFit": 4}
    (fit,) = changed.plugin_config or ()
    assert fit.args == {"scoringStrategy": {"type": "MostAllocated", "resources": resources}}
    assert base.spec.weights == {"NodeAffinity": 9, "NodeResourcesFit": 1}


def test_an_interrupted_search_keeps_what_it_found() -> None:
    of = task(world(0), *WEIGHTS)
    search = Search(of)

    def stop(so_far: Search) -> None:
        if len(so_far.trials) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(search, 16, 2, stop)
    assert [trial.number for trial in search.trials] == [0, 1, 2, 3, 4]
    assert search.best in search.front


def test_optuna_is_loaded_only_where_not_every_combination_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(weightsearch, "import_module", missing)
    assert len(searched(task(world(0), *WEIGHTS), 16).trials) == 17
    with pytest.raises(ModuleNotFoundError):
        searched(task(world(0), *WEIGHTS), 15)


def test_settings_that_the_profile_cannot_have_are_refused_before_anything_is_simulated() -> None:
    off = spec(plugins={"multiPoint": {"disabled": [{"name": "ImageLocality"}]}})
    of = task(world(0), TunedSetting("ImageLocality", range(3)), base=off)
    search = Search(of)
    with pytest.raises(ProfileError, match=r"spec.weights.ImageLocality"):
        tune(search, 5)
    assert search.trials == []


@pytest.mark.parametrize("processes", [1, 2])
def test_an_objective_that_the_scenario_has_nothing_of_is_refused(processes: int) -> None:
    with pytest.raises(InputError, match="found 'placed-gpu'"):
        searched(task(world(0), *WEIGHTS, objectives="pending,placed-gpu"), 3, processes)


def test_objectives_are_read_in_order_and_wrong_ones_named() -> None:
    assert [one.name for one in parse_objectives("stranded-gpu, pending")] == ["stranded-gpu", "pending"]
    with pytest.raises(InputError, match="did you mean 'empty-nodes'"):
        parse_objectives("emptynodes")
    with pytest.raises(InputError, match="each name once"):
        parse_objectives("pending,pending")
    assert all(one.summary.endswith(".") for one in OBJECTIVES.values())


def test_processes_answer_in_order_and_one_that_dies_is_an_error_and_no_wait() -> None:
    numbers: Sequence[int] = [5, 4, 3, 2, 1]
    with WorkProcesses(end_or_answer, 2) as running:
        assert list(running.results(numbers)) == [25, 16, 9, 4, 1]
        with pytest.raises(RuntimeError, match="has died"):
            list(running.results([1, 0, 2]))


def test_processes_end_with_whoever_started_them() -> None:
    with WorkProcesses(end_or_answer, 2) as running:
        pids = [process.pid for process in running._processes]
        assert next(running.results([2])) == 4
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
