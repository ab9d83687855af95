"""EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits. Each implements PreFilter, Filter.

For clusters whose disks the in-tree plugins attach, of Kubernetes 1.13 to 1.26 or so. They are off by default, because later clusters have
CSI drivers, whose volumes NodeVolumeLimits counts. A disk that two pods use counts once.

Source: kube-scheduler 1.20 to 1.30 `nodevolumelimits/non_csi.go`, and `pkg/volume/util/attach_limit.go` for the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import msgspec

from placewright.api.objects import Node, Volume
from placewright.api.pods import PodInfo
from placewright.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec
from placewright.cluster.cluster import Cluster
from placewright.framework.constraints import within
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.plugins.nodevolumelimits.attachable import Attachable, Lookup, Resolver
from placewright.plugins.nodevolumelimits.countlimit import VolumeCountLimit
from placewright.plugins.shared import podclaims
from placewright.plugins.shared.csimigration import migrated_plugins
from placewright.plugins.shared.hints import was_in_the_way

#: Labels with the type of a machine. If a node has both, the stable one counts (upstream takes either, by chance).
INSTANCE_TYPE: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")

_EBS_NITRO: Final = re.compile("^[cmr]5.*|t3|z1d")
_EBS_ON_NITRO: Final = 25
_EBS: Final = 39


@dataclass(frozen=True, slots=True)
class DiskKind:
    """The disks of one cloud.

    Attributes:
        provisioner: provisioner of classes whose volumes are such disks, and the name of the in-tree plugin.
        resource: resource under which a node states how many it takes.
        field: field of a volume that has such a disk.
        name: field of the disk with its name.
        usual_limit: limit of a node if neither it nor the profile states one.
    """

    provisioner: str
    resource: str
    field: str
    name: str
    usual_limit: Callable[[Node], int]

    def name_of(self, source: Volume | PersistentVolumeSpec) -> str | None:
        """Return the name of a volume's disk; None for all other volumes."""
        disk = getattr(source, self.field)
        return None if disk is None else getattr(disk, self.name)


def _ebs_limit(node: Node) -> int:
    """Return fewer for machines on Nitro, which share their slots with network interfaces."""
    labels = node.metadata.labels or {}
    machine = next((labels[key] for key in INSTANCE_TYPE if key in labels), "")
    return _EBS_ON_NITRO if _EBS_NITRO.search(machine) else _EBS


EBS: Final = DiskKind("kubernetes.io/aws-ebs", "attachable-volumes-aws-ebs", "aws_elastic_block_store", "volume_id", _ebs_limit)
GCE_PD: Final = DiskKind("kubernetes.io/gce-pd", "attachable-volumes-gce-pd", "gce_persistent_disk", "pd_name", lambda _node: 16)
AZURE_DISK: Final = DiskKind("kubernetes.io/azure-disk", "attachable-volumes-azure-disk", "azure_disk", "disk_name", lambda _node: 16)
CINDER: Final = DiskKind("kubernetes.io/cinder", "attachable-volumes-cinder", "cinder", "volume_id", lambda _node: 256)


