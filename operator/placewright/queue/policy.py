"""The queue's questions to one profile: how long pods back off, which may enter, in which order, and which events help them.

The framework's runtime of a profile satisfies `QueuePolicy`. The queue looks a policy up by scheduler name and keeps it until
`SchedulingQueue.reprioritise` tells it that the profile changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.status import Status

#: A place in the order of a heap: compared element by element, lowest first.
SortKey = tuple[Any, ...]

#: Most doublings: 2**60 seconds exceed any maximum, and without a limit 2.0**n overflows for a pod that failed 1,024 times.
_MAX_DOUBLINGS: Final = 60
#: The charge for the whole cluster. An integer, so that sums of charges never drift; large, because a charge is divided by weights.
WHOLE_CLUSTER: Final = 2**50


class NoPolicy(RuntimeError):
    """A queue without a profile was asked a question that only a profile answers."""


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """How long a pod waits after failures: `initial_seconds`, doubled with each failure, up to `max_seconds`; a maximum of 0 means no wait.

    Raises:
        ValueError: a number of seconds is negative or not finite.
    """

    initial_seconds: float = 1.0
    max_seconds: float = 10.0

    def __post_init__(self) -> None:
        for name, value in (("initialSeconds", self.initial_seconds), ("maxSeconds", self.max_seconds)):
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"backoff.{name}: found {value}, allowed is a number of seconds, 0 or more")

    def duration(self, failures: int) -> float:
        """Compute how long a pod waits: 1, 2, 4, 8, 10, 10… seconds by default.

        Returns:
            Seconds; 0 before the first failure.
        """
        if failures <= 0:
            return 0.0
        return min(self.initial_seconds * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), self.max_seconds)


class TenantPolicy(Protocol):
    """A profile's tenants: the names of pods' tenants, their weights, and the charge for a pod. No method may raise."""

    @property
    def by(self) -> str:
        """The kind of tenant. Two policies of one kind name the same tenant for the same pod."""

    def tenant_of(self, pod: PodInfo) -> str:
        """Name the tenant of a pod.

        Args:
            pod: waiting.

        Returns:
            The tenant; "" for pods that no tenant claims, which are a tenant of their own.
        """

    def weight(self, tenant: str) -> int:
        """Return the weight of a tenant."""

    def charge(self, pod: PodInfo) -> int:
        """Compute the charge for handing out a pod.

        Args:
            pod: about to be tried.

        Returns:
            A part of `WHOLE_CLUSTER`, 1 or more.
        """


class QueuePolicy(Protocol):
    """One profile as the queue sees it. No method may raise: an implementation turns a plugin's exception into an error status."""

    @property
    def backoff(self) -> BackoffPolicy:
        """How long failed pods of this profile wait."""

    @property
    def paused(self) -> bool:
        """True while pods of this profile keep their place in the queue and are not handed out."""

    @property
    def give_up_after(self) -> float | None:
        """How many seconds pods of this profile wait before they are given up; None: they never are."""

    @property
    def interests(self) -> Mapping[str, Sequence[ClusterEventWithHint] | None]:
        """The events that may help, by name of every enabled plugin that may reject a pod; None for "any event".

        A plugin that is missing here counts as no longer enabled: pods that only such plugins rejected are tried again.
        """

    @property
    def order(self) -> Hashable:
        """The origin of sort keys and lanes. While it stays equal, waiting pods keep their keys and lanes when the profile changes."""

    @property
    def tenants(self) -> TenantPolicy | None:
        """The tenants that take turns; None if sort keys alone decide the order."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Ask the profile's PreEnqueue plugins whether a pod may be tried.

        Args:
            pod: waiting.

        Returns:
            SUCCESS when it may; any other status gates it, on behalf of `Status.plugin`.
        """

    def binding_extender(self, pod: PodInfo) -> str:
        """Find the extender that binds a pod.

        Args:
            pod: waiting.

        Returns:
            Its name; "" when the scheduler binds the pod itself.
        """

    def sort_key(self, pod: PodInfo, timestamp: float) -> SortKey:
        """Return the pod's sort key, lowest first. Keys of all profiles must compare with each other.

        Args:
            pod: waiting.
            timestamp: when the pod entered the queue or came back after a failure; seconds on the queue's clock.

        Returns:
            A tuple that is compared element by element.
        """


#: The policy of a scheduler name, or None while no profile claims it.
Policies = Callable[[str], QueuePolicy | None]
