"""The scheduler: takes pods from the queue one by one, decides, assumes, and starts their binding.

`schedule_one` chooses the way of a pod: by itself, with extenders, or with its group. Each way runs a scheduling cycle and starts a binding
cycle. `run` repeats it in slices of a few milliseconds, so that one event loop can also listen, bind and renew its lead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from placewright.api.podextent import SMALL
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Attempt, Attempts, Counts, Observers
from placewright.scheduler.binding import BindingCycle, Reserver, WaitingPods
from placewright.scheduler.cycle import ScheduleResult, SchedulingCycle, broken
from placewright.scheduler.extendedcycle import LEAD_LOST, ExtendedCycle
from placewright.scheduler.failures import FailureHandler
from placewright.scheduler.podgroups.group import MemberCycle
from placewright.scheduler.podgroups.podgroupscheduler import PodGroupScheduler
from placewright.scheduler.ports import (
    AlwaysLead,
    Clock,
    EventRecorder,
    Evictor,
    GroupStatusWriter,
    Lead,
    NoGroupStatus,
    NoPrecautions,
    Precautions,
    Start,
    StatusWriter,
)
from placewright.scheduler.preemption import Preemption
from placewright.scheduler.preparations import Preparations

_logger = logging.getLogger(__name__)

#: How long the loop decides before it lets others run, in seconds.
SLICE_SECONDS: Final = 0.005
#: How long bindings under way get to end when the scheduler stops, in seconds.
DRAIN_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Ports:
    """The scheduler's outgoing interfaces (events, status, evictions) and its observers.

    Attributes:
        start: runs a binding cycle; None: as a task of the scheduler's own, which bounds how many there are.
        precautions: taken before decisions that may end the process.
    """

    events: EventRecorder
    status: StatusWriter
    evictor: Evictor
    observers: Observers = field(default_factory=Observers)
    groups: GroupStatusWriter = field(default_factory=NoGroupStatus)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    start: Start | None = None
    precautions: Precautions = field(default_factory=NoPrecautions)


class PodScheduler(Protocol):
    """One of the ways in which a pod is scheduled: by itself, by itself with extenders, or with its group."""

    def schedule_one(self, queued: QueuedPod, evaluator: Evaluator) -> None:
        """Run the scheduling cycle, and start the binding cycle of what got a node."""


@dataclass(frozen=True, slots=True)
class SinglePodScheduler:
    """Schedules one pod by itself.

    Attributes:
        groups: what a pod that joins its group later has to mind.
        start: runs the binding cycle beside other decisions.
    """

    cycle: SchedulingCycle
    attempts: Attempts
    reserver: Reserver
    binding: BindingCycle
    groups: PodGroupScheduler
    start: Start

    def schedule_one(self, queued: QueuedPod, evaluator: Evaluator) -> None:
        """The scheduling cycle, now; the binding cycle, beside other decisions."""
        attempt = self.attempts.begin(queued, evaluator)
        placement = self.scheduling_cycle(attempt, evaluator)
        if placement is not None:
            self.start(self.binding_cycle(attempt, placement))

    def scheduling_cycle(self, attempt: Attempt, evaluator: Evaluator) -> ScheduleResult | None:
        """Filter · score · select · assume · reserve · permit; None for a pod that has no node and is back in the queue."""
        pod = attempt.pod
        try:
            within = None if pod.pod_group is None else self.groups.within(pod, evaluator)
            placement = self.cycle.place(evaluator, pod, attempt.steps, within)
            attempt.chose(placement)
            self.attempts.observers.decided(attempt)  # shadows decide the same pod, beside this profile
            self.reserver.assume(placement)
        except Exception as problem:  # noqa: BLE001 - a plugin is anybody's code
            self.attempts.fail(attempt, problem)
            return None
        return placement

    def binding_cycle(self, attempt: Attempt, placement: ScheduleResult) -> Coroutine[Any, Any, bool]:
        """Wait for permission · prepare · bind; behind the barrier of the pod's group, where that is being bound now."""
        barrier = None if attempt.pod.pod_group is None else self.groups.barrier_of(attempt.pod)
        return self.binding.run(attempt, placement, barrier)


