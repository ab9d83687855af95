"""EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits. Each implements PreFilter, Filter.

For clusters whose disks the in-tree plugins attach, of Kubernetes 1.13 to 1.26 or so; off by default, since later ones have CSI drivers,
whose volumes NodeVolumeLimits counts. A disk that two pods use counts once. Source: kube-scheduler `nodevolumelimits/non_csi.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec

from placewright.api.pods import PodInfo
from placewright.api.storage import CSINode, PersistentVolumeClaim
from placewright.cluster.cluster import Cluster
from placewright.framework.constraints import within
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.plugins.legacyvolumelimits.disks import AZURE_DISK, CINDER, EBS, GCE_PD, DiskKind, DiskLimits
from placewright.plugins.nodevolumelimits.countlimit import VolumeCountLimit
from placewright.plugins.shared import podclaims
from placewright.plugins.shared.csimigration import migrated_plugins


class LegacyVolumeLimitsArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How many disks every node takes that does not state it itself; without, what the cloud's machines take.

    kube-scheduler read this from its environment, KUBE_MAX_PD_VOLS. Here it stands in the profile, where users who wonder why a pod waits
    can see it, and it may differ by profile and by kind of disk.
    """

    max_volumes: Annotated[int, within(1)] | None = None


class DiskCountLimit(VolumeCountLimit[LegacyVolumeLimitsArgs]):
    """Rejects nodes where the pod's disks of one kind would be too many; and, as upstream, where there are too many already."""

    free_riders = False
    kind: ClassVar[DiskKind]

    def limits(self, cluster: Cluster) -> DiskLimits:
        """Return the limit of the node, or else of the profile, or else of the kind."""
        return DiskLimits(self.kind, self.args.max_volumes, cluster)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Nodes that come or take more, disks that leave one, a claim that the pod waits for, and a CSI driver that takes over.

        Without its class, what a claim without a volume stands for is not known, and is not counted.
        """
        node = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL
        return (
            event_with_hint(EventResource.NODE, node),
            event_with_hint(EventResource.POD, Action.DELETE, self._after_pod_deletion),
            event_with_hint(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _after_claim_added),
            event_with_hint(EventResource.STORAGE_CLASS, Action.DELETE),
            event_with_hint(EventResource.CSI_NODE, Action.ADD | Action.UPDATE, self._after_csi_node_change),
        )

    def _after_pod_deletion(self, _pod: PodInfo, old: PodInfo | None, _new: PodInfo | None) -> QueueingHint:
        """Wake the pod if another left a node with disks of this kind, or with claims that may stand for some."""
        if not isinstance(old, PodInfo) or not old.node_name:
            return QueueingHint.SKIP
        had = any(podclaims.claim_name(old, volume) is not None or self.kind.name_of(volume) is not None for volume in old.volumes)
        return QueueingHint.QUEUE if had else QueueingHint.SKIP

    def _after_csi_node_change(self, _pod: PodInfo, old: CSINode | None, new: CSINode | None) -> QueueingHint:
        """Wake the pod if a CSI driver took over on a node, which has no limit here then."""
        took_over = self.kind.provisioner in migrated_plugins(new) and self.kind.provisioner not in migrated_plugins(old)
        return QueueingHint.QUEUE if took_over else QueueingHint.SKIP


def _after_claim_added(pod: PodInfo, _old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> QueueingHint:
    """Wake the pod if a claim behind one of its volumes is there now."""
    return QueueingHint.QUEUE if podclaims.names(pod, new, ephemeral=True) else QueueingHint.SKIP


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
