"""A configuration of scheduler-plugins' Coscheduling, as its manifests have it, places groups here without a word more."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.plugins.gangscheduling import GangSchedulingArgs
from placewright.plugins.schedulinggates import SchedulingGates
from placewright.profiles.config import read_profiles
from placewright.profiles.kubescheduler.findings import Loss
from placewright.profiles.kubescheduler.reader import Conversion, convert
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve

PLUGINS = in_tree()
GATE, SORT = ExtensionPoint.PRE_ENQUEUE, ExtensionPoint.QUEUE_SORT
#: What manifests/coscheduling/scheduler-config.yaml of scheduler-plugins says.
THEIRS = {
    "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
    "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
}
#: As configurations before multiPoint did it.
POINT_BY_POINT = {
    "queueSort": THEIRS["queueSort"],
    **{point: {"enabled": [{"name": "Coscheduling"}]} for point in ("preFilter", "postFilter", "permit", "reserve")},
}


def converted(plugins: dict[str, Any], args: dict[str, Any] | None = None, *more: dict[str, Any]) -> Conversion:
    configs = ([{"name": "Coscheduling", "args": args}] if args is not None else []) + list(more)
    profile = {"schedulerName": "web", "plugins": plugins, "pluginConfig": configs}
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    return convert(yaml.safe_dump(document), "scheduler.yaml", PLUGINS)


def effect(conversion: Conversion) -> ResolvedProfile:
    (profile,) = conversion.profiles
    return resolve(profile, PLUGINS)


def settings(conversion: Conversion) -> GangSchedulingArgs:
    args = effect(conversion).args["GangScheduling"]
    assert isinstance(args, GangSchedulingArgs)
    return args


@pytest.mark.parametrize("plugins", [THEIRS, POINT_BY_POINT], ids=["multiPoint", "point by point"])
def test_it_becomes_the_default_plugin_and_the_queue_is_sorted_as_ever(plugins: dict[str, Any]) -> None:
    conversion = converted(plugins, {"permitWaitingTimeSeconds": 10})
    result = effect(conversion)
    assert "GangScheduling" in result.at(GATE) and result.at(SORT) == ("PrioritySort",)
    assert "Coscheduling" not in result.plugin_names
    assert settings(conversion).schedule_timeout_seconds == 10
    assert {finding.loss for finding in conversion.findings} == {Loss.NOTE}
    assert [str(finding) for finding in conversion.findings] == [
        "profiles[0].plugins: Coscheduling is GangScheduling here, a default plugin: same PodGroups, same label",
        "profiles[0].pluginConfig: Coscheduling: permitWaitingTimeSeconds is GangScheduling's scheduleTimeoutSeconds",
    ]


@pytest.mark.parametrize("point", ["multiPoint", "preEnqueue"])
@pytest.mark.parametrize("disabled", ["*", "GangScheduling"])
def test_where_the_defaults_are_off_it_is_switched_on(point: str, disabled: str) -> None:
    plugins = {**POINT_BY_POINT, point: {"disabled": [{"name": disabled}]}, "bind": {"enabled": [{"name": "DefaultBinder"}]}}
    plugins["queueSort"] = {"enabled": [{"name": "PrioritySort"}]}
    assert "GangScheduling" in effect(converted(plugins)).at(GATE)


def test_another_plugin_that_sorts_the_queue_stays() -> None:
    plugins = {"queueSort": {"enabled": [{"name": "PrioritySort"}], "disabled": [{"name": "*"}]}, "multiPoint": THEIRS["multiPoint"]}
    assert effect(converted(plugins)).at(SORT) == ("PrioritySort",)


def test_settings_without_a_counterpart_are_told_one_by_one() -> None:
    conversion = converted(THEIRS, {"podGroupBackoffSeconds": 5, "podGroupRejectPercentage": 30, "somethingNew": [1]})
    told = [finding for finding in conversion.findings if finding.loss is Loss.SETTING]
    assert {finding.path for finding in told} == {"profiles[0].pluginConfig"}
    assert [finding.text for finding in told] == [
        'Coscheduling: "podGroupBackoffSeconds" 5: a group backs off as a pod does; the profile\'s backoff says how long',
        'Coscheduling: "podGroupRejectPercentage" 30: a group is decided as a whole, and refused as a whole',
        'Coscheduling: "somethingNew" [1]: there is no such setting here',
    ]


@pytest.mark.parametrize("seconds", [-1, "10", 2.5, True, [], {}])
def test_a_wait_that_is_no_number_of_seconds_is_told_and_left_out(seconds: Any) -> None:
    conversion = converted(THEIRS, {"permitWaitingTimeSeconds": seconds})
    assert settings(conversion).schedule_timeout_seconds == 0
    assert "no number of seconds above 0" in str(conversion.findings[-1])


@pytest.mark.parametrize("args", [{"podGroupBackoffSeconds": 0}, {"permitWaitingTimeSeconds": 0}, {}])
def test_a_setting_that_says_nothing_is_not_told(args: dict[str, Any]) -> None:
    assert [finding.loss for finding in converted(THEIRS, args).findings] == [Loss.NOTE]


def test_what_the_configuration_already_says_of_gang_scheduling_goes_first() -> None:
    ours = {"name": "GangScheduling", "args": {"scheduleTimeoutSeconds": 99, "reservations": 2}}
    read = settings(converted(THEIRS, {"permitWaitingTimeSeconds": 10}, ours))
    assert (read.schedule_timeout_seconds, read.reservations) == (99, 2)


def test_a_profile_that_switches_it_off_says_nothing_and_changes_nothing() -> None:
    conversion = converted({"multiPoint": {"disabled": [{"name": "Coscheduling"}]}})
    assert "GangScheduling" in effect(conversion).at(GATE) and not [f for f in conversion.findings if f.loss is not Loss.NOTE]


def test_a_plugin_of_that_name_that_is_installed_is_left_alone() -> None:
    class Coscheduling(SchedulingGates):
        """Somebody's own."""

        name = "Coscheduling"

    installed = PLUGINS.extended([Coscheduling])
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "web", "plugins": {"preEnqueue": {"enabled": [{"name": "Coscheduling"}]}}}],
    }
    (profile,) = convert(yaml.safe_dump(document), "scheduler.yaml", installed).profiles
    enabled = profile.spec.plugins.pre_enqueue.enabled
    assert [ref.name for ref in enabled or ()] == ["Coscheduling"]


def test_a_scheduling_profile_that_names_it_is_told_what_does_its_work() -> None:
    text = "apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: x}\n"
    text += "spec: {schedulerName: x, plugins: {permit: {enabled: [{name: Coscheduling}]}}}\n"
    (profile,) = read_profiles(text, "test")
    said = 'found "Coscheduling"; allowed a known plugin; GangScheduling, a default plugin, reads the same PodGroups'
    with pytest.raises(ProfileError, match=said):
        resolve(profile, PLUGINS)
