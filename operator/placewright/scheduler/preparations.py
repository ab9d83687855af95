"""Pods whose decision takes long are prepared one after the other, beside the decisions of other pods (decision 35).

A decision runs in one go on the columns as they are. Most of the slow work in it is kept afterwards and follows the cluster by
itself: pods counted for a selection, domains of a label. So this work is done first, piece by piece, with a turn of the event
loop after each. The decision then finds it done and sees the cluster of that moment; work that was not kept it does itself.

Meanwhile pods of the same or a higher priority are decided. Pods of a lower priority wait behind the prepared pod, because they
might take its place. So no pod is overtaken by a less important one, and a pod that is hard to decide delays no other pod of
its priority. Groups go the same way, in a line of their own, because the decision of a group takes as long as that of many pods.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final

from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.cycle import FitError
from placewright.scheduler.podgroups.turns import Deciding, Steps, Turns
from placewright.scheduler.ports import Clock, Lead, Precautions

_logger = logging.getLogger(__name__)

#: Pods that are prepared or wait behind one that is, at most. Further pods return to the queue and back off.
MOST_WAITING: Final = 64


class Preparations:
    """The pods of one scheduler that are prepared, in the order in which they were handed out."""

    def __init__(
        self,
        queue: SchedulingQueue,
        profiles: Callable[[str], Evaluator | None],
        clock: Clock,
        lead: Lead,
        precautions: Precautions,
        decide: Callable[[QueuedPod], Awaitable[None]],
        give_back: Callable[[QueuedPod, str], None],
    ) -> None:
        """Start without pods.

        Args:
            queue: where pods return that cannot be decided.
            profiles: the evaluator of a schedulerName, or None.
            clock: seconds, monotonic.
            lead: whether this replica may decide.
            precautions: taken before each pod.
            decide: decides a prepared pod; called while no other pod is being decided, which it may lend to others.
            give_back: ends the attempt of a pod that cannot be decided now; called likewise.
        """
        self._queue = queue
        self._profiles = profiles
        self._clock = clock
        self._lead = lead
        self._precautions = precautions
        self._decide = decide
        self._give_back = give_back
        self._waiting: deque[QueuedPod] = deque()
        self._stirred = asyncio.Event()
        self._idle = asyncio.Event()

    def __len__(self) -> int:
        """Number of pods that are prepared or wait for it."""
        return len(self._waiting)

    def holds_up(self, queued: QueuedPod) -> bool:
        """Tell whether a pod has to wait because a more important one is being prepared.

        Args:
            queued: handed out by the queue.

        Returns:
            True when it has to.
        """
        return any(queued.pod.priority < other.pod.priority for other in self._waiting)

    def add(self, queued: QueuedPod) -> None:
        """Prepare a pod that was handed out, and have it decided."""
        # Returned without a rejecting plugin, the pod backs off as after an error, and comes again by itself.
        if len(self._waiting) >= MOST_WAITING:
            self._queue.return_unschedulable(queued)
            return
        self._waiting.append(queued)
        self._stirred.set()

    async def done(self) -> None:
        """Return when no pod is being prepared. `run` has to be running."""
        while self._waiting:
            self._idle.clear()
            await self._idle.wait()

    async def run(self, deciding: Deciding, ended: Callable[[], None] = lambda: None) -> None:
        """Prepare pods, and have each decided while no other pod is being decided, until cancelled.

        Args:
            deciding: the right to decide.
            ended: called after each pod.
        """
        while True:
            while self._waiting:
                problem = await self._make_ready(self._waiting[0])
                async with deciding:
                    await self._finish(self._waiting[0], problem)
                    self._waiting.popleft()
                ended()
                self._idle.set()
            self._stirred.clear()
            await self._stirred.wait()

    async def _make_ready(self, queued: QueuedPod) -> str:
        """Take precautions, then prepare; return why precautions failed, or ""."""
        problem = await self._precautions.take(queued) if self._precautions.due(queued) else ""
        if not problem:
            await self._prepare(queued)
        return problem

    async def _prepare(self, queued: QueuedPod) -> None:
        evaluator = self._profiles(queued.pod.scheduler_name)
        if evaluator is None:
            return
        turns = Turns(self._clock, lambda: self._lead.active and self.is_there(queued))
        try:
            with suppress(FitError):  # the lead is lost, or the pod gone
                await turns.take(_steps(evaluator.preparation(queued.pod)))
        except MemoryError:
            raise
        except Exception:
            _logger.exception("pod %s is decided without having been prepared", queued.key)

    def is_there(self, queued: QueuedPod) -> bool:
        """Return False for a pod that was deleted after it was handed out."""
        flight = self._queue.in_flight.get(queued.uid)
        return flight is not None and not flight.gone

    async def _finish(self, queued: QueuedPod, problem: str) -> None:
        if not self.is_there(queued):
            self._queue.done(queued.uid)
        elif problem:
            self._give_back(queued, problem)
        elif self._lead.active:
            await self._decide(queued)
        else:
            self._queue.return_unschedulable(queued)


def _steps(pieces: Iterator[None]) -> Steps[None]:
    yield from pieces
