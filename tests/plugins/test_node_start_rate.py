"""NodeStartRate on a whole scheduler in virtual time, and against a plain count."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from placewright.plugins.nodestartrate import NodeStartRate
from placewright.profiles.problem import ProfileError
from placewright.queue.queued import SubQueue
from placewright.testing import PluginCase, World, assert_bound, assert_waiting, node, pod, profile
from placewright.testing.nodes import NodeMaker
from placewright.testing.pods import PodMaker

READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}
ZONES: list[dict[str, Any]] = [{"topologyKey": "topology.kubernetes.io/zone", "maxStarting": 2}]


def world(*nodes: NodeMaker, **args: Any) -> World:
    return World(NodeStartRate, nodes=nodes, profile=profile().args(NodeStartRate, **args))


def ready(name: str, on: str) -> PodMaker:
    return pod(name).on(on).status(**READY)


def test_a_node_starts_no_more_pods_than_it_may_and_the_next_one_goes_when_one_is_ready() -> None:
    it = world(node("a"), maxStarting=2)
    it.add(pod("p1"), pod("p2"), pod("p3"))
    assert_waiting(it, "p3", because="0/1 nodes are available: 1 node(s) had 2 pods starting.", plugin="NodeStartRate")
    it.add(ready("p1", "a")).advance(2)
    assert_bound(it, "p3", on="a")


def test_a_pod_goes_to_a_node_that_starts_fewer() -> None:
    it = world(node("a"), node("b"), maxStarting=1)
    it.add(pod("p1"), pod("p2"))
    assert {it.node_of("p1"), it.node_of("p2")} == {"a", "b"}


@pytest.mark.parametrize("how", ["deleted", "failed", "terminating"])
def test_a_starting_pod_that_goes_lets_the_next_one_start(how: str) -> None:
    it = world(node("a"), maxStarting=1)
    it.add(pod("p1"), pod("p2"))
    assert it.place("p2") is SubQueue.UNSCHEDULABLE
    if how == "deleted":
        it.remove("p1")
    else:
        it.add(pod("p1").on("a").phase("Failed") if how == "failed" else pod("p1").on("a").deleting())
    it.advance(2)
    assert_bound(it, "p2", on="a")


def test_a_pod_that_never_becomes_ready_holds_its_place_for_start_seconds_and_waiting_pods_are_woken_then() -> None:
    it = world(node("a"), maxStarting=1, startSeconds=120)
    it.add(pod("never"), pod("next"))
    it.advance(119)
    assert it.place("next") is SubQueue.UNSCHEDULABLE
    it.advance(3)
    assert_bound(it, "next", on="a")


def test_several_pods_that_never_become_ready_make_room_one_after_the_other() -> None:
    it = world(node("a"), maxStarting=1, startSeconds=60)
    it.add(*(pod(f"p{number}") for number in range(4)))
    for placed in (1, 2, 3, 4):
        assert it.cluster.pod_count_total == placed
        it.advance(72)  # sixty seconds, and a backoff of ten at most
    assert it.cluster.pod_count_total == 4


def test_news_of_a_pod_that_starts_already_wakes_nobody() -> None:
    it = world(node("a"), maxStarting=1)
    it.add(pod("p1"), pod("p2"))
    attempts = len(it.log.attempts)
    it.add(pod("p1").on("a").labels(seen="yes"), ready("other", "a").scheduler("other")).advance(10)
    assert len(it.log.attempts) == attempts


def test_a_new_node_takes_a_pod_that_waits_for_the_others_to_start_theirs() -> None:
    it = world(node("a"), maxStarting=1)
    it.add(pod("p1"), pod("p2"))
    it.add(node("b")).advance(2)
    assert_bound(it, "p2", on="b")


def test_a_zone_has_a_limit_of_its_own_and_nodes_without_a_zone_have_none() -> None:
    it = world(node("a").zone("z"), node("b").zone("z"), node("c"), maxStarting=5, domains=ZONES)
    it.add(pod("p1").node_selector(where="z"))  # waits for a label that no node has
    it.add(*(pod(f"q{number}") for number in range(7)))
    in_zone = [it.node_of(f"q{number}") for number in range(7)].count("a") + [it.node_of(f"q{number}") for number in range(7)].count("b")
    assert (in_zone, it.cluster.pod_count_total) == (2, 7)
    it.add(pod("last"))
    assert it.rejections("last") == {
        "a": "NodeStartRate: node(s) had 2 pods starting with the same topology.kubernetes.io/zone",
        "b": "NodeStartRate: node(s) had 2 pods starting with the same topology.kubernetes.io/zone",
        "c": "NodeStartRate: node(s) had 5 pods starting",
    }


def test_a_pod_that_becomes_ready_in_a_zone_lets_the_next_one_start_on_any_node_of_it() -> None:
    it = world(node("a").zone("z"), node("b").zone("z"), maxStarting=2, domains=ZONES)
    it.add(pod("p1"), pod("p2"), pod("p3"))
    assert_waiting(it, "p3", plugin="NodeStartRate")
    it.add(ready("p1", str(it.node_of("p1")))).advance(2)
    assert it.node_of("p3") is not None


def test_a_node_that_leaves_a_full_zone_takes_its_starting_pods_along() -> None:
    it = world(node("a").zone("z"), node("b").zone("z"), maxStarting=2, domains=ZONES)
    it.add(pod("p1").node_affinity("kubernetes.io/hostname", "a"), pod("p2").node_affinity("kubernetes.io/hostname", "a"), pod("p3"))
    assert it.node_of("p3") is None
    it.add(node("a").zone("y")).advance(2)
    assert it.node_of("p3") is not None


def test_evicting_pods_is_no_remedy_because_it_starts_no_pod_sooner() -> None:
    it = world(node("a"), maxStarting=1)
    it.add(pod("low"))
    it.add(pod("high").priority(1000))
    assert it.evictor.evicted == []
    assert it.place("high") is SubQueue.UNSCHEDULABLE


def test_preemption_makes_no_room_on_a_node_that_starts_as_many_as_it_may() -> None:
    it = world(node("a", cpu="2"), node("b", cpu="2"), maxStarting=1)
    important = pod("starting").on("a").requests(cpu="1").priority(1000)
    it.add(ready("old-a", "a").requests(cpu="1"), important, ready("old-b", "b").requests(cpu="2"))
    it.add(pod("high").requests(cpu="1").priority(1000))
    assert [each.victim for each in it.evictor.evicted] == ["old-b"]


def test_a_change_of_the_limit_takes_effect_and_keeps_what_is_starting() -> None:
    it = world(node("a"), maxStarting=1, startSeconds=100)
    it.add(pod("p1"), pod("p2"), pod("p3"))
    it.advance(50)
    it.use(profile().enable(NodeStartRate).args(NodeStartRate, maxStarting=2, startSeconds=100).generation(2))
    it.advance(2)
    assert it.cluster.pod_count_total == 2
    assert_waiting(it, "p3", plugin="NodeStartRate")


def test_two_limits_for_one_label_are_refused() -> None:
    with pytest.raises(ProfileError, match=r"domains\[1\]\.topologyKey"):
        PluginCase(NodeStartRate, args={"domains": [*ZONES, *ZONES]})


@pytest.mark.parametrize("zones", [False, True])
def test_the_filter_and_the_judge_of_single_rows_agree_with_a_plain_count_on_random_clusters(zones: bool) -> None:
    for seed in range(25):
        dice = random.Random(seed)
        nodes = [node(f"n{number}").zone(dice.choice("xyz")) if dice.random() < 0.8 else node(f"n{number}") for number in range(6)]
        stand = [_standing(dice, number) for number in range(12)]
        args: dict[str, Any] = {"maxStarting": dice.choice((1, 2, 3))} | ({"domains": ZONES} if zones else {})
        case = PluginCase(NodeStartRate, args=args, nodes=nodes, pods=stand)
        full = _full(nodes, stand, args)
        assert set(case.rejections(pod("web"))) == full, seed
        plugin, cluster = case.plugin, case.cluster
        plugin.sign(pod("web").build())
        judge = plugin.judge(None, pod("web").build(), cluster)
        rows = np.arange(cluster.size)
        assert {str(cluster.names[row]) for row in rows[~judge.passes(rows)]} == full, seed
        judged = [str(cluster.names[row]) for _, some in judge.explain(rows[~judge.passes(rows)]) for row in some]
        assert sorted(judged) == sorted(full), seed


def _standing(dice: random.Random, number: int) -> PodMaker:
    made = pod(f"s{number}").on(f"n{dice.randrange(6)}").scheduler(dice.choice(("default-scheduler", "default-scheduler", "other")))
    return made.status(**READY) if dice.random() < 0.4 else made


def _full(nodes: list[NodeMaker], stand: list[PodMaker], args: dict[str, Any]) -> set[str]:
    """The nodes where the pod may not start, counted pod by pod."""
    built = [each.build().metadata for each in nodes]
    zone = {meta.name: (meta.labels or {}).get(ZONES[0]["topologyKey"]) for meta in built}
    starting = [
        each.manifest["spec"]["nodeName"] for each in stand
        if not each.manifest.get("status", {}).get("conditions") and each.manifest["spec"]["schedulerName"] == "default-scheduler"
    ]  # fmt: skip
    full = {name for name in zone if starting.count(name) >= args["maxStarting"]}
    if "domains" in args:
        by_zone = [zone[name] for name in starting]
        full |= {name for name, value in zone.items() if value is not None and by_zone.count(value) >= ZONES[0]["maxStarting"]}
    return full
