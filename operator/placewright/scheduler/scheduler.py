"""The scheduler takes pods from the queue one by one. It decides each pod, assumes it on its node, and starts its binding.

`Scheduler.schedule_one` decides a pod by itself, with extenders, or with its group. Each way runs a scheduling cycle and starts a
binding cycle. `loop` decides when a pod has its turn.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.preemption.evictions import Evictions
from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Attempt, Attempts, Counts, FailureHandler, Observers
from placewright.scheduler.binding import BindingCycle, Reserver, WaitingPods
from placewright.scheduler.cycle import ScheduleResult, SchedulingCycle, broken
from placewright.scheduler.extendedcycle import LEAD_LOST, ExtendedCycle
from placewright.scheduler.giveupreports import GiveUpReports
from placewright.scheduler.loop import SchedulingLoop
from placewright.scheduler.podgroups.domains import within_domain
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
    Precautions,
    Start,
    StatusChannels,
    StatusWriter,
)
from placewright.scheduler.preemption import Preemption
from placewright.scheduler.resizes import DeferredResizes
from placewright.scheduler.turns import Steps, Turns, at_once

#: Seconds between two reviews of reservations and resizes.
REVIEW_SECONDS: Final = 1.0
#: Seconds that bindings under way have to end when the scheduler stops.
DRAIN_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Ports:
    """The scheduler's outgoing interfaces (events, status, evictions) and its observers.

    Attributes:
        events: recorder of Kubernetes events.
        status: writer of conditions and nominations.
        evictor: client that evicts victims.
        observers: listeners that are told of each attempt.
        groups: writer of the status of groups.
        sleep: function that waits so many seconds.
        start: function that runs a binding cycle; None runs it as a task of the scheduler, which bounds how many there are.
        precautions: steps before decisions that may end the process.
        since_1970: clock in seconds since 1970, for times of the API; None if no time passes, as in tests.
    """

    events: EventRecorder
    status: StatusWriter
    evictor: Evictor
    observers: Observers = field(default_factory=Observers)
    groups: GroupStatusWriter = field(default_factory=NoGroupStatus)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    start: Start | None = None
    precautions: Precautions = field(default_factory=Precautions)
    since_1970: Clock | None = None


class Scheduler:
    """Decides the pods of all profiles and binds them to nodes.

    `ClusterEventHandlers` feeds the cluster and the queue. The scheduler changes the cluster only by assuming pods.

    Args:
        cluster: nodes and the pods on them.
        queue: pods without a node.
        profiles: evaluator of a schedulerName, or None. It is asked for every pod, so that a new profile takes effect at once.
        cycle: the scheduling cycle.
        ports: outgoing interfaces.
        clock: seconds, monotonic.
        lead: tells whether this replica may decide.

    Attributes:
        queue: pods without a node.
        loop: the loop that hands pods out.
        counts: outcomes so far.
        waiting: pods that Permit plugins keep.
        binding: the binding cycle.
        attempts: begins and ends attempts.
        evictions: record of the evictions that were asked for lately.
        pod_groups: the scheduler of groups.
        given_up: reports of pods that have waited too long.
        resizes: makes room for pods that grow on their nodes.
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
        self._sleep = ports.sleep
        self._tasks: set[asyncio.Task[Any]] = set()
        self._task_ended = asyncio.Event()
        failures = FailureHandler(queue, ports.events, ports.status, lead)
        channels = StatusChannels(ports.events, ports.status, ports.groups)
        self.given_up = GiveUpReports(queue, cluster.pod_groups, profiles, channels, lead, clock)
        self.binding = BindingCycle(cluster, queue, self.waiting, failures, ports.events, ports.observers, self.counts)
        self.evictions = Evictions(cluster, clock, ports.since_1970, queue.first_tried)
        preemption = Preemption(
            cluster, queue, self.binding.preempt, ports.evictor, ports.events, ports.status, lead, self.evictions, ports.sleep
        )  # fmt: skip
        self.attempts = Attempts(cluster, clock, ports.observers, failures, preemption, self.counts, self.spawn)
        self._cluster, self._cycle, self._start = cluster, cycle, ports.start or self.spawn
        self._reserver = reserver = Reserver(cluster, queue, self.waiting, self.counts)
        self._extended = ExtendedCycle(cluster, cycle, lambda: lead.active)
        members = MemberCycle(cluster, queue, cycle, reserver, self._extended)
        self.pod_groups = PodGroupScheduler(members, reserver, self.attempts, self.binding, ports.groups, self._start, ports.since_1970)
        self.resizes = DeferredResizes(cluster, profiles, preemption, ports.events, lead, clock, self.spawn)
        self.loop = SchedulingLoop(self, queue, profiles, clock, lead, ports.precautions)

    # --- one pod -----------------------------------------------------------------------------------------------------------

    def schedule_one(self, queued: QueuedPod) -> None:
        """Decide a pod that the queue handed out, and start its binding, as kube-scheduler's `ScheduleOne` does."""
        evaluator = self._evaluator_for(queued)
        if evaluator is not None and self._is_in_group(queued.pod, evaluator):
            at_once(self.pod_groups.schedule_in_steps(queued, evaluator))
        elif evaluator is not None:
            self._schedule_by_itself(queued, evaluator)

    def give_back(self, queued: QueuedPod, problem: str) -> None:
        """End the attempt of a pod that cannot be decided now; it backs off.

        Args:
            queued: pod that the queue handed out.
            problem: message of its event and condition.
        """
        evaluator = self._evaluator_for(queued)
        if evaluator is not None:
            self.attempts.fail(self.attempts.begin(queued, evaluator), broken(problem))

    def schedule_in_steps(self, queued: QueuedPod, turns: Turns) -> Steps[None]:
        """Decide a pod as `schedule_one` does, with a step for each member of its group.

        Args:
            queued: pod that the queue handed out.
            turns: turns of other work between steps.

        Returns:
            The steps, not begun.
        """
        evaluator = self._evaluator_for(queued)
        if evaluator is not None and self._is_in_group(queued.pod, evaluator):
            yield from self.pod_groups.schedule_in_steps(queued, evaluator, turns)
        elif evaluator is not None:
            self._schedule_by_itself(queued, evaluator)

    def _evaluator_for(self, queued: QueuedPod) -> Evaluator | None:
        """Return the evaluator of the pod's profile; None for a pod that is not to be decided, whose attempt has been ended."""
        if self.attempts.skip(queued.pod):
            self.queue.done(queued.uid)
            return None
        evaluator = self._profiles(queued.pod.scheduler_name)
        if evaluator is None:
            self.queue.return_unschedulable(queued)
        elif self.pod_groups.reservations:
            self.pod_groups.reservations.review()
        return evaluator

    def _is_in_group(self, pod: PodInfo, evaluator: Evaluator) -> bool:
        return pod.pod_group is not None and self.pod_groups.decides(pod, evaluator)

    # --- a pod by itself -----------------------------------------------------------------------------------------------------

    def _schedule_by_itself(self, queued: QueuedPod, evaluator: Evaluator) -> None:
        """Run the scheduling cycle, and start the binding cycle beside other decisions. Extenders decide later.

        Extenders count the pods that they agreed to. So, as with kube-scheduler, they see the pods of a profile one after the other. The
        profile's other pods wait for the decision, and not for the binding.
        """
        attempt = self.attempts.begin(queued, evaluator)
        if evaluator.runtime.extenders_for(attempt.pod):
            self.queue.hold(attempt.pod.scheduler_name)
            self._start(self._cycles_with_extenders(attempt, evaluator))
        elif (result := self.scheduling_cycle(attempt, evaluator)) is not None:
            self._start(self._binding_cycle(attempt, result))

    def scheduling_cycle(self, attempt: Attempt, evaluator: Evaluator) -> ScheduleResult | None:
        """Filter, score, select, assume, reserve and permit the pod.

        Args:
            attempt: attempt that has just begun.
            evaluator: evaluator of the pod's profile.

        Returns:
            The decision; None for a pod that has no node and is back in the queue.
        """
        try:
            within = None if attempt.pod.pod_group is None else within_domain(attempt.pod, self._cluster, evaluator.runtime)
            result = self._cycle.place(evaluator, attempt.pod, attempt.steps, within)
            self._assume(attempt, result)
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001 - a plugin may raise anything
            self._fail(attempt, problem)
            return None
        return result

    async def _cycles_with_extenders(self, attempt: Attempt, evaluator: Evaluator) -> bool:
        try:
            within = within_domain(attempt.pod, self._cluster, evaluator.runtime)
            result = await self._extended.place(evaluator, attempt.pod, attempt.steps, within)
            if not self.queue.in_flight.has(attempt.uid) or self._cluster.placement(attempt.uid) is not None:
                self.queue.done(attempt.uid)  # deleted, or bound by another scheduler, while extenders were asked
                return False
            self._assume(attempt, result)
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001 - a plugin may raise anything
            self._fail(attempt, problem)
            return False
        finally:
            self.queue.release(attempt.pod.scheduler_name)
        return await self._binding_cycle(attempt, result)

    def _assume(self, attempt: Attempt, result: ScheduleResult) -> None:
        """Tell observers of the decision. Then assume, reserve and permit the pod, or raise after everything has been given back."""
        attempt.chose(result)
        self.attempts.observers.decided(attempt)  # shadows decide the same pod, beside this profile
        self._reserver.assume(result)

    def _fail(self, attempt: Attempt, problem: Exception) -> None:
        """End the attempt of a pod that has no node, and report that to its group."""
        self.attempts.fail(attempt, problem)
        self.pod_groups.decided_singly(attempt.pod, str(problem))

    def _binding_cycle(self, attempt: Attempt, result: ScheduleResult) -> Coroutine[Any, Any, bool]:
        """Return the binding cycle. While the pod's group is being bound, it waits behind the group's barrier."""
        ref = attempt.pod.pod_group
        if ref is None:
            return self.binding.run(attempt, result)
        self.pod_groups.decided_singly(attempt.pod)
        return self.binding.run(attempt, result, self.pod_groups.forming.get(ref))

    # --- all pods ------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until cancelled."""
        async with asyncio.TaskGroup() as parts:
            parts.create_task(self._review())
            await self.loop.run()

    async def _review(self) -> None:
        """End reservations that cannot be used, also while no pod is decided: pods may wait for just these nodes. Review resizes."""
        while True:
            await self._sleep(REVIEW_SECONDS)
            if self.pod_groups.reservations:
                self.pod_groups.reservations.review()
            self.resizes.review()

    def end_term(self) -> None:
        """Roll back pods that wait for permission or an extender, or are in PreBind. This replica is no longer the active one.

        Bindings end by themselves, because the binder asks for the lead before each request.
        """
        for pod in self.waiting:
            pod.give_up(LEAD_LOST)
        self._extended.give_up()
        for uid in tuple(self.binding.preparing):
            self.binding.end_preparation(uid)

    async def settled(self) -> None:
        """Return when no binding or eviction of earlier decisions is under way. Nothing may be decided meanwhile."""
        while self._tasks:
            self._task_ended.clear()
            await self._task_ended.wait()

    async def drain(self, seconds: float = DRAIN_SECONDS) -> bool:
        """Let bindings and evictions under way end, and cancel them after `seconds`. Called after `run` was cancelled.

        Returns:
            False when a binding was cancelled whose Binding may have been sent.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self._tasks) + self.pod_groups.bindings > len(self.waiting):  # no plugin will allow the waiting pods any more
                    self._task_ended.clear()
                    await self._task_ended.wait()
        # Pods that wait for permission or are in PreBind have sent no Binding.
        whole = len(self._tasks) + self.pod_groups.bindings <= len(self.waiting) + len(self.binding.preparing)
        late = tuple(self._tasks)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return whole

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a binding cycle or evictions beside the decisions."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._task_ended.set()
        if not task.cancelled() and (problem := task.exception()) is not None:
            task.get_loop().call_exception_handler({"message": "background work of the scheduler failed", "exception": problem})
