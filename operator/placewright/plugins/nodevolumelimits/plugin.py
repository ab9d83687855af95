"""NodeVolumeLimits: limits the volumes of each CSI driver on a node. Implements PreFilter, Filter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

from placewright.api.objects import Volume
from placewright.api.pods import PodInfo
from placewright.api.storage import CSINode, VolumeAttachment
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventKeys, EventResource, QueueingHint, event_with_hint
from placewright.plugins.nodevolumelimits.attachable import CsiResolver, Lookup, limits_of
from placewright.plugins.nodevolumelimits.countlimit import VolumeCountLimit
from placewright.plugins.shared import podclaims
from placewright.plugins.shared.csimigration import Migrated, TranslationError, from_pod, is_migratable
from placewright.plugins.shared.hints import was_in_the_way

_UNLIMITED: Final = float("inf")


def after_csi_node_change(_pod: PodInfo, old: CSINode | None, new: CSINode | None) -> QueueingHint:
    """Queue if a driver's limit grew, is gone, or is new."""
    if not isinstance(new, CSINode) and not isinstance(old, CSINode):
        return QueueingHint.SKIP
    before = limits_of(old if isinstance(old, CSINode) else None)
    after = limits_of(new if isinstance(new, CSINode) else None)
    more = any(after.get(driver, _UNLIMITED) > limit for driver, limit in before.items())
    return QueueingHint.when(more or any(driver not in before for driver in after))


def _had_volumes(_pod: PodInfo, old: PodInfo) -> bool:
    """Return whether a pod had a volume on a node that a driver may have attached."""
    return bool(old.node_name) and any(map(_may_be_attached, old.volumes))


def brings_a_volume(pod: PodInfo, _old: PodInfo | None, new: PodInfo | None) -> bool:
    """Return whether a pod came to a node with a volume of the rejected pod, which is then attached there."""
    return isinstance(new, PodInfo) and bool(new.node_name) and not set(_shareable(pod)).isdisjoint(_shareable(new))


def _shareable(pod: PodInfo) -> Iterator[Hashable]:
    """Yield the pod's volumes that other pods may use, too: claims of its namespace, and disks."""
    if pod.volumes:
        yield from ((pod.namespace, claim) for claim in podclaims.named_claims(pod))
        yield from _own_disks(pod)


def keys_of_arrival(_old: PodInfo | None, new: PodInfo | None) -> Iterator[Hashable]:
    """Iterate over the volumes that a pod brings to its node."""
    return iter(()) if new is None else _shareable(new)


#: Keys by which a pod that came finds the rejected pods that it may help. Bindings are frequent, and most bring no volume.
ARRIVAL_KEYS: Final = EventKeys(_shareable, keys_of_arrival)


def _own_disks(pod: PodInfo) -> set[Migrated]:
    """Return the disks that the pod itself names and that CSI drivers serve."""
    try:
        return {migrated for volume in pod.volumes if (migrated := from_pod(volume)) is not None}
    except TranslationError:  # only a change of the pod itself can help
        return set()


def after_pod_arrival(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """Queue if a pod came to a node with one of the rejected pod's volumes."""
    return QueueingHint.when(brings_a_volume(pod, old, new))


def _may_need_driver(pod: PodInfo, detached: VolumeAttachment) -> bool:
    """Return whether the detached volume may be of a driver that the pod needs. Claims are not resolved for that."""
    if any(podclaims.claim_name(pod, volume) is not None for volume in pod.volumes):
        return True
    return detached.spec.attacher in {disk.driver for disk in _own_disks(pod)}


class NodeVolumeLimits(VolumeCountLimit):
    """Rejects nodes where the pod's volumes would exceed a limit that the node's CSINode states.

    Volumes that the node's pods use count once each, and so do further volumes that VolumeAttachments show. A volume of the pod that a pod
    on the node already uses does not count again.
    """

    name = "NodeVolumeLimits"
    free_riders = True

    def resolver(self, cluster: Cluster, noted: Callable[[Lookup], None]) -> CsiResolver:
        """Return a resolver of volumes as CSI drivers know them."""
        return CsiResolver(cluster, noted)

    def may_bring(self, pod: PodInfo) -> bool:
        """Return whether the pod has claims, or disks that a CSI driver serves."""
        return any(_may_be_attached(volume) for volume in pod.volumes)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare limits that grow or go, volumes that leave a node, claims of the pod, and deleted storage classes.

        Also new nodes, which have no limit without a CSINode, and pods that bring a volume of the rejected one.
        kube-scheduler ignores these two, limits that go, and classes.
        """
        return (
            event_with_hint(EventResource.NODE, Action.ADD),
            event_with_hint(EventResource.CSI_NODE, Action.ADD),
            event_with_hint(EventResource.CSI_NODE, Action.UPDATE | Action.DELETE, after_csi_node_change),
            event_with_hint(EventResource.POD, Action.DELETE, was_in_the_way(PodInfo, _had_volumes)),
            event_with_hint(EventResource.ASSIGNED_POD, Action.ADD, after_pod_arrival, brings_a_volume, ARRIVAL_KEYS),
            event_with_hint(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD, podclaims.after_claim_change),
            event_with_hint(EventResource.VOLUME_ATTACHMENT, Action.DELETE, was_in_the_way(VolumeAttachment, _may_need_driver)),
            event_with_hint(EventResource.STORAGE_CLASS, Action.DELETE),
        )


def _may_be_attached(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None or is_migratable(volume)
