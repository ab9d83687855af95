"""Every declared field is one of the API's, under the API's name and of its type: held against the models of the official client."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import msgspec
import pytest

from api.makers import fullest, left_at_default
from placewright.api import devices, objects, podgroups, storage, workloads
from placewright.api.decode import convert, decode
from placewright.api.objects import KubeObject

#: Written by `api.objectbounds`, and by no API server.
OURS = ".metadata.placewright.dev/excess"
#: By our kind: the client's model, and what the client does not know (any more).
KINDS: dict[type[KubeObject], tuple[str, set[str]]] = {
    # A Workload is named so in 1.35 alone; a PersistentVolume's file share may lie in another namespace, a pod's may not.
    # 1.36 alone has the resources that devices take as a map.
    objects.Pod: (
        "V1Pod",
        {".spec.workloadRef", ".spec.volumes[].azureFile.secretNamespace", ".status.nodeAllocatableResourceClaimStatuses[].resources"},
    ),
    objects.Node: ("V1Node", {".status.conditions[].observedGeneration"}),  # other kinds' conditions have it
    objects.LabelSelector: ("V1LabelSelector", set()),
    objects.NodeSelector: ("V1NodeSelector", set()),
    workloads.Namespace: ("V1Namespace", set()),
    workloads.ReplicaSet: ("V1ReplicaSet", set()),
    workloads.StatefulSet: ("V1StatefulSet", set()),
    workloads.Service: ("V1Service", set()),
    workloads.ReplicationController: ("V1ReplicationController", set()),
    workloads.PodDisruptionBudget: ("V1PodDisruptionBudget", set()),
    storage.PersistentVolume: ("V1PersistentVolume", set()),
    storage.PersistentVolumeClaim: ("V1PersistentVolumeClaim", set()),
    storage.StorageClass: ("V1StorageClass", set()),
    storage.CSINode: ("V1CSINode", set()),
    storage.CSIDriver: ("V1CSIDriver", set()),
    storage.VolumeAttachment: ("V1VolumeAttachment", set()),
    storage.CSIStorageCapacity: ("V1CSIStorageCapacity", set()),
    devices.ResourceSlice: (
        "V1ResourceSlice",
        {  # of 1.36 alone
            ".spec.devices[].nodeAllocatableResourceMappings",
            ".spec.devices[].nodeAllocatableResources{}.mapping.allocationMultiplier",
        },
    ),
    devices.ResourceClaim: ("ResourceV1ResourceClaim", set()),
    devices.DeviceClass: ("V1DeviceClass", set()),
    devices.DeviceTaintRule: ("V1DeviceTaintRule", set()),
    podgroups.NativePodGroup: (
        "V1beta1PodGroup",
        {".spec.schedulingConstraints.topologyConstraints", ".spec.schedulingConstraints.topology[].topologyKey"},  # before 1.36
    ),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_all_that_a_kind_declares_is_read_from_the_fullest_object_there_can_be(kind: type[KubeObject]) -> None:
    model, unknown = KINDS[kind]
    raw = msgspec.json.encode(fullest(model))
    assert set(left_at_default(decode(raw, kind))) - {OURS} == unknown


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_mapping_says_the_same_as_its_text(kind: type[KubeObject]) -> None:
    document = fullest(KINDS[kind][0])
    assert convert(document, kind) == decode(msgspec.json.encode(document), kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_object_that_says_nothing_is_one_and_says_nothing_when_it_is_written(kind: type[KubeObject]) -> None:
    empty = convert({}, kind)
    assert msgspec.json.encode(empty) == b"{}"
    assert decode(b'{"apiVersion": "v1", "kind": null, "later": [{}]}', kind) == empty


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_decoded_is_written_as_it_was_read(kind: type[KubeObject]) -> None:
    """So a dump of the cluster's state may be read again."""
    found = convert(fullest(KINDS[kind][0]), kind)
    written = msgspec.json.encode(found)
    assert decode(written, kind) == found
    assert _within(msgspec.json.decode(written), fullest(KINDS[kind][0]))


