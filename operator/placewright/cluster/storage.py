"""Volumes, claims and what provides them, as the API server shows them: tables by name, each with its own version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

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

#: The kinds kept here.
StorageObject = (
    PersistentVolume | PersistentVolumeClaim | StorageClass | CSINode | CSIDriver | VolumeAttachment | CSIStorageCapacity
)
STORAGE_KINDS: Final = (PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIDriver, VolumeAttachment, CSIStorageCapacity)
#: Keys of each kind that are remembered; a reader that is further behind looks at everything anew. They are tenants' text.
_CHANGES: Final = 8192



class Named(Protocol):
    """Anything that a table can keep."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its name, and the version that was seen of it."""


O = TypeVar("O", bound=Named)  # noqa: E741 - an object
_NOTHING: Final[Mapping[str, Any]] = {}


class Table(Generic[O]):
    """The objects of one kind by name, or by `namespace/name`.

    What we are about to write may be assumed: it then stands in the place of what the API server shows, until that shows something newer,
    or the assumption is taken back.

    Attributes:
        version: grows with every change; a fingerprint for columns that read this kind.
        changes: the keys of what changed, for readers that keep something per object.
    """

    __slots__ = ("_index", "_indexed_by", "_items", "_shown", "changes", "version")

    def __init__(self, indexed_by: Callable[[O], str] | None = None) -> None:
        self.version = 0
        self.changes: Log[str] = Log(_CHANGES)
        self._items: dict[str, O] = {}
        #: What the API server shows of objects that are assumed to be otherwise.
        self._shown: dict[str, O] = {}
        self._indexed_by = indexed_by
        self._index: dict[str, dict[str, O]] = {}

    def get(self, name: str, namespace: str = "") -> O | None:
        """The object of that name, as it is assumed to be, or None."""
        return self._items.get(f"{namespace}/{name}" if namespace else name)

    def shown(self, name: str, namespace: str = "") -> O | None:
        """The object of that name as the API server showed it last, or None."""
        return self._shown.get(f"{namespace}/{name}" if namespace else name) or self.get(name, namespace)

    def values(self) -> Iterable[O]:
        """All of them."""
        return self._items.values()

    def all_shown(self) -> Iterable[O]:
        """All of them, as the API server showed them last."""
        return [self._shown.get(key, item) for key, item in self._items.items()]

    def where(self, index: str) -> Iterable[O]:
        """Those that this table's index files under the given value."""
        return self._index.get(index, _NOTHING).values()

    def put(self, item: O) -> O | None:
        """The API server shows this: add or replace; returns what it showed before. Nothing newer leaves an assumption as it is."""
        key = key_of(item.metadata)
        shown = self._shown.pop(key, None)
        if shown is None:
            return self._set(key, item)
        if shown.metadata.resource_version == item.metadata.resource_version:
            self._shown[key] = item
        else:
            self._set(key, item)
        return shown

    def remove(self, item: O) -> O | None:
        """Take away; returns what the API server showed, or None."""
        key = key_of(item.metadata)
        shown = self._shown.pop(key, None)
        old = self._items.pop(key, None)
        if old is not None:
            self._unfile(key, old)
            self._changed(key)
        return shown or old

    def assume(self, item: O) -> None:
        """Take the object to be like this from now on; one that is not there is left out."""
        key = key_of(item.metadata)
        old = self._items.get(key)
        if old is not None:
            self._shown.setdefault(key, old)
            self._set(key, item)

    def restore(self, item: O) -> None:
        """Take the object to be as the API server shows it; fine when nothing is assumed about it."""
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
        if self._indexed_by is None:
            return
        filed = self._index[self._indexed_by(item)]
        del filed[key]
        if not filed:
            del self._index[self._indexed_by(item)]


class StorageObjects:
    """All storage objects of the cluster.

    Attributes:
        volumes: PersistentVolumes by name; `where` finds those of a class.
        claims: PersistentVolumeClaims by name and namespace.
        classes, csi_drivers: StorageClasses and CSIDrivers by name.
        csi_nodes: CSINodes by the name of the node.
        attachments: VolumeAttachments by name; `where` finds those of a node.
        capacities: CSIStorageCapacities by name and namespace; `where` finds those of a class.
    """

    def __init__(self) -> None:
        self.volumes: Table[PersistentVolume] = Table(volume_class)
        self.claims: Table[PersistentVolumeClaim] = Table()
        self.classes: Table[StorageClass] = Table()
        self.csi_nodes: Table[CSINode] = Table()
        self.csi_drivers: Table[CSIDriver] = Table()
        self.attachments: Table[VolumeAttachment] = Table(lambda item: item.spec.node_name)
        self.capacities: Table[CSIStorageCapacity] = Table(lambda item: item.storage_class_name)
        self.tables: Final[Mapping[type[Any], Table[Any]]] = MappingProxyType(
            {
                PersistentVolume: self.volumes,
                PersistentVolumeClaim: self.claims,
                StorageClass: self.classes,
                CSINode: self.csi_nodes,
                CSIDriver: self.csi_drivers,
                VolumeAttachment: self.attachments,
                CSIStorageCapacity: self.capacities,
            }
        )


def key_of(meta: ObjectMeta) -> str:
    """`namespace/name`, or the name alone where there is no namespace."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def volume_class(volume: PersistentVolume) -> str:
    """The class of a volume; empty for none."""
    beta = (volume.metadata.annotations or _NOTHING).get(BETA_CLASS)
    return volume.spec.storage_class_name if beta is None else beta


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The class that a claim asks for; empty for none."""
    beta = (claim.metadata.annotations or _NOTHING).get(BETA_CLASS)
    return (claim.spec.storage_class_name or "") if beta is None else beta
