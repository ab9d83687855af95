"""Which changes could help a pod that VolumeBinding rejected. Source: kube-scheduler `volumebinding/volume_binding.go`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from placewright.cluster.storage import StorageObjects
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, interest
from placewright.plugins.csimigration import migrated_plugins
from placewright.plugins.volumebinding.capacities import volume_limit
from placewright.plugins.volumebinding.claims import claim_names, fully_bound


def _class_changed(_pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """A new class; another choice of nodes in an old one."""
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return QueueingHint.QUEUE
    return QueueingHint.QUEUE if (old.allowed_topologies or ()) != (new.allowed_topologies or ()) else QueueingHint.SKIP


def _claim_changed(pod: PodInfo, _old: Any, new: Any) -> QueueingHint:
    """A claim of the pod's own."""
    if not isinstance(new, PersistentVolumeClaim) or new.metadata.namespace != pod.namespace:
        return QueueingHint.SKIP
    return QueueingHint.QUEUE if any(name == new.metadata.name for name, _ in claim_names(pod)) else QueueingHint.SKIP


def _csi_node_changed(_pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """A new one; another set of in-tree plugins whose volumes a driver handles."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    return QueueingHint.QUEUE if migrated_plugins(old) != migrated_plugins(new) else QueueingHint.SKIP


def _driver_changed(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """A driver of one of the pod's inline volumes stopped to count capacity."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.SKIP
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    uses = any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.pod.spec.volumes or ())
    return QueueingHint.QUEUE if stopped and uses else QueueingHint.SKIP


def _capacity_changed(_pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """Room where there was none known, or more than before."""
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return QueueingHint.QUEUE if now is not None and (before is None or now > before) else QueueingHint.SKIP


_NEW_OR_CHANGED: Final = Action.ADD | Action.UPDATE
EVENTS: Final[Sequence[ClusterEventWithHint]] = (
    interest(EventResource.STORAGE_CLASS, _NEW_OR_CHANGED, _class_changed),
    interest(EventResource.PERSISTENT_VOLUME_CLAIM, _NEW_OR_CHANGED, _claim_changed),
    interest(EventResource.PERSISTENT_VOLUME, _NEW_OR_CHANGED),
    interest(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    interest(EventResource.CSI_NODE, _NEW_OR_CHANGED, _csi_node_changed),
    interest(EventResource.CSI_DRIVER, Action.UPDATE, _driver_changed),
    interest(EventResource.CSI_STORAGE_CAPACITY, _NEW_OR_CHANGED, _capacity_changed),
)


def interests(storage: Callable[[], StorageObjects]) -> Sequence[ClusterEventWithHint]:
    """The plugin's events. `storage`: claims as they are when an event comes."""

    def pod_left(_pod: PodInfo, old: Any, _new: Any) -> QueueingHint:
        return _pod_left(old, storage())

    # Upstream is not told of pods for which volumes were taken and never written, and tries those that want them again after minutes.
    return (*EVENTS, interest(EventResource.ASSIGNED_POD, Action.DELETE, pod_left))


def _pod_left(gone: Any, storage: StorageObjects) -> QueueingHint:
    """A pod was on its way to a node: where one of its claims has no volume, the volume that was taken for it may be free."""
    if not isinstance(gone, PodInfo):
        return QueueingHint.SKIP
    claims = (storage.claims.get(name, gone.namespace) for name, _ in claim_names(gone))
    return QueueingHint.QUEUE if any(claim is not None and not fully_bound(claim) for claim in claims) else QueueingHint.SKIP
