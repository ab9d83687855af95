"""The scheduling loop hands out pods to be decided. A slice of decisions takes a few milliseconds; then other work has its turn.

The loop repeats these steps:

1. It waits until this replica has the lead.
2. It waits until the queue can hand out a pod.
3. It waits, not for long, until waiting pods have been told of earlier events.
4. It hands out pods for one slice.

In a slice a pod goes one of four ways. A plain pod is decided at once. A pod that takes long is prepared and decided in a line. Pods of the
same or a higher priority are decided beside it. A member is decided with its group, in a line of groups. If a pod waits for a more
important pod in a line, the loop waits until that line is empty.

A line of pods that are decided one after the other, beside pods that are decided at once (decision 35).

Pods of the same or a higher priority are decided beside a line. Pods of a lower priority wait, because they might take the place
of a pod in the line. So no less important pod overtakes a pod in the line. A pod that takes long delays no pod of its own
priority. Groups have a line of their own, because deciding a group takes as long as deciding many pods (decision 58).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from placewright.api.podextent import SMALL
from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.cycle import FitError
from placewright.scheduler.ports import Clock, Lead, Precautions
from placewright.scheduler.turns import DecisionLock, Steps, Turns

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


_logger = logging.getLogger(__name__)

#: Seconds of decisions before the event loop does other work.
SLICE_SECONDS: Final = 0.005
#: Seconds that decisions may wait, at once, for waiting pods to be told of events. Over time they wait for half of the time at most.
PATIENCE_SECONDS: Final = 0.5


class Decider(Protocol):
    """Decides the pods that the loop hands out. `Scheduler` implements it."""

    def schedule_one(self, queued: QueuedPod) -> None:
        """Decide a pod now."""

    def schedule_in_steps(self, queued: QueuedPod, turns: Turns) -> Steps[None]:
        """Decide a pod as `schedule_one` does, with a step for each member of its group.

        Args:
            queued: pod that the queue handed out.
            turns: turns of other work between steps.

        Returns:
            The steps, not begun.
        """

    def give_back(self, queued: QueuedPod, problem: str) -> None:
        """End the attempt of a pod that cannot be decided now; it backs off.

        Args:
            queued: pod that the queue handed out.
            problem: message of its event and condition.
        """


@dataclass(eq=False)
class SchedulingLoop:
    """Hands pods out while this replica has the lead.

    Attributes:
        decider: decides the pods.
        queue: pods without a node.
        profiles: evaluator of a schedulerName, or None.
        clock: seconds, monotonic.
        lead: tells whether this replica may decide.
        precautions: steps before decisions that may end the process.
    """

    decider: Decider
    queue: SchedulingQueue
    profiles: Callable[[str], Evaluator | None]
    clock: Clock
    lead: Lead
    precautions: Precautions

    def __post_init__(self) -> None:
        self._lock = DecisionLock()
        self._long = Line(self.queue, self._decide_in_line)
        #: The group that is being decided; `self.queue.hand_out_groups` keeps all others in the self.queue.
        self._groups = Line(self.queue, self._decide_group)
        #: The pod that holds the loop up, with the line that it waits for.
        self._held: tuple[QueuedPod, Line] | None = None
        self._patience, self._caught_up_at = PATIENCE_SECONDS, self.clock()

    # --- steps -----------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Hand pods out until cancelled."""
        async with asyncio.TaskGroup() as lines:
            lines.create_task(self._long.run())
            lines.create_task(self._groups.run())
            while True:
                await self.lead.wait_active()
                await self.queue.wait_for_pod()
                await self._catch_up()
                async with self._lock:
                    self.decide_slice()
                await asyncio.sleep(0)
                while self._held is not None:
                    await self._end_wait(*self._held)

    async def _catch_up(self) -> None:
        """Wait until waiting pods are told of earlier events, because a pod that comes back may be more important.

        If events always came faster than pods are told of them, decisions would stop. So decisions regain patience only as time passes.
        """
        began = self.clock()
        self._patience = min(self._patience + began - self._caught_up_at, PATIENCE_SECONDS)
        await self.queue.sweeps.caught_up(max(self._patience, SLICE_SECONDS))
        self._caught_up_at = self.clock()
        self._patience -= self._caught_up_at - began

    def decide_slice(self) -> None:
        """Hand pods out for `SLICE_SECONDS`, until one has to wait or none is left."""
        # Time bounds a slice, and not a number of pods: a decision takes from a fraction of a millisecond to 100 ms.
        until = self.clock() + SLICE_SECONDS
        while self._held is None and self.clock() < until and self.lead.active:
            queued = self.queue.pop()
            if queued is None:
                return
            self._hand_out(queued)

    async def _end_wait(self, queued: QueuedPod, line: Line) -> None:
        """Wait for the line before the pod that is held, and hand the pod out."""
        await line.emptied()
        async with self._lock:
            self._held = None
            if self._may_decide(queued):
                self._hand_out(queued)

    # --- pods ------------------------------------------------------------------------------------------------------------------

    def _hand_out(self, queued: QueuedPod) -> None:
        """Decide a pod, or let it wait. Runs for every pod, so the tests that nearly all pods pass are cheap."""
        if self._groups and self._groups.holds_up(queued):
            self._held = (queued, self._groups)
            return
        behind_long = self._long and self._long.holds_up(queued)
        if queued.pod_group is not None and behind_long:
            self._held = (queued, self._long)
        elif queued.pod_group is not None:
            self.queue.hand_out_groups(go=False)
            self._groups.join(queued)
        # A single pod waits in the line, so that pods of other priorities go on.
        elif behind_long or self.precautions.due(queued) or (queued.pod.extent is not SMALL and self._is_long(queued)):
            self._long.join(queued)
        else:
            self.decider.schedule_one(queued)

    def _is_long(self, queued: QueuedPod) -> bool:
        evaluator = self.profiles(queued.pod.scheduler_name)
        return evaluator is not None and evaluator.prepares(queued.pod)

    # --- pods in lines ---------------------------------------------------------------------------------------------------------

    async def _decide_group(self, queued: QueuedPod) -> None:
        await self._decide_in_line(queued)
        self.queue.hand_out_groups(go=True)

    async def _decide_in_line(self, queued: QueuedPod) -> None:
        """Take precautions, prepare, and decide a pod while no other pod is being decided."""
        problem = await self.precautions.take(queued) if self.precautions.due(queued) else ""
        if not problem:
            await self._prepare(queued)
        turns = Turns(self.clock, lambda: self.lead.active, self._lock)
        await turns.take(self._decision(queued, problem, turns))

    async def _prepare(self, queued: QueuedPod) -> None:
        """Do the slow work of a decision piece by piece, with turns of the event loop in between.

        Most results are kept and follow the cluster, as counts of selected pods and domains of a label do. So the decision finds
        them up to date. It repeats work whose result was not kept.
        """
        evaluator = self.profiles(queued.pod.scheduler_name)
        if evaluator is None:
            return
        turns = Turns(self.clock, lambda: self.lead.active and self.queue.in_flight.has(queued.uid))
        try:
            with suppress(FitError):  # the lead is lost, or the pod gone
                await turns.take(_steps(evaluator.preparation(queued.pod)))
        except MemoryError:
            raise
        except Exception:
            _logger.exception("preparing pod %s broke; it is decided all the same", queued.key)

    def _decision(self, queued: QueuedPod, problem: str, turns: Turns) -> Steps[None]:
        if self._may_decide(queued):
            if problem:
                self.decider.give_back(queued, problem)
            else:
                yield from self.decider.schedule_in_steps(queued, turns)

    def _may_decide(self, queued: QueuedPod) -> bool:
        """Return whether a pod that waited may be decided; if not, its attempt has been ended."""
        if not self.queue.in_flight.has(queued.uid):
            self.queue.done(queued.uid)
        elif not self.lead.active:
            self.queue.return_unschedulable(queued)
        else:
            return True
        return False


def _steps(pieces: Iterator[None]) -> Steps[None]:
    yield from pieces
