"""There and back: a profile written as a KubeSchedulerConfiguration, and read again, decides as it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from placewright.api.profile import SchedulingProfile
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.kubescheduler import writer
from placewright.profiles.kubescheduler.documents import manifest, to_yaml
from placewright.profiles.kubescheduler.findings import Loss
from placewright.profiles.kubescheduler.history import GONE
from placewright.profiles.kubescheduler.reader import convert
from placewright.profiles.kubescheduler.writer import to_configuration
from placewright.profiles.presets import PRESETS
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright_legacy_plugins import NodeLabel
from profiles.makers import a_profile, plugin
from randomcases import cases

PLUGINS = in_tree().extended([NodeLabel, plugin("Tetris", "filter", "preScore", "score", weight=7)])
NAMES = [name for name in PLUGINS if name not in GONE]
SCORING = [name for name in NAMES if ExtensionPoint.SCORE.implemented_by(PLUGINS[name])]
FIT = "NodeResourcesFit"


def there(*profiles: SchedulingProfile) -> tuple[dict[str, Any], list[str]]:
    document, findings = to_configuration(profiles, PLUGINS)
    return document, [str(finding) for finding in findings if finding.loss is not Loss.NOTE]


def there_and_back(*profiles: SchedulingProfile) -> list[ResolvedProfile]:
    document, _ = there(*profiles)
    return [resolve(one, PLUGINS) for one in convert(to_yaml([document]), "back.yaml", PLUGINS).profiles]


def anonymous(resolved: ResolvedProfile) -> ResolvedProfile:
    return replace(resolved, name="", uid="", generation=0)


# --- any profile ------------------------------------------------------------------------------------------------------------------


def plugin_sets(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    refs = st.fixed_dictionaries({"name": st.sampled_from(names)}, optional={"weight": st.integers(0, 100)})
    enabled = st.lists(refs, max_size=3, unique_by=lambda ref: str(ref["name"]))
    disabled = st.lists(st.sampled_from([*names, "*"]).map(lambda name: {"name": name}), max_size=3, unique_by=lambda ref: ref["name"])
    return st.fixed_dictionaries({}, optional={"enabled": enabled, "disabled": disabled})


def at(point: ExtensionPoint) -> st.SearchStrategy[dict[str, Any]]:
    return plugin_sets([name for name in NAMES if point.implemented_by(PLUGINS[name])])


ARGS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    FIT: st.fixed_dictionaries(
        {},
        optional={
            "ignoredResources": st.just(["example.com/x"]),
            "scoringStrategy": st.sampled_from([{"type": "MostAllocated"}, {"type": "LeastAllocated", "resources": [{"name": "cpu"}]}]),
        },
    ),
    "PodTopologySpread": st.sampled_from([{}, {"defaultingType": "List"}, {"defaultingType": "System"}]),
    "InterPodAffinity": st.fixed_dictionaries({}, optional={"hardPodAffinityWeight": st.integers(0, 100)}),
}
CONFIG = st.fixed_dictionaries({}, optional=ARGS).map(lambda given: [{"name": name, "args": args} for name, args in given.items()])
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "schedulerName": st.sampled_from(["web", "My_Scheduler", "default-scheduler"]),
        "preset": st.sampled_from(list(PRESETS)),
        "weights": st.dictionaries(st.sampled_from(SCORING), st.integers(0, 100), max_size=4),
        "percentageOfNodesToScore": st.integers(0, 100),
        "pluginConfig": CONFIG,
        "backoff": st.fixed_dictionaries({"initialSeconds": st.integers(1, 5), "maxSeconds": st.integers(5, 60)}),
        "plugins": st.fixed_dictionaries(
            {},
            optional={"multiPoint": plugin_sets(NAMES)}
            | {point.value: at(point) for point in (ExtensionPoint.FILTER, ExtensionPoint.PRE_SCORE, ExtensionPoint.SCORE)},
        ),
    },
)


def resolvable(spec: Mapping[str, Any]) -> tuple[SchedulingProfile, ResolvedProfile]:
    made = a_profile(dict(spec))
    try:
        return made, resolve(made, PLUGINS)
    except ProfileError:
        assume(False)
        raise


@given(SPECS)
@settings(max_examples=cases(300))
def test_there_and_back_keeps_the_resolved_profile_and_a_configuration_written_twice_is_the_same(spec: dict[str, Any]) -> None:
    made, before = resolvable(spec)
    document, lost = there(made)
    assert lost == []
    back = convert(to_yaml([document]), "back.yaml", PLUGINS).profiles
    assert [anonymous(resolve(one, PLUGINS)) for one in back] == [anonymous(before)]
    assert there(*back)[0] == document


@given(SPECS)
@settings(max_examples=cases(100))
def test_a_profile_written_as_a_manifest_is_read_as_it_was(spec: dict[str, Any]) -> None:
    made, before = resolvable(spec)
    (read,) = convert(to_yaml([manifest(made)]), "back.yaml", PLUGINS).profiles
    assert anonymous(resolve(read, PLUGINS)) == anonymous(before)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_can_be_written_without_losing_anything(preset: str) -> None:
    made = a_profile({"preset": preset})
    document, findings = there(made)
    assert findings == []
    assert "preset" not in str(document)
    assert anonymous(there_and_back(made)[0]) == anonymous(resolve(made, PLUGINS))


# --- what a configuration has in other places -------------------------------------------------------------------------------------


def test_the_weight_that_an_author_chose_is_stated_because_kube_scheduler_takes_one() -> None:
    document, _ = there(a_profile({"plugins": {"multiPoint": {"enabled": [{"name": "Tetris"}]}}}))
    assert document["profiles"][0]["plugins"]["multiPoint"]["enabled"] == [{"name": "Tetris", "weight": 7}]


def test_extenders_that_all_profiles_share_stand_once() -> None:
    extender = {"urlPrefix": "http://x.example", "filterVerb": "filter"}
    profiles = [a_profile({"schedulerName": name, "extenders": [extender]}, name) for name in ("a", "b")]
    document, findings = there(*profiles)
    assert (document["extenders"], findings) == ([extender], [])
    assert [one.extenders[0].url_prefix for one in there_and_back(*profiles)] == ["http://x.example"] * 2


# --- what it cannot hold ------------------------------------------------------------------------------------------------------------


def test_extenders_that_differ_are_left_out_and_listed() -> None:
    extender = {"urlPrefix": "http://x.example", "filterVerb": "filter"}
    document, findings = there(a_profile({"schedulerName": "a", "extenders": [extender]}, "a"), a_profile({"schedulerName": "b"}, "b"))
    assert "extenders" not in document
    assert findings == ["profile a: extender http://x.example is left out: there is one list for all profiles, and these differ"]


def test_a_backoff_of_each_profile_s_own_is_listed_and_the_first_is_taken() -> None:
    backoffs = {"a": {"initialSeconds": 2, "maxSeconds": 20}, "b": {"initialSeconds": 0.5, "maxSeconds": 8}}
    document, findings = there(*(a_profile({"schedulerName": name, "backoff": one}, name) for name, one in backoffs.items()))
    assert (document["podInitialBackoffSeconds"], document["podMaxBackoffSeconds"]) == (2, 20)
    assert findings == ["profile b: backoff of 0.5 s to 8 s: there is one for all profiles, in whole seconds from 1 on"]


def test_paused_and_plugins_of_the_past_are_listed() -> None:
    spec = {
        "paused": True,
        "plugins": {"multiPoint": {"enabled": [{"name": "NodeLabel"}]}, "score": {"disabled": [{"name": "SelectorSpread"}]}},
        "pluginConfig": [{"name": "NodeLabel", "args": {"presentLabels": ["rack"]}}],
    }
    document, findings = there(a_profile(spec, "default-scheduler"))
    assert document["profiles"] == [{"schedulerName": "default-scheduler"}]
    assert findings == [
        "profile default-scheduler: plugin NodeLabel: kube-scheduler does not have it any more",
        "profile default-scheduler: paused: a kube-scheduler with this file takes pods",
    ]


def test_plugins_of_one_s_own_and_gated_fields_are_mentioned() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    spec = {
        "plugins": {"multiPoint": {"enabled": [{"name": "Tetris"}]}},
        "pluginConfig": [{"name": "VolumeBinding", "args": {"shape": shape}}],
    }
    _, findings = to_configuration([a_profile(spec, "default-scheduler")], PLUGINS)
    assert [finding.text for finding in findings] == [
        "plugin Tetris: needs a kube-scheduler with it built in",
        "VolumeBinding.shape needs kube-scheduler's feature gate StorageCapacityScoring",
    ]


def test_a_setting_that_a_configuration_cannot_hold_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a new field of the profile is not lost in silence."""
    monkeypatch.setattr(writer, "_HELD", frozenset({"paused"}))
    _, findings = to_configuration([a_profile({"paused": True, "backoff": {"maxSeconds": 20}}, "default-scheduler")], PLUGINS)
    assert "backoff.maxSeconds 20: kube-scheduler has no such setting" in [finding.text for finding in findings]
    assert not [finding for finding in findings if finding.text.startswith("paused true")]


