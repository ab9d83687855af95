"""Pods that the queue handed out, and the events since then.

Without the events, a pod that is rejected because of a node that was freed a moment later would wait for the next event.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from placewright.api.boundedcache import counts_bytes
from placewright.api.pods import PodInfo, held_bytes
from placewright.framework.events import WILDCARD, ClusterEvent
from placewright.framework.podchanges import pod_update_events
from placewright.queue.hints import Hints
from placewright.queue.queued import QueuedPod
from placewright.queue.room import NO_PLACE, RoomPlace

#: Events kept at most. An attempt that is older than the oldest kept event is told "anything may have happened" instead.
EVENT_LIMIT: Final = 10_000
#: Bytes of the objects in these events, at most: a tenant's objects may be large, and gone otherwise. 10,000 usual pods fit.
EVENT_BYTES: Final = 48 * 2**20


class InFlightEvent(NamedTuple):
    """An event with its object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


_ANYTHING: Final = InFlightEvent(WILDCARD, None, None)


@dataclass(slots=True, eq=False)
class InFlightPod:
    """One pod's attempt.

    Attributes:
        queued: the pod as the queue handed it out.
        latest: the newest version of the pod; `queued.pod` stays the version that the attempt began with.
        start: number of events that had happened when the attempt began.
        hints: the hints of the profile that the attempt began under. A profile with another `Hints` object has changed
            meanwhile.
        gone: the pod was deleted or replaced meanwhile, so it does not come back to the queue.
        place: the place that the pod holds in its profile's room.
    """

    queued: QueuedPod
    latest: PodInfo
    start: int
    hints: Hints
    gone: bool = False
    place: RoomPlace = NO_PLACE


class InFlightPods:
    """Attempts under way, by uid, with the events since the oldest of them began.

    A pod stays in flight until its Binding is known to have succeeded or failed (decision 6).

    Args:
        limit: events kept at most.

    Attributes:
        nbytes: bytes of the kept events' objects, `EVENT_BYTES` at most.
    """

    __slots__ = ("__weakref__", "_count", "_events", "_limit", "_pods", "_sizes", "nbytes")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._pods: OrderedDict[str, InFlightPod] = OrderedDict()
        self._events: deque[InFlightEvent] = deque()
        self._sizes: deque[int] = deque()  # bytes of each event's objects
        #: Events ever recorded. A number for each attempt, where upstream keeps attempts as markers in its list of events: an attempt that
        #: ends moves nothing.
        self._count = 0
        self.nbytes = 0
        self._limit = limit
        counts_bytes(self)

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[InFlightPod]:
        """Iterate over all attempts, oldest first, including attempts of pods that are gone."""
        return iter(self._pods.values())

    @property
    def events_kept(self) -> int:
        """Number of events that are kept now."""
        return len(self._events)

    def events_by_label(self) -> Counter[str]:
        """Count the kept events by label. O(events), `EVENT_LIMIT` at most."""
        return Counter(happening.event.label for happening in self._events)

    def get(self, uid: str) -> InFlightPod | None:
        """Find the attempt of a pod.

        Args:
            uid: the pod's.

        Returns:
            The attempt; None when the pod is not in flight.
        """
        return self._pods.get(uid)

    def aside(self, pod: PodInfo) -> AbstractContextManager[None]:
        """Let a pod stand aside while a block runs, so that other pods are decided meanwhile.

        Args:
            pod: in flight; any other is ignored.

        Returns:
            A context manager.
        """
        return self.place(pod.uid).aside()

    def place(self, uid: str) -> RoomPlace:
        """Return the pod's place in its profile's room.

        Args:
            uid: the pod's.

        Returns:
            The place; for a pod that is not in flight, one that ignores every call.
        """
        flight = self._pods.get(uid)
        return NO_PLACE if flight is None else flight.place

    def begin(self, queued: QueuedPod, hints: Hints, place: RoomPlace = NO_PLACE) -> None:
        """Note that a pod was handed out.

        Args:
            queued: the pod.
            hints: the hints of its profile at this moment.
            place: the place that the pod took in the profile's room.
        """
        self._pods[queued.uid] = InFlightPod(queued, queued.pod, self._count, hints, place=place)

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event for the attempts under way; an event while no pod is in flight is dropped.

        Args:
            event: its kind and label.
            old: the object before; None when it appeared.
            new: the object after; None when it is gone.
        """
        if not self._pods:
            return
        self._count += 1
        nbytes = held_bytes(old, new)
        self._events.append(InFlightEvent(event, old, new))
        self._sizes.append(nbytes)
        self.nbytes += nbytes
        while len(self._events) > self._limit or self.nbytes > EVENT_BYTES:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        self._events.popleft()
        self.nbytes -= self._sizes.popleft()

    def update(self, attempt: InFlightPod, new: PodInfo) -> None:
        """Note a newer version of a pod in flight, and record its changes as events that the attempt missed.

        Args:
            attempt: under way.
            new: a later version of its pod.
        """
        for event in pod_update_events(attempt.latest, new):
            self.record(event, attempt.latest, new)
        attempt.latest = new

    def missed(self, flight: InFlightPod) -> list[InFlightEvent]:
        """Return the events since this attempt began, oldest first.

        Returns:
            The events; led by a wildcard event when older ones were dropped, so that the pod is tried again in any case.
        """
        oldest = self._count - len(self._events)
        if flight.start < oldest:
            return [_ANYTHING, *self._events]
        return list(islice(self._events, flight.start - oldest, None))

    def end(self, uid: str) -> InFlightPod | None:
        """End an attempt and drop the events that no other attempt needs.

        Args:
            uid: the pod's.

        Returns:
            The attempt; None when the pod is not in flight.
        """
        if (flight := self._pods.pop(uid, None)) is not None:
            self._prune()
            flight.place.leave()
        return flight

    def _prune(self) -> None:
        if not self._pods:
            if self._events:
                self._events.clear()
                self._sizes.clear()
                self.nbytes = 0
            return
        first = next(iter(self._pods.values()))
        # Attempts end in any order, but events are dropped only up to the oldest attempt: a slow Binding keeps them, bounded by
        # the limits.
        while self._events and self._count - len(self._events) < first.start:
            self._forget_oldest()
