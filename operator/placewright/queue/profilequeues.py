"""The profile queues by scheduler name, and the choice between their first pods."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from placewright.queue.changedpods import ChangedPods
from placewright.queue.policy import Policies
from placewright.queue.profilequeue import Making, ProfileQueue
from placewright.queue.queued import Sizes


class ProfileQueues:
    """The profile queues by scheduler name. Each is made when its first pod comes.

    Args:
        policies: the profile of a scheduler name, or None.
        making: the objects that all profile queues share.
    """

    __slots__ = ("_by_name", "_making", "_policies")

    def __init__(self, policies: Policies, making: Making) -> None:
        self._by_name: dict[str, ProfileQueue] = {}
        self._policies = policies
        self._making = making

    @property
    def changed(self) -> ChangedPods:
        """The pods of all queues that came, moved, or went."""
        return self._making.changed

    def __iter__(self) -> Iterator[ProfileQueue]:
        """Iterate over all queues, in order of creation."""
        return iter(self._by_name.values())

    def get(self, scheduler_name: str) -> ProfileQueue | None:
        """Return the queue of this scheduler name, or None when it has none."""
        return self._by_name.get(scheduler_name)

    def of(self, scheduler_name: str) -> ProfileQueue:
        """Return the queue of a scheduler name; a new queue asks for its profile.

        Args:
            scheduler_name: as pods name it.

        Returns:
            The queue.
        """
        queue = self._by_name.get(scheduler_name)
        if queue is None:
            queue = self._by_name[scheduler_name] = ProfileQueue(scheduler_name, self._policies(scheduler_name), self._making)
        return queue

    def drop_if_idle(self, queue: ProfileQueue) -> None:
        """Drop an empty queue that no profile claims: other schedulers' names would otherwise collect without end."""
        if not queue.served and not len(queue):
            del self._by_name[queue.name]

    def can_hand_out(self) -> bool:
        """Return True when `next` would find a pod that may be tried."""
        return any(queue.open and (queue.active.first_key() is not None or queue.may_try_early) for queue in self)

    def next(self) -> tuple[ProfileQueue | None, bool]:
        """Return the open queue whose first pod comes first.

        Returns:
            (queue, early). `early` is True when the pod is in backoff, which is tried only when no pod is active; the queue is
            None when no pod may be tried.
        """
        first, first_key = None, None
        for queue in self._by_name.values():
            if queue.open and (key := queue.active.first_key()) is not None and (first_key is None or key < first_key):
                first, first_key = queue, key
        if first is not None:
            return first, False
        early = [(key, queue) for queue in self if queue.open and queue.may_try_early and (key := queue.backoff.first_key()) is not None]
        return (min(early, key=itemgetter(0))[1] if early else None), True

    def next_backoff_expiry(self) -> float | None:
        """Return when the next backoff of any profile ends, in seconds; None when no pod backs off."""
        expiries = (queue.next_backoff_expiry() for queue in self)
        return min((expiry for expiry in expiries if expiry is not None), default=None)

    def sizes(self, scheduler_name: str | None, in_flight: int) -> Sizes:
        """Count the pods of each sub-queue.

        Args:
            scheduler_name: the profile; None for all profiles.
            in_flight: pods in flight, which the profile queues do not hold.

        Returns:
            The counts, `in_flight` among them.
        """
        each = [queue.sizes() for queue in self if scheduler_name in (None, queue.name)]
        active, backoff, unschedulable, gated = (sum(column) for column in zip((0,) * 4, *each, strict=True))
        return Sizes(active, backoff, unschedulable, gated, in_flight)
