"""One row of the table: a pod that one plugin rejected, something that happens, and whether the pod is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from placewright.api.pods import PodInfo
from placewright.framework.events import Action, ClusterEvent, EventResource
from placewright.testing import built
from placewright.testing.plugincase import AnyPod


@dataclass(frozen=True)
class Row:
    """What happens, and whether it wakes the pod.

    Attributes:
        says: what happens, in words; with plugin and outcome it names the test.
        old, new: the object before and after; None where it was not there yet, or is no more.
        args: the plugin's arguments in the profile.
        placed: pods that stand on nodes, so that the plugin sees them in the columns.
        known: other objects that are there.
        gated: whether the plugin keeps the pod from being tried at all.
    """

    plugin: str
    says: str
    wakes: bool
    rejected: PodInfo
    event: ClusterEvent
    old: Any = None
    new: Any = None
    args: Mapping[str, Any] = field(default_factory=dict)
    placed: tuple[PodInfo, ...] = ()
    known: tuple[Any, ...] = ()
    gated: bool = False

    def __str__(self) -> str:
        return f"{self.plugin}: {self.says} {'wakes' if self.wakes else 'does not wake'} the pod"

    @property
    def own(self) -> bool:
        """True when what happens is an update of the rejected pod itself."""
        return isinstance(self.new, PodInfo) and self.new.uid == self.rejected.uid

    def given(self, **changes: Any) -> Row:
        """The same in another world."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Rejected:
    """A plugin and a pod that it rejected: makes rows."""

    plugin: str
    pod: AnyPod
    args: Mapping[str, Any] = field(default_factory=dict)
    placed: tuple[PodInfo, ...] = ()
    known: tuple[Any, ...] = ()
    gated: bool = False

    def wakes(self, says: str, event: ClusterEvent, *, old: Any = None, new: Any = None) -> Row:
        """The pod must be tried again."""
        return Row(self.plugin, says, True, built(self.pod), event, built(old), built(new), self.args, self.placed, self.known, self.gated)

    def rests(self, says: str, event: ClusterEvent, *, old: Any = None, new: Any = None) -> Row:
        """The pod must be left where it is."""
        return Row(self.plugin, says, False, built(self.pod), event, built(old), built(new), self.args, self.placed, self.known, self.gated)


def _event(resource: EventResource, action: Action) -> ClusterEvent:
    return ClusterEvent(resource, action, f"{resource}{action.name}")


