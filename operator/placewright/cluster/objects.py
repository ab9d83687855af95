"""Cluster objects that are neither nodes nor pods: kept as they are, read by the plugins that care."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from placewright.api.podgroups import GroupObject
from placewright.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from placewright.cluster.devices import DEVICE_KINDS, DeviceObject, DeviceObjects
from placewright.cluster.journal import Log
from placewright.cluster.podgroups import GROUP_KINDS, GroupObjects
from placewright.cluster.storage import STORAGE_KINDS, StorageObject, StorageObjects, Table, key_of

#: The kinds kept here; the reflectors watch these.
_OwnObject = Namespace | Service | ReplicationController | ReplicaSet | StatefulSet | PodDisruptionBudget
ClusterObject = _OwnObject | StorageObject | DeviceObject | GroupObject
_OWN_KINDS: Final = (Namespace, Service, ReplicationController, ReplicaSet, StatefulSet, PodDisruptionBudget)
KINDS: Final = (*_OWN_KINDS, *STORAGE_KINDS, *DEVICE_KINDS, *GROUP_KINDS)
_NO_LABELS: Final[Mapping[str, str]] = {}


#: More than come at once, but in a list of everything.
_CHANGES: Final = 4096


class ObjectChange(NamedTuple):
    """An object of this kind with this key came, changed or went."""

    kind: type[ClusterObject]
    key: str


class ClusterObjects:
    """Namespaces, Services, workloads and disruption budgets, each keyed by `namespace/name` (namespaces by name).

    Attributes:
        version: grows with every change; a fingerprint for columns that read any of these.
        changes: what came, changed or went, in order, for readers that follow.
        storage: volumes and what belongs to them; they have versions of their own.
        devices: devices and claims to them, likewise.
        pod_groups: what declares groups of pods; read through `Cluster.pod_groups`.
    """

    def __init__(self) -> None:
        self.version = 0
        self.changes: Log[ObjectChange] = Log(_CHANGES)
        self.namespaces: dict[str, Namespace] = {}
        self.services: dict[str, Service] = {}
        self.replication_controllers: dict[str, ReplicationController] = {}
        self.replica_sets: dict[str, ReplicaSet] = {}
        self.stateful_sets: dict[str, StatefulSet] = {}
        self.disruption_budgets: dict[str, PodDisruptionBudget] = {}
        self.storage = StorageObjects()
        self.devices = DeviceObjects()
        self.pod_groups = GroupObjects()
        self._tables: dict[type[Any], Table[Any]] = {**self.storage.tables, **self.devices.tables, **self.pod_groups.tables}
        self._by_kind: dict[type[ClusterObject], dict[str, Any]] = {
            Namespace: self.namespaces,
            Service: self.services,
            ReplicationController: self.replication_controllers,
            ReplicaSet: self.replica_sets,
            StatefulSet: self.stateful_sets,
            PodDisruptionBudget: self.disruption_budgets,
        }

    def put(self, item: ClusterObject) -> ClusterObject | None:
        """Add or replace an object; returns what was known before."""
        table = self._tables.get(type(item))
        if table is not None:
            known: ClusterObject | None = table.put(item)
            return known
        kept, key = self._by_kind[type(item)], key_of(item.metadata)
        old: ClusterObject | None = kept.get(key)
        kept[key] = item
        self._note(type(item), key)
        return old

    def remove(self, item: ClusterObject) -> ClusterObject | None:
        """Take an object away; returns what was known, None for unknown ones, which are no error."""
        table = self._tables.get(type(item))
        if table is not None:
            known: ClusterObject | None = table.remove(item)
            return known
        key = key_of(item.metadata)
        old: ClusterObject | None = self._by_kind[type(item)].pop(key, None)
        if old is not None:
            self._note(type(item), key)
        return old

    def _note(self, kind: type[ClusterObject], key: str) -> None:
        self.version += 1
        self.changes.append(ObjectChange(kind, key))

    def of_kind(self, kind: type[ClusterObject]) -> Mapping[str, Any]:
        """Objects of one of the kinds that have no version of their own, by key."""
        return self._by_kind[kind]

    def shown(self) -> Iterator[ClusterObject]:
        """All objects as the API server showed them, whatever is assumed about some of them."""
        for table in self._tables.values():
            yield from table.all_shown()
        for kept in self._by_kind.values():
            yield from kept.values()

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Labels of a namespace; empty when it is unknown."""
        namespace = self.namespaces.get(name)
        return (namespace.metadata.labels if namespace else None) or _NO_LABELS

