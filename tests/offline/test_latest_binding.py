from __future__ import annotations

from typing import Any

from placewright.api.decode import convert
from placewright.api.profile import SchedulingProfile
from placewright.offline.world import LatestBinding, offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.testing import node, pod
from placewright.testing.pods import PodMaker

NEW_YEAR = 1_767_225_600.0
SPEC: dict[str, Any] = {
    "schedulerName": "default-scheduler",
    "plugins": {"multiPoint": {"enabled": [{"name": "NodeStartRate"}]}},
    "pluginConfig": [{"name": "NodeStartRate", "args": {"maxStarting": 1, "startSeconds": 60}}],
}


def bound(maker: PodMaker, moment: str) -> PodMaker:
    return maker.status(conditions=[{"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}])


def manifests(*pods: PodMaker) -> list[dict[str, Any]]:
    nodes = [{"kind": "Node", **node(name).manifest} for name in "ab"]
    return [*nodes, *({"kind": "Pod", **each.manifest} for each in pods)]


def test_the_clock_of_a_cluster_of_files_stands_at_the_latest_binding() -> None:
    pods = bound(pod("s").on("a"), "2026-01-01T00:00:30Z"), bound(pod("t").on("b"), "2026-01-01T00:00:00Z")
    assert LatestBinding(world_from(manifests(*pods), "test").cluster)() == NEW_YEAR + 30
    assert LatestBinding(world_from(manifests(pod("s").on("a")), "test").cluster)() == 0.0


def test_pods_that_were_bound_long_before_the_latest_one_are_not_starting_any_more() -> None:
    pods = bound(pod("s").on("a"), "2026-01-01T00:02:00Z"), bound(pod("t").on("b"), "2026-01-01T00:00:00Z")
    world = world_from(manifests(*pods), "test")
    profile = resolve(convert({"metadata": {"name": "p"}, "spec": SPEC}, SchedulingProfile), in_tree())
    evaluation = offline_evaluator(profile, in_tree(), world.cluster).evaluate(pod("web").build())
    assert [str(world.cluster.names[row]) for row in evaluation.feasible.nonzero()[0]] == ["b"]
