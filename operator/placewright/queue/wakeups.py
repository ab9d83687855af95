"""Pods that are tried again at a stated time, whether or not an event helps them before.

A rejected pod waits for events, and the queue tries it again after five minutes in any case. Some rejections end by time alone: a pod may
preempt once it has waited long enough, and a minute's evictions are over when the minute is. The failure of such an attempt says after how
many seconds the pod is to have another (`FitError.retry_after`), and `ring` brings it back then. A pod that is given up, too: no event
would tell it that the time has come.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from placewright.queue.hints import Requeue
from placewright.queue.profilequeue import ProfileQueues, RequeuePod
from placewright.queue.queued import TIME_HAS_COME, QueuedPod

#: Outdated times that may stand among the valid ones before they are cleared out.
_OUTDATED: Final = 64


class WakeUps:
    """The next time of each pod that has one; nearly always no pod has.

    A time is dropped when the pod leaves the queue, and passes without effect when the pod was tried in between. There is one at most for
    each pod in the queue.

    Args:
        queues: the waiting pods.
        find: a pod of the queue by its uid.
        put: moves a pod between sub-queues.
        clock: seconds, monotonic.

    Attributes:
        times: by uid, the time and the pod's attempts when it was stated; only read elsewhere.
    """

    def __init__(self, queues: ProfileQueues, find: Callable[[str], QueuedPod | None], put: RequeuePod, clock: Callable[[], float]) -> None:
        self._queues = queues
        self._find = find
        self._put = put
        self._clock = clock
        self.times: dict[str, tuple[float, int]] = {}
        self._order: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self.times)

    def after(self, uid: str, seconds: float) -> None:
        """Try a pod again after so many seconds, if it is not tried before; a pod that the queue does not hold is ignored.

        Args:
            uid: of a pod whose attempt has ended.
            seconds: from now; the pod's backoff goes on beside them.
        """
        queued = self._find(uid)
        if queued is None:
            return
        due = self._clock() + max(seconds, 0.0)
        self.times[uid] = due, queued.attempts
        heapq.heappush(self._order, (due, uid))
        if len(self._order) > 2 * len(self.times) + _OUTDATED:
            self._order = sorted((due, uid) for uid, (due, _) in self.times.items())

    def drop(self, uid: str) -> None:
        """Forget a pod's time; harmless for a pod without."""
        self.times.pop(uid, None)

    def of(self, uid: str) -> float | None:
        """Return the seconds until a pod is tried again at the latest; None for a pod that waits for events alone.

        Args:
            uid: of the pod.
        """
        found, queued = self.times.get(uid), self._find(uid)
        if found is None or queued is None or found[1] != queued.attempts:
            return None
        return max(found[0] - self._clock(), 0.0)

    def next_time(self) -> float | None:
        """Return when `ring` next has something to do, in seconds of the clock; None while no pod has a time."""
        while self._order and self.times.get(self._order[0][1], (None,))[0] != self._order[0][0]:
            heapq.heappop(self._order)
        return self._order[0][0] if self._order else None

    def ring(self) -> None:
        """Let pods back off, and then be tried, whose time has come. Called at every whole second."""
        now = self._clock()
        while (due := self.next_time()) is not None and due <= now:
            _, uid = heapq.heappop(self._order)
            _, attempts = self.times.pop(uid)
            queued = self._find(uid)
            if queued is not None and queued.attempts == attempts:
                self._bring_back(queued)

    def _bring_back(self, queued: QueuedPod) -> None:
        queue = self._queues.get(queued.pod.scheduler_name)
        if queue is not None and queue.served and queued.uid in queue.unschedulable:
            self._put(queue, queued, Requeue.AFTER_BACKOFF, TIME_HAS_COME)