class DiskResolver(Resolver):
    """Resolves the disks of one kind, under the names that the in-tree plugin gave them.

    The limit of a node is the one that it states. If it states none, the profile's limit counts, and then the usual one.
    Nodes where a CSI driver has taken over have no limit here, because NodeVolumeLimits counts their disks.
    """

    def __init__(self, cluster: Cluster, noted: Callable[[Lookup], None], kind: DiskKind, everywhere: int | None) -> None:
        super().__init__(cluster, noted)
        self._kind = kind
        self._everywhere = everywhere

    def limits(self, row: int) -> Mapping[str, int]:
        """Return the limit by the in-tree plugin's name; empty for no limit."""
        node, kind = self._cluster.node(row), self._kind
        if kind.provisioner in migrated_plugins(self._storage.csi_nodes.get(node.metadata.name)):
            return {}
        if kind.resource in (node.status.allocatable or {}):
            return {kind.provisioner: int(self._cluster.resources.column(kind.resource).allocatable[row])}
        return {kind.provisioner: kind.usual_limit(node) if self._everywhere is None else self._everywhere}

    def inline(self, volume: Volume) -> Attachable | None:
        """Return the disk that the pod names itself."""
        return self._disk(self._kind.name_of(volume))

    def existing(self, volume: PersistentVolume) -> Attachable | None:
        """Return the disk of a PersistentVolume."""
        return self._disk(self._kind.name_of(volume.spec))

    def awaited(self, claim: PersistentVolumeClaim) -> Attachable | None:
        """Return a disk that its class will make, or made before it was lost. The old annotation for the class does not count."""
        storage_class = self._class(claim.spec.storage_class_name or "")
        if storage_class is None or storage_class.provisioner != self._kind.provisioner:
            return None
        return Attachable(self._kind.provisioner, "", f"{claim.metadata.namespace}/{claim.metadata.name}")

    def _disk(self, name: str | None) -> Attachable | None:
        return None if name is None else Attachable(self._kind.provisioner, name)


class LegacyVolumeLimitsArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Number of disks that a node takes if it does not state a number itself. By default it is that of the cloud's machines.

    kube-scheduler read this from its environment, KUBE_MAX_PD_VOLS. Here users can see it in the profile, and it may differ by profile.
    """

    max_volumes: Annotated[int, within(1)] | None = None


class DiskCountLimit(VolumeCountLimit[LegacyVolumeLimitsArgs]):
    """Rejects nodes where the pod's disks of one kind would be too many. As upstream, also rejects nodes with too many already."""

    free_riders = False
    kind: ClassVar[DiskKind]

    def resolver(self, cluster: Cluster, noted: Callable[[Lookup], None]) -> DiskResolver:
        """Return a resolver of disks of this kind."""
        return DiskResolver(cluster, noted, self.kind, self.args.max_volumes)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare nodes that come or take more, disks that leave, claims of the pod, and CSI drivers that take over.

        A deleted class helps, because claims without a volume do not count without their class.
        """
        node = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL
        return (
            event_with_hint(EventResource.NODE, node),
            event_with_hint(EventResource.POD, Action.DELETE, was_in_the_way(PodInfo, self._had_disks)),
            event_with_hint(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD, podclaims.after_claim_change),
            event_with_hint(EventResource.STORAGE_CLASS, Action.DELETE),
            event_with_hint(EventResource.CSI_NODE, Action.ADD | Action.UPDATE, self._after_csi_node_change),
        )

    def _had_disks(self, _pod: PodInfo, old: PodInfo) -> bool:
        """Return whether a pod had disks of this kind on a node, or claims that may have them."""
        named = self.kind.name_of
        volumes = old.volumes if old.node_name else ()
        return any(podclaims.claim_name(old, each) is not None or named(each) is not None for each in volumes)

    def _after_csi_node_change(self, _pod: PodInfo, old: CSINode | None, new: CSINode | None) -> QueueingHint:
        """Queue if a CSI driver took over on a node, which has no limit here then."""
        return QueueingHint.when(self.kind.provisioner in migrated_plugins(new) - migrated_plugins(old))


class EBSLimits(DiskCountLimit):
    """Volumes of Amazon EBS: 39 a node, 25 on Nitro."""

    name = "EBSLimits"
    kind = EBS


class GCEPDLimits(DiskCountLimit):
    """Disks of Google Compute Engine: 16 a node."""

    name = "GCEPDLimits"
    kind = GCE_PD


class AzureDiskLimits(DiskCountLimit):
    """Disks of Azure: 16 a node."""

    name = "AzureDiskLimits"
    kind = AZURE_DISK


class CinderLimits(DiskCountLimit):
    """Volumes of OpenStack Cinder: 256 a node."""

    name = "CinderLimits"
    kind = CINDER
