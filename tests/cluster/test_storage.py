"""Storage objects: decoded as the API server writes them, and found by name, class and node."""

from __future__ import annotations

from typing import Any

from placewright.api.decode import convert
from placewright.api.objects import ObjectMeta, Pod
from placewright.api.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from placewright.api.workloads import Namespace
from placewright.cluster.objects import ClusterObjects
from placewright.cluster.storage import claim_class, volume_class
from placewright.testing import persistent_volume

CLASS_OF_OLD = {"volume.beta.kubernetes.io/storage-class": "old"}


def volume(name: str, storage_class: str = "", **spec: Any) -> PersistentVolume:
    return persistent_volume(name).storage_class(storage_class).spec(**spec).version("").build()


def test_volumes_are_found_by_name_and_by_class() -> None:
    storage = ClusterObjects().storage
    for name, storage_class in (("a", "fast"), ("b", "slow"), ("c", "fast")):
        storage.volumes.put(volume(name, storage_class))
    assert storage.volumes.get("b") is not None
    assert {each.metadata.name for each in storage.volumes.where("fast")} == {"a", "c"}
    storage.volumes.put(volume("a", "slow"))
    assert {each.metadata.name for each in storage.volumes.where("slow")} == {"a", "b"}
    storage.volumes.remove(volume("c"))
    assert not list(storage.volumes.where("fast"))
    assert not list(storage.volumes.where("never heard of"))


def test_a_change_of_one_kind_leaves_the_versions_of_the_others() -> None:
    objects = ClusterObjects()
    before = objects.version
    objects.put(volume("a"))
    assert (objects.version, objects.storage.volumes.version, objects.storage.claims.version) == (before, 1, 0)
    objects.put(Namespace(metadata=ObjectMeta(name="default")))
    assert (objects.version, objects.storage.volumes.version) == (before + 1, 1)
    assert objects.remove(volume("unknown")) is None
    assert objects.storage.volumes.version == 1
    assert objects.remove(volume("a")) == volume("a")
    assert (objects.storage.volumes.version, len(objects.storage.volumes)) == (2, 0)


def test_claims_of_the_same_name_in_two_namespaces_are_two() -> None:
    objects = ClusterObjects()
    for namespace in ("one", "two"):
        metadata = {"name": "data", "namespace": namespace}
        objects.put(convert({"metadata": metadata, "spec": {"volumeName": namespace}}, PersistentVolumeClaim))
    found = objects.storage.claims.get("data", "two")
    assert found is not None and found.spec.volume_name == "two"
    assert objects.storage.claims.get("data") is None


def test_attachments_are_found_by_node_and_capacities_by_class() -> None:
    objects = ClusterObjects()
    spec = {"attacher": "ebs", "nodeName": "n1", "source": {"persistentVolumeName": "a"}}
    objects.put(convert({"metadata": {"name": "va"}, "spec": spec}, VolumeAttachment))
    body = {"metadata": {"name": "cap", "namespace": "kube-system"}, "storageClassName": "fast", "capacity": "5Gi", "nodeTopology": {}}
    objects.put(convert(body, CSIStorageCapacity))
    assert [each.spec.source.persistent_volume_name for each in objects.storage.attachments.where("n1")] == ["a"]
    assert [each.capacity for each in objects.storage.capacities.where("fast")] == ["5Gi"]


def test_the_class_written_as_an_annotation_outranks_the_field() -> None:
    claim = convert({"metadata": {"annotations": CLASS_OF_OLD}, "spec": {"storageClassName": "new"}}, PersistentVolumeClaim)
    old = convert({"metadata": {"annotations": CLASS_OF_OLD}, "spec": {"storageClassName": "new"}}, PersistentVolume)
    assert (claim_class(claim), volume_class(old)) == ("old", "old")
    assert (claim_class(PersistentVolumeClaim()), volume_class(PersistentVolume())) == ("", "")


def test_sources_are_read_under_the_names_that_the_api_server_writes() -> None:
    volumes = [
        {"name": "gce", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
        {"name": "ebs", "awsElasticBlockStore": {"volumeID": "vol-1"}},
        {"name": "rbd", "rbd": {"monitors": ["m"], "image": "i"}},
        {"name": "azure", "azureDisk": {"diskName": "d", "diskURI": "/d"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
    ]
    gce, ebs, rbd, azure, own = convert({"spec": {"volumes": volumes}}, Pod).spec.volumes or ()
    assert gce.gce_persistent_disk is not None and (gce.gce_persistent_disk.pd_name, gce.gce_persistent_disk.read_only) == ("disk", True)
    assert ebs.aws_elastic_block_store is not None and ebs.aws_elastic_block_store.volume_id == "vol-1"
    assert rbd.rbd is not None and (rbd.rbd.monitors, rbd.rbd.pool) == (("m",), "rbd")
    assert azure.azure_disk is not None and azure.azure_disk.disk_uri == "/d"
    assert own.ephemeral is not None


def test_a_class_has_its_fields_without_a_spec_around_them() -> None:
    topologies = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]
    body = {"metadata": {"name": "c"}, "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies}
    (term,) = convert(body, StorageClass).allowed_topologies or ()
    assert [(each.key, each.values) for each in term.match_label_expressions or ()] == [("zone", ("a", "b"))]


# --- assuming --------------------------------------------------------------------------------------------------------------------


def at(version: str, phase: str = "Available", storage_class: str = "fast") -> PersistentVolume:
    return persistent_volume("a").storage_class(storage_class).status(phase=phase).version(version).build()


def test_what_is_assumed_stands_in_the_place_of_what_is_shown_until_it_is_taken_back() -> None:
    volumes = ClusterObjects().storage.volumes
    volumes.put(at("1"))
    before = volumes.version
    volumes.assume(at("1", "assumed"))
    assert volumes.version > before
    assert (volumes.get("a"), volumes.shown("a"), list(volumes.where("fast"))) == (at("1", "assumed"), at("1"), [at("1", "assumed")])
    volumes.assume(at("1", "assumed again"))
    assert volumes.shown("a") == at("1")
    before = volumes.version
    volumes.restore(at("1"))
    assert volumes.version > before
    assert (volumes.get("a"), volumes.shown("a"), list(volumes.where("fast"))) == (at("1"), at("1"), [at("1")])
    before = volumes.version
    volumes.restore(at("1"))
    assert volumes.version == before


def test_the_same_shown_again_leaves_an_assumption_and_something_newer_ends_it() -> None:
    volumes = ClusterObjects().storage.volumes
    volumes.put(at("1"))
    volumes.assume(at("1", "assumed"))
    assert volumes.put(at("1")) == at("1")
    assert volumes.get("a") == at("1", "assumed")
    assert volumes.put(at("2")) == at("1")
    assert (volumes.get("a"), volumes.shown("a"), list(volumes.where("fast"))) == (at("2"), at("2"), [at("2")])
    volumes.restore(at("1"))
    assert volumes.get("a") == at("2")


def test_what_is_gone_is_gone_also_where_it_was_assumed_to_be_otherwise() -> None:
    volumes = ClusterObjects().storage.volumes
    volumes.put(at("1"))
    volumes.assume(at("1", "assumed"))
    assert volumes.remove(at("1")) == at("1")
    assert (volumes.get("a"), volumes.shown("a"), list(volumes.where("fast")), len(volumes)) == (None, None, [], 0)
    volumes.assume(at("1", "assumed"))
    assert volumes.get("a") is None
