"""The version of kube-scheduler that a profile follows, and its feature gates."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.compatibility import AUTO, CHOICES, Rule, rules_in_force
from placewright.cluster.cluster import Cluster
from placewright.framework.runtime.handle import ProfileHandle
from placewright.plugins.catalog import in_tree
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright.testing import profile


@pytest.mark.parametrize("rule", list(Rule))
def test_a_rule_is_in_force_from_its_version_on(rule: Rule) -> None:
    before = [level for level in CHOICES if level != AUTO and rule not in rules_in_force(level)]
    after = [level for level in CHOICES if level != AUTO and rule in rules_in_force(level)]
    assert [*before, *after] == list(CHOICES[1:])
    assert after[0] == f"1.{rule.since}"


@pytest.mark.parametrize(("server", "on"), [(19, False), (36, False), (37, True), (41, True)])
def test_auto_follows_the_api_server(server: int, on: bool) -> None:
    assert (Rule.VOLUME_LIMIT_SCALING in rules_in_force(AUTO, server=server)) is on


@pytest.mark.parametrize(("version", "switched"), [("1.36", True), ("1.38", False), (AUTO, True)])
def test_a_gate_goes_before_the_version(version: str, switched: bool) -> None:
    rules = rules_in_force(version, {Rule.VOLUME_LIMIT_SCALING: switched})
    assert (Rule.VOLUME_LIMIT_SCALING in rules) is switched
    assert rules - {Rule.VOLUME_LIMIT_SCALING} == rules_in_force(version) - {Rule.VOLUME_LIMIT_SCALING}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"compatibility": "1.39"}, 'spec.compatibility: found "1.39"; allowed auto, 1.20, '),
        ({"featureGates": {"VolumeLimitScalin": True}}, "(did you mean 'VolumeLimitScaling'?)"),
    ],
)
def test_other_versions_and_gates_are_refused(spec: dict[str, Any], says: str) -> None:
    with pytest.raises(ProfileError) as refused:
        profile().spec(**spec).resolved()
    assert says in str(refused.value)


def test_plugins_are_told_by_their_handle() -> None:
    def handle(server: int, **spec: Any) -> ProfileHandle:
        made = ProfileHandle(Cluster())
        made.evaluator(resolve(profile().spec(**spec).build(), in_tree(), server), in_tree())
        return made

    rule = Rule.STORAGE_CAPACITY_SCORING
    assert not handle(36).in_force(rule)
    assert handle(37).in_force(rule)
    assert not handle(37, compatibility="1.36").in_force(rule)
    assert handle(36, featureGates={rule: True}).in_force(rule)
