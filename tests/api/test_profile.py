"""The SchedulingProfile as people write it: every field under its name, nothing checked yet, and nothing lost on the way back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from placewright.api import profile
from placewright.api.decode import DecodeError, convert, decode
from placewright.api.extenders import ExtenderSpec
from placewright.api.profile import (
    Allocation,
    Backoff,
    EmptyNodes,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    ProfileSpec,
    ProfileStatus,
    QueueSizes,
    Regret,
    SchedulingProfile,
    ShadowSettings,
    ShadowStatus,
    ShadowUse,
    default_profile,
)

#: The extension points of kube-scheduler, and `multiPoint`.
POINTS = (
    "multiPoint", "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind",
    "bind", "postBind",
)  # fmt: skip


def spec(**said: Any) -> ProfileSpec:
    return convert({"spec": said}, SchedulingProfile).spec


def as_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def test_the_resource_is_named_as_its_definition_names_it() -> None:
    assert (profile.GROUP, profile.VERSION, profile.PLURAL, profile.KIND) == (
        "placewright.dev", "v1alpha1", "schedulingprofiles", "SchedulingProfile",
    )  # fmt: skip


def test_a_spec_that_says_nothing_is_a_live_profile_without_a_name() -> None:
    assert spec() == ProfileSpec(
        scheduler_name="", preset=None, plugins=Plugins(), plugin_config=None, percentage_of_nodes_to_score=None, weights=None,
        backoff=Backoff(initial_seconds=1.0, max_seconds=10.0), extenders=None, paused=False, mode="Live", shadows=None, shadow=None,
    )  # fmt: skip
    assert not spec().is_shadow


def test_every_field_of_a_spec_is_read_under_its_name() -> None:
    read = spec(
        schedulerName="batch", preset="BinPacking", percentageOfNodesToScore=40, weights={"ImageLocality": 0}, paused=True,
        backoff={"initialSeconds": 0.5, "maxSeconds": 0}, pluginConfig=[{"name": "Fit", "args": {"kind": "x", "deep": [1, {"a": None}]}}],
        extenders=[{"urlPrefix": "http://e"}], mode="Shadow", shadows="live", shadow={"budgetPercent": 2.5},
    )  # fmt: skip
    assert (read.scheduler_name, read.preset, read.percentage_of_nodes_to_score) == ("batch", "BinPacking", 40)
    assert (read.weights, read.paused, read.backoff) == ({"ImageLocality": 0}, True, Backoff(initial_seconds=0.5, max_seconds=0.0))
    assert read.plugin_config == [PluginConfig(name="Fit", args={"kind": "x", "deep": [1, {"a": None}]})]
    assert read.extenders == [ExtenderSpec(url_prefix="http://e")]
    assert (read.is_shadow, read.shadows, read.shadow) == (True, "live", ShadowSettings(budget_percent=2.5))
    assert ShadowSettings().budget_percent == 5.0


@pytest.mark.parametrize("point", POINTS)
def test_plugins_are_switched_on_and_off_at_every_extension_point(point: str) -> None:
    read = spec(plugins={point: {"enabled": [{"name": "A", "weight": 3}, {"name": "B"}], "disabled": [{"name": "*"}]}}).plugins
    expected = PluginSet(enabled=[PluginRef(name="A", weight=3), PluginRef(name="B")], disabled=[PluginRef(name="*")])
    said = {field.encode_name: getattr(read, field.name) for field in msgspec.structs.fields(Plugins)}
    assert said == {name: expected if name == point else PluginSet() for name in POINTS}


@pytest.mark.parametrize(("mode", "is_shadow"), [("Shadow", True), ("Live", False), ("shadow", False), ("", False)])
def test_only_the_mode_makes_a_shadow(mode: str, *, is_shadow: bool) -> None:
    assert spec(mode=mode, shadows="live").is_shadow is is_shadow


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"schedulerName": None}, "$.spec.schedulerName"),
        ({"weights": {"A": "1"}}, "$.spec.weights[...]"),
        ({"weights": {"A": 1.5}}, "$.spec.weights[...]"),
        ({"percentageOfNodesToScore": True}, "$.spec.percentageOfNodesToScore"),
        ({"plugins": {"score": {"enabled": [{}]}}}, "$.spec.plugins.score.enabled[0]"),
        ({"plugins": {"score": {"enabled": "A"}}}, "$.spec.plugins.score.enabled"),
        ({"plugins": {"score": {"disabled": [{"name": "A", "weight": "3"}]}}}, "$.spec.plugins.score.disabled[0].weight"),
        ({"pluginConfig": [{"args": {}}]}, "$.spec.pluginConfig[0]"),
        ({"pluginConfig": [{"name": "A", "args": []}]}, "$.spec.pluginConfig[0].args"),
        ({"backoff": {"maxSeconds": "10"}}, "$.spec.backoff.maxSeconds"),
        ({"extenders": [{"weight": 1.5}]}, "$.spec.extenders[0].weight"),
        ({"paused": 1}, "$.spec.paused"),
        ({"shadow": {"budgetPercent": None}}, "$.spec.shadow.budgetPercent"),
        ({"mode": ["Shadow"]}, "$.spec.mode"),
    ],
)
def test_a_field_of_another_type_is_refused_by_its_path(said: dict[str, Any], field: str) -> None:
    for read in (lambda: spec(**said), lambda: decode(msgspec.json.encode({"spec": said}), SchedulingProfile)):
        with pytest.raises(DecodeError) as refused:
            read()
        assert str(refused.value).startswith("SchedulingProfile: ")
        assert f"`{field}`" in str(refused.value)


def test_settings_are_what_goes_into_effect_as_it_is_written_and_nothing_else() -> None:
    written = spec(schedulerName="batch", preset="spread", percentageOfNodesToScore=40, weights={"A": 1}, paused=True, mode="Shadow")
    assert written.settings == ProfileSpec(percentage_of_nodes_to_score=40, paused=True)
    assert spec(backoff={"maxSeconds": 20}).settings == ProfileSpec(backoff=Backoff(max_seconds=20.0))
    assert spec(percentageOfNodesToScore=0).settings == spec().settings, "0 means all nodes, as no number does"
    assert set(profile.SETTINGS) <= set(ProfileSpec.__struct_fields__)
    assert set(profile.DECIDING) <= set(ProfileSpec.__struct_encode_fields__)


# --- status ------------------------------------------------------------------------------------------------------------------------


def test_a_status_says_only_what_is_so() -> None:
    assert as_json(ProfileStatus()) == {}
    status = ProfileStatus(observed_generation=2, active_generation=1, pending=QueueSizes(total=3, active=1, gated=2))
    assert as_json(status) == {"observedGeneration": 2, "activeGeneration": 1, "pending": {"total": 3, "active": 1, "gated": 2}}


def test_what_a_shadow_found_is_written_whole_with_its_zeros() -> None:
    """A patch that leaves a zero out would leave the number of before in place."""
    uses = [ShadowUse(name="cpu", shadow=Allocation(), live=Allocation()), ShadowUse(name="example.com/gpu")]
    written = as_json(ShadowStatus(since="2026-01-01T00:00:00Z", resources=uses))
    zeros = {"decisions": 0, "meanPoints": 0.0, "maxPoints": 0.0, "meanPercent": 0.0}
    share = {"meanPercent": 0.0, "deviationPercent": 0.0}
    resources = [{"name": "cpu", "shadow": share, "live": share}, {"name": "example.com/gpu", "shadow": None, "live": None}]
    assert written == {
        "since": "2026-01-01T00:00:00Z", "liveGeneration": 0, "pods": 0, "decided": 0, "sampledPercent": 100.0, "agreementPercent": None,
        "same": 0, "other": 0, "liveOnly": 0, "shadowOnly": 0, "neither": 0, "notFeasible": 0, "regret": zeros, "liveRegret": zeros,
        "emptyNodes": {"shadow": 0, "live": 0}, "resources": resources, "pending": 0, "backlog": 0,
        "restarts": 0, "timePercent": 0.0, "errors": 0, "lastError": "",
    }  # fmt: skip
    assert (as_json(Regret()), as_json(Allocation()), as_json(EmptyNodes())) == (zeros, share, {"shadow": 0, "live": 0})


def test_a_profile_with_its_status_is_read_as_it_was_written() -> None:
    shadow = ShadowStatus(decided=5, agreement_percent=60.0, regret=Regret(decisions=2, mean_points=1.5), last_error="e")
    whole = SchedulingProfile(spec=spec(schedulerName="s", mode="Shadow"), status=ProfileStatus(active_generation=4, shadow=shadow))
    assert decode(msgspec.json.encode(whole), SchedulingProfile) == whole


# --- the default -------------------------------------------------------------------------------------------------------------------


def test_the_default_profile_is_for_the_pods_of_the_default_scheduler_and_takes_what_else_is_said() -> None:
    plain = default_profile()
    assert (plain.metadata.name, plain.spec) == ("", ProfileSpec(scheduler_name="default-scheduler"))
    named = default_profile("mine", weights={"ImageLocality": 3}, paused=True)
    assert (named.metadata.name, named.spec.scheduler_name, named.spec.weights, named.spec.paused) == (
        "mine", "default-scheduler", {"ImageLocality": 3}, True,
    )  # fmt: skip
    assert default_profile(scheduler_name="other").spec.scheduler_name == "other"
    with pytest.raises(TypeError, match="wieghts"):
        default_profile(wieghts={})
