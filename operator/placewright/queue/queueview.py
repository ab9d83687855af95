"""The reading side of the scheduling queue: which pods it holds, in which sub-queue, and in which version.

`SchedulingQueue` writes, and every other room reads. Readers get the facts from the sub-queues themselves and not from a second
book, so that a figure in a metric cannot disagree with the pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from placewright.api.objects import PodKey
from placewright.api.pods import PodInfo
from placewright.queue.fairheap import FairTurn
from placewright.queue.inflight import InFlightPods
from placewright.queue.profilequeue import ProfileQueue, ProfileQueues
from placewright.queue.queued import QueuedPod, Sizes, SubQueue
from placewright.queue.wakeups import WakeUps


class QueueView:
    """The pods of the queue, for reading.

    Args:
        queues: the waiting pods by scheduler name, filled by `SchedulingQueue`.

    Attributes:
        in_flight: the attempts under way.
        wake_ups: pods that are tried again at a stated time.
        changed: the pods that came, moved, or went, for one reader.
    """

    wake_ups: WakeUps

    def __init__(self, queues: ProfileQueues) -> None:
        self.in_flight = InFlightPods()
        self.changed = queues.changed
        self._queues = queues
        self._pods: dict[str, QueuedPod] = {}
        self._uids: dict[PodKey, str] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> QueuedPod | None:
        """Find a pod, in whichever sub-queue it is.

        Args:
            uid: the pod's.

        Returns:
            The pod; None when the queue does not hold it.
        """
        return self._pods.get(uid)

    def latest(self, uid: str) -> PodInfo | None:
        """Return the newest version of a pod, also while an older version is being tried.

        Args:
            uid: the pod's.

        Returns:
            The pod; None when the queue does not hold it.
        """
        return self._latest(uid) if uid in self._pods else None

    def uid_of(self, key: PodKey) -> str | None:
        """Find a pod by name.

        Args:
            key: `namespace/name`.

        Returns:
            The pod's uid; None when the queue does not hold it.
        """
        return self._uids.get(key)

    def uids(self) -> AbstractSet[str]:
        """Return the uids of all pods in the queue; a view."""
        return self._pods.keys()

    def locate(self, uid: str) -> SubQueue | None:
        """Find the sub-queue of a pod.

        Args:
            uid: the pod's.

        Returns:
            The sub-queue; None when the queue does not hold the pod.
        """
        if (queued := self._pods.get(uid)) is None:
            return None
        if self.in_flight.get(uid) is not None:
            return SubQueue.IN_FLIGHT
        queue = self._queues.get(queued.pod.scheduler_name)
        return queue.place_of(uid) if queue is not None else None

    def turn_of(self, uid: str) -> FairTurn | None:
        """Tell when an active pod's turn comes, in a profile whose tenants take turns.

        Args:
            uid: the pod's.

        Returns:
            The turn; None when the pod is not active, or its profile has no fairness.
        """
        queued = self._pods.get(uid)
        queue = None if queued is None else self._queues.get(queued.pod.scheduler_name)
        return None if queue is None or queue.fair is None else queue.fair.turn_of(uid)

    def pods(self) -> Iterator[tuple[SubQueue, QueuedPod]]:
        """Iterate over all pods with their sub-queues, read from the sub-queues themselves."""
        for queue in self._queues:
            yield from queue.waiting()
        yield from ((SubQueue.IN_FLIGHT, flight.queued) for flight in self.in_flight if not flight.gone)

    def profile_queues(self) -> Iterator[ProfileQueue]:
        """Iterate over the waiting pods by scheduler name, for reading."""
        return iter(self._queues)

    def sizes(self, scheduler_name: str | None = None) -> Sizes:
        """Count the pods of each sub-queue.

        Args:
            scheduler_name: a profile's; None for all profiles.

        Returns:
            The counts.
        """
        tried = sum(not each.gone and scheduler_name in (None, each.latest.scheduler_name) for each in self.in_flight)
        return self._queues.sizes(scheduler_name, tried)

    def rejections(self, scheduler_name: str) -> Counter[str]:
        """Count the pods that each plugin holds back.

        Args:
            scheduler_name: a profile's.

        Returns:
            Unschedulable and gated pods by plugin; a pod counts for each plugin that rejected it.
        """
        return sum((queue.rejections() for queue in self._queues if queue.name == scheduler_name), Counter())

    def _latest(self, uid: str) -> PodInfo:
        flight = self.in_flight.get(uid)
        return flight.latest if flight is not None else self._pods[uid].pod

    def first_tried(self, uid: str) -> float | None:
        """Return when a pod could first be tried.

        Args:
            uid: the pod's.

        Returns:
            Seconds of the clock; None for a pod that has been gated since it came, or that the queue does not hold.
        """
        queued = self._pods.get(uid)
        return None if queued is None else queued.initial_attempt_timestamp

    @property
    def next_backoff_expiry(self) -> float | None:
        """When `flush_backoff` next has a pod to move, in seconds of the clock; None while no pod backs off or has a stated time."""
        times = (self._queues.next_backoff_expiry(), self.wake_ups.next_time())
        return min((time for time in times if time is not None), default=None)