NODE_ADDED = _event(EventResource.NODE, Action.ADD)
NODE_DELETED = _event(EventResource.NODE, Action.DELETE)
NODE_LABELLED = _event(EventResource.NODE, Action.UPDATE_NODE_LABEL)
NODE_TAINTED = _event(EventResource.NODE, Action.UPDATE_NODE_TAINT)
NODE_RESIZED = _event(EventResource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
NODE_FEATURED = _event(EventResource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
NODE_CONDITION = _event(EventResource.NODE, Action.UPDATE_NODE_CONDITION)

POD_ADDED = _event(EventResource.ASSIGNED_POD, Action.ADD)
POD_DELETED = _event(EventResource.ASSIGNED_POD, Action.DELETE)
POD_LABELLED = _event(EventResource.ASSIGNED_POD, Action.UPDATE_POD_LABEL)
POD_TERMINATES = _event(EventResource.ASSIGNED_POD, Action.UPDATE_POD_TERMINATING)
POD_SHRUNK = _event(EventResource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
POD_CHANGED = _event(EventResource.ASSIGNED_POD, Action.UPDATE_OTHER)

WAITING_LABELLED = _event(EventResource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL)
WAITING_SHRUNK = _event(EventResource.UNSCHEDULED_POD, Action.UPDATE_POD_SCALE_DOWN)
WAITING_TOLERATES = _event(EventResource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
WAITING_UNGATED = _event(EventResource.UNSCHEDULED_POD, Action.UPDATE_POD_GATES_ELIMINATED)
WAITING_GOT_CLAIMS = _event(EventResource.UNSCHEDULED_POD, Action.UPDATE_POD_GENERATED_CLAIM)
WAITING_CHANGED = _event(EventResource.UNSCHEDULED_POD, Action.UPDATE_OTHER)
WAITING_DELETED = _event(EventResource.UNSCHEDULED_POD, Action.DELETE)

GROUP_ADDED = _event(EventResource.POD_GROUP, Action.ADD)
GROUP_CHANGED = _event(EventResource.POD_GROUP, Action.UPDATE)

NAMESPACE_ADDED = _event(EventResource.NAMESPACE, Action.ADD)
NAMESPACE_CHANGED = _event(EventResource.NAMESPACE, Action.UPDATE)
NAMESPACE_DELETED = _event(EventResource.NAMESPACE, Action.DELETE)

SERVICE_ADDED = _event(EventResource.SERVICE, Action.ADD)
SERVICE_CHANGED = _event(EventResource.SERVICE, Action.UPDATE)
SERVICE_DELETED = _event(EventResource.SERVICE, Action.DELETE)
REPLICA_SET_DELETED = _event(EventResource.REPLICA_SET, Action.DELETE)

CLAIM_ADDED = _event(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
CLAIM_CHANGED = _event(EventResource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE)
CLAIM_DELETED = _event(EventResource.PERSISTENT_VOLUME_CLAIM, Action.DELETE)
VOLUME_ADDED = _event(EventResource.PERSISTENT_VOLUME, Action.ADD)
VOLUME_CHANGED = _event(EventResource.PERSISTENT_VOLUME, Action.UPDATE)
VOLUME_DELETED = _event(EventResource.PERSISTENT_VOLUME, Action.DELETE)
CLASS_ADDED = _event(EventResource.STORAGE_CLASS, Action.ADD)
CLASS_CHANGED = _event(EventResource.STORAGE_CLASS, Action.UPDATE)
CLASS_DELETED = _event(EventResource.STORAGE_CLASS, Action.DELETE)
CSI_NODE_ADDED = _event(EventResource.CSI_NODE, Action.ADD)
CSI_NODE_CHANGED = _event(EventResource.CSI_NODE, Action.UPDATE)
CSI_NODE_DELETED = _event(EventResource.CSI_NODE, Action.DELETE)
DRIVER_ADDED = _event(EventResource.CSI_DRIVER, Action.ADD)
DRIVER_CHANGED = _event(EventResource.CSI_DRIVER, Action.UPDATE)
CAPACITY_ADDED = _event(EventResource.CSI_STORAGE_CAPACITY, Action.ADD)
CAPACITY_CHANGED = _event(EventResource.CSI_STORAGE_CAPACITY, Action.UPDATE)
CAPACITY_DELETED = _event(EventResource.CSI_STORAGE_CAPACITY, Action.DELETE)
ATTACHED = _event(EventResource.VOLUME_ATTACHMENT, Action.ADD)
DETACHED = _event(EventResource.VOLUME_ATTACHMENT, Action.DELETE)

DEVICES_CLAIMED = _event(EventResource.RESOURCE_CLAIM, Action.ADD)
DEVICE_CLAIM_CHANGED = _event(EventResource.RESOURCE_CLAIM, Action.UPDATE)
DEVICE_CLAIM_DELETED = _event(EventResource.RESOURCE_CLAIM, Action.DELETE)
DEVICE_CLASS_ADDED = _event(EventResource.DEVICE_CLASS, Action.ADD)
DEVICE_CLASS_CHANGED = _event(EventResource.DEVICE_CLASS, Action.UPDATE)
DEVICE_CLASS_DELETED = _event(EventResource.DEVICE_CLASS, Action.DELETE)
SLICE_ADDED = _event(EventResource.RESOURCE_SLICE, Action.ADD)
SLICE_CHANGED = _event(EventResource.RESOURCE_SLICE, Action.UPDATE)
SLICE_DELETED = _event(EventResource.RESOURCE_SLICE, Action.DELETE)
RULE_ADDED = _event(EventResource.DEVICE_TAINT_RULE, Action.ADD)
RULE_CHANGED = _event(EventResource.DEVICE_TAINT_RULE, Action.UPDATE)
RULE_DELETED = _event(EventResource.DEVICE_TAINT_RULE, Action.DELETE)
