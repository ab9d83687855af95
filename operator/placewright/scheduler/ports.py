"""What the scheduler needs of the world, as protocols; `placewright.kube` implements them, tests fake them.

None of these calls blocks a decision: recorders and writers take the message and return.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Any, Protocol

from placewright.api.objects import NodeName
from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.queue.queued import QueuedPod

#: Seconds, monotonic; tests pass a fake.
Clock = Callable[[], float]
#: Runs work beside the decisions, without waiting for it: Go's `go`.
Start = Callable[[Coroutine[Any, Any, Any]], object]


class EventType(StrEnum):
    """The type of a Kubernetes event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class EventRecorder(Protocol):
    """Writes Kubernetes events (events.k8s.io/v1) about pods, best effort."""

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        """Queue one event; the note is cut to 1024 bytes."""


class StatusWriter(Protocol):
    """Writes the PodScheduled condition and nominations of pods that could not be placed, latest wins."""

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Queue the condition PodScheduled=False; `nominated_node` None leaves the nomination, "" clears it."""

    def nomination_cleared(self, pod: PodInfo) -> None:
        """Queue the end of a nomination; the condition stays."""


class GroupStatusWriter(Protocol):
    """Writes what became of groups of pods into the objects that declare them, and events about these; latest wins."""

    def group_waits(self, pod_group: PodGroup, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        """Queue that the group waits: `placed` members stand, `missing` more are needed; `error` when we broke, not the cluster's room."""

    def group_placed(self, pod_group: PodGroup, placed: int) -> None:
        """Queue that the group has what it needs: so many members have a node, all bound."""


class NoGroupStatus:
    """Nobody reads what became of groups."""

    def group_waits(self, pod_group: PodGroup, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        """Nothing to note."""

    def group_placed(self, pod_group: PodGroup, placed: int) -> None:
        """Nothing to note."""


class Evictor(Protocol):
    """Removes preemption's victims."""

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Mark the victim as disrupted by the scheduler, then delete it; raise on failure."""


class PodsBeingBound(Protocol):
    """Pods that were placed, and whose binding cycle is under way."""

    def preempt(self, uid: str) -> bool:
        """Take back a pod that has to make room, before its Binding is sent; False where there may be one already, or none under way."""


class Lead(Protocol):
    """Are we the active replica? Asked before every decision; the binder asks again before every request."""

    @property
    def active(self) -> bool:
        """True while this replica may decide."""

    async def wait_active(self) -> None:
        """Return when `active` is, or may be, true."""


class Precautions(Protocol):
    """What is done before a decision that may end the process, so that whoever comes next knows of it."""

    def due(self, queued: QueuedPod) -> bool:
        """Whether something is to be done before this pod is decided. Cheap: asked of every pod."""

    async def take(self, queued: QueuedPod) -> str:
        """Do it; why it could not be done, and the pod is not to be decided now, else empty. Nobody need say when the decision is over."""


class NoPrecautions:
    """Nobody comes next."""

    def due(self, queued: QueuedPod) -> bool:
        """Never."""
        return False

    async def take(self, queued: QueuedPod) -> str:
        """Nothing to do."""
        return ""


class AlwaysLead:
    """For a scheduler that runs alone."""

    @property
    def active(self) -> bool:
        """Always."""
        return True

    async def wait_active(self) -> None:
        """At once."""
