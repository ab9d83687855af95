"""A line of pods that are decided one after the other, beside pods that are decided at once (decision 35).

Pods of the same or a higher priority are decided beside a line. Pods of a lower priority wait, because they might take the place
of a pod in the line. So no less important pod overtakes a pod in the line. A pod that takes long delays no pod of its own
priority. Groups have a line of their own, because deciding a group takes as long as deciding many pods (decision 58).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod

#: Pods in one line at most. Further pods return to the queue and back off.
MOST_WAITING: Final = 64


class Line:
    """Pods in the order in which they were handed out.

    Args:
        queue: queue to which pods return that find the line full.
        decide: decides the first pod, or ends its attempt.
    """

    def __init__(self, queue: SchedulingQueue, decide: Callable[[QueuedPod], Awaitable[None]]) -> None:
        self._queue = queue
        self._decide = decide
        self._pods: deque[QueuedPod] = deque()
        self._joined = asyncio.Event()
        self._left = asyncio.Event()

    def __len__(self) -> int:
        """Return the number of pods in the line, the pod that is being decided included."""
        return len(self._pods)

    def holds_up(self, queued: QueuedPod) -> bool:
        """Return whether a pod has to wait for a more important pod in the line."""
        return any(queued.pod.priority < other.pod.priority for other in self._pods)

    def join(self, queued: QueuedPod) -> None:
        """Add a pod that was handed out to the end of the line."""
        if len(self._pods) >= MOST_WAITING:
            # Without a rejecting plugin the pod backs off as after an error, and is tried again without an event.
            self._queue.return_unschedulable(queued)
            return
        self._pods.append(queued)
        self._joined.set()

    async def emptied(self) -> None:
        """Return when no pod is in the line. `run` has to be running."""
        while self._pods:
            self._left.clear()
            await self._left.wait()

    async def run(self) -> None:
        """Decide the pods one after the other, until cancelled."""
        while True:
            self._joined.clear()
            while self._pods:
                await self._decide(self._pods[0])
                self._pods.popleft()
                self._left.set()
            await self._joined.wait()
