"""What anybody may ask the queue: who waits where. Nothing here changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from placewright.api.objects import PodKey
from placewright.api.pods import PodInfo
from placewright.queue.inflight import Flights
from placewright.queue.lane import Lane
from placewright.queue.podgroups import QueuedPodGroups
from placewright.queue.queued import QueuedPod, SubQueue


class Sizes(NamedTuple):
    """How many pods are in each place."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int


class QueueView:
    """The queue, for reading.

    Attributes:
        gangs: groups that are placed together.
    """

    def __init__(self) -> None:
        self.pod_groups = QueuedPodGroups()
        self._pods: dict[str, QueuedPod] = {}
        self._uids: dict[PodKey, str] = {}
        self._lanes: dict[str, Lane] = {}
        self._flights = Flights()

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod of this uid, wherever it is; None when unknown."""
        return self._pods.get(uid)

    def latest(self, uid: str) -> PodInfo | None:
        """The newest version of a pod, also while an older one is being tried; None when unknown."""
        return self._latest(uid) if uid in self._pods else None

    def uid_of(self, key: PodKey) -> str | None:
        """The uid of the pod of this `namespace/name`, or None."""
        return self._uids.get(key)

    def uids(self) -> AbstractSet[str]:
        """All pods the queue answers for; a view."""
        return self._pods.keys()

    def locate(self, uid: str) -> SubQueue | None:
        """Where a pod is, or None when unknown."""
        queued = self._pods.get(uid)
        if queued is None:
            return None
        if self._flights.get(uid) is not None:
            return SubQueue.IN_FLIGHT
        lane = self._lanes.get(queued.pod.scheduler_name)
        return lane.place_of(uid) if lane is not None else None

    def pods(self) -> Iterator[tuple[SubQueue, QueuedPod]]:
        """All pods with their places, read from the places themselves."""
        for lane in self._lanes.values():
            yield from lane.waiting()
        yield from ((SubQueue.IN_FLIGHT, flight.queued) for flight in self._flights if not flight.gone)

    def lanes(self) -> Iterator[Lane]:
        """The waiting pods by scheduler name, for reading."""
        return iter(self._lanes.values())

    @property
    def flights(self) -> Flights:
        """The attempts under way, for reading."""
        return self._flights

    def sizes(self, scheduler_name: str | None = None) -> Sizes:
        """How many pods are where, of one scheduler name or of all."""
        lanes = [lane for lane in self._lanes.values() if scheduler_name in (None, lane.name)]
        return Sizes(
            active=sum(len(lane.active) for lane in lanes),
            backoff=sum(len(lane.backoff) + len(lane.error_backoff) for lane in lanes),
            unschedulable=sum(len(lane.unschedulable) for lane in lanes),
            gated=sum(len(lane.gated) for lane in lanes),
            in_flight=sum(not f.gone and scheduler_name in (None, f.latest.scheduler_name) for f in self._flights),
        )

    def rejections(self, scheduler_name: str) -> Counter[str]:
        """How many unschedulable and gated pods of a scheduler name each plugin holds back."""
        lane = self._lanes.get(scheduler_name)
        waiting = (lane.unschedulable, lane.gated) if lane else ()
        return Counter({plugin: len(pods.held_by(plugin)) for pods in waiting for plugin in pods.plugins()})

    def _latest(self, uid: str) -> PodInfo:
        flight = self._flights.get(uid)
        return flight.latest if flight is not None else self._pods[uid].pod
