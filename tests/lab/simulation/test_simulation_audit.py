"""Outcomes are audited by plain Python that shares nothing with the scheduler: it reads quantities, replays times and adds up."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import pytest

from placewright.offline.kinds import Manifest
from placewright.plugins.catalog import in_tree
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.scenario import Act, Scenario
from placewright_lab.simulation.simulation import Which, simulate

from .scenarios import a_profile, comes, goes, random_nodes, random_pod

UNITS = {"m": 0.001, "Mi": 2.0**20, "Gi": 2.0**30}


def amount(text: str) -> float:
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    return float(text)


def asks(pod: Manifest) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float, pods=1.0)
    for container in pod["spec"]["containers"]:
        for name, text in container["resources"]["requests"].items():
            total[name] += amount(text)
    return dict(total)


def stays(scenario: Scenario, outcome: Outcome) -> list[tuple[str, Manifest, float, float]]:
    """Yield node, pod, begin and end of every stay of a pod on a node."""
    pods = {each["metadata"]["uid"]: each for each in scenario.objects if each["kind"] == "Pod"}
    pods |= {h.manifest["metadata"]["uid"]: h.manifest for h in scenario.happenings if h.manifest["kind"] == "Pod" and h.act is Act.ADDED}
    deleted = {h.manifest["metadata"]["uid"]: h.at for h in scenario.happenings if h.act is Act.DELETED and h.manifest["kind"] == "Pod"}
    victims: dict[str, float | None] = {str(key): fate.bound for fate in outcome.fates.values() for key in fate.preempted_others}
    found: list[tuple[str, Manifest, float, float]] = []
    for uid, made in pods.items():
        fate = outcome.fates.get(uid)
        if fate is not None and fate.node is not None:
            assert fate.bound is not None
            found.append((fate.node, made, fate.bound, float("inf") if fate.left is None else fate.left))
        elif fate is None:  # it was there before
            left = victims.get(f"default/{made['metadata']['name']}", deleted.get(uid, float("inf")))
            found.append((made["spec"]["nodeName"], made, 0.0, float(left or 0.0)))
    return found


def faults(scenario: Scenario, outcome: Outcome) -> list[str]:
    """Yield the faults of an outcome."""
    nodes: dict[str, dict[str, Any]] = {each["metadata"]["name"]: each for each in scenario.objects if each["kind"] == "Node"}
    found = []
    by_node: dict[str, list[tuple[float, int, Manifest]]] = {}
    for name, made, since, until in stays(scenario, outcome):
        by_node.setdefault(name, []).extend([(since, 1, made), (until, -1, made)])
        wanted = made["spec"].get("nodeSelector", {}).items()
        if uid_of(made) in outcome.fates and not wanted <= nodes[name]["metadata"]["labels"].items():
            found.append(f"{made['metadata']['name']} is on {name}, which it did not choose")
        tainted = bool(nodes[name]["spec"].get("taints"))
        if uid_of(made) in outcome.fates and tainted and not made["spec"].get("tolerations"):
            found.append(f"{made['metadata']['name']} is on {name}, whose taint it does not bear")
    for name, changes in by_node.items():
        used: dict[str, float] = dict.fromkeys(nodes[name]["status"]["allocatable"], 0.0)
        for at, sign, made in sorted(changes, key=lambda change: change[:2]):  # those that leave make room for those that come
            for resource, much in asks(made).items():
                used[resource] += sign * much
                if used[resource] > amount(nodes[name]["status"]["allocatable"][resource]) + 1e-6:
                    found.append(f"{name} has {used[resource]} of {resource} asked of it at {at}")
    return found


def uid_of(manifest: Manifest) -> str:
    return str(manifest["metadata"]["uid"])


def crowded(seed: int) -> Scenario:
    """Make more pods than there is room for, of several priorities, that come and leave."""
    rng = random.Random(seed)
    nodes = random_nodes(rng, 6)
    open_nodes = [each["metadata"]["name"] for each in nodes if each["status"]["allocatable"]["cpu"] == "8"]
    old = [random_pod(rng, f"old-{i}", 0, on=rng.choice(open_nodes)) for i in range(2 if open_nodes else 0)]
    new = [random_pod(rng, f"new-{i}", rng.randrange(4)) for i in range(50)]
    happenings = [comes(round(rng.uniform(0, 300), 2), each) for each in new[10:]]
    happenings += [goes(round(rng.uniform(300, 600), 2), each) for each in rng.sample([*old, *new], 10)]
    durations = {uid_of(each): rng.uniform(10, 300) for each in rng.sample(new, 20)}
    return Scenario("crowded", [*nodes, *old, *new[:10]], sorted(happenings, key=lambda each: each.at), durations)


@pytest.mark.parametrize("seed", range(12))
def test_no_node_ever_holds_more_than_it_has_and_no_pod_is_where_it_may_not_be(seed: int) -> None:
    scenario = crowded(seed)
    outcome = simulate(scenario, a_profile(), in_tree(), seed=seed)
    assert faults(scenario, outcome) == []


@pytest.mark.parametrize("which", list(Which))
@pytest.mark.parametrize("seed", range(4))
def test_every_pod_is_accounted_for_once(seed: int, which: Which) -> None:
    scenario = crowded(seed)
    outcome = simulate(scenario, a_profile(), in_tree(), seed=seed, which=which)
    at_first = {uid_of(each) for each in scenario.objects if each["kind"] == "Pod"}
    placed_before = {uid_of(each) for each in scenario.objects if each["kind"] == "Pod" and "nodeName" in each["spec"]}
    ours = at_first if which is Which.ALL else at_first - placed_before
    come_later = {uid_of(h.manifest) for h in scenario.happenings if h.act is Act.ADDED}
    assert set(outcome.fates) == ours | come_later
    standing = {placement.pod.uid: placement.node for placement in outcome.cluster.placements()}
    assert {uid: node for uid, node in standing.items() if uid in outcome.fates} == {
        uid: fate.node for uid, fate in outcome.fates.items() if fate.node is not None and fate.left is None
    }
    for fate in outcome.fates.values():
        assert fate.node is not None or fate.left is not None or fate.message
        assert fate.created <= (fate.created if fate.bound is None else fate.bound) <= (outcome.ended if fate.left is None else fate.left)


def test_the_crowd_is_one_there_are_pods_that_wait_and_pods_that_must_leave() -> None:
    outcomes = [simulate(crowded(seed), a_profile(), in_tree(), seed=seed) for seed in range(12)]
    assert sum(len(list(outcome.pending())) for outcome in outcomes) > 10
    assert sum(len(fate.preempted_others) for outcome in outcomes for fate in outcome.fates.values()) > 10


def test_the_audit_sees_a_node_that_holds_too_much() -> None:
    scenario = crowded(0)
    outcome = simulate(scenario, a_profile(), in_tree())
    fullest = Counter(fate.node for fate in outcome.placed()).most_common(1)[0][0]
    for fate in outcome.placed():
        fate.node, fate.left = fullest, None
    assert any("asked of it" in fault for fault in faults(scenario, outcome))