@dataclass(frozen=True, slots=True)
class ExtenderPodScheduler:
    """Schedules one pod that extenders are asked about: the same cycles, with questions in between.

    Extenders see one pod of a profile after the other, as kube-scheduler's do: they count what they agreed to. So the profile's other pods
    wait for the decision, not for the binding.

    Attributes:
        start: runs both cycles beside other profiles' decisions.
    """

    cluster: Cluster
    queue: SchedulingQueue
    cycle: ExtendedCycle
    attempts: Attempts
    reserver: Reserver
    binding: BindingCycle
    groups: PodGroupScheduler
    start: Start

    def schedule_one(self, queued: QueuedPod, evaluator: Evaluator) -> None:
        """Begin; what extenders say decides later."""
        attempt = self.attempts.begin(queued, evaluator)
        self.queue.hold(attempt.pod.scheduler_name)
        self.start(self._both_cycles(attempt, evaluator))

    async def _both_cycles(self, attempt: Attempt, evaluator: Evaluator) -> bool:
        placement = await self.scheduling_cycle(attempt, evaluator)
        if placement is None:
            return False
        return await self.binding.run(attempt, placement, self.groups.barrier_of(attempt.pod))

    async def scheduling_cycle(self, attempt: Attempt, evaluator: Evaluator) -> ScheduleResult | None:
        """None for a pod that is back in the queue, or needs no node from us any more."""
        try:
            within = self.groups.within(attempt.pod, evaluator)
            placement = await self.cycle.place(evaluator, attempt.pod, attempt.steps, within)
            if self._settled_elsewhere(attempt.uid):
                self.queue.done(attempt.uid)
                return None
            attempt.chose(placement)
            self.attempts.observers.decided(attempt)
            self.reserver.assume(placement)
        except Exception as problem:  # noqa: BLE001 - a plugin is anybody's code
            self.attempts.fail(attempt, problem)
            return None
        finally:
            self.queue.release(attempt.pod.scheduler_name)
        return placement

    def _settled_elsewhere(self, uid: str) -> bool:
        """Whether the pod was deleted, or got a node from somebody else, while extenders were asked."""
        flight = self.queue.in_flight.get(uid)
        return flight is None or flight.gone or self.cluster.placement(uid) is not None