def test_turns_of_tenants_are_listed() -> None:
    fairness = {"by": "Label", "label": "team", "weights": {"a": 3}}
    _, findings = to_configuration([a_profile({"fairness": fairness}, "default-scheduler")], PLUGINS)
    assert [finding.text for finding in findings] == [
        'fairness.by "Label": kube-scheduler has no such setting',
        'fairness.label "team": kube-scheduler has no such setting',
        'fairness.share "Resources": kube-scheduler has no such setting',
        'fairness.weights {"a": 3}: kube-scheduler has no such setting',
    ]
    _, findings = to_configuration([a_profile({"fairness": {"by": "None"}}, "default-scheduler")], PLUGINS)
    assert [finding.text for finding in findings] == []


def test_each_rule_of_preemption_is_listed() -> None:
    rules = {"policy": "LowerPriority", "disruptionBudgets": "Strict", "maxVictims": 3, "protect": {"matchLabels": {"a": "b"}}}
    _, findings = to_configuration([a_profile({"preemption": rules}, "default-scheduler")], PLUGINS)
    assert [finding.text for finding in findings] == [
        'preemption.disruptionBudgets "Strict": kube-scheduler has no such setting',
        "preemption.maxVictims 3: kube-scheduler has no such setting",
        'preemption.protect {"matchLabels": {"a": "b"}}: kube-scheduler has no such setting',
    ]
