"""Cluster events and queueing hints: which change in the cluster could help which rejected pod.

A plugin registers a hint for each kind of event that could turn its rejection around. The hint looks at the pod, and at the object before
and after the event. It says whether trying the pod again is worth it. Facts: kube-scheduler's `framework/types.go` and plugin hints.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

from placewright.api.pods import PodInfo

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # see `interface.plugin`

    #: The class of the object that an event is about: `PodInfo` for pods, else the struct of `placewright.api`.
    Object = TypeVar("Object", default=Any)
else:
    from typing import TypeVar

    Object = TypeVar("Object")


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
    """The change of an object; an update action names the part that changed."""

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
    """A change in the cluster.

    Attributes:
        resource: the kind of object; of a plugin's own source the name of its struct.
        label: the name metrics use (`AssignedPodDelete`, `NodeAdd`).
    """

    resource: EventResource | str
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
        """Judge whether a plugin must be asked about this event.

        Args:
            registered: the event that the plugin registered; one of its actions is enough.

        Returns:
            True if it registered the wildcard, or this kind of object with one of these actions. A registration for pods hears of
            assigned and of unscheduled pods.
        """
        if registered.wildcard:
            return True
        if not self.action & registered.action:
            return False
        if registered.resource is EventResource.POD:
            return self.resource in _POD_RESOURCES
        return self.resource == registered.resource


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

    @classmethod
    def when(cls, worth_it: bool) -> QueueingHint:
        """Answer QUEUE if another try is worth it, and SKIP if not.

        Args:
            worth_it: whether the event may help the pod.

        Returns:
            QUEUE or SKIP.
        """
        return cls.QUEUE if worth_it else cls.SKIP


#: Takes the rejected pod, the object before the event or None, and the object after it or None. None stands for an object that was not
#: there yet, or is not there any more. A registration for ADD and UPDATE alone never gets None as the object after.
QueueingHintFn = Callable[[PodInfo, Object | None, Object | None], QueueingHint]
#: Takes the rejected pod, a pod on a node before the event, and that pod after it. None before the event stands for a pod that came.
#: Returns False only if the hint is sure to say SKIP.
Narrowing = Callable[[PodInfo, PodInfo | None, PodInfo], bool]


# A dataclass with slots cannot be made through `EventKeys[Node](…)`: Python 3.11 sets an attribute on it.
@dataclass(frozen=True)
class EventKeys(Generic[Object]):
    """Keys of the waiting pods that an event concerns, so that the queue asks one hint and not thousands.

    Both functions are called often: once for each pod that begins to wait, and once for each event. The keys may depend on their
    arguments alone, because the queue keeps it.

    Attributes:
        of_pod: returns the keys of a pod that waits.
        of_event: takes the object before or None, and the object after or None; returns the keys of all pods whose hint may say QUEUE.
            None: the event may concern any pod.

    Example:
        EventKeys(lambda pod: [pod.namespace], lambda old, new: [(new or old).metadata.namespace])
    """

    of_pod: Callable[[PodInfo], Iterable[Hashable]]
    of_event: Callable[[Object | None, Object | None], Iterable[Hashable] | None]


def always(_pod: PodInfo, _old: object, _new: object) -> QueueingHint:
    """Answer QUEUE: the hint of an event that always justifies another try.

    Args:
        _pod: not looked at.
        _old: not looked at.
        _new: not looked at.

    Returns:
        QUEUE.
    """
    return QueueingHint.QUEUE


@dataclass(frozen=True)
class ClusterEventWithHint(Generic[Object]):
    """An event that a plugin wants to hear of, with the hint for each pod that the plugin rejected.

    The parameter is the class of the event's objects, so that a hint is checked against it: `ClusterEventWithHint[Node]`.

    Whenever such an event happens, the queue calls the hint for each waiting pod that this plugin rejected or gates. It calls it on the
    thread of the event loop, in slices of some milliseconds. A hint changes nothing. The columns show the object after the event already.
    A hint that raises counts as QUEUE, because a pod must not be lost.

    Attributes:
        event: kind of object, and its change.
        hint: judges whether it is worth trying the rejected pod again. Without one it always is.
        narrow: a cheap test, called before the hint for pods that appear or change on a node and free nothing; such events are as
            frequent as Bindings. Where it returns False, the hint is not called. None: the hint is always called.
        keys: finds the pods that the event concerns. None: the hint is called for every pod that the plugin rejected or gates.
    """

    event: ClusterEvent
    hint: QueueingHintFn[Object] = always
    narrow: Narrowing | None = None
    keys: EventKeys[Object] | None = None


def event_with_hint(
    resource: EventResource | str,
    action: Action,
    hint: QueueingHintFn[Object] = always,
    narrow: Narrowing | None = None,
    keys: EventKeys[Object] | None = None,
) -> ClusterEventWithHint[Object]:
    """Make one entry of a plugin's table of events.

    Args:
        resource: the kind of object, or the name of a struct that a plugin declares (`framework/sources.py`).
        action: the change; several actions joined by `|`.
        hint: see `ClusterEventWithHint`.
        narrow: likewise.
        keys: likewise.

    Returns:
        The entry.

    Example:
        def _node_grew(pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint: ...

        event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, _node_grew)
    """
    return ClusterEventWithHint(ClusterEvent(resource, action), hint, narrow, keys)


#: The name of `event_with_hint` in earlier versions, for plugins of other packages.
interest = event_with_hint
