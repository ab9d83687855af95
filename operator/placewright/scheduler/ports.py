"""The scheduler's ports: interfaces to the outside, as protocols. `placewright.kube` implements them, and tests fake them.

No call blocks a decision: recorders and writers take the message and return.
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
#: Runs work beside the decisions, without waiting for it, as Go's `go` statement does.
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
            pod: the event is about it.
            kind: Normal or Warning.
            reason: a word in CamelCase.
            action: the action that was taken or failed.
            note: the text; cut to 1024 bytes.
        """


class StatusWriter(Protocol):
    """Writes conditions and nominations of pods. Of several writes of one field of a pod, the latest is sent."""

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Queue the condition PodScheduled=False.

        Args:
            pod: without a node.
            reason: the condition's reason.
            message: the condition's message.
            nominated_node: None leaves the nomination, "" clears it.
        """

    def nomination_cleared(self, pod: PodInfo) -> None:
        """Queue the end of a nomination; the condition stays."""

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        """Queue a condition that is not PodScheduled; PodScheduled stays.

        Args:
            pod: without a node, or just bound.
            condition: without its time, which is that of the write if the status changes.
        """


class GroupStatusWriter(Protocol):
    """Writes the status of groups into the objects that declare them, with events. Of several writes for a group, the latest is sent."""

    def group_waits(self, pod_group: PodGroup, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        """Queue that a group waits.

        Args:
            pod_group: the group.
            placed: members on nodes.
            missing: members that are still needed.
            message: what the group lacks.
            error: the scheduler or a plugin broke; the cluster may have room.
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
            condition: as its members have it.
        """


class NoGroupStatus:
    """Writes nothing."""

    def group_waits(self, pod_group: PodGroup, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        """Do nothing."""

    def group_placed(self, pod_group: PodGroup, placed: int) -> None:
        """Do nothing."""

    def group_given_up(self, pod_group: PodGroup, condition: Condition) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class StatusChannels:
    """The writers through which the owners of pods and groups are told."""

    events: EventRecorder
    status: StatusWriter
    groups: GroupStatusWriter


class Evictor(Protocol):
    """Evicts preemption's victims."""

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Set the victim's DisruptionTarget condition, then delete it. Any exception means that the victim was not evicted.

        Args:
            victim: on `node`.
            preemptor: the pod that needs the room.
            node: the victims' node.
        """


class PodsBeingBound(Protocol):
    """Pods whose binding cycle is under way."""

    def preempt(self, uid: str, plugin: str) -> bool:
        """Roll a pod back that is a victim of preemption, before its Binding is sent.

        Args:
            uid: the victim's.
            plugin: the one that preempts.

        Returns:
            False when its Binding may have been sent, or none is under way.
        """


class Lead(Protocol):
    """Whether this replica is the active one. Asked before every decision; the binder asks again before every request."""

    @property
    def active(self) -> bool:
        """True while this replica may decide."""

    async def wait_active(self) -> None:
        """Return when `active` is true or may have become true."""


class Precautions(Protocol):
    """Steps taken before a decision that may end the process, so that the next leader knows of it (decision 34)."""

    def due(self, queued: QueuedPod) -> bool:
        """Tell whether precautions are needed before a pod is decided. Asked about every pod, so it must be cheap.

        Args:
            queued: handed out by the queue.

        Returns:
            True when `take` is to be awaited.
        """

    async def take(self, queued: QueuedPod) -> str:
        """Take precautions. The end of the decision need not be reported.

        Returns:
            "" when they are taken; else why they could not be, and the pod must not be decided now.
        """


class NoPrecautions:
    """Takes no precautions."""

    def due(self, queued: QueuedPod) -> bool:
        """Return False."""
        return False

    async def take(self, queued: QueuedPod) -> str:
        """Do nothing."""
        return ""


class AlwaysLead:
    """The lead of a scheduler that runs alone."""

    @property
    def active(self) -> bool:
        """True."""
        return True

    async def wait_active(self) -> None:
        """Return at once."""
