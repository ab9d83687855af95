"""Pods whose decision takes long, made ready one after the other beside the decisions of others.

A decision runs in one go, on the columns as they stand. Most of what takes long in it is kept and follows the cluster by itself from then
on: pods counted for a selection, domains of a label. So these are made ready one by one, each with a turn of the event loop after it; the
decision then finds them, and sees what is true at that moment. What was not made ready, or not kept, it works out itself.

Pods of the same or a higher priority go on being decided meanwhile; those of a lower one, which might take what the pod is to get, wait
behind it. So no pod is overtaken by a less important one, and a tenant's pod that is hard to decide holds up nobody else of its priority.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.cycle import FitError
from placewright.scheduler.podgroups.turns import Steps, Turns
from placewright.scheduler.ports import Clock, Lead, Precautions

_logger = logging.getLogger(__name__)

#: Pods that wait to be made ready, or behind one that does, at most; more go back to the queue and come again after a backoff.
MOST_WAITING: Final = 64


class Preparations:
    """The pods of one scheduler that are made ready, in the order in which they were handed out."""

    def __init__(
        self,
        queue: SchedulingQueue,
        profiles: Callable[[str], Evaluator | None],
        clock: Clock,
        lead: Lead,
        precautions: Precautions,
        decide: Callable[[QueuedPod], None],
        give_back: Callable[[QueuedPod, str], None],
    ) -> None:
        """`decide`, and `give_back` for a pod that cannot be decided now, are called while nobody else is being decided."""
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
        """How many pods are being made ready, or wait for it."""
        return len(self._waiting)

    def holds_up(self, queued: QueuedPod) -> bool:
        """Whether a pod has to wait because a more important one is being made ready."""
        return any(queued.pod.priority < other.pod.priority for other in self._waiting)

    def add(self, queued: QueuedPod) -> None:
        """Make this pod ready, which was handed out, and have it decided."""
        if len(self._waiting) >= MOST_WAITING:
            self._queue.return_unschedulable(queued)
            return
        self._waiting.append(queued)
        self._stirred.set()

    async def done(self) -> None:
        """Return when no pod is being made ready; somebody has to run `run`."""
        while self._waiting:
            self._idle.clear()
            await self._idle.wait()

    async def run(self, deciding: asyncio.Lock) -> None:
        """Make pods ready, and have each decided while nobody else is, until cancelled."""
        while True:
            while self._waiting:
                problem = await self._make_ready(self._waiting[0])
                async with deciding:
                    self._finish(self._waiting[0], problem)
                    self._waiting.popleft()
                self._idle.set()
            self._stirred.clear()
            await self._stirred.wait()

    async def _make_ready(self, queued: QueuedPod) -> str:
        """Take precautions first; why that could not be done, else empty."""
        problem = await self._precautions.take(queued) if self._precautions.due(queued) else ""
        if not problem:
            await self._prepare(queued)
        return problem

    async def _prepare(self, queued: QueuedPod) -> None:
        evaluator = self._profiles(queued.pod.scheduler_name)
        if evaluator is None:
            return
        turns = Turns(self._clock, lambda: self._lead.active and self._is_there(queued))
        try:
            with suppress(FitError):  # the lead is lost, or the pod gone
                await turns.take(_steps(evaluator.preparation(queued.pod)))
        except Exception:
            _logger.exception("pod %s is decided without having been prepared", queued.key)

    def _is_there(self, queued: QueuedPod) -> bool:
        flight = self._queue.in_flight.get(queued.uid)
        return flight is not None and not flight.gone

    def _finish(self, queued: QueuedPod, problem: str) -> None:
        if not self._is_there(queued):
            self._queue.done(queued.uid)
        elif problem:
            self._give_back(queued, problem)
        elif self._lead.active:
            self._decide(queued)
        else:
            self._queue.return_unschedulable(queued)


def _steps(pieces: Iterator[None]) -> Steps[None]:
    yield from pieces
