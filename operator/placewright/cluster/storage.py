"""Volumes, claims and their providers as the API server shows them: tables by name, each with its own version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

from placewright.api.counts import take_out
from placewright.api.objects import ObjectMeta
from placewright.api.storage import (
    BETA_CLASS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from placewright.cluster.journal import Log
from placewright.cluster.objectselectors import ObjectSelectors

#: The kinds kept here.
StorageObject = PersistentVolume | PersistentVolumeClaim | StorageClass | CSINode | CSIDriver | VolumeAttachment | CSIStorageCapacity
STORAGE_KINDS: Final = (PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIDriver, VolumeAttachment, CSIStorageCapacity)
#: Changed keys of each kind that are remembered; a reader that is further behind reads all objects. Bounded, as tenants choose the keys.
_CHANGES: Final = 8192


class Named(Protocol):
    """Any object that a table can hold."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's name, and the version that was seen."""


O = TypeVar("O", bound=Named)  # noqa: E741 - an object
_NOTHING: Final[Mapping[str, Any]] = {}


class Table(Generic[O]):
    """The objects of one kind, by name or by `namespace/name`.

    A change that we are about to write may be assumed. It then stands in place of the object that the API server shows. It
    ends when the API server shows a newer version, or when it is taken back (kube-scheduler's `AssumeCache`).

    Args:
        indexed_by: the value under which `where` finds an object; None for no index.

    Attributes:
        version: grows with every change; a fingerprint for columns that read this kind.
        changes: keys of changed objects, for readers that keep results for each object.
    """

    __slots__ = ("_index", "_indexed_by", "_items", "_shown", "changes", "version")

    def __init__(self, indexed_by: Callable[[O], str] | None = None) -> None:
        self.version = 0
        self.changes: Log[str] = Log(_CHANGES)
        self._items: dict[str, O] = {}
        #: The version that the API server shows, of each object that is assumed to differ.
        self._shown: dict[str, O] = {}
        self._indexed_by = indexed_by
        self._index: dict[str, dict[str, O]] = {}

    def get(self, name: str, namespace: str = "") -> O | None:
        """Return the object of that name, as it is assumed to be; None when there is none."""
        return self._items.get(f"{namespace}/{name}" if namespace else name)

    def shown(self, name: str, namespace: str = "") -> O | None:
        """Return the object of that name as the API server showed it last; None when there is none."""
        return self._shown.get(f"{namespace}/{name}" if namespace else name) or self.get(name, namespace)

    def values(self) -> Iterable[O]:
        """Return all objects, as they are assumed to be."""
        return self._items.values()

    def all_shown(self) -> Iterable[O]:
        """Return all objects as the API server showed them last."""
        return [self._shown.get(key, item) for key, item in self._items.items()]

    def where(self, index: str) -> Iterable[O]:
        """Return the objects under a value of the table's index.

        Returns:
            The objects, as they are assumed to be.
        """
        return self._index.get(index, _NOTHING).values()

    def put(self, item: O) -> O | None:
        """Add or replace an object that the API server shows.

        An assumption holds as long as the API server shows the version that it was made on.

        Returns:
            The object as the API server showed it before; None for a new object.
        """
        key = key_of(item.metadata)
        shown = self._shown.pop(key, None)
        if shown is None:
            return self._set(key, item)
        if shown.metadata.resource_version == item.metadata.resource_version:
            # A relist repeats the version that the assumption was made on. Only a later version overrides the assumption.
            self._shown[key] = item
        else:
            self._set(key, item)
        return shown

    def remove(self, item: O) -> O | None:
        """Remove an object, with any assumption about it.

        Returns:
            The object as the API server showed it; None when it was unknown.
        """
        key = key_of(item.metadata)
        shown = self._shown.pop(key, None)
        old = self._items.pop(key, None)
        if old is not None:
            self._unfile(key, old)
            self._changed(key)
        return shown or old

    def assume(self, item: O) -> None:
        """Assume that an object is like this from now on; ignored for an object that the table does not have."""
        key = key_of(item.metadata)
        old = self._items.get(key)
        if old is not None:
            self._shown.setdefault(key, old)
            self._set(key, item)

    def restore(self, item: O) -> None:
        """Take back an assumption: the object is as the API server shows it. Harmless when nothing is assumed about it."""
        key = key_of(item.metadata)
        shown = self._shown.pop(key, None)
        if shown is not None:
            self._set(key, shown)

    def _set(self, key: str, item: O) -> O | None:
        old = self._items.get(key)
        if old is not None:
            self._unfile(key, old)
        self._items[key] = item
        if self._indexed_by is not None:
            self._index.setdefault(self._indexed_by(item), {})[key] = item
        self._changed(key)
        return old

    def _changed(self, key: str) -> None:
        self.version += 1
        self.changes.append(key)

    def __len__(self) -> int:
        return len(self._items)

    def _unfile(self, key: str, item: O) -> None:
        if self._indexed_by is not None:
            take_out(self._index, self._indexed_by(item), key)


class StorageObjects:
    """The tables of all storage objects.

    Attributes:
        volumes: PersistentVolumes by name; `where` finds the volumes of a class.
        claims: PersistentVolumeClaims by namespace and name.
        classes: StorageClasses by name.
        csi_nodes: CSINodes by the name of the node.
        csi_drivers: CSIDrivers by name.
        attachments: VolumeAttachments by name; `where` finds the attachments of a node.
        capacities: CSIStorageCapacities by namespace and name; `where` finds the capacities of a class.
        tables: the same tables, by kind.
        selectors: compiled selectors of claims, and of the objects that `ClusterObjects` keeps.
    """

    def __init__(self) -> None:
        self.selectors = ObjectSelectors()
        self.volumes: Table[PersistentVolume] = Table(volume_class)
        self.claims: Table[PersistentVolumeClaim] = Table()
        self.classes: Table[StorageClass] = Table()
        self.csi_nodes: Table[CSINode] = Table()
        self.csi_drivers: Table[CSIDriver] = Table()
        self.attachments: Table[VolumeAttachment] = Table(lambda item: item.spec.node_name)
        self.capacities: Table[CSIStorageCapacity] = Table(lambda item: item.storage_class_name)
        kept = (self.volumes, self.claims, self.classes, self.csi_nodes, self.csi_drivers, self.attachments, self.capacities)
        self.tables: Final[Mapping[type[Any], Table[Any]]] = MappingProxyType(dict(zip(STORAGE_KINDS, kept, strict=True)))


def key_of(meta: ObjectMeta) -> str:
    """Return the key of an object.

    Returns:
        `namespace/name`, or the name alone for an object without a namespace.
    """
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def volume_class(volume: PersistentVolume) -> str:
    """Return the StorageClass of a volume.

    Returns:
        The name of the class; "" for none.
    """
    beta = (volume.metadata.annotations or _NOTHING).get(BETA_CLASS)
    return volume.spec.storage_class_name if beta is None else beta


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Return the StorageClass that a claim asks for.

    Returns:
        The name of the class; "" for none.
    """
    beta = (claim.metadata.annotations or _NOTHING).get(BETA_CLASS)
    return (claim.spec.storage_class_name or "") if beta is None else beta
