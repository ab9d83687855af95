"""NodeVolumeLimits: limits the volumes of each CSI driver on a node. Implements PreFilter, Filter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from placewright.api.compatibility import Rule
from placewright.api.objects import NodeName, Volume
from placewright.api.pods import PodInfo
from placewright.api.storage import CSIDriver, CSINode, VolumeAttachment
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventKeys, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import ArgsT, BoolColumn, Handle
from placewright.framework.memory import NodeMemory
from placewright.plugins.nodevolumelimits.attachable import Attachable, CsiResolver, Lookup, limits_of
from placewright.plugins.nodevolumelimits.countlimit import MissingDriver, VolumeCountLimit
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


def _drivers_of(csi_node: object) -> frozenset[str]:
    """Return the drivers that are installed on a node; none if the object is no CSINode."""
    return frozenset(each.name for each in csi_node.spec.drivers or ()) if isinstance(csi_node, CSINode) else frozenset()


def after_driver_installation(_pod: PodInfo, old: CSINode | None, new: CSINode | None) -> QueueingHint:
    """Queue if a driver is new on a node, or a CSINode is gone. In-tree volumes need no driver on such a node."""
    return QueueingHint.when(bool(_drivers_of(new) - _drivers_of(old)) or (isinstance(old, CSINode) and new is None))


def _prevents(driver: object) -> bool:
    """Return whether pods with volumes of a driver need a node where it is installed."""
    return isinstance(driver, CSIDriver) and bool(driver.spec.prevent_pod_scheduling_if_missing)


def after_driver_change(_pod: PodInfo, old: CSIDriver | None, new: CSIDriver | None) -> QueueingHint:
    """Queue if pods with volumes of a driver no longer need it on their node."""
    return QueueingHint.when(_prevents(old) and not _prevents(new))


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
    on the node already uses does not count again. Under the rule VolumeLimitScaling (1.37), also rejects nodes without the CSI driver of a
    volume, if the CSIDriver says `preventPodSchedulingIfMissing`.
    """

    name = "NodeVolumeLimits"
    free_riders = True

    def __init__(self, args: ArgsT, handle: Handle) -> None:
        super().__init__(args, handle)
        self._scaling = handle.in_force(Rule.VOLUME_LIMIT_SCALING)
        self._rows_without = NodeMemory()

    def resolver(self, cluster: Cluster, noted: Callable[[Lookup], None]) -> CsiResolver:
        """Return a resolver of volumes as CSI drivers know them."""
        return CsiResolver(cluster, noted)

    def missing(self, pod: PodInfo, cluster: Cluster, volumes: AbstractSet[Attachable]) -> tuple[MissingDriver, ...]:
        """Return the drivers that a node must have, by name. kube-scheduler asks about them in any order."""
        drivers = {volume.driver for volume in volumes} if self._scaling else set()
        needed = [driver for driver in sorted(drivers) if _prevents(cluster.objects.storage.csi_drivers.get(driver))]
        own = {volume.driver for volume in CsiResolver(cluster, migrated=False).of_new_pod(pod)} if needed else set()
        return tuple(MissingDriver(driver, driver in own, self._lacking(cluster, driver, driver in own)) for driver in needed)

    def _lacking(self, cluster: Cluster, driver: str, everywhere: bool) -> BoolColumn:
        csi_nodes = cluster.objects.storage.csi_nodes

        def work_out() -> BoolColumn:
            lacking = np.full(cluster.size, everywhere)
            for csi_node in csi_nodes.values():
                row = cluster.row(NodeName(csi_node.metadata.name))
                if row is not None:
                    lacking[row] = driver not in _drivers_of(csi_node)
            return lacking

        return self._rows_without.recall(cluster, (driver, everywhere, csi_nodes.version), work_out)

    def may_bring(self, pod: PodInfo) -> bool:
        """Return whether the pod has claims, or disks that a CSI driver serves."""
        return any(_may_be_attached(volume) for volume in pod.volumes)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare limits that grow or go, volumes that leave a node, claims of the pod, and deleted storage classes.

        Also new nodes, which have no limit without a CSINode, and pods that bring a volume of the rejected one.
        kube-scheduler ignores these two, limits that go, and classes. Under VolumeLimitScaling also drivers that are installed or no longer
        needed, and claims that get a volume of another driver. kube-scheduler ignores these, too.
        """
        scaling = (
            event_with_hint(EventResource.CSI_NODE, Action.UPDATE | Action.DELETE, after_driver_installation),
            event_with_hint(EventResource.CSI_DRIVER, Action.UPDATE | Action.DELETE, after_driver_change),
            event_with_hint(EventResource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, podclaims.after_claim_change),
        )
        return (
            *(scaling if self._scaling else ()),
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
