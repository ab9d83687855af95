"""Configurations of kube-scheduler, v1 and before, as profiles: what they meant then is what they mean now."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.kubescheduler.documents import manifest, to_yaml
from placewright.profiles.kubescheduler.findings import Loss, without_counterpart
from placewright.profiles.kubescheduler.process import ProcessSettings
from placewright.profiles.kubescheduler.reader import Conversion, convert, object_name
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright_legacy_plugins import NodePreferAvoidPods

PLUGINS = in_tree().extended([NodePreferAvoidPods])
SCORE, FILTER = ExtensionPoint.SCORE, ExtensionPoint.FILTER
BETAS = ("v1beta1", "v1beta2", "v1beta3")
LEAST, MOST, FIT = "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", "NodeResourcesFit"
#: The score plugins of the default profile and their weights, as `getDefaultPlugins` of each version lists them.
EVEN = {
    "NodeResourcesBalancedAllocation": 1, "ImageLocality": 1, "InterPodAffinity": 1, FIT: 1, "NodeAffinity": 1, "PodTopologySpread": 2,
    "TaintToleration": 1,
}  # fmt: skip
UNEVEN = EVEN | {"InterPodAffinity": 2, "NodeAffinity": 2, "TaintToleration": 3}
SCORES = {"v1beta1": EVEN | {"NodePreferAvoidPods": 10000}, "v1beta2": EVEN, "v1beta3": UNEVEN, "v1": UNEVEN}
DISKS = {"EBSLimits", "GCEPDLimits", "AzureDiskLimits"}


def converted(version: str = "v1", **fields: Any) -> Conversion:
    document = {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "KubeSchedulerConfiguration", **fields}
    return convert(yaml.safe_dump(document), "scheduler.yaml", PLUGINS)


def one(version: str = "v1", **profile: Any) -> Conversion:
    return converted(version, profiles=[{"schedulerName": "web", **profile}])


def effect(conversion: Conversion) -> ResolvedProfile:
    (profile,) = conversion.profiles
    return resolve(profile, PLUGINS)


def on(*names: Any) -> list[dict[str, Any]]:
    return [{"name": one} if isinstance(one, str) else {"name": one[0], "weight": one[1]} for one in names]


def lost(conversion: Conversion) -> list[str]:
    return [str(finding) for finding in without_counterpart(conversion.findings)]


def strategy(result: ResolvedProfile) -> Any:
    args: Any = result.args[FIT]
    return args.scoring_strategy


# --- the defaults of each version -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", SCORES)
def test_the_default_profile_of_each_version_scores_with_that_version_s_weights(version: str) -> None:
    weights = dict(effect(converted(version)).weights)
    came_later = {"VolumeBinding", "DynamicResources"}
    assert {name: weight for name, weight in weights.items() if name not in came_later} == SCORES[version]


@pytest.mark.parametrize("version", BETAS)
def test_limits_of_disks_that_were_on_by_default_stay_on_and_are_mentioned(version: str) -> None:
    conversion = converted(version)
    assert set(effect(conversion).at(FILTER)) >= DISKS
    assert lost(conversion) == []
    (note,) = conversion.findings
    assert note.loss is Loss.NOTE
    assert f"on by default in {version}" in note.text


def test_v1_has_no_such_limits() -> None:
    conversion = converted("v1")
    assert DISKS.isdisjoint(effect(conversion).plugin_names)
    assert conversion.findings == ()


@pytest.mark.parametrize("version", BETAS)
def test_a_former_default_that_the_profile_switched_off_stays_off(version: str) -> None:
    by_name = effect(one(version, plugins={"filter": {"disabled": on("EBSLimits")}}))
    assert DISKS & set(by_name.plugin_names) == DISKS - {"EBSLimits"}
    assert DISKS.isdisjoint(effect(one(version, plugins={"filter": {"disabled": on("*")}})).plugin_names)


def test_a_former_default_that_the_profile_weighs_itself_keeps_that_weight() -> None:
    enabled = {"enabled": on(("NodePreferAvoidPods", 7)), "disabled": on("NodePreferAvoidPods")}
    assert effect(one("v1beta1", plugins={"score": enabled})).weights["NodePreferAvoidPods"] == 7


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_weight_that_the_profile_states_goes_before_the_version_s(version: str) -> None:
    weights = effect(one(version, plugins={"score": {"enabled": on(("TaintToleration", 9))}})).weights
    assert (weights["TaintToleration"], weights["NodeAffinity"]) == (9, 1)


@pytest.mark.parametrize("version", SCORES)
def test_a_star_at_score_leaves_what_the_profile_enables(version: str) -> None:
    plugins = {"score": {"disabled": on("*"), "enabled": on(("ImageLocality", 3))}}
    assert effect(one(version, plugins=plugins)).weights == {"ImageLocality": 3}


# --- plugins that became strategies -----------------------------------------------------------------------------------------------


def test_most_allocated_becomes_a_strategy_with_its_weight_and_resources() -> None:
    conversion = one(
        "v1beta1",
        plugins={"score": {"disabled": on(LEAST), "enabled": on((MOST, 5))}},
        pluginConfig=[
            {"name": MOST, "args": {"kind": f"{MOST}Args", "resources": [{"name": "cpu", "weight": 3}]}},
            {"name": FIT, "args": {"ignoredResources": ["example.com/x"]}},
        ],
    )
    result = effect(conversion)
    args: Any = result.args[FIT]
    assert (strategy(result).type, result.weights[FIT]) == ("MostAllocated", 5)
    assert [(spec.name, spec.weight) for spec in strategy(result).resources] == [("cpu", 3)]
    assert args.ignored_resources == ("example.com/x",)
    assert lost(conversion) == []


def test_requested_to_capacity_ratio_becomes_a_strategy_with_its_shape() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    ratio = "RequestedToCapacityRatio"
    result = effect(
        one(
            "v1beta1",
            plugins={"score": {"disabled": on("*"), "enabled": on((ratio, 2))}},
            pluginConfig=[{"name": ratio, "args": {"shape": shape, "resources": [{"name": "example.com/gpu", "weight": 4}]}}],
        )
    )
    assert result.weights == {FIT: 2}
    found = strategy(result)
    assert (found.type, [(spec.name, spec.weight) for spec in found.resources]) == (ratio, [("example.com/gpu", 4)])
    assert [(point.utilization, point.score) for point in found.requested_to_capacity_ratio.shape] == [(0, 0), (100, 10)]


def test_without_any_of_the_three_node_resources_fit_filters_and_does_not_score() -> None:
    result = effect(one("v1beta1", plugins={"score": {"disabled": on(LEAST)}}))
    assert FIT not in result.weights
    assert FIT in result.at(FILTER)


def test_of_several_the_heaviest_is_taken_and_the_others_are_lost() -> None:
    conversion = one("v1beta1", plugins={"score": {"enabled": on((MOST, 5))}})
    assert (strategy(effect(conversion)).type, effect(conversion).weights[FIT]) == ("MostAllocated", 5)
    (finding,) = without_counterpart(conversion.findings)
    assert finding.loss is Loss.PLACEMENT
    assert f"{LEAST} (weight 1) beside {MOST} (weight 5)" in finding.text


def test_the_resources_of_the_default_strategy_are_taken_along() -> None:
    result = effect(one("v1beta1", pluginConfig=[{"name": LEAST, "args": {"resources": [{"name": "memory", "weight": 2}]}}]))
    assert (strategy(result).type, result.weights[FIT]) == ("LeastAllocated", 1)
    assert [(spec.name, spec.weight) for spec in strategy(result).resources] == [("memory", 2)]


@pytest.mark.parametrize("version", ["v1beta2", "v1beta3", "v1"])
def test_later_versions_say_the_strategy_themselves(version: str) -> None:
    config = [{"name": FIT, "args": {"scoringStrategy": {"type": "MostAllocated"}}}]
    assert strategy(effect(one(version, pluginConfig=config))).type == "MostAllocated"


def test_default_constraints_without_a_type_are_a_list() -> None:
    constraint = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    args: Any = effect(one("v1beta1", pluginConfig=[{"name": "PodTopologySpread", "args": {"defaultConstraints": [constraint]}}])).args[
        "PodTopologySpread"
    ]
    assert [one.topology_key for one in args.defaults] == ["zone"]


# --- what has no counterpart --------------------------------------------------------------------------------------------------------


def test_a_plugin_that_nobody_has_is_left_out_and_listed() -> None:
    conversion = one(
        plugins={"permit": {"enabled": on("TargetLoadPacking")}, "queueSort": {"enabled": on("TargetLoadPacking"), "disabled": on("*")}},
        pluginConfig=[{"name": "TargetLoadPacking", "args": {"targetUtilization": 10}}],
    )
    assert effect(conversion).at(ExtensionPoint.QUEUE_SORT) == ("PrioritySort",)
    paths = [finding.path for finding in conversion.findings if finding.loss is Loss.PLACEMENT]
    assert paths == ["profiles[0].plugins.queueSort.enabled", "profiles[0].plugins.permit.enabled", "profiles[0].pluginConfig"]


def test_settings_of_the_process_are_kept_apart_and_those_without_use_are_listed() -> None:
    conversion = converted(
        "v1beta1",
        leaderElection={"leaderElect": False, "leaseDuration": "15s"},
        clientConnection={"kubeconfig": "/etc/k", "qps": 50, "burst": 100, "contentType": "application/vnd.kubernetes.protobuf"},
        parallelism=16, enableProfiling=True, healthzBindAddress="0.0.0.0:10251", metricsBindAddress="0.0.0.0:0",
    )  # fmt: skip
    assert conversion.settings == ProcessSettings(leader_elect=False, kubeconfig="/etc/k", qps=50, burst=100)
    paths = [finding.path for finding in without_counterpart(conversion.findings)]
    assert paths == [
        "parallelism", "enableProfiling", "healthzBindAddress", "leaderElection.leaseDuration", "clientConnection.contentType",
    ]  # fmt: skip


def test_zero_percent_is_mentioned_because_it_means_all_here() -> None:
    (note,) = converted(percentageOfNodesToScore=0).findings
    assert (note.path, note.loss) == ("percentageOfNodesToScore", Loss.NOTE)


# --- names, kinds and bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("web", "web"), ("My_Scheduler", "my-scheduler"), ("a..b", "a.b"), ("-x-", "x"), ("a.-b", "a.b"), ("日本", "profile"),
        ("A" * 300, "a" * 253),
    ],
)  # fmt: skip
def test_the_names_of_objects_are_ones_that_the_api_server_takes(text: str, name: str) -> None:
    assert object_name(text) == name


def test_two_names_that_become_one_are_told_apart() -> None:
    conversion = converted(profiles=[{"schedulerName": "a_b"}, {"schedulerName": "a-b"}])
    assert [(one.metadata.name, one.spec.scheduler_name) for one in conversion.profiles] == [("a-b", "a_b"), ("a-b-2", "a-b")]


def test_a_profile_passes_unchanged() -> None:
    head = "apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: web}\n"
    text = f"{head}spec: {{schedulerName: web, preset: spread}}\n"
    (profile,) = convert(text, "a.yaml", PLUGINS).profiles
    assert profile == read_profiles(text, "a.yaml")[0]


def test_what_a_config_map_carries_is_read() -> None:
    inside = yaml.safe_dump({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"})
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"scheduler-config.yaml": inside}}
    assert convert(yaml.safe_dump(config_map), "a.yaml", PLUGINS).profiles[0].spec.scheduler_name == "default-scheduler"


def test_the_configuration_in_a_scheduler_configuration_of_aks_is_read() -> None:
    profiles = [{"schedulerName": "packed", "plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 4}]}}}]
    inside = yaml.safe_dump({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": profiles})
    held = {"apiVersion": "aks.azure.com/v1alpha1", "kind": "SchedulerConfiguration", "metadata": {"name": "upstream"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [{**held, "spec": {"rawConfig": inside}}]}  # as kubectl get prints it
    (profile,) = convert(yaml.safe_dump(listed), "a.yaml", PLUGINS).profiles
    assert profile.spec == convert(inside, "b.yaml", PLUGINS).profiles[0].spec
    assert profile.spec.scheduler_name == "packed"


def test_what_is_written_holds_only_what_is_stated_and_is_read_back_as_it_was() -> None:
    conversion = one(plugins={"score": {"enabled": on(("ImageLocality", 4))}})
    text = to_yaml([manifest(profile) for profile in conversion.profiles], ["a\nb"])
    assert text.startswith("# a")
    assert yaml.safe_load(text)["spec"] == {
        "schedulerName": "web", "plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 4}]}},
    }  # fmt: skip
    assert read_profiles(text, "a.yaml")[0].spec == conversion.profiles[0].spec


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown version": (
        {"apiVersion": "kubescheduler.config.k8s.io/v1alpha2"}, 'apiVersion: found "kubescheduler.config.k8s.io/v1alpha2"',
    ),
    "an unknown field": ({"profile": []}, "profile: found an unknown field; allowed "),
    "a field of older versions": ({"healthzBindAddress": "x"}, "healthzBindAddress: found an unknown field"),
    "arguments that are wrong": (
        {"profiles": [{"pluginConfig": [{"name": FIT, "args": {"scoringStrategy": {"type": "Most"}}}]}]},
        'profile "default-scheduler".spec.pluginConfig[0].args.scoringStrategy.type: found "Most"',
    ),
    "arguments given twice": (
        {"profiles": [{"pluginConfig": [{"name": FIT}, {"name": FIT}]}]},
        f'profiles[0].pluginConfig[1].name: found "{FIT}"; allowed one entry for each plugin',
    ),
    "a schedulerName given twice": (
        {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]}, 'schedulerName: found "a"; allowed each schedulerName once',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_read_is_refused_in_one_line_with_file_and_field(case: str) -> None:
    fields, line = CASES[case]
    with pytest.raises(ProfileError) as caught:
        converted(**fields)
    assert str(caught.value).startswith(f"scheduler.yaml: {line}")
    assert "\n" not in str(caught.value)


def test_another_kind_is_refused_with_the_kinds_that_are_read() -> None:
    with pytest.raises(ProfileError, match='kind: found "Pod"; allowed SchedulingProfile, KubeSchedulerConfiguration or Policy'):
        convert("kind: Pod", "a.yaml", PLUGINS)


@pytest.mark.parametrize("text", ["kind: List\nitems: []", "kind: ConfigMap\ndata: {}", "kind: SchedulerConfiguration\nspec: []"])
def test_a_file_without_any_profile_is_refused(text: str) -> None:
    with pytest.raises(ProfileError, match=r"a\.yaml: found nothing that says how pods are placed; allowed an object of kind"):
        convert(text, "a.yaml", PLUGINS)


def test_addresses_that_are_switched_off_are_no_matter() -> None:
    assert lost(converted("v1beta2", healthzBindAddress="", metricsBindAddress="0.0.0.0:0")) == []
