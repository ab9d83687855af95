"""Objects that a plugin of another package declares, in snapshots: kept, read back, and anonymised without another answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outsiders import installed
from placewright.api.decode import convert
from placewright.api.pods import PodInfo
from placewright.offline.world import offline_evaluator, struct_of, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright_console.local.prunedobjects import kind_of, manifest_line, pruned
from placewright_lab.snapshots.anonymiser import Mask
from placewright_lab.snapshots.snapshot import checked_object
from placewright_load_aware import LoadAware, NodeMetrics

SAMPLE = {
    "apiVersion": "metrics.k8s.io/v1beta1",
    "kind": "NodeMetrics",
    "metadata": {"name": "rack-7", "labels": {"team": "secret"}},
    "timestamp": "2026-01-01T00:00:00Z",
    "window": "20s",
    "usage": {"cpu": "3900m", "memory": "1Gi"},
}
NODES = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
    for name in ("rack-6", "rack-7")
]
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
    "spec": {"containers": [{"name": "c"}]},
}  # fmt: skip


@pytest.fixture(autouse=True)
def load_aware(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "site", "load-aware"):
        yield


def test_a_declared_kind_is_known_by_its_group_only_while_its_package_is_installed() -> None:
    assert struct_of("metrics.k8s.io/v1beta1", "NodeMetrics") is NodeMetrics
    assert struct_of("metrics.k8s.io/v1", "NodeMetrics") is NodeMetrics
    assert struct_of("example.com/v1", "NodeMetrics") is None


def test_a_line_of_a_snapshot_is_read_back_as_the_object_that_was_written() -> None:
    item = pruned(convert(SAMPLE, NodeMetrics))
    assert kind_of(item) == "NodeMetrics"
    body, again = checked_object(manifest_line(item), "line 1")
    assert again == item
    assert body["apiVersion"] == "metrics.k8s.io/v1beta1" and body["usage"] == SAMPLE["usage"]
    assert "window" not in body  # the struct does not declare it


def rejected(manifests: list[Any]) -> set[str]:
    """Return the nodes that LoadAware rejects for the pod."""
    world = world_from(manifests, "test")
    body = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}}
    spec = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": [{"name": "LoadAware"}]}}}
    registry = in_tree().extended([LoadAware])
    evaluator = offline_evaluator(resolve(read_profiles(json.dumps(body | {"spec": spec}), "p")[0], registry), registry, world.cluster)
    (pod,) = (each for each in world.pending.values() if isinstance(each, PodInfo))
    (rejection,) = evaluator.diagnose(evaluator.evaluate(pod)).rejections
    return {str(world.cluster.names[row]) for row in rejection.rows}


def test_an_anonymised_snapshot_names_the_node_alike_and_keeps_what_the_plugin_reads() -> None:
    cluster = [*NODES, SAMPLE, POD]
    mask = Mask(b"key", cluster)
    made = [mask.manifest(each) for each in cluster]
    text = json.dumps(made)
    assert "rack-7" not in text and "secret" not in text
    assert made[2]["metadata"]["name"] == made[1]["metadata"]["name"]
    assert made[2]["usage"] == SAMPLE["usage"]
    assert rejected(cluster) == {"rack-7"}
    assert rejected(made) == {made[1]["metadata"]["name"]}
