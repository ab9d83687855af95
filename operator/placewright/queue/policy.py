"""What the queue asks of one profile: how long to back off, who may enter, in which order, and which events help whom.

The framework's runtime of a profile satisfies `QueuePolicy`. The queue looks a policy up by scheduler name and keeps it until
`SchedulingQueue.reprioritise` tells it that the profile changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.status import Status

#: A place in the order of a heap: compared element by element, lowest first.
SortKey = tuple[Any, ...]

#: More doublings than this exceed any sane maximum, and 2**n must stay a float.
_MAX_DOUBLINGS: Final = 60


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """How long a pod waits after failures: doubling from `initial_seconds` up to `max_seconds`; a maximum of 0 means no waiting.

    Raises `ValueError` for a negative or non-finite number of seconds.
    """

    initial_seconds: float = 1.0
    max_seconds: float = 10.0

    def __post_init__(self) -> None:
        for name, value in (("initialSeconds", self.initial_seconds), ("maxSeconds", self.max_seconds)):
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"backoff.{name}: found {value}, allowed is a number of seconds, 0 or more")

    def duration(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row: 1, 2, 4, 8, 10, 10… by default, 0 before the first."""
        if failures <= 0:
            return 0.0
        return min(self.initial_seconds * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), self.max_seconds)


class QueuePolicy(Protocol):
    """One profile, as far as the queue is concerned. None of these may raise: a plugin's exception becomes an error status."""

    @property
    def backoff(self) -> BackoffPolicy:
        """How long failed pods of this profile wait."""

    @property
    def paused(self) -> bool:
        """True while pods of this profile keep their place but are not handed out."""

    @property
    def interests(self) -> Mapping[str, Sequence[ClusterEventWithHint] | None]:
        """By name of every enabled plugin that may reject a pod, the events that may help; None for "any event".

        A plugin that is missing here counts as no longer enabled: pods that only such plugins rejected are tried again.
        """

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """SUCCESS when the pod may be tried; anything else gates it, in the name of `Status.plugin`."""

    def binding_extender(self, pod: PodInfo) -> str:
        """The name of the extender that binds this pod; empty where none does."""

    def sort_key(self, pod: PodInfo, timestamp: float) -> SortKey:
        """Lowest first. `timestamp` is when the pod last entered the queue, in seconds. All profiles' keys compare with each other."""


#: The policy of a scheduler name, or None while no profile claims it.
Policies = Callable[[str], QueuePolicy | None]
