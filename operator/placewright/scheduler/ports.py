"""What the scheduler needs of the world, as protocols; `placewright.kube` implements them, tests fake them.

None of these calls blocks a decision: recorders and writers take the message and return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from placewright.api.extenders import ExtenderSettings, Filtered, NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo

#: Seconds, monotonic; tests pass a fake.
Clock = Callable[[], float]


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


class Evictor(Protocol):
    """Removes preemption's victims."""

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Mark the victim as disrupted by the scheduler, then delete it; raise on failure."""


class Extender(Protocol):
    """A web server that has a say in a profile's decisions. Every call raises `ExtenderError`, and none lasts longer than its timeout.

    A call is made only when the extender has the verb for it and is `settings.interested_in` the pod.
    """

    @property
    def settings(self) -> ExtenderSettings:
        """What the profile says of it."""

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeName]) -> Filtered:
        """Which of the nodes can hold the pod; nodes that were not asked about are an error."""

    async def prioritize(self, pod: PodInfo, nodes: Sequence[NodeName]) -> dict[NodeName, int]:
        """Scores as answered, 0 to 10 by convention, for as many of the nodes as it likes; weight and scale are the caller's."""

    async def preempt(
        self,
        pod: PodInfo,
        victims: Mapping[NodeName, NodeVictims],
        pods_on: Callable[[NodeName], Iterable[PodInfo]] | None = None,
    ) -> dict[NodeName, NodeVictims]:
        """The candidates that it agrees to, perhaps with other victims.

        `pods_on` gives all pods of a node, and raises KeyError for an unknown one: as in kube-scheduler, an extender may then name nodes
        and victims that it was not asked about. Without it only those that it was asked about may be named.
        """

    async def bind(self, pod: PodInfo, node: NodeName) -> None:
        """Bind the pod in the scheduler's stead; on return it is bound."""

    async def close(self) -> None:
        """End its connections; calls under way fail."""


class Lead(Protocol):
    """Are we the active replica? Asked before every decision; the binder asks again before every request."""

    @property
    def active(self) -> bool:
        """True while this replica may decide."""

    async def wait_active(self) -> None:
        """Return when `active` is, or may be, true."""


class AlwaysLead:
    """For a scheduler that runs alone."""

    @property
    def active(self) -> bool:
        """Always."""
        return True

    async def wait_active(self) -> None:
        """At once."""
