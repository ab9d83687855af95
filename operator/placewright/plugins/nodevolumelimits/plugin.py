"""NodeVolumeLimits: a node takes only so many volumes of each CSI driver. Implements PreFilter, Filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from placewright.api.objects import Volume
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, interest
from placewright.plugins.nodevolumelimits import hints
from placewright.plugins.nodevolumelimits.attached import CsiLimits
from placewright.plugins.nodevolumelimits.countlimit import VolumeCountLimit
from placewright.plugins.shared.csimigration import is_migratable

NAME: Final = "NodeVolumeLimits"


class NodeVolumeLimits(VolumeCountLimit):
    """Rejects nodes where the pod's volumes would exceed a limit that the node's CSINode states.

    Which volumes count: those of the node's pods, each once, and those that VolumeAttachments show besides. A volume of the pod that a pod
    on the node uses already comes for free.
    """

    name = NAME
    free_riders = True

    def limits(self, cluster: Cluster) -> CsiLimits:
        """Those of the CSINodes."""
        return CsiLimits(cluster)

    def may_bring(self, pod: PodInfo) -> bool:
        """True for pods with claims, or with disks that a CSI driver serves."""
        return any(_may_be_attached(volume) for volume in pod.volumes)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Limits that grow, volumes that leave a node, and a claim that the pod waits for."""
        return (
            interest(EventResource.CSI_NODE, Action.ADD),
            interest(EventResource.CSI_NODE, Action.UPDATE, hints.after_csi_node_change),
            interest(EventResource.POD, Action.DELETE, hints.after_pod_deletion),
            interest(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD, hints.after_claim_added),
            interest(EventResource.VOLUME_ATTACHMENT, Action.DELETE, hints.after_detachment),
        )


def _may_be_attached(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None or is_migratable(volume)
