"""Pods that were handed out, and the events that happened since: what a pod missed while it was being tried.

Without this a pod that is rejected because of a node that was freed a moment later would wait for the next event.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from placewright.api.pods import PodInfo, held_bytes
from placewright.framework.events import WILDCARD, ClusterEvent
from placewright.framework.podchanges import pod_update_events
from placewright.queue.hints import Hints
from placewright.queue.queued import QueuedPod
from placewright.queue.room import NO_PLACE, RoomPlace

#: Events kept at most. A pod that was handed out before the oldest of these is told "anything may have happened" instead.
EVENT_LIMIT: Final = 10_000
#: Bytes of the objects that these events are about, which may be gone, and large. For usual pods that is as many as may be kept.
EVENT_BYTES: Final = 48 * 2**20


class InFlightEvent(NamedTuple):
    """An event with the object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


_ANYTHING: Final = InFlightEvent(WILDCARD, None, None)


@dataclass(slots=True, eq=False)
class InFlightPod:
    """One pod's attempt.

    Attributes:
        queued: what was handed out.
        latest: the newest version of the pod; `queued.pod` stays what the attempt began with.
        start: number of events that had happened when the attempt began.
        hints: those of the profile that the attempt began under; another object now means that the profile changed meanwhile.
        gone: the pod was deleted or replaced meanwhile; it will not come back.
        place: what it holds in its profile's room.
    """

    queued: QueuedPod
    latest: PodInfo
    start: int
    hints: Hints
    gone: bool = False
    place: RoomPlace = NO_PLACE


class InFlightPods:
    """Attempts under way, by uid, with the events since the oldest of them began.

    Attributes:
        nbytes: what the objects of these events take, `EVENT_BYTES` at most.
    """

    __slots__ = ("_count", "_events", "_limit", "_pods", "_sizes", "nbytes")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._pods: OrderedDict[str, InFlightPod] = OrderedDict()
        self._events: deque[InFlightEvent] = deque()
        self._sizes: deque[int] = deque()  # bytes of each event's objects
        self._count = 0  # events ever recorded
        self.nbytes = 0
        self._limit = limit

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[InFlightPod]:
        """All attempts, oldest first; those of gone pods included."""
        return iter(self._pods.values())

    @property
    def events_kept(self) -> int:
        """How many events are remembered now."""
        return len(self._events)

    def events_by_label(self) -> Counter[str]:
        """How many events of each label are remembered; walks over all of them, `EVENT_LIMIT` at most."""
        return Counter(happening.event.label for happening in self._events)

    def get(self, uid: str) -> InFlightPod | None:
        """The attempt with this pod, or None."""
        return self._pods.get(uid)

    def place(self, uid: str) -> RoomPlace:
        """What the pod holds in its profile's room; what is done with the place of a pod that is not in flight is harmless."""
        flight = self._pods.get(uid)
        return NO_PLACE if flight is None else flight.place

    def begin(self, queued: QueuedPod, hints: Hints, place: RoomPlace = NO_PLACE) -> None:
        """Note that a pod was handed out, under a profile with these hints; it holds this place in the profile's room."""
        self._pods[queued.uid] = InFlightPod(queued, queued.pod, self._count, hints, place=place)

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Remember an event; forgotten at once when nothing is in flight."""
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
        """Take over a newer version of a pod; what changed about it is an event that its attempt missed."""
        for event in pod_update_events(attempt.latest, new):
            self.record(event, attempt.latest, new)
        attempt.latest = new

    def missed(self, flight: InFlightPod) -> list[InFlightEvent]:
        """What happened since this attempt began, oldest first."""
        oldest = self._count - len(self._events)
        if flight.start < oldest:
            return [_ANYTHING, *self._events]
        return list(islice(self._events, flight.start - oldest, None))

    def end(self, uid: str) -> InFlightPod | None:
        """Forget an attempt, and events that nobody left in flight can have missed; None when there was none."""
        flight = self._pods.pop(uid, None)
        if flight is not None:
            self._ended(flight)
        return flight

    def _ended(self, flight: InFlightPod) -> None:
        self._prune()
        flight.place.leave()

    def _prune(self) -> None:
        if not self._pods:
            if self._events:
                self._events.clear()
                self._sizes.clear()
                self.nbytes = 0
            return
        first = next(iter(self._pods.values()))
        while self._events and self._count - len(self._events) < first.start:
            self._forget_oldest()
