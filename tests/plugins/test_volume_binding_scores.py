"""Nodes scored by how full the pod's claims would make their storage."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.offline.world import world_from
from placewright.plugins.volumebinding import VolumeBinding
from plugins.pairwise import build
from plugins.volume_worlds import HOST

Body = dict[str, Any]
EMPTIER = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
FULLER = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
COUNTER = {"kind": "CSIDriver", "metadata": {"name": "counter"}, "spec": {"storageCapacity": True}}


def storage_class(name: str, provisioner: str = "kubernetes.io/no-provisioner") -> Body:
    return {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}


def claim(name: str, size: str, storage_class: str) -> Body:
    spec = {"storageClassName": storage_class, "resources": {"requests": {"storage": size}}}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


def volume(name: str, size: str, storage_class: str, host: str) -> Body:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [host]}]}]
    spec = {"capacity": {"storage": size}, "storageClassName": storage_class, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def room(host: str, size: str) -> Body:
    topology = {"matchLabels": {HOST: host}}
    body = {"kind": "CSIStorageCapacity", "metadata": {"name": host, "namespace": "kube-system"}, "storageClassName": "made"}
    return body | {"capacity": size, "nodeTopology": topology}


def scored(shape: list[Body] | None, *objects: Body, hosts: str = "ab") -> dict[str, int] | Code:
    """By node; or what PreScore said instead."""
    nodes = [{"kind": "Node", "metadata": {"name": host, "labels": {HOST: host}}} for host in hosts]
    claims = [each["metadata"]["name"] for each in objects if each["kind"] == "PersistentVolumeClaim"]
    used = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    pod = {"kind": "Pod", "metadata": {"name": "web", "namespace": "default"}, "spec": {"volumes": used}}
    world = world_from([*nodes, *objects, pod], "test")
    plugin: VolumeBinding = build(VolumeBinding, world.cluster, {"shape": shape} if shape is not None else None)
    state, web, rows = CycleState(), world.pending["default/web"], world.cluster.rows()
    plugin.pre_filter(state, web, world.cluster)
    status = plugin.pre_score(state, web, world.cluster, rows)
    if not status.ok:
        return status.code
    return dict(zip(map(str, world.cluster.names), plugin.score(state, web, world.cluster, rows).tolist(), strict=True))


STATIC = (storage_class("disks"), claim("data", "2Gi", "disks"), volume("x", "4Gi", "disks", "a"), volume("y", "8Gi", "disks", "b"))


@pytest.mark.parametrize(("shape", "a", "b"), [(EMPTIER, 50, 75), (FULLER, 50, 25)])
def test_a_volume_is_scored_by_the_part_of_it_that_the_claim_asks_for(shape: list[Body], a: int, b: int) -> None:
    assert scored(shape, *STATIC) == {"a": a, "b": b}


def test_nothing_is_scored_without_a_shape_or_without_claims_to_bind() -> None:
    assert scored(None, *STATIC) is Code.SKIP
    assert scored(EMPTIER) is Code.SKIP


def test_claims_of_one_class_are_added_and_classes_count_alike() -> None:
    objects = [storage_class("disks"), claim("one", "1Gi", "disks"), claim("two", "2Gi", "disks")]
    objects += [volume("x", "2Gi", "disks", "a"), volume("y", "4Gi", "disks", "a")]
    assert scored(FULLER, *objects, hosts="a") == {"a": 50}  # 3 of 6
    objects += [storage_class("fast"), claim("three", "1Gi", "fast"), volume("z", "8Gi", "fast", "a")]
    assert scored(FULLER, *objects, hosts="a") == {"a": 31}  # (50 + 12) / 2


def test_room_for_volumes_to_be_made_is_shared_by_the_claims_of_a_class() -> None:
    objects = [COUNTER, storage_class("made", "counter"), claim("one", "2Gi", "made"), claim("two", "3Gi", "made")]
    assert scored(FULLER, *objects, room("a", "10Gi"), room("b", "4Gi")) == {"a": 50, "b": 100}


def test_where_a_volume_exists_room_for_others_does_not_count() -> None:
    objects = [COUNTER, storage_class("made", "counter"), claim("one", "2Gi", "made"), room("a", "10Gi"), room("b", "10Gi")]
    assert scored(FULLER, *objects, volume("x", "4Gi", "made", "a")) == {"a": 50, "b": 20}


def test_beside_a_volume_that_exists_claims_to_be_provisioned_do_not_count() -> None:
    objects = [COUNTER, storage_class("made", "counter"), claim("one", "2Gi", "made"), claim("two", "3Gi", "made")]
    objects += [room("a", "20Gi"), room("b", "20Gi"), volume("x", "4Gi", "made", "a")]
    assert scored(FULLER, *objects) == {"a": 50, "b": 25}


def test_drivers_that_do_not_count_say_nothing() -> None:
    assert scored(EMPTIER, storage_class("made", "maker"), claim("one", "2Gi", "made"), room("a", "10Gi")) == {"a": 0, "b": 0}
