"""SelectorSpread against a plain scalar reading of its rule, and case by case; `make e2e` compares it with kube-scheduler 1.20 itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from legacy_worlds import OLD_ZONE, REGION, OldDice, zone_of
from pairwise import a_node, a_pod, build, load, scores
from pairwise_worlds import ZONE, Body, Dice, World, happen, info, matches, populate, service_selectors

from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.testing import service
from placewright.testing.objectmaker import ObjectMaker
from placewright_legacy_plugins import SelectorSpread
from randomcases import cases

# --- the scalar reading -------------------------------------------------------------------------------------------------------


def scalar(world: World, pod: Body, feasible: list[str]) -> dict[str, int]:
    counts = {name: like_it(world, pod, name) for name in feasible}
    zones: dict[Any, int] = {}
    for name in feasible:
        zone = zone_of(world, name)
        if zone is not None:
            zones[zone] = zones.get(zone, 0) + counts[name]
    most, most_in_zone = max(counts.values()), max(zones.values(), default=0)
    found = {}
    for name in feasible:
        score = 100.0 * ((most - counts[name]) / most) if most else 100.0
        zone = zone_of(world, name)
        if zone is not None:
            share = 100.0 * ((most_in_zone - zones[zone]) / most_in_zone) if most_in_zone else 100.0
            score = score * (1 - 2 / 3) + 2 / 3 * share
        found[name] = int(score)
    return found


def like_it(world: World, pod: Body, name: str) -> int:
    namespace = pod["metadata"]["namespace"]
    wanted: Body = {}
    for selector in service_selectors(world, pod):
        wanted |= selector
    selectors: list[Body] = [{"matchLabels": wanted}] if wanted else []
    owned = world.find("ReplicaSet", "rs", namespace)
    if pod["metadata"].get("ownerReferences") and owned and owned["spec"]["selector"]:
        selectors.append(owned["spec"]["selector"])
    return sum(
        other["metadata"]["namespace"] == namespace
        and not other["metadata"]["deletionTimestamp"]
        and all(matches(selector, other["metadata"]["labels"]) for selector in selectors)
        for other in world.pods_by_node()[name]
        if any(selectors)
    )


def newcomer(dice: Dice) -> Body:
    pod = dice.pod("new", {})
    pod["metadata"]["deletionTimestamp"] = None
    if dice.maybe(0.5):
        reference = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "rs", "controller": True}
        pod["metadata"]["ownerReferences"] = [reference]
    return pod


@settings(max_examples=cases(200))
@given(st.integers(0, 2**32))
def test_it_agrees_with_a_scalar_reading_whatever_happens(seed: int) -> None:
    dice, world = OldDice(seed), World()
    plugin = build(SelectorSpread, world.cluster)
    populate(world, dice, lambda _: {})
    world.put("Service", {"metadata": {"namespace": "home", "name": "s"}, "spec": {"selector": {"app": "a"}}})
    incoming = [newcomer(dice) for _ in range(3)]
    for _ in range(6):
        for new in incoming:
            feasible = [name for name in world.nodes if dice.maybe(0.8)]
            if feasible:
                assert scores(plugin, world.cluster, info(new), feasible) == scalar(world, new, feasible)
        happen(world, dice, lambda _: {})


# --- case by case -------------------------------------------------------------------------------------------------------------

WEB = service("web").namespace("home").selects(app="web")


def scored(*objects: ObjectMaker[Any]) -> dict[str, int]:
    cluster = load(objects)
    nodes = [str(name) for name in cluster.names if name]
    return scores(build(SelectorSpread, cluster), cluster, a_pod("new").build(), nodes)


def test_without_zones_the_emptiest_node_gets_all_and_the_fullest_nothing() -> None:
    pods = [a_pod("1", "b"), a_pod("2", "c"), a_pod("3", "c"), a_pod("4", "c")]
    assert scored(a_node("a"), a_node("b"), a_node("c"), WEB, *pods) == {"a": 100, "b": 66, "c": 0}


def test_a_zone_makes_two_thirds_of_the_score_and_a_node_outside_zones_is_judged_alone() -> None:
    nodes = [a_node("a", **{ZONE: "1"}), a_node("b", **{ZONE: "1"}), a_node("c", **{ZONE: "2"}), a_node("d")]
    assert scored(*nodes, WEB, a_pod("p", "a")) == {"a": 0, "b": 33, "c": 100, "d": 100}


def test_a_zone_label_of_before_1_17_goes_before_todays_and_a_region_is_part_of_the_zone() -> None:
    older = [a_node("a", **{ZONE: "1"}), a_node("b", **{ZONE: "2", OLD_ZONE: "1"}), a_node("c", **{ZONE: "1", REGION: "r"})]
    assert scored(*older, WEB, a_pod("p", "a")) == {"a": 0, "b": 33, "c": 100}


def test_a_pod_with_spread_constraints_of_its_own_is_skipped() -> None:
    cluster = load([a_node("a"), WEB])
    new = a_pod("new").spread("zone")
    status = build(SelectorSpread, cluster).pre_score(CycleState(), new.build(), cluster, cluster.rows())
    assert status.code is Code.SKIP


def test_pods_that_nothing_selects_score_the_same_everywhere() -> None:
    assert scored(a_node("a", **{ZONE: "1"}), a_node("b"), a_pod("p", "a")) == {"a": 100, "b": 100}


def test_pods_on_nodes_that_are_not_feasible_count_for_no_zone() -> None:
    cluster = load([a_node("a", **{ZONE: "1"}), a_node("b", **{ZONE: "1"}), a_node("c", **{ZONE: "2"}), WEB, a_pod("p", "a")])
    plugin = build(SelectorSpread, cluster)
    assert scores(plugin, cluster, a_pod("new").build(), ["b", "c"]) == {"b": 100, "c": 100}


def test_it_rejects_no_pod_and_so_waits_for_no_event() -> None:
    assert build(SelectorSpread, load([])).events() == ()
