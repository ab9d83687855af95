"""The disks of four clouds, as the in-tree plugins knew them: their names, who made them, which count on a node, and how many it takes.

Source: kube-scheduler 1.20 to 1.30 `nodevolumelimits/non_csi.go`, and `pkg/volume/util/attach_limit.go` for the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from placewright.api.objects import Node, Volume
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec
from placewright.cluster.cluster import Cluster
from placewright.cluster.storage import StorageObjects
from placewright.plugins.nodevolumelimits.attachable import Attachable, Lookup, Resolver
from placewright.plugins.shared.csimigration import migrated_plugins

#: The label with the type of a machine; where a node has both, the stable one counts (upstream takes either, by chance).
INSTANCE_TYPE: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")

_EBS_NITRO: Final = re.compile("^[cmr]5.*|t3|z1d")
_EBS_ON_NITRO: Final = 25
_EBS: Final = 39


@dataclass(frozen=True, slots=True)
class DiskKind:
    """One cloud's disks.

    Attributes:
        provisioner: provisioner of classes whose volumes are such disks, and the name of the in-tree plugin.
        resource: resource under which a node states how many it takes.
        name_of: returns the name of a volume's disk; None for all other volumes.
        usual_limit: limit of a node if neither it nor the profile states one.
    """

    provisioner: str
    resource: str
    name_of: Callable[[Volume | PersistentVolumeSpec], str | None]
    usual_limit: Callable[[Node], int]


def _ebs_name(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.aws_elastic_block_store.volume_id if source.aws_elastic_block_store is not None else None


def _gce_name(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.gce_persistent_disk.pd_name if source.gce_persistent_disk is not None else None


def _azure_name(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.azure_disk.disk_name if source.azure_disk is not None else None


def _cinder_name(source: Volume | PersistentVolumeSpec) -> str | None:
    return source.cinder.volume_id if source.cinder is not None else None


def _ebs_limit(node: Node) -> int:
    """Machines on Nitro share their slots with network interfaces."""
    labels = node.metadata.labels or {}
    machine = next((labels[key] for key in INSTANCE_TYPE if key in labels), "")
    return _EBS_ON_NITRO if _EBS_NITRO.search(machine) else _EBS


def _always(limit: int) -> Callable[[Node], int]:
    return lambda _node: limit


EBS: Final = DiskKind("kubernetes.io/aws-ebs", "attachable-volumes-aws-ebs", _ebs_name, _ebs_limit)
GCE_PD: Final = DiskKind("kubernetes.io/gce-pd", "attachable-volumes-gce-pd", _gce_name, _always(16))
AZURE_DISK: Final = DiskKind("kubernetes.io/azure-disk", "attachable-volumes-azure-disk", _azure_name, _always(16))
CINDER: Final = DiskKind("kubernetes.io/cinder", "attachable-volumes-cinder", _cinder_name, _always(256))


class DiskResolver(Resolver):
    """Finds the disks of one kind behind a pod's volumes, under the names that the in-tree plugin gave them."""

    def __init__(self, kind: DiskKind, storage: StorageObjects, noted: Callable[[Lookup], None] | None = None) -> None:
        super().__init__(storage, *([] if noted is None else [noted]))
        self._kind = kind

    def inline(self, volume: Volume) -> Attachable | None:
        """Return the disk that the pod names itself."""
        return self._disk(self._kind.name_of(volume))

    def existing(self, volume: PersistentVolume) -> Attachable | None:
        """Return the disk that a PersistentVolume stands for."""
        return self._disk(self._kind.name_of(volume.spec))

    def awaited(self, claim: PersistentVolumeClaim) -> Attachable | None:
        """Return a disk that its class will make, or made before it was lost. The class is that of the field, not of the old annotation."""
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
        """Find disks of this kind."""
        return DiskResolver(self._kind, self._cluster.objects.storage, noted)

    def _limit(self, node: Node, row: int) -> int:
        if self._kind.resource in (node.status.allocatable or {}):
            return int(self._cluster.resources.column(self._kind.resource).allocatable[row])
        return self._kind.usual_limit(node) if self._everywhere is None else self._everywhere
