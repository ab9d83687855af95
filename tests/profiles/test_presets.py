"""Presets: what each one changes, and that whatever the profile says goes over it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from placewright.api.profile import ProfileSpec
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, Origin, ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.defaults import DEFAULT_PLUGINS
from placewright.profiles.presets import PRESETS
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from profiles.makers import CATALOGUE, a_profile

SCORE, PRE_SCORE, FILTER = ExtensionPoint.SCORE, ExtensionPoint.PRE_SCORE, ExtensionPoint.FILTER
PLUGINS = in_tree()
FIT, SPREAD, BALANCED = "NodeResourcesFit", "PodTopologySpread", "NodeResourcesBalancedAllocation"


def resolved(preset: str | None = None, **spec: Any) -> ResolvedProfile:
    return resolve(a_profile(spec if preset is None else {"preset": preset, **spec}), PLUGINS)


def args(result: ResolvedProfile, plugin: str) -> Any:
    return result.args[plugin]


def test_the_preset_default_is_no_preset() -> None:
    assert resolved("default") == resolved()
    assert resolved().preset == "default"


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_takes_a_filter_away_or_changes_anything_before_scoring(preset: str) -> None:
    scoring = {SCORE, PRE_SCORE}
    with_it, without = resolved(preset), resolved()
    added = PRESETS[preset].adds
    for point in set(ExtensionPoint) - scoring:
        assert tuple(name for name in with_it.at(point) if name not in added) == without.at(point)
    assert with_it.preset == preset


def test_bin_packing_fills_nodes_and_spreads_only_pods_that_ask_for_it() -> None:
    result = resolved("bin-packing")
    assert args(result, FIT).scoring_strategy.type == "MostAllocated"
    assert result.weights[FIT] == 5
    assert BALANCED not in result.at(SCORE)
    assert not args(result, SPREAD).defaults
    assert SPREAD in result.at(SCORE)


def test_spread_spreads_over_zones_and_nodes_by_one() -> None:
    result = resolved("spread")
    found = [(one.topology_key, one.max_skew, one.when_unsatisfiable) for one in args(result, SPREAD).defaults]
    assert found == [("topology.kubernetes.io/zone", 1, "ScheduleAnyway"), ("kubernetes.io/hostname", 1, "ScheduleAnyway")]
    assert result.weights[SPREAD] == 5


def test_gpu_packing_looks_at_gpus_more_than_at_cpu_and_memory() -> None:
    strategy = args(resolved("gpu-packing"), FIT).scoring_strategy
    weights = {spec.name: spec.weight for spec in strategy.resources}
    assert strategy.type == "MostAllocated"
    assert weights["nvidia.com/gpu"] == weights["amd.com/gpu"] > weights["cpu"] + weights["memory"]


def test_gpu_fragmentation_adds_its_plugin_wherever_that_has_something_to_do() -> None:
    result = resolved("gpu-fragmentation")
    points = {point for point, names in result.points.items() if "DeviceFragmentation" in names}
    assert points == {point for point in ExtensionPoint if point.implemented_by(PLUGINS["DeviceFragmentation"])}
    assert FILTER in points
    assert result.origins.plugins[FILTER]["DeviceFragmentation"] is Origin.PRESET
    assert result.weights["DeviceFragmentation"] > max(weight for name, weight in result.weights.items() if name != "DeviceFragmentation")


def test_what_a_preset_adds_the_profile_can_switch_off() -> None:
    off = resolved("gpu-fragmentation", plugins={"multiPoint": {"disabled": [{"name": "DeviceFragmentation"}]}})
    assert "DeviceFragmentation" not in off.plugin_names
    quiet = resolved("gpu-fragmentation", weights={"DeviceFragmentation": 0})
    assert "DeviceFragmentation" in quiet.at(FILTER)
    assert "DeviceFragmentation" not in quiet.at(SCORE)


def test_no_scoring_scores_nothing_and_filters_as_ever() -> None:
    result = resolved("no-scoring")
    assert result.at(SCORE) == result.at(PRE_SCORE) == ()
    assert result.weights == {}
    assert result.at(FILTER) == resolved().at(FILTER)


def test_no_scoring_names_every_default_plugin_that_scores() -> None:
    assert set(resolved().weights) <= set(PRESETS["no-scoring"].weights) <= set(DEFAULT_PLUGINS)


# --- what the profile says goes over it -------------------------------------------------------------------------------------------


def test_a_weight_of_the_profile_goes_over_the_preset_s() -> None:
    result = resolved("bin-packing", weights={FIT: 2, BALANCED: 3})
    assert (result.weights[FIT], result.weights[BALANCED]) == (2, 3)


def test_a_plugin_enabled_by_the_profile_has_the_weight_that_it_says_there() -> None:
    enabled = {"enabled": [{"name": "ImageLocality", "weight": 4}]}
    assert resolved("no-scoring", plugins={"score": enabled}).weights == {"ImageLocality": 4}
    assert resolved("no-scoring", plugins={"multiPoint": enabled}).weights == {"ImageLocality": 4}


def test_a_plugin_disabled_by_the_profile_stays_disabled_without_a_complaint_about_the_preset_s_weight() -> None:
    assert FIT not in resolved("bin-packing", plugins={"multiPoint": {"disabled": [{"name": FIT}]}}).plugin_names


def test_other_arguments_of_the_profile_stand_beside_the_preset_s() -> None:
    config = [{"name": FIT, "args": {"ignoredResources": ["example.com/x"]}}]
    found = args(resolved("bin-packing", pluginConfig=config), FIT)
    assert (found.ignored_resources, found.scoring_strategy.type) == (("example.com/x",), "MostAllocated")


def test_arguments_that_belong_together_are_taken_from_the_profile_when_it_says_one_of_them() -> None:
    config = [{"name": SPREAD, "args": {"defaultingType": "System"}}]
    assert args(resolved("spread", pluginConfig=config), SPREAD) == args(resolved(), SPREAD)


def test_a_field_that_is_null_says_nothing() -> None:
    config = [{"name": FIT, "args": {"scoringStrategy": None}}]
    assert args(resolved("bin-packing", pluginConfig=config), FIT).scoring_strategy.type == "MostAllocated"


def test_a_problem_in_the_profile_s_arguments_is_found_where_it_stands() -> None:
    with pytest.raises(ProfileError, match=r"^spec\.pluginConfig\[1\]\.args\.hardPodAffinityWeight: "):
        resolved("spread", pluginConfig=[{"name": FIT}, {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": -1}}])


def test_an_unknown_preset_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ProfileError) as caught:
        resolved("binpacking")
    allowed = "default, bin-packing, spread, gpu-packing, gpu-fragmentation, no-scoring (did you mean 'bin-packing'?)"
    assert str(caught.value) == f'spec.preset: found "binpacking"; allowed {allowed}'


@pytest.mark.parametrize("preset", PRESETS)
def test_a_build_without_some_of_the_plugins_takes_every_preset(preset: str) -> None:
    spec = {"preset": preset, "pluginConfig": [{"name": FIT, "args": {"topWeight": 3}}]}
    catalogue = {name: plugin for name, plugin in CATALOGUE.items() if name != FIT}
    assert resolve(a_profile(spec), catalogue).preset == preset


# --- where it came from -------------------------------------------------------------------------------------------------------------


def test_a_resolved_profile_says_where_its_weights_came_from() -> None:
    score = {"enabled": [{"name": "NodeAffinity", "weight": 7}]}
    origins = resolved("bin-packing", weights={"ImageLocality": 3}, plugins={"score": score}).origins
    assert origins.weights["ImageLocality"] is Origin.WEIGHTS
    assert origins.weights["NodeAffinity"] is Origin.PLUGINS
    assert origins.weights[FIT] is Origin.PRESET
    assert origins.weights["TaintToleration"] is Origin.DEFAULT


def test_a_resolved_profile_says_where_its_plugins_and_arguments_came_from() -> None:
    config = [{"name": FIT, "args": {"kind": f"{FIT}Args", "ignoredResources": ["example.com/x"]}}]
    origins = resolved("bin-packing", pluginConfig=config, plugins={"filter": {"enabled": [{"name": "NodeName"}]}}).origins
    assert origins.args[FIT] == {"scoringStrategy": Origin.PRESET, "ignoredResources": Origin.PLUGIN_CONFIG}
    assert set(origins.args) == {FIT, SPREAD}
    assert origins.plugins[FILTER]["NodeName"] is Origin.PLUGINS
    assert origins.plugins[FILTER]["NodePorts"] is Origin.DEFAULT


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_said_to_come_from_the_defaults_is_what_the_defaults_have(preset: str) -> None:
    result, default = resolved(preset), resolved()
    for name, weight in result.weights.items():
        expected = default.weights if result.origins.weights[name] is Origin.DEFAULT else PRESETS[preset].weights
        assert weight == expected[name]
    inherited = result.args.keys() - result.origins.args.keys() - set(PRESETS[preset].adds)
    assert all(result.args[name] == default.args[name] for name in inherited)


def test_where_it_came_from_does_not_make_two_profiles_different() -> None:
    assert resolved(weights={"ImageLocality": 1}) == resolved()
    assert resolved(weights={"ImageLocality": 1}).origins != resolved().origins


def test_the_docs_have_a_line_for_each_preset() -> None:
    text = (Path(__file__).parents[2] / "docs" / "conversion.md").read_text().partition("## Presets")[2]
    assert re.findall(r"^\| `([a-z-]+)`", text, re.MULTILINE) == list(PRESETS)


def test_the_field_is_absent_unless_somebody_writes_it() -> None:
    assert ProfileSpec().preset is None
