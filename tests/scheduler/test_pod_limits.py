"""A pod that asks for more than is looked at is refused before anything is looked at, says why, and keeps nobody else from a node."""

from __future__ import annotations

import random
from typing import Any

import pytest

from placewright.api.podextent import EXTENT_LIMITS
from placewright.cluster.cluster import Cluster
from placewright.explain.explanation import evaluated
from placewright.queue.queued import SubQueue
from seeds import seeds

from .makers import PodMaker, World, node, pod
from .podgroups.makers import bound, group, member, members, tried

TOO_MANY = "spec.topologySpreadConstraints: 2000 constraints; this scheduler places pods with at most 64"


def spread(name: str, constraints: int) -> PodMaker:
    """A pod with so many spread constraints, each over a label of its own."""
    return pod(name).spec(topologySpreadConstraints=many(constraints))


def many(constraints: int) -> list[dict[str, Any]]:
    return [{"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": "ScheduleAnyway"} for i in range(constraints)]


def three_nodes() -> World:
    return World().nodes(*(node(f"n{i}") for i in range(3)))


def test_it_is_told_by_condition_and_event_and_counts_as_unschedulable() -> None:
    world = three_nodes().pods(spread("poison", 2000))
    assert world.decide() is None
    told = f"0/3 nodes are available: {TOO_MANY}."
    assert world.status.written == [("poison", "Unschedulable", told, None)]
    assert [(reason, note) for _, _, reason, _, note in world.events.recorded] == [("FailedScheduling", told)]
    assert world.place("poison") is SubQueue.UNSCHEDULABLE
    assert next(world.queue.profile_queues()).rejections() == {"PodLimits": 1}


def test_nothing_of_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    world = three_nodes().pods(spread("poison", 2000))
    monkeypatch.setattr(Cluster, "label", lambda *_: pytest.fail("a label was looked at"))
    assert world.decide() is None


def test_no_event_brings_it_back_and_the_pod_beside_it_is_placed() -> None:
    world = three_nodes().pods(spread("poison", 2000))
    assert world.decide() is None
    world.nodes(node("n3"), node("n0").labels(k0="v"))
    world.pods(pod("standing").on("n1")).event_handlers.assigned_pod_gone("uid-standing")
    assert world.place("poison") is SubQueue.UNSCHEDULABLE
    world.pods(pod("healthy"))
    binding = world.decide()
    assert binding is not None
    binding.close()


def test_it_is_placed_once_it_asks_for_less() -> None:
    world = three_nodes().pods(spread("poison", 2000))
    assert world.decide() is None
    world.event_handlers.unscheduled_pod_gone(spread("poison", 2000).build())
    world.pods(spread("poison", 3).uid("another"))
    binding = world.decide()
    assert binding is not None
    binding.close()


def test_an_explanation_says_the_same() -> None:
    world = three_nodes()
    now = evaluated(world.evaluator, world.cluster, spread("poison", 2000).build())
    assert (now.feasible, [(each.plugin, each.reason) for each in now.refusals]) == (0, [("PodLimits", TOO_MANY)])


async def test_a_group_does_without_the_member_that_is_refused() -> None:
    world = three_nodes()
    world.event_handlers.cluster_object(group("job", 2))
    poison = member("job", 2).spec(topologySpreadConstraints=many(2000))
    world.pods(*members("job", 2), poison)
    await tried(world)
    assert sorted(bound(world)) == ["job-0", "job-1"]
    assert TOO_MANY in world.status.written[-1][2]


def test_nobody_leaves_a_full_node_for_it() -> None:
    world = World().nodes(node("n").offers(cpu="1"))
    world.pods(pod("low").requests(cpu="1").on("n"), spread("poison", 2000).requests(cpu="1").priority(1000))
    assert world.decide() is None
    assert world.status.written[-1][2] == f"0/1 nodes are available: {TOO_MANY}."
    assert world.queue.nominator.node_of("uid-poison") is None


@pytest.mark.parametrize("terms", [64, 65])
def test_what_a_pod_on_a_node_wants_away_from_it_counts_within_the_limit_alone(terms: int) -> None:
    everybody: dict[str, Any] = {"topologyKey": "everywhere", "labelSelector": {}, "namespaceSelector": {}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [everybody] * terms}}
    hostile = pod("hostile").on("n0").spec(affinity=apart)
    world = World().nodes(*(node(f"n{i}").labels(everywhere="here") for i in range(3))).pods(hostile, pod("victim"))
    binding = world.decide()
    if binding is not None:
        binding.close()
    assert (binding is None) == (terms <= 64)


def bodies(rng: random.Random, share: float) -> dict[str, Any]:
    """The spec of a pod that has of everything this share of its limit, or a little less."""
    most = {limit.counted: int(limit.most * share * rng.uniform(0.5, 1)) for limit in EXTENT_LIMITS}
    selector = [{"key": f"k{i}", "operator": rng.choice(["Exists", "DoesNotExist"])} for i in range(most["pod_requirements"])]
    keys = [rng.choice(["kubernetes.io/hostname", "zone", f"t{i}"]) for i in range(most["pod_terms"])]
    terms: list[dict[str, Any]] = [{"topologyKey": key, "namespaceSelector": {}} for key in keys]
    for index, expression in enumerate(selector if terms else []):
        terms[index % len(terms)].setdefault("labelSelector", {"matchExpressions": []})["matchExpressions"].append(expression)
    nodes: list[dict[str, Any]] = [{"matchExpressions": []} for _ in range(most["node_terms"])]
    for index in range(most["node_requirements"] if nodes else 0):
        nodes[index % len(nodes)]["matchExpressions"].append({"key": f"l{index}", "operator": "DoesNotExist"})
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 9, "topologyKey": f"k{i}", "whenUnsatisfiable": "ScheduleAnyway"} for i in range(most["constraints"])
        ],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term} for term in terms]
            },
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [each for each in nodes if each["matchExpressions"]],
                }
            },
        },
        "tolerations": [{"key": f"t{i}", "operator": "Exists"} for i in range(most["tolerations"])],
        "containers": [{"name": "c", "ports": [{"hostPort": 1 + i} for i in range(most["host_ports"])]}],
    }


@seeds(range(6))
def test_a_pod_within_all_limits_is_decided_whatever_it_is_made_of(seed: int) -> None:
    rng = random.Random(seed)
    maker = pod("large").spec(**bodies(rng, 1.0))
    world = three_nodes().pods(maker)
    assert maker.build().extent.excess == ""
    binding = world.decide()
    assert binding is not None
    binding.close()
