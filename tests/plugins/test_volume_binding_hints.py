"""Which changes bring back a pod that VolumeBinding rejected."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.api.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from placewright.framework.events import Action, EventResource, QueueingHint
from placewright.plugins.volumebinding.plugin import EVENTS

Body = dict[str, Any]
VOLUMES = [
    {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "own", "ephemeral": {}},
    {"name": "inline", "csi": {"driver": "d"}},
]
WEB = PodInfo(convert({"metadata": {"name": "web", "namespace": "default"}, "spec": {"volumes": VOLUMES}}, Pod))
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


def asked(resource: EventResource, old: Any, new: Any) -> QueueingHint:
    (found,) = (each for each in EVENTS if each.event.resource is resource)
    assert (Action.ADD if old is None else Action.UPDATE) & found.event.action
    return found.hint(WEB, old, new)


@pytest.mark.parametrize(("name", "namespace", "helps"), [("data", "default", True), ("web-own", "default", True), ("data", "x", False)])
def test_a_claim_of_the_pods_own_helps(name: str, namespace: str, *, helps: bool) -> None:
    claim = convert({"metadata": {"name": name, "namespace": namespace}}, PersistentVolumeClaim)
    for old in (None, claim):
        assert (asked(EventResource.PERSISTENT_VOLUME_CLAIM, old, claim) is QueueingHint.QUEUE) is helps


def test_any_volume_and_any_node_label_help() -> None:
    for resource in (EventResource.PERSISTENT_VOLUME, EventResource.NODE):
        assert asked(resource, None, object()) is QueueingHint.QUEUE


def test_a_class_helps_when_it_is_new_or_allows_other_nodes() -> None:
    zones = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
    anywhere, there = convert({}, StorageClass), convert({"allowedTopologies": zones}, StorageClass)
    assert asked(EventResource.STORAGE_CLASS, None, there) is QueueingHint.QUEUE
    assert asked(EventResource.STORAGE_CLASS, there, anywhere) is QueueingHint.QUEUE
    other = convert({"allowedTopologies": zones, "provisioner": "p"}, StorageClass)
    assert asked(EventResource.STORAGE_CLASS, there, other) is QueueingHint.SKIP


def test_a_csi_node_helps_when_it_is_new_or_handles_other_plugins_volumes() -> None:
    plain = convert({"spec": {"drivers": []}}, CSINode)
    handling = convert({"metadata": {"annotations": {MIGRATED: "kubernetes.io/gce-pd"}}}, CSINode)
    assert asked(EventResource.CSI_NODE, None, plain) is QueueingHint.QUEUE
    assert asked(EventResource.CSI_NODE, plain, handling) is QueueingHint.QUEUE
    assert asked(EventResource.CSI_NODE, plain, convert({}, CSINode)) is QueueingHint.SKIP


@pytest.mark.parametrize(
    ("name", "before", "after", "helps"),
    [("d", True, False, True), ("d", True, None, True), ("d", False, True, False), ("d", True, True, False), ("other", True, False, False)],
)
def test_a_driver_of_the_pods_helps_when_it_stops_to_count(name: str, before: bool, after: bool | None, *, helps: bool) -> None:
    old, new = (convert({"metadata": {"name": name}, "spec": {"storageCapacity": each}}, CSIDriver) for each in (before, after))
    assert (asked(EventResource.CSI_DRIVER, old, new) is QueueingHint.QUEUE) is helps


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (None, {"capacity": "1Gi"}, True),
        ({"capacity": "1Gi"}, {"capacity": "2Gi"}, True),
        ({"capacity": "2Gi"}, {"capacity": "1Gi"}, False),
        ({}, {"capacity": "1Gi"}, True),
        ({"capacity": "1Gi"}, {}, False),
        ({"capacity": "1Gi", "maximumVolumeSize": "1Gi"}, {"capacity": "9Gi", "maximumVolumeSize": "1Gi"}, False),
        ({"capacity": "1Gi"}, {"capacity": "lots"}, False),
    ],
)
def test_capacity_helps_when_larger_volumes_can_be_made(before: Body | None, after: Body, *, helps: bool) -> None:
    old = None if before is None else convert(before, CSIStorageCapacity)
    assert (asked(EventResource.CSI_STORAGE_CAPACITY, old, convert(after, CSIStorageCapacity)) is QueueingHint.QUEUE) is helps
