"""LoadAware with the public kit: samples come as objects, so a test needs no metrics-server."""

from __future__ import annotations

import random
from typing import Any

import pytest

from placewright.api.objects import ObjectMeta
from placewright.framework.events import QueueingHint
from placewright.profiles.problem import ProfileError
from placewright.testing import PluginCase, World, assert_placed, assert_waiting, check_plugin, node, pod, profile
from placewright_load_aware import LoadAware, NodeMetrics

NODES = (node("a", cpu="4"), node("b", cpu="8"), node("c", cpu="4"))
REASON = "node(s) had too much CPU in use"


def sample(name: str, cpu: str, at: str = "12:00:00") -> NodeMetrics:
    return NodeMetrics(metadata=ObjectMeta(name=name), timestamp=f"2026-01-01T{at}Z", usage={"cpu": cpu})


def case(*samples: NodeMetrics, **args: Any) -> PluginCase:
    return PluginCase(LoadAware, args=args, nodes=NODES, objects=samples)


def test_a_node_with_more_of_its_cpu_in_use_than_allowed_is_rejected() -> None:
    found = case(sample("a", "3500m"), sample("b", "3500m"), sample("c", "3400000000n"), mostCpuPercent=85).rejections(pod("web"))
    assert found == {"a": REASON}  # 87 % of 4, 43 % of 8, 85 % of 4


def test_idle_cpu_is_worth_as_many_points_as_it_has_percent() -> None:
    assert case(sample("a", "1"), sample("b", "1"), sample("c", "4")).scores(pod("web")) == {"a": 75, "b": 88, "c": 0}


def test_of_a_node_without_a_sample_it_says_nothing() -> None:
    silent = case(sample("a", "4"))
    assert silent.rejections(pod("web")) == {"a": REASON}
    assert silent.scores(pod("web")) == {"a": 0, "b": 50, "c": 50}


def test_without_any_sample_it_makes_no_difference_between_nodes() -> None:
    assert case().rejections(pod("web")) == {}
    assert case().scores(pod("web")) == {"a": 50, "b": 50, "c": 50}


def test_a_sample_that_is_much_older_than_the_newest_is_passed_over() -> None:
    old_and_new = case(sample("a", "4", at="12:00:00"), sample("b", "1", at="12:01:31"))
    assert old_and_new.rejections(pod("web")) == {}
    assert old_and_new.scores(pod("web"))["a"] == 50


@pytest.mark.parametrize("cpu", ["", "much", "-1"])
def test_a_sample_that_cannot_be_read_is_as_good_as_none(cpu: str) -> None:
    assert case(sample("a", cpu)).scores(pod("web"))["a"] == 50


def test_a_new_sample_is_seen_at_once() -> None:
    watched = case(sample("a", "4"))
    assert watched.scores(pod("web"))["a"] == 0
    watched.cluster.objects.put(sample("a", "1"))
    assert watched.scores(pod("web"))["a"] == 75
    watched.cluster.objects.remove(sample("a", "1"))
    assert watched.scores(pod("web"))["a"] == 50


def test_new_samples_wake_a_rejected_pod_once_some_node_is_not_busy() -> None:
    busy = case(sample("a", "4"), sample("b", "8"), sample("c", "4"))
    interest, _of_nodes = busy.plugin.events()
    assert interest.hint(pod("web"), None, None) is QueueingHint.SKIP
    busy.cluster.objects.put(sample("c", "1"))
    assert interest.hint(pod("web"), None, None) is QueueingHint.QUEUE


def test_a_pod_that_found_all_nodes_busy_is_placed_once_one_is_idle_and_the_next_one_where_most_is() -> None:
    by_load = profile().args(LoadAware, mostCpuPercent=70).weights(LoadAware=100)
    world = World(LoadAware, nodes=NODES[:2], objects=[sample("a", "3"), sample("b", "7")], profile=by_load)
    world.add(pod("first"))
    assert_waiting(world, "first", because=REASON, plugin="LoadAware")
    world.add(sample("b", "5"))
    world.advance(30)
    assert_placed(world, "first", on="b")
    world.add(sample("a", "100m"), pod("second"))
    assert_placed(world, "second", on="a")


def any_sample(dice: random.Random) -> NodeMetrics:
    used, at = dice.choice(["100m", "1", "3900m", "much"]), dice.choice(["12:00:00", "12:00:30", "12:05:00"])
    return sample(f"n{dice.randrange(6)}", used, at)


def test_the_plugin_keeps_the_contract_while_samples_come_change_and_go() -> None:
    report = check_plugin(LoadAware, args={"mostCpuPercent": 70}, objects=any_sample)
    assert not report.unreached, report
    assert report.rejected > 50 and report.told_apart > 50, report


def test_more_than_all_of_the_cpu_is_refused() -> None:
    with pytest.raises(ProfileError, match="mostCpuPercent"):
        case(mostCpuPercent=101)
