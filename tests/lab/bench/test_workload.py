"""Made-up clusters: the same from the same seed, and big enough for their pods."""

from __future__ import annotations

from collections import Counter

from placewright.api.decode import convert
from placewright.api.objects import Node, Pod
from placewright.api.requests import canonical, pod_requests
from placewright_lab.bench.madeup import gpu_pods, mixed_nodes, mixed_pods, plain_pods


def test_the_same_seed_gives_the_same_cluster_and_another_seed_another() -> None:
    assert mixed_nodes(50, 1) == mixed_nodes(50, 1) != mixed_nodes(50, 2)
    assert mixed_pods(50, 1) == mixed_pods(50, 1) != mixed_pods(50, 2)
    assert gpu_pods(50, 1) == gpu_pods(50, 1)


def test_names_are_unique_and_nodes_stand_in_three_zones() -> None:
    nodes = mixed_nodes(30)
    assert len({n["metadata"]["name"] for n in nodes}) == 30
    assert Counter(n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in nodes) == {
        "zone-a": 10, "zone-b": 10, "zone-c": 10,
    }  # fmt: skip
    assert len({p["metadata"]["name"] for p in (*plain_pods(20), *mixed_pods(20), *gpu_pods(20))}) == 60


def test_the_demo_cluster_has_room_for_its_pods_but_not_for_half_as_many_again() -> None:
    have: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for node in mixed_nodes(100):
        have.update(canonical(convert(node, Node).status.allocatable or {}))
    for pod in mixed_pods(1500):
        asked.update(pod_requests(convert(pod, Pod).spec))
    assert 0.6 < asked["cpu"] / have["cpu"] < 0.95
    assert asked["memory"] < have["memory"]
    assert asked["openb/gpu-milli"] < have["openb/gpu-milli"]
