"""What a profile's author is told about weights that do not do what weights are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.framework.runtime.scoreimpact import ScoreImpact
from placewright.plugins.catalog import in_tree
from placewright.profiles.advice import ENOUGH_SAMPLES, UNKNOWN_SURROUNDINGS, Recommendation, Surroundings, advise, advise_beforehand
from placewright.profiles.resolve import resolve
from profiles.makers import CATALOGUE, a_profile

QUIET = ScoreImpact([])


def hints(spec: dict[str, Any], impact: ScoreImpact | None = None) -> tuple[Recommendation, ...]:
    resolved = resolve(a_profile({"schedulerName": "batch", **spec}), CATALOGUE)
    names = resolved.at(ExtensionPoint.SCORE)
    found = advise(resolved, [CATALOGUE[name] for name in names], impact or ScoreImpact(names))
    return tuple(hint for hint in found if hint.reason != "FilterIsOff")  # this catalogue lacks most filters


def after_samples(count: int, parts: dict[str, list[int]], *names: str) -> ScoreImpact:
    """Decisions that were all alike, in the eyes of these plugins."""
    impact = ScoreImpact(names)
    columns = {plugin: np.array(part) for plugin, part in parts.items()}
    for _ in range(count):
        impact.note(np.sum(list(columns.values()), axis=0), columns)
    return impact


SCORERS = ("TaintToleration", "NodeAffinity", "NodeResourcesFit", "ImageLocality")


def test_there_is_no_advice_about_the_defaults() -> None:
    never_anything = after_samples(1000, {"TaintToleration": [0, 0]}, *SCORERS)
    assert hints({}, never_anything) == ()


@pytest.mark.parametrize(("weight", "drowns"), [(6, False), (7, True)])
def test_a_weight_drowns_the_others_when_they_cannot_make_up_for_it_together(weight: int, drowns: bool) -> None:
    """TaintToleration 3, NodeAffinity 2 and ImageLocality 1 stand against it."""
    found = hints({"weights": {"NodeResourcesFit": weight}})
    assert [hint.reason for hint in found] == (["WeightDrownsOthers"] if drowns else [])


def test_advice_on_a_drowning_weight_names_the_plugin_the_numbers_and_what_to_set() -> None:
    (hint,) = hints({"weights": {"NodeResourcesFit": 5000}})
    assert hint.message == (
        "NodeResourcesFit has weight 5000, all others together have 6: where it gives one node 100 points more than another, nothing can "
        "outvote it. To let the others have a say, set weights.NodeResourcesFit to 6 or less."
    )


def test_a_plugin_that_scores_alone_drowns_nobody() -> None:
    off = {"TaintToleration": 0, "NodeAffinity": 0, "ImageLocality": 0}
    assert hints({"weights": {"NodeResourcesFit": 5000, **off}}) == ()


def test_the_weights_of_extenders_count_among_the_others() -> None:
    extender = {"urlPrefix": "http://x", "prioritizeVerb": "p", "weight": 1}
    assert hints({"weights": {"NodeResourcesFit": 7}, "extenders": [extender]}) == ()


def test_a_plugin_that_somebody_gave_a_weight_and_that_never_changes_an_outcome_is_hinted_at() -> None:
    impact = after_samples(ENOUGH_SAMPLES, {"NodeResourcesFit": [9, 0], "ImageLocality": [2, 0]}, *SCORERS)
    (hint,) = hints({"weights": {"ImageLocality": 2}}, impact)
    assert hint.reason == "PluginNeverDecides"
    assert hint.message.startswith("ImageLocality (weight 2) changed no outcome of the last")
    assert "Raise weights.ImageLocality" in hint.message


def test_a_plugin_that_somebody_gave_a_weight_and_that_has_nothing_to_score_is_hinted_at() -> None:
    impact = after_samples(ENOUGH_SAMPLES, {"NodeResourcesFit": [9, 0], "ImageLocality": [2, 2]}, *SCORERS)
    (hint,) = hints({"weights": {"ImageLocality": 2}}, impact)
    assert hint.reason == "PluginHasNothingToScore"


def test_a_plugin_that_is_not_among_the_defaults_is_spoken_of_with_any_weight() -> None:
    impact = after_samples(ENOUGH_SAMPLES, {"NodeResourcesFit": [9, 0]}, *SCORERS, "Tetris")
    found = hints({"plugins": {"multiPoint": {"enabled": [{"name": "Tetris"}]}}, "weights": {"Tetris": 1}}, impact)
    assert [(hint.reason, hint.message.split()[0]) for hint in found] == [("PluginHasNothingToScore", "Tetris")]


def test_a_default_plugin_with_arguments_of_somebodys_own_is_spoken_of() -> None:
    impact = after_samples(ENOUGH_SAMPLES, {"TaintToleration": [9, 0]}, *SCORERS)
    found = hints({"pluginConfig": [{"name": "NodeResourcesFit", "args": {"topWeight": 9}}]}, impact)
    assert [hint.reason for hint in found] == ["PluginHasNothingToScore"]


def test_never_is_not_said_before_enough_was_seen() -> None:
    impact = after_samples(ENOUGH_SAMPLES - 1, {"NodeResourcesFit": [9, 0], "ImageLocality": [2, 0]}, *SCORERS)
    assert hints({"weights": {"ImageLocality": 2}}, impact) == ()


def test_advice_goes_when_the_plugin_decides_again() -> None:
    impact = after_samples(ENOUGH_SAMPLES, {"NodeResourcesFit": [9, 0], "ImageLocality": [2, 0]}, *SCORERS)
    impact.note(np.array([9, 11]), {"NodeResourcesFit": np.array([9, 0]), "ImageLocality": np.array([0, 11])})
    assert hints({"weights": {"ImageLocality": 2}}, impact) == ()


def test_advice_stays_word_for_word_the_same_while_decisions_go_on() -> None:
    """It stands in the status, which is written only when it changes."""
    few, many = (
        hints({"weights": {"ImageLocality": 2}}, after_samples(count, {"NodeResourcesFit": [9, 0], "ImageLocality": [2, 0]}, *SCORERS))
        for count in (ENOUGH_SAMPLES, 10 * ENOUGH_SAMPLES)
    )
    assert few == many != ()


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"schedulerName": "default-scheduler"}, True),
        ({"schedulerName": "default-scheduler", "weights": {"ImageLocality": 2}}, True),
        ({"schedulerName": "default-scheduler", "paused": True}, False),
        ({"schedulerName": "default-scheduler2"}, False),
        ({"mode": "Shadow", "shadows": "other"}, False),
    ],
)
def test_who_takes_the_pods_of_the_default_scheduler_is_told_that_kube_scheduler_must_be_off(spec: dict[str, Any], told: bool) -> None:
    found = advise_beforehand(resolve(a_profile(spec), in_tree()))
    assert [hint.reason for hint in found] == (["DefaultSchedulerName"] if told else [])
    assert all("kube-scheduler" in hint.message and hint.path == "spec.schedulerName" for hint in found)


# --- filters that are off ------------------------------------------------------------------------------------------------------------

PROTECTING = (
    "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits",
    "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
)  # fmt: skip


def said_beforehand(spec: dict[str, Any]) -> dict[str, str]:
    """By filter that is spoken of, the message."""
    found = advise_beforehand(resolve(a_profile({"schedulerName": "batch", **spec}), in_tree()))
    assert {hint.reason for hint in found} <= {"FilterIsOff"}
    return {hint.message.split()[2]: hint.message for hint in found}


@pytest.mark.parametrize("name", PROTECTING)
@pytest.mark.parametrize("point", ["multiPoint", "filter"])
def test_a_filter_that_is_off_is_spoken_of_with_what_happens_then(name: str, point: str) -> None:
    if point == "filter":
        said = said_beforehand({"plugins": {"filter": {"disabled": [{"name": name}]}}})
    else:
        said = said_beforehand({"plugins": {"multiPoint": {"disabled": [{"name": name}]}}})
    assert list(said) == [name]
    assert said[name].startswith(f"The filter {name} is off: ")


def test_what_happens_without_resources_and_how_to_have_no_score_alone_is_said() -> None:
    said = said_beforehand({"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}})
    assert said["NodeResourcesFit"] == (
        "The filter NodeResourcesFit is off: nodes are filled beyond their allocatable, and kubelets refuse the surplus pods. "
        "To leave out its score alone, enable it and set weights.NodeResourcesFit to 0."
    )


def test_all_filters_off_at_once_are_all_spoken_of() -> None:
    assert tuple(said_beforehand({"plugins": {"filter": {"disabled": [{"name": "*"}]}}})) == PROTECTING


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"weights": {"NodeResourcesFit": 0}},
        {"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}}},
        {"plugins": {"multiPoint": {"disabled": [{"name": "ImageLocality"}, {"name": "NodeName"}]}}},
        {"plugins": {"multiPoint": {"disabled": [{"name": "NodePorts"}]}, "filter": {"enabled": [{"name": "NodePorts"}]}}},
    ],
)
def test_nothing_is_said_where_all_of_them_are_on(spec: dict[str, Any]) -> None:
    assert said_beforehand(spec) == {}


def test_a_default_that_is_left_over_drowns_nobody() -> None:
    """Whoever sets all weights they know to 0 but one need not have heard of the rest."""
    resolved = resolve(a_profile({"schedulerName": "batch"}), in_tree())
    others = {name: 0 for name in resolved.weights if name not in ("NodeResourcesFit", "DynamicResources")}
    spec = {"schedulerName": "batch", "weights": {**others, "NodeResourcesFit": 1}}
    resolved = resolve(a_profile(spec), in_tree())
    scorers = [in_tree()[name] for name in resolved.at(ExtensionPoint.SCORE)]
    assert resolved.weights["DynamicResources"] > resolved.weights["NodeResourcesFit"], "else this tests nothing"
    assert advise(resolved, scorers, ScoreImpact(each.name for each in scorers)) == ()


# --- settings without an effect ----------------------------------------------------------------------------------------------------------


LIMIT = {"limits": [{"topologyKey": "zone", "max": 2, "selector": {"matchLabels": {"app": "web"}}}]}
DOMAIN_LIMIT_ON = {"plugins": {"multiPoint": {"enabled": [{"name": "DomainLimit"}]}}}
ASSIGNS = {"pods": {"podSelector": {"matchLabels": {"app": "web"}}}}


def beforehand(around: Surroundings = UNKNOWN_SURROUNDINGS, **spec: Any) -> dict[str, str]:
    resolved = resolve(a_profile({"schedulerName": "batch", **spec}), in_tree())
    return {each.reason: each.message for each in advise_beforehand(resolved, in_tree(), around)}


@pytest.mark.parametrize(
    ("spec", "reasons"),
    [
        ({"pluginConfig": [{"name": "DomainLimit", "args": LIMIT}]}, {"ArgumentsUnused"}),
        ({**DOMAIN_LIMIT_ON, "pluginConfig": [{"name": "DomainLimit", "args": LIMIT}]}, set()),
        (DOMAIN_LIMIT_ON, {"PluginDoesNothing"}),
        ({"pluginConfig": [{"name": "NodeResourcesFit", "args": {}}]}, set()),
        ({}, set()),
    ],
    ids=["arguments of a plugin that is off", "on with arguments", "on without limits", "a default plugin", "nothing"],
)
def test_settings_without_an_effect_are_advised(spec: dict[str, Any], reasons: set[str]) -> None:
    assert set(beforehand(**spec)) == reasons


def test_a_preset_for_a_resource_that_no_node_has_is_advised_once_there_are_nodes() -> None:
    spec = {"preset": "gpu-fragmentation"}
    assert beforehand(**spec) == beforehand(Surroundings(frozenset()), **spec) == {}
    assert set(beforehand(Surroundings({"cpu", "memory", "nvidia.com/gpu"}), **spec)) == {"NoNodeHasResource"}
    assert "openb/gpu-milli, which no node" in beforehand(Surroundings({"cpu"}), **spec)["NoNodeHasResource"]
    assert beforehand(Surroundings({"cpu", "openb/gpu-milli"}), **spec) == {}


def test_one_resource_of_several_is_enough() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "amd.com/gpu"}, {"name": "nvidia.com/gpu"}]}
    spec = {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}
    assert beforehand(Surroundings({"cpu", "nvidia.com/gpu"}), **spec) == {}
    assert set(beforehand(Surroundings({"cpu"}), **spec)) == {"NoNodeHasResource"}


@pytest.mark.parametrize(("assigning", "reasons"), [(None, set()), (True, set()), (False, {"ProfileIsNotGiven"})])
def test_selectors_without_the_admission_that_reads_them_are_advised(assigning: bool | None, reasons: set[str]) -> None:
    assert set(beforehand(Surroundings(assigning=assigning), **ASSIGNS)) == reasons
    assert beforehand(Surroundings(assigning=False)) == {}
