"""Tells pods whose namespace may not use their profile: the PodScheduled condition and an event, once for each pod.

Such a pod is gated and never tried (`framework/runtime/allowednamespaces.py`), so no attempt tells its owner. Pods are told at a bounded
pace, in turns between namespaces: a namespace that creates ten thousand such pods delays the others by one pod each.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from placewright.framework.runtime.allowednamespaces import ALLOWED_NAMESPACES
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.failures import FAILED_SCHEDULING, UNSCHEDULABLE
from placewright.scheduler.ports import EventRecorder, EventType, StatusWriter

#: Seconds between two looks at the gated pods.
BEAT_SECONDS: Final = 1.0
#: Most pods that are told at once, and pods a second in the long run; as for pods that no profile takes.
BURST: Final = 100
PODS_A_SECOND: Final = 20.0


class KeptOutPods:
    """Tells each kept-out pod why it waits.

    Args:
        queue: has the gated pods.
        events: records the event of each pod.
        status: writes its condition.
        clock: seconds, monotonic.
    """

    def __init__(
        self, queue: SchedulingQueue, events: EventRecorder, status: StatusWriter, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._queue = queue
        self._events = events
        self._status = status
        self._clock = clock
        #: Uids of waiting pods that were told. A pod that leaves the gate is forgotten, so there are no more than gated pods.
        self._told: set[str] = set()
        self._tokens, self._filled = float(BURST), clock()

    async def run(self, active: Callable[[], bool]) -> None:
        """Call `look` at every beat at which this replica leads, until cancelled.

        Args:
            active: whether it leads.
        """
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if active():
                self.look()
            else:
                self._told.clear()

    def look(self) -> None:
        """Tell as many kept-out pods as the pace allows."""
        waiting = {queued.uid: (lane, queued) for lane in self._queue.profile_queues() for queued in _kept_out(lane)}
        self._told &= waiting.keys()
        if len(self._told) == len(waiting):
            return
        now = self._clock()
        self._tokens, self._filled = min(BURST, self._tokens + (now - self._filled) * PODS_A_SECOND), now
        by_namespace: dict[str, deque[tuple[ProfileQueue, QueuedPod]]] = {}
        for uid, found in waiting.items():
            if uid not in self._told:
                by_namespace.setdefault(found[1].pod.namespace, deque()).append(found)
        turns = deque(by_namespace.values())
        while turns and self._tokens >= 1:
            self._tokens -= 1
            pods = turns.popleft()
            self._tell(*pods.popleft())
            if pods:
                turns.append(pods)

    def _tell(self, lane: ProfileQueue, queued: QueuedPod) -> None:
        self._told.add(queued.uid)
        message = lane.policy.pre_enqueue(queued.pod).message
        self._events.record(queued.pod, EventType.WARNING, FAILED_SCHEDULING, "Scheduling", message)
        self._status.pod_unscheduled(queued.pod, UNSCHEDULABLE, message, None)


def _kept_out(lane: ProfileQueue) -> Iterator[QueuedPod]:
    return iter(lane.gated.held_by(ALLOWED_NAMESPACES).values() if lane.served else ())
