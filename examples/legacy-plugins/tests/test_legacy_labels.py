"""NodeLabel with the public kit, as an author outside Placewright tests a plugin."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.profiles.problem import ProfileError
from placewright.testing import PluginCase, World, assert_placed, assert_waiting, node, pod, profile
from placewright_legacy_plugins import NodeLabel

DISK, BOTH, PLAIN = node("disk").labels({"disk": ""}), node("both").labels({"disk": "ssd", "retiring": "soon"}), node("plain")
REASON = "node(s) didn't have the requested labels"


def case(**args: Any) -> PluginCase:
    return PluginCase(NodeLabel, args=args, nodes=[DISK, BOTH, PLAIN])


def test_a_node_without_the_label_is_rejected_in_the_words_of_kube_scheduler() -> None:
    assert case(presentLabels=["disk"]).rejections(pod("web")) == {"plain": REASON}


def test_a_node_with_a_label_that_must_not_be_there_is_rejected() -> None:
    assert case(presentLabels=["disk"], absentLabels=["retiring"]).rejections(pod("web")) == {"both": REASON, "plain": REASON}


def test_each_preference_that_a_node_meets_counts_the_same() -> None:
    found = case(presentLabelsPreference=["disk"], absentLabelsPreference=["retiring"]).scores(pod("web"))
    assert found == {"disk": 100, "both": 50, "plain": 50}


def test_a_node_that_gets_the_label_wakes_a_rejected_pod() -> None:
    world = World(NodeLabel, nodes=[PLAIN], profile=profile().args(NodeLabel, presentLabels=["disk"]))
    world.add(pod("web"))
    assert_waiting(world, "web", plugin="NodeLabel")
    world.add(PLAIN.labels({"disk": "hdd"}))
    world.advance(60)
    assert_placed(world, "web", on="plain")


def test_a_label_that_must_be_there_and_must_not_is_refused_with_its_path() -> None:
    with pytest.raises(ProfileError, match=r"presentLabels\[0\]: found \"a\"; allowed a label that is not in absentLabels"):
        case(presentLabels=["a"], absentLabels=["a"])
