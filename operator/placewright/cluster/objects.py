"""Objects that are neither nodes nor pods, as the API server shows them, for the plugins that read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from placewright.api.objectbounds import bounded
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
from placewright.cluster.storage import STORAGE_KINDS, Named, StorageObject, StorageObjects, Table, key_of

#: The kinds kept here; the reflectors watch these.
_OwnObject = Namespace | Service | ReplicationController | ReplicaSet | StatefulSet | PodDisruptionBudget
#: `Named` stands for the kinds that plugins declare.
ClusterObject = _OwnObject | StorageObject | DeviceObject | GroupObject | Named
N = TypeVar("N", bound=Named)
_OWN_KINDS: Final = (Namespace, Service, ReplicationController, ReplicaSet, StatefulSet, PodDisruptionBudget)
KINDS: Final = (*_OWN_KINDS, *STORAGE_KINDS, *DEVICE_KINDS, *GROUP_KINDS)
_NO_LABELS: Final[Mapping[str, str]] = {}


#: Changes that are remembered for readers; only a list of everything brings more at once.
_CHANGES: Final = 4096


class ObjectChange(NamedTuple):
    """An object of this kind and key appeared, changed or went."""

    kind: type[ClusterObject]
    key: str


class ClusterObjects:
    """Namespaces, Services, workloads and disruption budgets by `namespace/name` (namespaces by name), and tables of the other kinds.

    Attributes:
        version: grows with every change of a kind that has no table; a fingerprint for columns that read these kinds.
        changes: the objects of these kinds that appeared, changed or went, in order.
        namespaces: objects by name.
        services: objects by `namespace/name`.
        replication_controllers: objects by `namespace/name`.
        replica_sets: objects by `namespace/name`.
        stateful_sets: objects by `namespace/name`.
        disruption_budgets: objects by `namespace/name`.
        storage: volumes and their objects, with versions of their own.
        devices: devices and claims to them, with versions of their own.
        pod_groups: objects that declare groups of pods; read through `Cluster.pod_groups`.

    Objects that plugins declare are in tables of their own: see `of`.
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
        workloads = (self.services, self.replication_controllers, self.replica_sets, self.stateful_sets, self.disruption_budgets)
        self._by_kind: dict[type[ClusterObject], dict[str, Any]] = dict(zip(_OWN_KINDS, (self.namespaces, *workloads), strict=True))

    def put(self, item: ClusterObject) -> ClusterObject | None:
        """Add or replace an object, without those of its fields that are beyond their bound.

        Returns:
            The object as it was before; None for a new object.
        """
        item = bounded(item)
        table = self._table(type(item))
        if table is not None:
            known: ClusterObject | None = table.put(item)
            return known
        kept, key = self._by_kind[type(item)], key_of(item.metadata)
        old: ClusterObject | None = kept.get(key)
        kept[key] = item
        self._note(type(item), key)
        return old

    def remove(self, item: ClusterObject) -> ClusterObject | None:
        """Remove an object.

        Args:
            item: an object of a kind in `KINDS`; only its kind and name count.

        Returns:
            The object as it was before; None when it was unknown.
        """
        self.storage.selectors.forget(type(item), item.metadata)
        table = self._table(type(item))
        if table is not None:
            known: ClusterObject | None = table.remove(item)
            return known
        key = key_of(item.metadata)
        old: ClusterObject | None = self._by_kind[type(item)].pop(key, None)
        if old is not None:
            self._note(type(item), key)
        return old

    def of(self, kind: type[N]) -> Table[N]:
        """Return the objects of a kind that a plugin declares as its source; an empty table if none was read.

        The table's `version` grows with every change: a fingerprint for columns that read it.

        Raises:
            TypeError: the kind is an attribute of this class.
        """
        table = self._table(kind)
        if table is None:
            raise TypeError(f"{kind.__name__} has no table of its own: see the attributes of ClusterObjects")
        return table

    def _table(self, kind: type[Any]) -> Table[Any] | None:
        """Return the table of a kind, and make it if there is none; None for kinds that share one version."""
        table = self._tables.get(kind)
        if table is None and kind not in self._by_kind:
            table = self._tables[kind] = Table()
        return table

    def _note(self, kind: type[ClusterObject], key: str) -> None:
        self.version += 1
        self.changes.append(ObjectChange(kind, key))

    def of_kind(self, kind: type[ClusterObject]) -> Mapping[str, Any]:
        """Return the objects of a kind that has no table."""
        return self._by_kind[kind]

    def shown(self) -> Iterator[ClusterObject]:
        """Iterate over all objects as the API server showed them, without what is assumed about some of them."""
        for table in self._tables.values():
            yield from table.all_shown()
        for kept in self._by_kind.values():
            yield from kept.values()

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace.

        Returns:
            The labels; empty when the namespace is unknown.
        """
        namespace = self.namespaces.get(name)
        return (namespace.metadata.labels if namespace else None) or _NO_LABELS