class Scheduler:
    """Decides and binds.

    Args:
        cluster, queue: the state, owned elsewhere, fed by `ClusterEventHandlers`.
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
        self.queue = queue
        self.counts = Counts()
        self.waiting = WaitingPods(clock)
        self._profiles = profiles
        self._clock = clock
        self._lead = lead
        self._precautions = ports.precautions
        self._tasks: set[asyncio.Task[Any]] = set()
        self._task_ended = asyncio.Event()
        failures = FailureHandler(queue, ports.events, ports.status, lead)
        self.binding = BindingCycle(cluster, queue, self.waiting, failures, ports.events, ports.observers, self.counts)
        evictions = Preemption(cluster, queue, self.binding, ports.evictor, ports.events, ports.status, lead, ports.sleep)
        self.attempts = Attempts(cluster, clock, ports.observers, failures, evictions, self.counts, self.beside)
        reserver = Reserver(cluster, queue, self.waiting, self.counts)
        self._extended = ExtendedCycle(cluster, cycle, lambda: lead.active)
        start = ports.start or self.beside
        members = MemberCycle(cluster, queue, cycle, self._extended, reserver)
        self.pod_groups = PodGroupScheduler(members, self.attempts, self.binding, ports.groups, start)
        self._single = SinglePodScheduler(cycle, self.attempts, reserver, self.binding, self.pod_groups, start)
        self._with_extenders = ExtenderPodScheduler(
            cluster, queue, self._extended, self.attempts, reserver, self.binding, self.pod_groups, start
        )
        #: Held while pods are decided, so that nobody else decides between two members of a group.
        self._deciding = asyncio.Lock()
        self._preparations = Preparations(queue, profiles, clock, lead, ports.precautions, self.schedule_one, self.give_back)

    # --- one pod -----------------------------------------------------------------------------------------------------------

    def schedule_one(self, queued: QueuedPod) -> None:
        """Decide a pod that the queue handed out, and start its binding, as kube-scheduler's `ScheduleOne` does."""
        evaluator = self._evaluator_for(queued)
        if evaluator is not None:
            self._way_of(queued.pod, evaluator).schedule_one(queued, evaluator)

    def give_back(self, queued: QueuedPod, problem: str) -> None:
        """End the attempt of a pod that cannot be decided now: it backs off, and is told why."""
        evaluator = self._evaluator_for(queued)
        if evaluator is not None:
            self.attempts.fail(self.attempts.begin(queued, evaluator), broken(problem))

    async def schedule_in_turns(self, queued: QueuedPod) -> None:
        """The same for a member of a group. Between the members of a large group others are heard, but nothing else is to be decided."""
        evaluator = self._evaluator_for(queued)
        if evaluator is None:
            return
        way = self._way_of(queued.pod, evaluator)
        if way is self.pod_groups:
            await self.pod_groups.schedule_in_turns(queued, evaluator)
        else:
            way.schedule_one(queued, evaluator)

    def _evaluator_for(self, queued: QueuedPod) -> Evaluator | None:
        """What the pod is decided with; None where it is not to be decided, and has been seen to."""
        if self.attempts.skip(queued.pod):
            self.queue.done(queued.uid)
            return None
        evaluator = self._profiles(queued.pod.scheduler_name)
        if evaluator is None:
            self.queue.return_unschedulable(queued)
        elif self.pod_groups.reservations:
            self.pod_groups.reservations.review()
        return evaluator

    def _way_of(self, pod: PodInfo, evaluator: Evaluator) -> PodScheduler:
        if pod.pod_group is not None and self.pod_groups.decides(pod, evaluator):
            return self.pod_groups
        if evaluator.runtime.extenders_for(pod):
            return self._with_extenders
        return self._single

    # --- the loop ------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until cancelled."""
        async with asyncio.TaskGroup() as parts:
            parts.create_task(self._preparations.run(self._deciding))
            while True:
                await self._lead.wait_active()
                await self.queue.wait_for_pod()
                await self.queue.sweeps.caught_up()  # whom events brought back by now may come before others
                async with self._deciding:
                    await self._slice()
                await asyncio.sleep(0)

    async def _slice(self) -> None:
        until = self._clock() + SLICE_SECONDS
        while self._clock() < until and self._lead.active:
            queued = self.queue.pop()
            if queued is None:
                return
            unlike_most = queued.pod.extent is not SMALL or self._precautions.due(queued)
            if unlike_most or (self._preparations and self._preparations.holds_up(queued)):
                await self._schedule_unlike_most(queued)
            elif queued.pod_group is not None:
                await self.schedule_in_turns(queued)
            else:
                self.schedule_one(queued)

    async def _schedule_unlike_most(self, queued: QueuedPod) -> None:
        """A pod that may ask for much, or has to wait because a more important one does."""
        if queued.pod_group is not None:  # it takes its turns itself, and others wait for it
            if self._preparations.holds_up(queued):
                await self._preparations_done()
            if not self._precautions.due(queued) or await self._precautions_taken(queued):
                await self.schedule_in_turns(queued)
        elif self._preparations.holds_up(queued) or self._is_long(queued) or self._precautions.due(queued):
            self._preparations.add(queued)
        else:
            self.schedule_one(queued)

    async def _precautions_taken(self, queued: QueuedPod) -> bool:
        """Take precautions before a group is decided; False where it is not to be decided now, and its member has been seen to."""
        problem = await self._precautions.take(queued)
        flight = self.queue.in_flight.get(queued.uid)
        if flight is None or flight.gone:
            self.queue.done(queued.uid)
            return False
        if problem or not self._lead.active:
            self.give_back(queued, problem or LEAD_LOST)
            return False
        return True

    async def _preparations_done(self) -> None:
        """Let those be decided that are being made ready."""
        self._deciding.release()
        try:
            await self._preparations.done()
        finally:
            await self._deciding.acquire()

    def _is_long(self, queued: QueuedPod) -> bool:
        evaluator = self._profiles(queued.pod.scheduler_name)
        return evaluator is not None and evaluator.prepares(queued.pod)

    def end_term(self) -> None:
        """We are not the active replica any more: what waits for permission or an extender, or is being prepared, is rolled back now.

        What is on its way to the API server ends by itself, because the binder asks before each request.
        """
        for pod in self.waiting:
            pod.give_up(LEAD_LOST)
        self._extended.give_up()
        for uid in tuple(self.binding.preparing):
            self.binding.end_preparation(uid)

    async def settled(self) -> None:
        """Return when nothing that was decided until now is under way; for a time in which nothing is decided."""
        while self._tasks:
            self._task_ended.clear()
            await self._task_ended.wait()

    async def drain(self, seconds: float = DRAIN_SECONDS) -> bool:
        """Let bindings and evictions under way end; what has not after `seconds` is given up. For after the loop has been stopped.

        False where a Binding was given up that may have been sent.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self._tasks) + self.pod_groups.bindings > len(self.waiting):  # nobody is left to permit those that wait for it
                    self._task_ended.clear()
                    await self._task_ended.wait()
        # Whoever waits for permission or is being prepared has sent no Binding.
        whole = len(self._tasks) + self.pod_groups.bindings <= len(self.waiting) + len(self.binding.preparing)
        late = tuple(self._tasks)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return whole

    def beside(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run work beside the decisions: a binding cycle, or evictions."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._task_ended.set()
        if not task.cancelled() and task.exception() is not None:
            _logger.error("background work of the scheduler failed", exc_info=task.exception())

