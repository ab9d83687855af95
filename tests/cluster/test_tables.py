"""Tables of objects by name, against a plain model: what is shown, what is assumed, what an index files where, and who is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.decode import convert
from placewright.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from placewright.api.objects import KubeObject, ObjectMeta
from placewright.api.podgroups import CompositePodGroup, CoschedulingPodGroup, NativePodGroup, VolcanoPodGroup, Workload
from placewright.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from placewright.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from placewright.cluster.objects import KINDS, ClusterObjects
from placewright.cluster.storage import Table, claim_class, key_of, volume_class
from randomcases import cases

#: All that a scheduler watches beside nodes and pods.
WATCHED = (
    Namespace, Service, ReplicationController, ReplicaSet, StatefulSet, PodDisruptionBudget, PersistentVolume, PersistentVolumeClaim,
    StorageClass, CSINode, CSIDriver, VolumeAttachment, CSIStorageCapacity, ResourceClaim, ResourceSlice, DeviceClass, DeviceTaintRule,
    CoschedulingPodGroup, NativePodGroup, Workload, VolcanoPodGroup, CompositePodGroup,
)  # fmt: skip
CLUSTER_SCOPED = (
    Namespace, PersistentVolume, StorageClass, CSINode, CSIDriver, VolumeAttachment, ResourceSlice, DeviceClass, DeviceTaintRule,
)  # fmt: skip
#: Where `ClusterObjects` keeps what has no table, in the order of `WATCHED`.
KEPT_IN = ("namespaces", "services", "replication_controllers", "replica_sets", "stateful_sets", "disruption_budgets")


def named(kind: type[KubeObject], name: str = "x", namespace: str = "ns", version: str = "1") -> Any:
    where = {} if kind in CLUSTER_SCOPED else {"namespace": namespace}
    return convert({"metadata": {"name": name, "resourceVersion": version, **where}}, kind)


# --- every kind ------------------------------------------------------------------------------------------------------------------


def test_the_kinds_that_are_kept_are_those_that_are_watched() -> None:
    assert set(KINDS) == set(WATCHED)
    assert len(KINDS) == len(WATCHED)


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.__name__)
def test_every_kind_is_kept_replaced_and_removed_by_its_name(kind: type[Any]) -> None:
    objects = ClusterObjects()
    first, second, other = named(kind), named(kind, version="2"), named(kind, "y")
    assert objects.remove(first) is None
    assert objects.put(first) is None
    assert objects.put(second) is first
    assert objects.put(other) is None
    assert {id(each) for each in objects.shown()} == {id(second), id(other)}
    assert objects.remove(first) is second
    assert objects.remove(first) is None
    assert list(objects.shown()) == [other]


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.__name__)
def test_a_change_is_counted_once_and_only_where_the_kind_is_kept(kind: type[Any]) -> None:
    objects = ClusterObjects()
    tables = {**objects.storage.tables, **objects.devices.tables, **objects.pod_groups.tables}
    seen = [_versions(objects)]
    for act in (objects.put, objects.put, objects.remove, objects.remove):
        act(named(kind))
        seen.append(_versions(objects))
    changed = [[now - before for now, before in zip(one, other, strict=True)] for one, other in zip(seen[1:], seen, strict=False)]
    assert [sum(each) for each in changed] == [1, 1, 1, 0]
    where = [kept for kept, *_ in _places(objects)].index(tables.get(kind, objects))
    assert all(not difference or place == where for each in changed for place, difference in enumerate(each))


def _places(objects: ClusterObjects) -> list[tuple[Any]]:
    tables = (*objects.storage.tables.values(), *objects.devices.tables.values(), *objects.pod_groups.tables.values())
    return [(objects,), *((table,) for table in tables)]


def _versions(objects: ClusterObjects) -> list[int]:
    return [kept.version for kept, *_ in _places(objects)]


def test_what_is_assumed_is_not_what_was_shown() -> None:
    objects = ClusterObjects()
    shown, assumed = named(PersistentVolumeClaim), named(PersistentVolumeClaim, version="assumed")
    objects.put(shown)
    objects.storage.claims.assume(assumed)
    assert (list(objects.shown()), list(objects.storage.claims.values())) == ([shown], [assumed])


@pytest.mark.parametrize(("key", "kind"), list(zip(KEPT_IN, WATCHED, strict=False)))
def test_plugins_find_workloads_by_namespace_and_name(key: str, kind: type[Any]) -> None:
    objects, kept = ClusterObjects(), named(kind)
    objects.put(kept)
    assert getattr(objects, key) == {"x" if key == "namespaces" else "ns/x": kept}


@pytest.mark.parametrize(
    ("meta", "key"), [(ObjectMeta(name="a"), "a"), (ObjectMeta(name="a", namespace="n"), "n/a"), (ObjectMeta(name="n/a"), "n/a")]
)
def test_an_object_is_known_by_its_namespace_and_name(meta: ObjectMeta, key: str) -> None:
    assert key_of(meta) == key


# --- a table against a model -----------------------------------------------------------------------------------------------------


class Model:
    """What is shown and what is assumed, by name, and nothing else."""

    def __init__(self) -> None:
        self.shown: dict[str, StorageClass] = {}
        self.assumed: dict[str, StorageClass] = {}

    @property
    def items(self) -> dict[str, StorageClass]:
        return self.shown | self.assumed

    def put(self, item: StorageClass) -> StorageClass | None:
        key = item.metadata.name
        before = self.shown.get(key)
        if before is None or before.metadata.resource_version != item.metadata.resource_version:
            self.assumed.pop(key, None)
        self.shown[key] = item
        return before

    def remove(self, item: StorageClass) -> StorageClass | None:
        self.assumed.pop(item.metadata.name, None)
        return self.shown.pop(item.metadata.name, None)

    def assume(self, item: StorageClass) -> None:
        if item.metadata.name in self.shown:
            self.assumed[item.metadata.name] = item

    def restore(self, item: StorageClass) -> None:
        self.assumed.pop(item.metadata.name, None)


ITEMS = st.builds(
    lambda name, version, made_by: StorageClass(metadata=ObjectMeta(name=name, resource_version=version), provisioner=made_by),
    st.sampled_from("ab"), st.sampled_from("12"), st.sampled_from("xy"),
)  # fmt: skip


@settings(max_examples=cases(150))
@given(st.lists(st.tuples(st.sampled_from(["put", "remove", "assume", "restore"]), ITEMS), max_size=10))
def test_through_any_history_a_table_says_what_is_shown_and_what_is_assumed(history: list[tuple[str, StorageClass]]) -> None:
    table, model = Table[StorageClass](lambda item: item.provisioner), Model()
    for act, item in history:
        version, before = table.version, dict(model.items)
        assert getattr(table, act)(item) == getattr(model, act)(item)
        changed = {key for key in {*before, *model.items} if before.get(key) is not model.items.get(key)}
        assert changed <= set(table.changes.since(version) or ()), "who keeps something per object hears of each that changed"
        assert (table.version == version) is (table.changes.position == version)
        assert {key: table.get(key) for key in "ab"} == {key: model.items.get(key) for key in "ab"}
        assert {key: table.shown(key) for key in "ab"} == {key: model.shown.get(key) for key in "ab"}
        assert sorted(table.values(), key=repr) == sorted(model.items.values(), key=repr)
        assert sorted(table.all_shown(), key=repr) == sorted(model.shown.values(), key=repr)
        assert len(table) == len(model.items)
        for made_by in "xyz":
            filed = sorted((each for each in model.items.values() if each.provisioner == made_by), key=repr)
            assert sorted(table.where(made_by), key=repr) == filed
    assert set(table._index) == {each.provisioner for each in model.items.values()}, "an empty drawer keeps no memory"
    assert set(table._shown) == set(model.assumed)


def test_the_same_version_shown_again_is_kept_for_the_day_when_the_assumption_ends() -> None:
    table: Table[StorageClass] = Table()
    table.put(named(StorageClass))
    table.assume(StorageClass(metadata=ObjectMeta(name="x", resource_version="1"), provisioner="assumed"))
    again = StorageClass(metadata=ObjectMeta(name="x", resource_version="1"), provisioner="shown again")
    version = table.version
    assert table.put(again) == named(StorageClass)
    assert table.version == version, "nothing that anybody reads has changed"
    table.restore(again)
    assert table.get("x") is again


def test_a_table_without_an_index_files_nothing() -> None:
    table: Table[StorageClass] = Table()
    table.put(named(StorageClass))
    assert (list(table.where("")), list(table.where("x"))) == ([], [])
    assert (table.get("x", "ns"), table.shown("x", "ns")) == (None, None)


# --- classes of volumes and claims -----------------------------------------------------------------------------------------------

BETA = "volume.beta.kubernetes.io/storage-class"


@pytest.mark.parametrize(
    ("annotations", "field", "found"),
    [
        (None, None, ""), (None, "", ""), (None, "fast", "fast"), ({}, "fast", "fast"), ({BETA: "old"}, "fast", "old"),
        ({BETA: "old"}, None, "old"), ({BETA: ""}, "fast", ""), ({"other": "old"}, "fast", "fast"),
    ],
)  # fmt: skip
def test_the_annotation_of_old_goes_before_the_field_also_where_it_says_that_there_is_no_class(
    annotations: dict[str, str] | None, field: str | None, found: str
) -> None:
    spec = {} if field is None else {"storageClassName": field}
    body = {"metadata": {"name": "x", "annotations": annotations}, "spec": spec}
    assert claim_class(convert(body, PersistentVolumeClaim)) == found
    assert volume_class(convert(body, PersistentVolume)) == found
    volumes = ClusterObjects().storage.volumes
    volumes.put(convert(body, PersistentVolume))
    assert len(list(volumes.where(found))) == 1


def test_a_namespace_without_labels_has_none() -> None:
    objects = ClusterObjects()
    objects.put(named(Namespace))
    assert (objects.namespace_labels("x"), objects.namespace_labels("unknown")) == ({}, {})
    objects.put(convert({"metadata": {"name": "x", "labels": {"a": "b"}}}, Namespace))
    assert objects.namespace_labels("x") == {"a": "b"}
    objects.remove(named(Namespace))
    assert objects.namespace_labels("x") == {}
