"""The legacy Policy file as a profile: the plugins that filter and score, against tables written down apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.kubescheduler.findings import Loss, without_counterpart
from placewright.profiles.kubescheduler.reader import Conversion, convert
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright_legacy_plugins import NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity
from randomcases import cases

PLUGINS = in_tree().extended([NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity])
FIT, SPREAD = "NodeResourcesFit", "PodTopologySpread"

#: The fact sheet's table (reference 10.1), by the names of the time.
FILTERS = {
    "CheckNodeUnschedulable": {"NodeUnschedulable"}, "GeneralPredicates": {FIT, "NodeName", "NodePorts", "NodeAffinity"},
    "HostName": {"NodeName"}, "PodFitsHostPorts": {"NodePorts"}, "PodFitsPorts": {"NodePorts"}, "MatchNodeSelector": {"NodeAffinity"},
    "PodFitsResources": {FIT}, "NoDiskConflict": {"VolumeRestrictions"}, "PodToleratesNodeTaints": {"TaintToleration"},
    "MaxEBSVolumeCount": {"EBSLimits"}, "MaxGCEPDVolumeCount": {"GCEPDLimits"}, "MaxCSIVolumeCountPred": {"NodeVolumeLimits"},
    "MaxAzureDiskVolumeCount": {"AzureDiskLimits"}, "MaxCinderVolumeCount": {"CinderLimits"}, "CheckVolumeBinding": {"VolumeBinding"},
    "NoVolumeZoneConflict": {"VolumeZone"}, "EvenPodsSpread": {SPREAD}, "MatchInterPodAffinity": {"InterPodAffinity"},
}  # fmt: skip
SCORES = {
    "SelectorSpreadPriority": SPREAD, "ServiceSpreadingPriority": SPREAD, "EvenPodsSpreadPriority": SPREAD,
    "InterPodAffinityPriority": "InterPodAffinity", "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods", "NodeAffinityPriority": "NodeAffinity", "LeastRequestedPriority": FIT,
    "TaintTolerationPriority": "TaintToleration", "ImageLocalityPriority": "ImageLocality",
}  # fmt: skip
MANDATORY = {"TaintToleration", "NodeUnschedulable"}
#: Filters and scores that came after the Policy.
LATER = {"DynamicResources", "NodeDeclaredFeatures", "GangScheduling"}


def converted(**fields: Any) -> Conversion:
    return convert(json.dumps({"kind": "Policy", "apiVersion": "v1", **fields}), "policy.json", PLUGINS)


def effect(**fields: Any) -> ResolvedProfile:
    return resolve(converted(**fields).profiles[0], PLUGINS)


def filters(result: ResolvedProfile) -> set[str]:
    return set(result.at(ExtensionPoint.FILTER)) - LATER


def weights(result: ResolvedProfile) -> dict[str, int]:
    return {name: weight for name, weight in result.weights.items() if name not in LATER and name != "VolumeBinding"}


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def weighed(**priorities: int) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} for name, weight in priorities.items()]


# --- lists ------------------------------------------------------------------------------------------------------------------------


def test_absent_lists_are_the_default_sets_of_the_time() -> None:
    result = effect()
    assert filters(result) == set().union(*FILTERS.values()) - {"CinderLimits"}
    assert weights(result) == {
        SPREAD: 2, "InterPodAffinity": 1, FIT: 1, "NodeResourcesBalancedAllocation": 1, "NodePreferAvoidPods": 10000, "NodeAffinity": 1,
        "TaintToleration": 1, "ImageLocality": 1,
    }  # fmt: skip


def test_empty_lists_leave_the_mandatory_predicates_and_no_priority() -> None:
    result = effect(predicates=[], priorities=[])
    assert filters(result) == MANDATORY
    assert weights(result) == {}


def test_what_came_after_the_policy_stays_on() -> None:
    result = effect(predicates=[], priorities=[])
    for name in ("SchedulingGates", "PrioritySort", "DefaultPreemption", "DynamicResources", "DefaultBinder"):
        assert name in result.plugin_names


@given(st.sets(st.sampled_from(sorted(FILTERS))), st.dictionaries(st.sampled_from(sorted(SCORES)), st.integers(1, 1000)))
@settings(max_examples=cases(150))
def test_any_choice_filters_and_scores_as_the_tables_say(predicates: set[str], priorities: dict[str, int]) -> None:
    result = effect(predicates=named(*sorted(predicates)), priorities=weighed(**priorities))
    assert filters(result) == MANDATORY.union(*(FILTERS[name] for name in predicates))
    expected: dict[str, int] = {}
    for name, weight in priorities.items():
        expected[SCORES[name]] = max(weight, expected.get(SCORES[name], 0))
    assert weights(result) == expected


def test_a_plugin_that_only_scores_neither_filters_nor_reserves() -> None:
    result = effect(predicates=[], priorities=weighed(LeastRequestedPriority=3))
    assert FIT not in result.at(ExtensionPoint.FILTER) + result.at(ExtensionPoint.PRE_FILTER)
    assert "VolumeBinding" not in result.plugin_names


# --- arguments --------------------------------------------------------------------------------------------------------------------


def test_labels_that_nodes_must_have_come_from_predicates_of_any_name() -> None:
    predicates = [
        {"name": "Rack", "argument": {"labelsPresence": {"labels": ["rack", "row"], "presence": True}}},
        {"name": "NotOld", "argument": {"labelsPresence": {"labels": ["old"], "presence": False}}},
        {"name": "Hall", "argument": {"serviceAffinity": {"labels": ["hall"]}}},
    ]
    result = effect(predicates=predicates, priorities=[])
    label: Any = result.args["NodeLabel"]
    service: Any = result.args["ServiceAffinity"]
    assert (label.present_labels, label.absent_labels) == (("rack", "row"), ("old",))
    assert service.affinity_labels == ("hall",)
    assert weights(result) == {}


def test_preferred_labels_weigh_as_often_as_there_are_labels() -> None:
    priorities = [
        {"name": "ssd", "weight": 3, "argument": {"labelPreference": {"label": "ssd", "presence": True}}},
        {"name": "old", "weight": 3, "argument": {"labelPreference": {"label": "old", "presence": False}}},
        {"name": "racks", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "rack"}}},
        {"name": "rows", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "row"}}},
        {"name": "halls", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "hall"}}},
    ]
    result = effect(predicates=[], priorities=priorities)
    label: Any = result.args["NodeLabel"]
    service: Any = result.args["ServiceAffinity"]
    assert (label.present_labels_preference, label.absent_labels_preference) == (("ssd",), ("old",))
    assert service.anti_affinity_labels_preference == ("rack", "row", "hall")
    assert weights(result) == {"NodeLabel": 6, "ServiceAffinity": 6}


def test_a_shape_becomes_a_strategy() -> None:
    argument = {
        "requestedToCapacityRatioArguments": {
            "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
            "resources": [{"name": "example.com/gpu", "weight": 3}],
        }
    }
    result = effect(priorities=[{"name": "Pack", "weight": 4, "argument": argument}])
    args: Any = result.args[FIT]
    assert (args.scoring_strategy.type, result.weights[FIT]) == ("RequestedToCapacityRatio", 4)
    assert [point.score for point in args.scoring_strategy.requested_to_capacity_ratio.shape] == [0, 10]


def test_least_and_most_requested_cannot_both_be_and_the_lighter_is_listed() -> None:
    conversion = converted(priorities=weighed(LeastRequestedPriority=1, MostRequestedPriority=2))
    args: Any = resolve(conversion.profiles[0], PLUGINS).args[FIT]
    assert args.scoring_strategy.type == "MostAllocated"
    assert len(without_counterpart(conversion.findings)) == 1


@pytest.mark.parametrize(("priority", "system"), [("SelectorSpreadPriority", True), ("EvenPodsSpreadPriority", False)])
def test_pods_without_constraints_are_spread_only_where_selector_spread_was_asked_for(priority: str, system: bool) -> None:
    args: Any = effect(priorities=weighed(**{priority: 1})).args[SPREAD]
    assert bool(args.defaults) is system


def test_the_symmetric_weight_is_an_argument_of_inter_pod_affinity() -> None:
    args: Any = effect(hardPodAffinitySymmetricWeight=42).args["InterPodAffinity"]
    assert args.hard_pod_affinity_weight == 42


@pytest.mark.parametrize(("written", "seconds"), [(100_000_000, 0.1), (5_000_000_000, 5.0), (1_500, 1.5e-6), ("7s", 7.0), (0, 5.0)])
@pytest.mark.parametrize("spelling", ["enableHttps", "enableHTTPS"])
def test_extenders_are_taken_along_with_timeouts_in_nanoseconds(written: int | str, seconds: float, spelling: str) -> None:
    extender = {
        "urlPrefix": "https://127.0.0.1:12346/s", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 5, spelling: True,
        "httpTimeout": written, "nodeCacheCapable": True, "ignorable": True,
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    }  # fmt: skip
    (found,) = effect(extenders=[extender]).extenders
    assert (found.url_prefix, found.weight, found.enable_https, found.node_cache_capable) == (extender["urlPrefix"], 5, True, True)
    assert found.http_timeout == pytest.approx(seconds)
    assert found.managed_resources[0].ignored_by_scheduler


# --- what is gone, and bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predicate", ["CheckNodeCondition", "CheckNodeMemoryPressure", "PodToleratesNodeNoExecuteTaints"])
def test_predicates_that_taints_replaced_lose_nothing(predicate: str) -> None:
    conversion = converted(predicates=named(predicate), priorities=weighed(EqualPriority=1))
    assert filters(resolve(conversion.profiles[0], PLUGINS)) == MANDATORY
    assert [finding.path for finding in conversion.findings] == ["predicates[0]", "priorities[0]"]
    assert without_counterpart(conversion.findings) == ()


def test_what_has_no_counterpart_is_listed() -> None:
    conversion = converted(priorities=weighed(ResourceLimitsPriority=1), alwaysCheckAllPredicates=True)
    assert [finding.path for finding in without_counterpart(conversion.findings)] == ["priorities[0]", "alwaysCheckAllPredicates"]


def test_names_that_nobody_knows_are_left_out_and_listed_with_the_nearest() -> None:
    """Schedulers were built with predicates and priorities of their own."""
    conversion = converted(predicates=named("NoDiskConflicts"), priorities=weighed(NetworkMinCost=5, LeastRequestPriority=1))
    assert filters(resolve(conversion.profiles[0], PLUGINS)) == MANDATORY
    assert weights(resolve(conversion.profiles[0], PLUGINS)) == {}
    assert {finding.loss for finding in conversion.findings} == {Loss.PLACEMENT}
    assert [str(finding) for finding in conversion.findings] == [
        "predicates[0]: NoDiskConflicts: no predicate of this name is known (did you mean 'NoDiskConflict'?); it is left out",
        "priorities[0]: NetworkMinCost: no priority of this name is known; it is left out",
        "priorities[1]: LeastRequestPriority: no priority of this name is known (did you mean 'LeastRequestedPriority'?); it is left out",
    ]


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a weight of nothing": ({"priorities": named("ImageLocalityPriority")}, "priorities[0].weight: found 0; allowed 1 or more"),
    "two arguments": (
        {"predicates": [{"name": "a", "argument": {"labelsPresence": {"labels": []}, "serviceAffinity": {"labels": []}}}]},
        "predicates[0].argument: found serviceAffinity and labelsPresence; allowed one of them",
    ),
    "two weights for labels": (
        {"priorities": [
            {"name": name, "weight": weight, "argument": {"labelPreference": {"label": name}}} for name, weight in (("a", 1), ("b", 2))
        ]},
        "priorities[1].weight: found 2; allowed 1, as of the priority of this sort before it",
    ),
    "a ratio without a shape": (
        {"priorities": weighed(RequestedToCapacityRatioPriority=1)},
        "priorities[0].argument: found nothing; allowed requestedToCapacityRatioArguments with a shape",
    ),
    "a negative timeout": (
        {"extenders": [{"urlPrefix": "http://x", "filterVerb": "f", "httpTimeout": -1}]},
        "extenders[0].httpTimeout: found -1; allowed nanoseconds, 0 or more",
    ),
    "an unknown field": ({"predicate": []}, "predicate: found an unknown field; allowed "),
    "another version": ({"apiVersion": "v2"}, 'apiVersion: found "v2"; allowed v1'),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_kube_scheduler_died_of_is_refused_in_one_line(case: str) -> None:
    fields, line = CASES[case]
    with pytest.raises(ProfileError) as caught:
        converted(**fields)
    assert str(caught.value).startswith(f"policy.json: {line}")
    assert "\n" not in str(caught.value)
