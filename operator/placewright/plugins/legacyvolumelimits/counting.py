"""Which disks of one cloud count on a node, and how many it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from placewright.api.objects import Node, Volume
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.cluster import Cluster
from placewright.cluster.storage import StorageObjects
from placewright.plugins.legacyvolumelimits.disks import DiskKind
from placewright.plugins.nodevolumelimits.attachable import Attachable, Lookup, Resolver
from placewright.plugins.shared.csimigration import migrated_plugins


class DiskResolver(Resolver):
    """Finds the disks of one kind behind a pod's volumes, under the names that the in-tree plugin gave them."""

    def __init__(self, kind: DiskKind, storage: StorageObjects, noted: Callable[[Lookup], None] | None = None) -> None:
        super().__init__(storage, *([] if noted is None else [noted]))
        self._kind = kind

    def inline(self, volume: Volume) -> Attachable | None:
        """A disk that the pod names itself."""
        return self._disk(self._kind.name_of(volume))

    def existing(self, volume: PersistentVolume) -> Attachable | None:
        """The disk that a PersistentVolume stands for."""
        return self._disk(self._kind.name_of(volume.spec))

    def awaited(self, claim: PersistentVolumeClaim) -> Attachable | None:
        """A disk that its class will have made, or had made before it was lost; the class of the field, not of the old annotation."""
        storage_class = self._class(claim.spec.storage_class_name or "")
        if storage_class is None or storage_class.provisioner != self._kind.provisioner:
            return None
        return Attachable(self._kind.provisioner, "", f"{claim.metadata.namespace}/{claim.metadata.name}")

    def _disk(self, name: str | None) -> Attachable | None:
        return None if name is None else Attachable(self._kind.provisioner, name)


class DiskLimits:
    """How many disks of one kind each node takes: what the node states, else what the profile says, else what is usual.

    A node where a CSI driver has taken over from the in-tree plugin has no limit here: NodeVolumeLimits sees to it.
    """

    def __init__(self, kind: DiskKind, everywhere: int | None, cluster: Cluster) -> None:
        self._kind = kind
        self._everywhere = everywhere
        self._cluster = cluster

    def of(self, row: int) -> Mapping[str, int]:
        """By the in-tree plugin's name; empty for no limit."""
        node = self._cluster.node(row)
        storage = self._cluster.objects.storage
        if self._kind.provisioner in migrated_plugins(storage.csi_nodes.get(node.metadata.name)):
            return {}
        return {self._kind.provisioner: self._limit(node, row)}

    def resolver(self, noted: Callable[[Lookup], None]) -> DiskResolver:
        """Finds disks of this kind."""
        return DiskResolver(self._kind, self._cluster.objects.storage, noted)

    def _limit(self, node: Node, row: int) -> int:
        if self._kind.resource in (node.status.allocatable or {}):
            return int(self._cluster.resources.column(self._kind.resource).allocatable[row])
        return self._kind.usual_limit(node) if self._everywhere is None else self._everywhere
