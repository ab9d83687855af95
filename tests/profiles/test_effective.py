"""The effective profile as people see it, and how two of them differ."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.framework.runtime.resolvedprofile import ExtensionPoint, Origin, ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.effective import (
    HIDDEN,
    Difference,
    ValueWithOrigin,
    as_document,
    changed_settings,
    differences,
    effective_plugins,
)
from placewright.profiles.presets import PRESETS
from placewright.profiles.resolve import resolve
from profiles.makers import a_profile

PLUGINS = in_tree()


def resolved(**spec: Any) -> ResolvedProfile:
    return resolve(a_profile(spec), PLUGINS)


def found(before: ResolvedProfile, after: ResolvedProfile) -> dict[str, tuple[Any, Any]]:
    return {each.what: (each.before, each.after) for each in differences(before, after)}


# --- one profile -----------------------------------------------------------------------------------------------------------------


def test_every_plugin_is_shown_with_its_points_weight_and_arguments_and_where_they_came_from() -> None:
    shown = {each.name: each for each in effective_plugins(resolved(preset="bin-packing", weights={"ImageLocality": 7}))}
    assert set(shown) == set(resolved().plugin_names) - {"NodeResourcesBalancedAllocation"}
    assert shown["ImageLocality"].weight == ValueWithOrigin(7, Origin.WEIGHTS)
    fit = shown["NodeResourcesFit"]
    assert fit.weight == ValueWithOrigin(5, Origin.PRESET)
    assert fit.args["scoringStrategy"].origin is Origin.PRESET
    assert fit.args["scoringStrategy"].value["type"] == "MostAllocated"
    assert fit.args["ignoredResources"] == ValueWithOrigin([], Origin.DEFAULT)
    assert fit.points[ExtensionPoint.FILTER] is Origin.DEFAULT
    assert shown["DefaultBinder"].weight is None


def test_the_document_is_plain_data_in_the_words_of_documents() -> None:
    document = as_document(resolved())
    assert msgspec.json.decode(msgspec.json.encode(document)) == document
    args = {plugin["name"]: plugin.get("args") for plugin in document["plugins"]}
    assert args["InterPodAffinity"]["hardPodAffinityWeight"] == {"value": 1, "from": "default"}
    assert document["percentageOfNodesToScore"] == 100
    assert document["points"]["bind"] == ["DefaultBinder"]


def test_the_private_key_of_an_extender_is_not_shown() -> None:
    tls = {"certData": "YQ==", "keyData": "c2VjcmV0"}
    spec = {"urlPrefix": "https://x.test", "filterVerb": "filter", "enableHTTPS": True, "tlsConfig": tls}
    (shown,) = as_document(with_extender(spec))["extenders"]
    assert shown["tlsConfig"]["keyData"] == HIDDEN
    assert shown["filterVerb"] == "filter"
    assert shown["enableHTTPS"] is True
    assert "c2VjcmV0" not in str(shown)


def with_extender(extender: dict[str, Any]) -> ResolvedProfile:
    """Past the check of the certificate, which is none."""
    tls = extender.pop("tlsConfig", None)
    made = resolved(extenders=[extender])
    if tls is None:
        return made
    settings = msgspec.structs.replace(
        made.extenders[0],
        tls_config=msgspec.structs.replace(made.extenders[0].tls_config, cert_data=tls["certData"], key_data=tls["keyData"]),
    )
    return replaced(made, extenders=(settings,))


def replaced(made: ResolvedProfile, **fields: Any) -> ResolvedProfile:
    values = {name: getattr(made, name) for name in made.__dataclass_fields__}
    return ResolvedProfile(**(values | fields))


def test_settings_that_are_not_those_of_a_silent_profile_are_told_by_path() -> None:
    spec = a_profile({"paused": True, "backoff": {"maxSeconds": 20}, "weights": {"NodeAffinity": 9}}).spec
    assert [*changed_settings(spec)] == [Difference("paused", False, True), Difference("backoff.maxSeconds", 10, 20)]
    assert not [*changed_settings(a_profile({"percentageOfNodesToScore": 0}).spec)]


def test_of_the_rules_of_preemption_the_ones_that_change_something_are_told_each_by_itself() -> None:
    strict = resolved(preemption={"disruptionBudgets": "Strict", "waitSeconds": 60, "policy": "LowerPriority"})
    assert as_document(strict)["preemption"] == {"disruptionBudgets": "Strict", "waitSeconds": 60}
    assert "preemption" not in as_document(resolved(preemption={}))
    assert found(resolved(preemption={"minRunSeconds": 0}), strict) == {
        "preemption.disruptionBudgets": (None, "Strict"), "preemption.waitSeconds": (None, 60)
    }  # fmt: skip
    assert found(strict, resolved(preemption={"waitSeconds": 30})) == {
        "preemption.disruptionBudgets": ("Strict", None), "preemption.waitSeconds": (60, 30)
    }  # fmt: skip


# --- two profiles ----------------------------------------------------------------------------------------------------------------


def test_a_weight_is_one_difference() -> None:
    assert differences(resolved(), resolved(weights={"NodeAffinity": 9})) == (Difference("weights.NodeAffinity", 2, 9),)


def test_a_plugin_that_does_not_score_any_more_has_weight_0_and_is_not_told_twice() -> None:
    assert found(resolved(), resolved(weights={"ImageLocality": 0, "NodeAffinity": 0})) == {
        "weights.ImageLocality": (1, 0),
        "weights.NodeAffinity": (2, 0),
    }


def test_a_plugin_that_is_taken_away_is_told_with_the_points_where_it_ran() -> None:
    without = resolved(plugins={"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}})
    ran_at = ", ".join(point for point in ExtensionPoint if "DefaultPreemption" in resolved().at(point))
    assert found(resolved(), without) == {"plugins.DefaultPreemption": (ran_at, None)}
    assert found(without, resolved()) == {"plugins.DefaultPreemption": (None, ran_at)}


def test_arguments_are_compared_field_by_field() -> None:
    strategy = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 2}, {"name": "memory", "weight": 1}]}}
    after = resolved(pluginConfig=[{"name": "NodeResourcesFit", "args": strategy}])
    assert found(resolved(), after) == {
        "NodeResourcesFit.scoringStrategy.type": ("LeastAllocated", "MostAllocated"),
        "NodeResourcesFit.scoringStrategy.resources": (
            [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
            [{"name": "cpu", "weight": 2}, {"name": "memory", "weight": 1}],
        ),
    }


def test_settings_of_the_whole_profile_are_told_first() -> None:
    after = resolved(paused=True, percentageOfNodesToScore=40, backoff={"initialSeconds": 2, "maxSeconds": 20}, weights={"NodeAffinity": 3})
    assert [each.what for each in differences(resolved(), after)] == [
        "paused", "percentageOfNodesToScore", "backoff.initialSeconds", "backoff.maxSeconds", "weights.NodeAffinity",
    ]  # fmt: skip


def test_another_order_is_a_difference() -> None:
    after = resolved(plugins={"filter": {"enabled": [{"name": "NodePorts"}]}})
    ((what, before, now),) = differences(resolved(), after)
    assert what == "order at filter"
    assert now.startswith("NodePorts, ")
    assert sorted(before.split(", ")) == sorted(now.split(", "))


def test_extenders_are_known_by_their_url() -> None:
    one = {"urlPrefix": "http://one.test", "filterVerb": "filter"}
    assert found(resolved(extenders=[one]), resolved(extenders=[{**one, "httpTimeout": "2s"}])) == {
        "extender http://one.test.httpTimeout": (5, 2)
    }
    assert list(found(resolved(), resolved(extenders=[one]))) == ["extender http://one.test"]


def test_another_private_key_is_told_and_not_shown() -> None:
    spec = {"urlPrefix": "https://x.test", "filterVerb": "filter", "enableHTTPS": True}
    before, after = (with_extender({**spec, "tlsConfig": {"certData": "YQ==", "keyData": key}}) for key in ("b25l", "dHdv"))
    assert found(before, after) == {"extender https://x.test.tlsConfig.keyData": ("one key", "another")}


@pytest.mark.parametrize("spec", [{"preset": "default"}, {"weights": {"NodeAffinity": 2}}, {"percentageOfNodesToScore": 0}])
def test_what_is_only_written_differently_is_no_difference(spec: dict[str, Any]) -> None:
    assert differences(resolved(), resolved(**spec)) == ()


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "preset": st.sampled_from(list(PRESETS)),
        "weights": st.dictionaries(st.sampled_from(["NodeAffinity", "ImageLocality", "NodeResourcesFit"]), st.integers(0, 3)),
        "paused": st.booleans(),
        "backoff": st.fixed_dictionaries({"initialSeconds": st.integers(1, 2), "maxSeconds": st.integers(2, 3)}),
        "plugins": st.sampled_from(
            [
                {},
                {"multiPoint": {"disabled": [{"name": "NodePorts"}]}},
                {"filter": {"disabled": [{"name": "NodePorts"}]}},
                {"score": {"enabled": [{"name": "NodeAffinity", "weight": 2}]}},
                {"filter": {"enabled": [{"name": "NodePorts"}]}},
            ]
        ),
    },
)


@given(SPECS, SPECS)
def test_there_are_differences_exactly_where_two_profiles_decide_differently(one: dict[str, Any], other: dict[str, Any]) -> None:
    before, after = resolved(**one), resolved(**other)
    same = replaced(before, points=dict(before.points)) == replaced(after, points=dict(after.points))
    forth, back = differences(before, after), differences(after, before)
    assert (forth == ()) is same
    assert {(each.what, each.after, each.before) for each in map(text, forth)} == {tuple(each) for each in map(text, back)}


def text(difference: Difference) -> Difference:
    return Difference(difference.what, str(difference.before), str(difference.after))
