"""The scheduler: takes pods from the queue one by one, decides, assumes, and starts their binding.

`schedule` is the whole of a decision; `run` repeats it in slices of a few milliseconds, so that one event loop can also listen, bind
and renew its lead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.evaluation import Evaluator
from placewright.framework.status import Status
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.binding import BindingCycle, rejected_late
from placewright.scheduler.cycle import NoPlacement, Placement, SchedulingCycle
from placewright.scheduler.failures import FailureHandler
from placewright.scheduler.messages import skip_deleting
from placewright.scheduler.ports import AlwaysLead, Clock, EventRecorder, Evictor, Lead, StatusWriter
from placewright.scheduler.waiting import WaitingPods

_logger = logging.getLogger(__name__)

#: How long the loop decides before it lets others run, in seconds.
SLICE_SECONDS: Final = 0.005
#: Binding cycles under way at once; more would only queue up in front of the API server.
MAX_BINDING: Final = 512


@dataclass(frozen=True, slots=True)
class Ports:
    """The world, as far as the scheduler writes to it."""

    events: EventRecorder
    status: StatusWriter
    evictor: Evictor


@dataclass(slots=True)
class Counts:
    """What came of attempts since the start."""

    scheduled: int = 0
    unschedulable: int = 0
    errors: int = 0
    bound: int = 0
    bind_failures: int = 0


class Scheduler:
    """Decides and binds.

    Args:
        cluster, queue: the state, owned elsewhere, fed by `Intake`.
        profiles: the evaluator of a schedulerName, or None; asked anew for every pod, so that a swapped profile takes effect at once.
        lead: says whether this replica may decide.
    """

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        profiles: Callable[[str], Evaluator | None],
        cycle: SchedulingCycle,
        ports: Ports,
        clock: Clock,
        lead: Lead = AlwaysLead(),  # noqa: B008 - it has no state
    ) -> None:
        self.cluster = cluster
        self.queue = queue
        self.counts = Counts()
        self.waiting = WaitingPods(clock)
        self._profiles = profiles
        self._cycle = cycle
        self._evictor = ports.evictor
        self._clock = clock
        self._lead = lead
        self._failures = FailureHandler(queue, ports.events, ports.status)
        self.binding = BindingCycle(cluster, queue, self.waiting, self._failures, ports.events)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._binding_slots = asyncio.Semaphore(MAX_BINDING)

    # --- one pod -----------------------------------------------------------------------------------------------------------

    def schedule(self, queued: QueuedPod) -> Coroutine[Any, Any, bool] | None:
        """Decide a pod that the queue handed out; returns its binding cycle, not yet started, or None when there is nothing to bind."""
        pod = queued.pod
        if self._skip(pod):
            self.queue.done(queued.uid)
            return None
        evaluator = self._profiles(pod.scheduler_name)
        if evaluator is None:
            self.queue.return_unschedulable(queued)
            return None
        try:
            placement = self._cycle.place(evaluator, pod)
            waits = self._assume(placement)
        except NoPlacement as failure:
            self._fail(queued, failure)
            return None
        except Exception as problem:
            _logger.exception("scheduling pod %s broke", pod.key)
            self._fail(queued, NoPlacement(f"{type(problem).__name__}: {problem}", internal=True))
            return None
        self.counts.scheduled += 1
        return self._bind(queued, placement, waits)

    def _skip(self, pod: PodInfo) -> bool:
        """Pods that need no node any more."""
        if pod.terminating:
            self._failures.skipped_deleting(pod, skip_deleting(pod))
            return True
        return self.cluster.placement(pod.uid) is not None

    def _assume(self, placement: Placement) -> dict[str, float]:
        """Assume · Reserve · Permit; returns which plugins want to wait. Raises `NoPlacement` with everything taken back."""
        pod, node, runtime, state = placement.pod, placement.node, placement.runtime, placement.state
        self.cluster.assume(pod, node)
        try:
            status = runtime.run_reserve(state, pod, node)
            self._require(status)
            status, waits = runtime.run_permit(state, pod, node)
            if not status.ok:
                runtime.run_unreserve(state, pod, node)
            self._require(status)
        except BaseException:
            self.cluster.forget(pod, node)
            raise
        self.queue.nominator.delete(pod.uid)
        self.queue.activate(state.activate.values())
        state.activate.clear()
        return waits

    @staticmethod
    def _require(status: Status) -> None:
        if status.ok:
            return
        raise rejected_late(status) if status.rejected else NoPlacement(status.message, internal=True)

    def _fail(self, queued: QueuedPod, failure: NoPlacement) -> None:
        self.counts.errors += failure.internal
        self.counts.unschedulable += not failure.internal
        pod = self._failures.handle(queued, failure)
        if pod is not None and failure.victims and failure.nominated_node:
            for victim in failure.victims:
                self._spawn(self._evictor.evict(victim, pod, failure.nominated_node))

    async def _bind(self, queued: QueuedPod, placement: Placement, waits: dict[str, float]) -> bool:
        bound = await self.binding.run(queued, placement, waits)
        self.counts.bound += bound
        self.counts.bind_failures += not bound
        return bound

    # --- the loop ------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until cancelled."""
        while True:
            await self._lead.wait_active()
            await self.queue.wait_for_pod()
            await self._slice()
            await asyncio.sleep(0)

    async def _slice(self) -> None:
        until = self._clock() + SLICE_SECONDS
        while self._clock() < until and self._lead.active:
            await self._binding_slots.acquire()
            queued = self.queue.pop()
            binding = None if queued is None else self.schedule(queued)
            if binding is None:
                self._binding_slots.release()
            else:
                self._spawn(binding).add_done_callback(lambda _task: self._binding_slots.release())
            if queued is None:
                return

    async def drain(self) -> None:
        """Wait until every binding and eviction under way has ended."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _logger.error("background work of the scheduler failed", exc_info=task.exception())