def _within(ours: Any, theirs: Any) -> bool:
    """True when all that we write is part of what they wrote."""
    if isinstance(ours, dict):
        return all(key in theirs and _within(value, theirs[key]) for key, value in ours.items())
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(_within, ours, theirs))
    return bool(ours == theirs)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_decoded_objects_cannot_be_changed_and_the_garbage_collector_does_not_follow_them(kind: type[KubeObject]) -> None:
    """One object is shared by queue, cache and records, and there are a hundred thousand of them."""
    found = convert({"metadata": {"name": "x"}}, kind)
    field = kind.__struct_fields__[0]
    with pytest.raises(AttributeError, match="immutable type"):
        setattr(found, field, None)
    assert not kind.__struct_config__.gc
    assert kind.__struct_config__.frozen


# --- defaults that are the API server's ------------------------------------------------------------------------------------------


def test_what_an_api_server_defaults_is_defaulted_alike() -> None:
    """Of objects that never passed through one, such as those of a simulation."""
    assert objects.PodSpec().scheduler_name == "default-scheduler"
    assert (objects.RbdSource().pool, devices.DeviceToleration().operator) == ("rbd", "Equal")
    spread = objects.TopologySpreadConstraint()
    assert (spread.max_skew, spread.when_unsatisfiable, spread.min_domains) == (1, "DoNotSchedule", None)
    for request in (devices.ExactDeviceRequest(), devices.DeviceSubRequest()):
        assert (request.allocation_mode, request.count) == ("ExactCount", 1)
    assert devices.ResourceSliceSpec().pool == devices.ResourcePool(name="", generation=0, resource_slice_count=1)


@pytest.mark.parametrize(
    ("module", "constant", "spelt"),
    [
        (devices, "GROUP", "resource.k8s.io"),
        (devices, "ALLOCATION_FINALIZER", "resource.kubernetes.io/delete-protection"),
        (devices, "EXTENDED_CLAIM", "resource.kubernetes.io/extended-resource-claim"),
        (devices, "IMPLICIT_RESOURCE", "deviceclass.resource.kubernetes.io/"),
        (devices, "EXACT_COUNT", "ExactCount"),
        (devices, "ALL_DEVICES", "All"),
        (devices, "MAX_RESERVED_FOR", 256),
        (devices, "MAX_RESULTS", 32),
        (storage, "BIND_COMPLETED", "pv.kubernetes.io/bind-completed"),
        (storage, "SELECTED_NODE", "volume.kubernetes.io/selected-node"),
        (storage, "MIGRATED_PLUGINS", "storage.alpha.kubernetes.io/migrated-plugins"),
        (storage, "BETA_CLASS", "volume.beta.kubernetes.io/storage-class"),
        (storage, "NO_PROVISIONER", "kubernetes.io/no-provisioner"),
        (storage, "WAIT_FOR_FIRST_CONSUMER", "WaitForFirstConsumer"),
        (storage, "READ_WRITE_ONCE_POD", "ReadWriteOncePod"),
        (podgroups, "COSCHEDULING_GROUP", "scheduling.x-k8s.io"),
        (podgroups, "NATIVE_GROUP", "scheduling.k8s.io"),
        (podgroups, "VOLCANO_GROUP", "scheduling.volcano.sh"),
        (podgroups, "KIND", "PodGroup"),
        (podgroups, "GROUP_LABEL", "scheduling.x-k8s.io/pod-group"),
        (podgroups, "VOLCANO_GROUP_ANNOTATION", "scheduling.k8s.io/group-name"),
        (podgroups, "TOPOLOGY_KEY", "placewright.dev/topology-key"),
        (podgroups, "TOPOLOGY_MODE", "placewright.dev/topology-mode"),
    ],
)
def test_words_shared_with_others_are_spelt_as_they_spell_them(module: ModuleType, constant: str, spelt: object) -> None:
    """Controllers, drivers and people write and read them; another spelling here would agree with all our other tests."""
    assert getattr(module, constant) == spelt


# --- devices and volumes -----------------------------------------------------------------------------------------------------------


