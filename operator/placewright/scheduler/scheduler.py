"""The scheduler: takes pods from the queue one by one, decides, assumes, and starts their binding.

`schedule` is the whole of a decision; `run` repeats it in slices of a few milliseconds, so that one event loop can also listen, bind
and renew its lead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.blame import why
from placewright.framework.evaluation import Evaluator
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Attempt, Observers
from placewright.scheduler.binding import BindingCycle
from placewright.scheduler.cycle import NoPlacement, Placement, SchedulingCycle, broken
from placewright.scheduler.extending import LEAD_LOST, ExtendedCycle
from placewright.scheduler.failures import FailureHandler
from placewright.scheduler.messages import skip_deleting
from placewright.scheduler.podgroups.barrier import Barrier
from placewright.scheduler.podgroups.deciding import GangScheduler
from placewright.scheduler.podgroups.group import Surroundings
from placewright.scheduler.ports import (
    AlwaysLead,
    Clock,
    EventRecorder,
    Evictor,
    GroupStatusWriter,
    Lead,
    NoGroupStatus,
    StatusWriter,
)
from placewright.scheduler.preempting import Preemption
from placewright.scheduler.reserving import Reserving
from placewright.scheduler.waiting import WaitingPods

_logger = logging.getLogger(__name__)

#: How long the loop decides before it lets others run, in seconds.
SLICE_SECONDS: Final = 0.005
#: Binding cycles under way at once, without those that wait for permission; more would only queue up in front of the API server.
MAX_BINDING: Final = 512
#: How long bindings under way get to end when the scheduler stops, in seconds.
DRAIN_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Ports:
    """The world, as far as the scheduler writes to it, and those who want to hear what it does."""

    events: EventRecorder
    status: StatusWriter
    evictor: Evictor
    observers: Observers = field(default_factory=lambda: Observers([]))
    groups: GroupStatusWriter = field(default_factory=NoGroupStatus)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


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
        self._extended = ExtendedCycle(cluster, cycle, lambda: lead.active)
        self._clock = clock
        self._lead = lead
        self._failures = FailureHandler(queue, ports.events, ports.status, lead)
        self._observers = ports.observers
        self.binding = BindingCycle(cluster, queue, self.waiting, self._failures, ports.events, ports.observers)
        self._preemption = Preemption(
            cluster, queue, self.waiting, self.binding, ports.evictor, ports.events, ports.status, lead, ports.sleep
        )  # fmt: skip
        self._tasks: set[asyncio.Task[Any]] = set()
        self._reserving = Reserving(cluster, queue, self.waiting)
        self.gangs = GangScheduler(self._around_gangs(ports.groups))

    def _around_gangs(self, status: GroupStatusWriter) -> Surroundings:
        return Surroundings(
            self.cluster, self.queue, self._cycle, self._extended, self._reserving, self.binding, self._clock, status, self._observers,
            begin=self._begin, bind=self._bind, fail=self._not_placed, skip=self._skip,
            ended=self._observers.group_ended,
        )  # fmt: skip

    # --- one pod -----------------------------------------------------------------------------------------------------------

    def schedule(self, queued: QueuedPod) -> Coroutine[Any, Any, bool] | None:
        """Decide a pod that the queue handed out; returns its binding cycle, not yet started, or None when there is nothing to bind.

        A pod that is placed with its group takes the others of it along: what is returned binds all of them.
        Where extenders are to be asked, the decision is in what is returned, too.
        """
        pod = queued.pod
        if self._skip(pod):
            self.queue.done(queued.uid)
            return None
        evaluator = self._profiles(pod.scheduler_name)
        if evaluator is None:
            self.queue.return_unschedulable(queued)
            return None
        if self.gangs.reservations:
            self.gangs.reservations.review()
        if pod.gang is not None and self.gangs.decides(pod, evaluator):
            return self.gangs.decide(queued, evaluator)
        attempt = self._begin(queued, evaluator)
        if evaluator.runtime.extenders_for(pod):
            # Extenders see one pod of a profile after the other, as kube-scheduler's do: they count what they agreed to.
            self.queue.hold(pod.scheduler_name)
            return self._schedule_with_extenders(attempt, evaluator)
        try:
            placement = self._cycle.place(evaluator, pod, attempt.steps, self.gangs.within(pod, evaluator))
            attempt.chose(placement)
            self._observers.decided(attempt)
            self._assume(placement)
        except Exception as problem:  # noqa: BLE001 - a plugin is anybody's code
            self._not_placed(attempt, problem)
            return None
        return self._bind(attempt, placement, self.gangs.barrier_of(pod))

    def _begin(self, queued: QueuedPod, evaluator: Evaluator) -> Attempt:
        return Attempt(queued, evaluator.runtime.profile, self._clock, plugins=self._observers.sampled())

    async def _schedule_with_extenders(self, attempt: Attempt, evaluator: Evaluator) -> bool:
        """Decide and bind a pod that extenders are asked about; its profile's other pods wait for the decision, not for the binding."""
        try:
            within = self.gangs.within(attempt.pod, evaluator)
            placement = await self._extended.place(evaluator, attempt.pod, attempt.steps, within)
            if self._settled_elsewhere(attempt.uid):
                self.queue.done(attempt.uid)
                return False
            attempt.chose(placement)
            self._observers.decided(attempt)
            self._assume(placement)
        except Exception as problem:  # noqa: BLE001 - a plugin is anybody's code
            self._not_placed(attempt, problem)
            return False
        finally:
            self.queue.release(attempt.pod.scheduler_name)
        return await self._bind(attempt, placement, self.gangs.barrier_of(attempt.pod))

    def _settled_elsewhere(self, uid: str) -> bool:
        """Whether the pod was deleted, or got a node from somebody else, while extenders were asked."""
        flight = self.queue.flights.get(uid)
        return flight is None or flight.gone or self.cluster.placement(uid) is not None

    def _skip(self, pod: PodInfo) -> bool:
        """Pods that need no node any more."""
        if pod.terminating:
            self._failures.skipped_deleting(pod, skip_deleting(pod))
            return True
        return self.cluster.placement(pod.uid) is not None

    def _assume(self, placement: Placement) -> None:
        """Assume · Reserve · Permit. Raises `NoPlacement`, or what a plugin raised, with everything taken back."""
        self._reserving.take(placement)
        try:
            waits = self._reserving.permitted(placement)
        except BaseException:
            self._reserving.give_back(placement)
            raise
        self._reserving.settle(placement, waits)

    def _not_placed(self, attempt: Attempt, problem: Exception) -> None:
        if not isinstance(problem, NoPlacement):
            what = why(problem)
            _logger.error("scheduling pod %s broke: %s", attempt.pod.key, what, exc_info=problem)
            problem = broken(what)
        self._fail(attempt, problem)

    def _fail(self, attempt: Attempt, failure: NoPlacement) -> None:
        self.counts.errors += failure.internal
        self.counts.unschedulable += not failure.internal
        attempt.failed(failure)
        if attempt.placement is None:
            self._observers.decided(attempt)
        pod = self._failures.handle(attempt.queued, failure)
        self._observers.attempt_ended(attempt)
        if pod is not None and failure.victims and failure.nominated_node:
            self._spawn(self._preemption.make_room(pod, failure.nominated_node, failure.victims))

    def _bind(self, attempt: Attempt, placement: Placement, barrier: Barrier | None) -> Coroutine[Any, Any, bool]:
        """The binding of a pod that has a node, not yet started."""
        self.counts.scheduled += 1
        return self._bound(attempt, placement, barrier)

    async def _bound(self, attempt: Attempt, placement: Placement, barrier: Barrier | None) -> bool:
        bound = await self.binding.run(attempt, placement, barrier)
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
        await self._room_for_binding()
        until = self._clock() + SLICE_SECONDS
        while self._clock() < until and self._lead.active and self._room > 0:
            queued = self.queue.pop()
            if queued is None:
                return
            binding = self.schedule(queued)
            if binding is not None:
                self._spawn(binding)

    @property
    def _room(self) -> int:
        """How many more bindings may begin.

        Not counted are pods that wait for permission, perhaps for pods that are yet to be placed, and pods in PreBind.
        """
        return MAX_BINDING - len(self._tasks) - self.gangs.bindings + len(self.waiting) + len(self.binding.preparing)

    async def _room_for_binding(self) -> None:
        while self._room <= 0:
            self.binding.room.clear()
            await self.binding.room.wait()

    def end_term(self) -> None:
        """We are not the active replica any more: what waits for permission or an extender, or is being prepared, is rolled back now.

        What is on its way to the API server ends by itself, because the binder asks before each request.
        """
        for pod in self.waiting:
            pod.give_up(LEAD_LOST)
        self._extended.give_up()
        for uid in tuple(self.binding.preparing):
            self.binding.preempt(uid)

    async def settled(self) -> None:
        """Return when nothing that was decided until now is under way; for a time in which nothing is decided."""
        while self._tasks:
            self.binding.room.clear()
            await self.binding.room.wait()

    async def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Let bindings and evictions under way end; what has not after `seconds` is given up. For after the loop has been stopped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self._tasks) + self.gangs.bindings > len(self.waiting):  # nobody is left to permit those that wait for it
                    self.binding.room.clear()
                    await self.binding.room.wait()
        late = tuple(self._tasks)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self.binding.room.set()
        if not task.cancelled() and task.exception() is not None:
            _logger.error("background work of the scheduler failed", exc_info=task.exception())
