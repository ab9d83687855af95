"""The scheduler's ports: its interfaces to the API server and to other replicas.

`placewright.kube`, `placewright.leadership` and `placewright.engine` implement them, and tests fake them. Recorders and writers
only take a message, so that no call blocks a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from placewright.api.objects import Condition, NodeName
from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.queue.queued import QueuedPod

#: Seconds, monotonic; tests pass a fake.
Clock = Callable[[], float]
#: Runs a coroutine beside the decisions, and returns before it ends.
Start = Callable[[Coroutine[Any, Any, Any]], object]


class EventType(StrEnum):
    """The type of a Kubernetes event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class EventRecorder(Protocol):
    """Writes Kubernetes events (events.k8s.io/v1) about pods. An event may be lost."""

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        """Queue one event.

        Args:
            pod: subject of the event.
            kind: Normal or Warning.
            reason: a word in CamelCase.
            action: the action that was taken or failed.
            note: text, which is cut to 1024 bytes.
        """


class StatusWriter(Protocol):
    """Writes conditions and nominations of pods. Of several writes of one field of a pod, the latest is sent."""

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Queue the condition PodScheduled=False.

        Args:
            pod: a pod without a node.
            reason: the condition's reason.
            message: the condition's message.
            nominated_node: None leaves the nomination, "" clears it.
        """

    def pod_nominated(self, pod: PodInfo, node: NodeName) -> None:
        """Queue a nomination; the condition stays.

        Args:
            pod: a pod without a node.
            node: the node; "" ends the nomination.
        """

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        """Queue a condition other than PodScheduled.

        Args:
            pod: a pod without a node, or a pod that was just bound.
            condition: the condition. The writer sets its time if the status changes.
        """


class GroupStatusWriter(Protocol):
    """Writes the status of groups into the objects that declare them, with events. Of several writes for a group, the latest is sent."""

    def group_waits(self, pod_group: PodGroup, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        """Queue that a group waits.

        Args:
            pod_group: the group.
            placed: members on nodes.
            missing: members that are still needed.
            message: the group's shortage.
            error: whether the scheduler or a plugin broke. Then the cluster may have room.
        """

    def group_placed(self, pod_group: PodGroup, placed: int) -> None:
        """Queue that a group has the nodes it needs.

        Args:
            pod_group: the group.
            placed: members on nodes, all bound.
        """

    def group_given_up(self, pod_group: PodGroup, condition: Condition) -> None:
        """Queue that the members of a group are given up, or no longer are.

        Args:
            pod_group: the group.
            condition: the condition of its members.
        """


class NoGroupStatus:
    """Writes no status of groups."""

    def group_waits(self, pod_group: PodGroup, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        """Do nothing."""

    def group_placed(self, pod_group: PodGroup, placed: int) -> None:
        """Do nothing."""

    def group_given_up(self, pod_group: PodGroup, condition: Condition) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class StatusChannels:
    """The writers that report to the owners of pods and groups."""

    events: EventRecorder
    status: StatusWriter
    groups: GroupStatusWriter


class Evictor(Protocol):
    """Evicts preemption's victims."""

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Set the victim's DisruptionTarget condition, then delete the victim. Raise any exception if it was not evicted.

        Args:
            victim: the pod to evict.
            preemptor: the pod that needs the room.
            node: the victim's node.
        """


class Lead(Protocol):
    """Tells whether this replica is the active one. It is asked before every decision, and before every request of the binder."""

    @property
    def active(self) -> bool:
        """True while this replica may decide."""

    async def wait_active(self) -> None:
        """Return when `active` is true or may have become true."""


class Precautions:
    """Steps before a decision that may end the process, so that the next leader knows of it (decision 34). This class takes none."""

    def due(self, queued: QueuedPod) -> bool:
        """Return whether `take` is to be awaited before a pod is decided. Asked about every pod, so it must be cheap."""
        return False

    async def take(self, queued: QueuedPod) -> str:
        """Take precautions. The end of the decision need not be reported.

        Returns:
            "" when they are taken; otherwise the reason why the pod must not be decided now.
        """
        return ""


class AlwaysLead:
    """The lead of a scheduler that runs alone."""

    @property
    def active(self) -> bool:
        """True."""
        return True

    async def wait_active(self) -> None:
        """Return at once."""
