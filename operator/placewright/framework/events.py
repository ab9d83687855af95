"""Cluster events and queueing hints: which change in the cluster could help which rejected pod.

A plugin registers, for each kind of event that could turn its rejection around, a hint: a function that looks at the pod and at the
object before and after, and says whether trying again is worth it. Facts: kube-scheduler's `framework/types.go` and plugin hints.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.pods import PodInfo


class EventResource(enum.StrEnum):
    """The kind of object an event is about. `ANY` is the wildcard."""

    ANY = "*"
    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    DEVICE_TAINT_RULE = "DeviceTaintRule"
    SERVICE = "Service"
    NAMESPACE = "Namespace"
    REPLICATION_CONTROLLER = "ReplicationController"
    REPLICA_SET = "ReplicaSet"
    STATEFUL_SET = "StatefulSet"
    POD_GROUP = "PodGroup"


class Action(enum.IntFlag):
    """What happened to the object; update actions say what about it changed."""

    ADD = enum.auto()
    DELETE = enum.auto()
    UPDATE_NODE_ALLOCATABLE = enum.auto()
    UPDATE_NODE_LABEL = enum.auto()
    UPDATE_NODE_TAINT = enum.auto()
    UPDATE_NODE_CONDITION = enum.auto()
    UPDATE_NODE_ANNOTATION = enum.auto()
    UPDATE_NODE_DECLARED_FEATURE = enum.auto()
    UPDATE_POD_LABEL = enum.auto()
    UPDATE_POD_SCALE_DOWN = enum.auto()
    UPDATE_POD_TOLERATION = enum.auto()
    UPDATE_POD_GATES_ELIMINATED = enum.auto()
    UPDATE_POD_GENERATED_CLAIM = enum.auto()
    UPDATE_POD_TERMINATING = enum.auto()
    UPDATE_OTHER = enum.auto()

    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_CLAIM
        | UPDATE_POD_TERMINATING
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


_POD_RESOURCES: Final = frozenset({EventResource.POD, EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD})


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that happened; `label` is the name metrics use (`AssignedPodDelete`, `NodeAdd`)."""

    resource: EventResource
    action: Action
    label: str = ""

    @property
    def wildcard(self) -> bool:
        """True for the event that concerns every plugin."""
        return self.resource is EventResource.ANY and self.action == Action.ALL

    @property
    def frees_nothing(self) -> bool:
        """True for a pod that appears or changes on a node without asking for less: it can help only few waiting pods."""
        if self.resource is not EventResource.ASSIGNED_POD:
            return False
        return not self.action & (Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)

    def concerns(self, registered: ClusterEvent) -> bool:
        """True when a plugin that registered `registered` must be asked about this event."""
        if registered.wildcard:
            return True
        if not self.action & registered.action:
            return False
        if registered.resource is EventResource.POD:
            return self.resource in _POD_RESOURCES
        return self.resource is registered.resource


#: Every plugin is interested; used after timeouts, forced activation and repairs.
WILDCARD: Final = ClusterEvent(EventResource.ANY, Action.ALL, "Wildcard")
UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(EventResource.ANY, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE: Final = ClusterEvent(EventResource.ANY, Action.ALL, "ForceActivate")
ASSIGNED_POD_ADD: Final = ClusterEvent(EventResource.ASSIGNED_POD, Action.ADD, "AssignedPodAdd")
ASSIGNED_POD_DELETE: Final = ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE, "AssignedPodDelete")
NODE_ADD: Final = ClusterEvent(EventResource.NODE, Action.ADD, "NodeAdd")
NODE_DELETE: Final = ClusterEvent(EventResource.NODE, Action.DELETE, "NodeDelete")


class QueueingHint(enum.Enum):
    """A hint's answer: is it worth trying this pod again after this event?"""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


#: (rejected pod, object before or None, object after or None) to the answer. Pods come as `PodInfo`, all else as its `api.objects` struct.
QueueingHintFn = Callable[[PodInfo, Any, Any], QueueingHint]
#: The same, and False where the hint is sure to say SKIP.
Narrowing = Callable[[PodInfo, Any, Any], bool]


@dataclass(frozen=True, slots=True)
class EventKeys:
    """Under which keys waiting pods are found for an event, so that an event that concerns one of thousands asks one.

    Both sides may be asked often, and have to be quick. What a pod's keys are may depend on the pod alone.

    Attributes:
        of_pod: the keys of a pod that waits.
        of_event: (object before or None, object after or None) to the keys of pods whose hint may say QUEUE; it is sure to say SKIP to all
            others. None: the event may concern anybody.
    """

    of_pod: Callable[[PodInfo], Iterable[Hashable]]
    of_event: Callable[[Any, Any], Iterable[Hashable] | None]


def always(_pod: PodInfo, _old: Any, _new: Any) -> QueueingHint:
    """The hint for events that always justify another try."""
    return QueueingHint.QUEUE


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """An event that a plugin wants to hear of, and the hint to ask.

    Attributes:
        hint: whether it is worth trying the rejected pod again. Without one it always is.
        narrow: called like the hint, and before it, for pods that appear or change on a node and free nothing; such events are as frequent
            as bindings. It says at little cost whether the hint is to be asked about this rejected pod. None: it always is.
        keys: whom the event concerns at all. None: the hint is asked of every pod that the plugin rejected or keeps back.
    """

    event: ClusterEvent
    hint: QueueingHintFn = always
    narrow: Narrowing | None = None
    keys: EventKeys | None = None


def interest(
    resource: EventResource,
    action: Action,
    hint: QueueingHintFn = always,
    narrow: Narrowing | None = None,
    keys: EventKeys | None = None,
) -> ClusterEventWithHint:
    """Short form for a plugin's table of events."""
    return ClusterEventWithHint(ClusterEvent(resource, action), hint, narrow, keys)
