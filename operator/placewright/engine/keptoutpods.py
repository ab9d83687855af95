"""Tells pods whose namespace may not use their profile: the PodScheduled condition and an event, once for each pod.

Such a pod is gated and never tried (`framework/runtime/allowednamespaces.py`), so no attempt tells its owner. Pods are told at a bounded
pace, in turns between namespaces: a namespace that creates ten thousand such pods delays the others by one pod each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from placewright.engine.children import in_turns
from placewright.framework.runtime.allowednamespaces import ALLOWED_NAMESPACES
from placewright.kube.ratelimit import TokenBucket
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.failures import FAILED_SCHEDULING, UNSCHEDULABLE
from placewright.scheduler.ports import EventRecorder, EventType, StatusWriter

#: Most pods that are told at once, and pods a second in the long run; as for pods that no profile takes.
BURST: Final = 100
PODS_A_SECOND: Final = 20.0


class KeptOutPods:
    """Tells each kept-out pod why it waits.

    Attributes:
        told: uids of waiting pods that were told. A pod that leaves the gate is forgotten, so there are no more than gated pods.

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
        self.told: set[str] = set()
        self._pace = TokenBucket(PODS_A_SECOND, BURST, clock)

    def look(self) -> None:
        """Tell as many kept-out pods as the pace allows."""
        lanes = [lane for lane in self._queue.profile_queues() if lane.served]
        waiting = {queued.uid: (lane, queued) for lane in lanes for queued in lane.gated.held_by(ALLOWED_NAMESPACES).values()}
        self.told &= waiting.keys()
        by_namespace: dict[str, list[tuple[ProfileQueue, QueuedPod]]] = {}
        for uid, found in waiting.items():
            if uid not in self.told:
                by_namespace.setdefault(found[1].pod.namespace, []).append(found)
        for found in in_turns(by_namespace.values()):
            if not self._pace.take_now():
                return
            self._tell(*found)

    def _tell(self, lane: ProfileQueue, queued: QueuedPod) -> None:
        self.told.add(queued.uid)
        message = lane.policy.pre_enqueue(queued.pod).message
        self._events.record(queued.pod, EventType.WARNING, FAILED_SCHEDULING, "Scheduling", message)
        self._status.pod_unscheduled(queued.pod, UNSCHEDULABLE, message, None)