def test_the_configuration_of_devices_is_kept_to_the_letter() -> None:
    """It is copied into allocations, for a driver that alone knows what it means: also what a number looks like."""
    opaque = b'{"opaque":{"driver":"d","parameters":{"z":1.0,"a":1e3,"n":null}}}'
    decoded = decode(b'{"spec": {"config": [' + opaque + b"]}}", devices.DeviceClass)
    (kept,) = decoded.spec.config or ()
    assert bytes(kept) == opaque


def test_an_allocation_is_told_by_which_devices_go_to_which_requests() -> None:
    one = {"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}
    shared = {"request": "r/sub", "driver": "d", "pool": "p", "device": "gpu-1", "shareID": "s", "consumedCapacity": {"memory": "1Gi"}}
    allocation = convert({"devices": {"results": [one, shared]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}, devices.AllocationResult)
    assert devices.devices_of(allocation) == [("r", "d", "p", "gpu-0", ""), ("r/sub", "d", "p", "gpu-1", "s")]
    assert devices.devices_of(devices.AllocationResult()) == []


@pytest.mark.parametrize("field", ["request", "driver", "pool", "device", "shareID"])
def test_allocations_that_differ_in_any_part_of_a_devices_name_are_two(field: str) -> None:
    said = {"request": "r", "driver": "d", "pool": "p", "device": "x", "shareID": "s"}
    one, other = (
        devices.devices_of(convert({"devices": {"results": [body]}}, devices.AllocationResult)) for body in (said, said | {field: "other"})
    )
    assert one != other


@pytest.mark.parametrize(
    ("kind", "wrong", "field"),
    [
        (devices.ResourceClaim, {"spec": {"devices": {"requests": [{"exactly": {"count": "1"}}]}}}, "requests[0].exactly.count"),
        (devices.ResourceSlice, {"spec": {"pool": {"generation": 1.5}}}, "$.spec.pool.generation"),
        (devices.ResourceSlice, {"spec": {"devices": [{"attributes": {"a": {"bool": "yes"}}}]}}, "attributes[...].bool"),
        (devices.DeviceClass, {"spec": {"config": {}}}, "$.spec.config"),
        (storage.PersistentVolumeClaim, {"spec": {"accessModes": "ReadWriteOnce"}}, "$.spec.accessModes"),
        (storage.CSINode, {"spec": {"drivers": [{"allocatable": {"count": "x"}}]}}, "$.spec.drivers[0].allocatable.count"),
        (workloads.Service, {"spec": {"selector": {"a": None}}}, "$.spec.selector[...]"),
        (workloads.ReplicaSet, {"spec": {"selector": {"matchLabels": []}}}, "$.spec.selector.matchLabels"),
        (workloads.PodDisruptionBudget, {"status": {"disruptionsAllowed": None}}, "$.status.disruptionsAllowed"),
        (objects.Node, {"status": {"allocatable": {"cpu": True}}}, "$.status.allocatable[...]"),
        (objects.Pod, {"spec": {"tolerations": [{"effect": None}]}}, "$.spec.tolerations[0].effect"),
    ],
)
def test_a_field_of_another_type_is_refused_by_its_path(kind: type[KubeObject], wrong: dict[str, Any], field: str) -> None:
    for read in (lambda: convert(wrong, kind), lambda: decode(msgspec.json.encode(wrong), kind)):
        with pytest.raises(ValueError, match=f"^{kind.__name__}: ") as refused:
            read()
        assert f"{field}`" in str(refused.value)


def test_a_service_selects_by_pairs_and_a_workload_by_a_selector() -> None:
    service = convert({"spec": {"selector": {"app": "web"}}}, workloads.ReplicationController)
    assert (service.spec.selector, workloads.Service().spec.selector) == ({"app": "web"}, None)
    for kind in (workloads.ReplicaSet, workloads.StatefulSet):
        found = convert({"spec": {"selector": {"matchLabels": {"app": "web"}}}}, kind).spec.selector
        assert found == objects.LabelSelector(match_labels={"app": "web"})
    budget = convert({"status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}}}, workloads.PodDisruptionBudget)
    assert (budget.status.disruptions_allowed, list(budget.status.disrupted_pods or ())) == (2, ["p"])
