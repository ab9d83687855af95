"""Attempts to place a pod, each from `pop` to its end. Observers make metrics, traces and logs of them.

`FailureHandler` ends a failed attempt: returns the pod to the queue, nominates it, and reports why. Upstream: `handleSchedulingFailure`.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Final, NamedTuple, Protocol, TypeVar

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import why
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.steps import Steps
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.cycle import FitError, ScheduleResult, broken
from placewright.scheduler.ports import Clock, EventRecorder, EventType, Lead, Start, StatusWriter
from placewright.scheduler.preemption import Preemption, Preemptor

FAILED_SCHEDULING: Final = "FailedScheduling"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
_SCHEDULING: Final = "Scheduling"


@dataclass(frozen=True, slots=True)
class FailureHandler:
    """Handles failed attempts in kube-scheduler's order: first the queue, then the nomination, then event and condition.

    Attributes:
        queue: queue in which the pod waits again.
        events: recorder of the event `FailedScheduling`.
        status: writer of the condition `PodScheduled`.
        lead: tells whether this replica may report.
    """

    queue: SchedulingQueue
    events: EventRecorder
    status: StatusWriter
    lead: Lead

    def handle(self, queued: QueuedPod, failure: FitError) -> PodInfo | None:
        """Return the pod to the queue and report why it has no node.

        Args:
            queued: pod whose attempt has failed.
            failure: the failure.

        Returns:
            The pod in its present version; None when it is gone or replaced, or this replica lost the lead.
        """
        filtered = failure.diagnosis is not None
        # The queue comes first, because it knows whether the pod is gone. Then there is nothing to report.
        self.queue.return_unschedulable(queued, failure.unschedulable_plugins, failure.pending_plugins, filtered=filtered)
        waiting = self.queue.get(queued.uid)
        if waiting is None:
            return None
        if failure.retry_after is not None:
            self.queue.retry_after(queued.uid, failure.retry_after)
        pod = waiting.pod
        if failure.nominated_node is not None:
            self.queue.nominate(pod, failure.nominated_node)
        # A replica without the lead must not report: the new leader may have placed the pod already, and this event would
        # contradict it.
        if not self.lead.active:
            return None
        self.events.record(pod, EventType.WARNING, FAILED_SCHEDULING, _SCHEDULING, failure.message)
        reason = SCHEDULER_ERROR if failure.internal else UNSCHEDULABLE
        self.status.pod_unscheduled(pod, reason, failure.message, failure.nominated_node)
        return pod


_logger = logging.getLogger(__name__)

_Listener = TypeVar("_Listener")

#: One attempt in this many has its plugins timed; kube-scheduler's 10 %. Timing all plugins would slow every decision.
PLUGINS_SAMPLED: Final = 10


class Result(enum.StrEnum):
    """The outcome of an attempt, as kube-scheduler's metrics name it."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class GroupResult(enum.StrEnum):
    """The outcome of an attempt to decide a group, as kube-scheduler's metrics name it."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    WAITING_ON_PREEMPTION = "waiting_on_preemption"
    ERROR = "error"


class GroupAttempt(NamedTuple):
    """One attempt to decide a group. Times are seconds on the scheduler's clock.

    Attributes:
        profile: generation of the profile that decided.
        result: the outcome.
        started: time at which the members were handed out.
        decided: time at which the members' nodes were known; None if no nodes were found.
        ended: time at which the members were on their way to nodes or back in the queue. Bindings come later.
    """

    profile: ResolvedProfile
    result: GroupResult
    started: float
    decided: float | None
    ended: float


@dataclass(slots=True, eq=False, repr=False)
class Attempt:
    """One attempt to place one pod. All times are seconds on the scheduler's clock.

    Attributes:
        queued: the pod in the queue. Later attempts change it, so the figures at the start of this attempt are kept below.
        pod: version of the pod that is tried.
        profile: generation of the profile that decides.
        number: number of the pod's attempts, this one included.
        queued_at: time at which the pod entered the queue, or came back after its last attempt.
        first_tried: time at which the pod was first handed out; equal to `started` for the first attempt.
        flushed: True when the long timeout brought the pod back, and no event did.
        together: number of members of its group that were decided together; 0 for a pod decided by itself.
        started: time at which the pod was handed out.
        decided: time at which a node was chosen or refused; None before.
        ended: time at which the attempt was over; None before.
        steps: times that the extension points took.
        schedule_result: the choice; None when there was none.
        failure: failure that left the pod without a node; None when it has a node.
        result: the outcome; None while the attempt is under way.
    """

    queued: QueuedPod
    profile: ResolvedProfile
    _clock: Clock
    plugins: InitVar[bool] = False
    pod: PodInfo = field(init=False)
    number: int = field(init=False)
    queued_at: float = field(init=False)
    flushed: bool = field(init=False)
    started: float = field(init=False)
    steps: Steps = field(init=False)
    first_tried: float = field(init=False)
    decided: float | None = field(default=None, init=False)
    ended: float | None = field(default=None, init=False)
    schedule_result: ScheduleResult | None = field(default=None, init=False)
    failure: FitError | None = field(default=None, init=False)
    result: Result | None = field(default=None, init=False)
    together: int = field(default=0, init=False)

    def __post_init__(self, plugins: bool) -> None:
        queued = self.queued
        self.pod = queued.pod
        self.number = queued.attempts
        self.queued_at = queued.timestamp
        self.flushed = queued.flushed
        self.started = self._clock()
        self.steps = Steps(self._clock, plugins=plugins)
        self.first_tried = queued.initial_attempt_timestamp or self.started

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.uid

    def chose(self, result: ScheduleResult) -> None:
        """Note that a node was chosen."""
        self.schedule_result = result
        self.decided = self._clock()

    def succeeded(self) -> None:
        """Note that the pod is bound."""
        self._end(Result.SCHEDULED)

    def failed(self, failure: FitError) -> None:
        """Note that the pod has no node: none was chosen, or the choice was taken back."""
        self.failure = failure.with_traceback(None)  # its frames hold this attempt: neither would go before the collector comes
        self._end(Result.ERROR if failure.internal else Result.UNSCHEDULABLE)

    def _end(self, result: Result) -> None:
        self.result = result
        self.ended = self._clock()
        if self.decided is None:
            self.decided = self.ended


@dataclass(slots=True)
class Counts:
    """Outcomes of attempts since the start.

    Attributes:
        scheduled: attempts that found a node.
        errors: attempts that broke.
        bound: Bindings that succeeded.
    """

    scheduled: int = 0
    errors: int = 0
    bound: int = 0


class Observer(Protocol):
    """Observes attempts and the queue. It is called in the midst of a decision, so it must be quick and never wait."""

    def attempt_ended(self, attempt: Attempt) -> None:
        """Note that an attempt is over; `result`, `ended` and the other attributes are set."""

    def pod_entered(self, place: str, event: str) -> None:
        """Note that a pod entered a sub-queue.

        Args:
            place: the sub-queue, as a value of `SubQueue`.
            event: the label of the event that brought it.
        """


class TrialObserver(Protocol):
    """Observes groups that are decided. It is called in the midst of the decision, so it must be quick and never wait."""

    def group_tried(self, attempts: Sequence[Attempt]) -> None:
        """Note that these members are about to be assumed on trial. Columns show them from now on, and they may be taken back."""

    def group_settled(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Note the end of a trial. A member with a result stays assumed, and a member with a failure has no node.

        Args:
            attempts: attempts of `group_tried`.
            at_once: whether no other event came between the two calls.
        """


@dataclass(slots=True)
class Observers:
    """Calls every observer. An observer that raises is logged and skipped, so that metrics can never stop scheduling.

    Attributes:
        members: observers of attempts and of the queue.
        deciding: functions that are called when a node is chosen or no node fits, before the node is assumed.
        decided_groups: functions that are called when a group was decided, or could not be.
        trials: observers of members of groups that are tried on the live columns.
    """

    members: Sequence[Observer] = ()
    deciding: Sequence[Callable[[Attempt], None]] = ()
    decided_groups: Sequence[Callable[[GroupAttempt], None]] = ()
    trials: Sequence[TrialObserver] = ()
    _unsampled: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Observer]:
        return iter(self.members)

    def sampled(self) -> bool:
        """Return True for one attempt in `PLUGINS_SAMPLED`, whose plugins are timed; never while there are no observers."""
        self._unsampled = (self._unsampled + 1) % PLUGINS_SAMPLED
        return self._unsampled == 0 and bool(self.members)

    def decided(self, attempt: Attempt) -> None:
        """Tell observers of a choice before it is assumed, or that no node fits."""
        _tell(self.deciding, lambda listener: listener(attempt), "an observer broke at the decision of pod %s", attempt.pod.key)

    def group_tried(self, attempts: Sequence[Attempt]) -> None:
        """Tell observers that members of a group are about to be tried."""
        _tell(self.trials, lambda listener: listener.group_tried(attempts), "an observer broke before a group was tried")

    def group_settled(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Tell observers how a trial of a group ended.

        Args:
            attempts: attempts of `group_tried`.
            at_once: whether no other event came between the two calls.
        """
        _tell(self.trials, lambda listener: listener.group_settled(attempts, at_once=at_once), "an observer broke when a group was settled")

    def attempt_ended(self, attempt: Attempt) -> None:
        """Tell observers that an attempt is over."""
        problem = "an observer broke at the end of an attempt of pod %s"
        _tell(self.members, lambda member: member.attempt_ended(attempt), problem, attempt.pod.key)

    def group_ended(self, attempt: GroupAttempt) -> None:
        """Tell observers that a group was decided, or could not be."""
        _tell(self.decided_groups, lambda listener: listener(attempt), "an observer broke at the end of an attempt of a group")

    def pod_entered(self, place: str, event: str) -> None:
        """Tell observers that a pod entered a sub-queue.

        Args:
            place: the sub-queue, as a value of `SubQueue`.
            event: the label of the event that brought it.
        """
        _tell(self.members, lambda member: member.pod_entered(place, event), "an observer broke when a pod entered %s", place)


def _tell(listeners: Iterable[_Listener], call: Callable[[_Listener], object], problem: str, *about: str) -> None:
    """Call each listener; log `problem`, formatted with `about`, for one that raises."""
    for listener in listeners:
        try:
            call(listener)
        except MemoryError:
            raise
        except Exception:
            _logger.exception(problem, *about)


@dataclass(slots=True)
class Attempts:
    """Begins attempts, and ends attempts that found no node, for single pods and for members of groups.

    Attributes:
        cluster: columns that show which pods have a node already.
        clock: seconds, monotonic.
        observers: listeners that are told of each attempt.
        failures: handler that returns pods to the queue and reports.
        preemption: evicts the victims that PostFilter chose.
        counts: outcomes so far.
        start: runs evictions beside the decisions.
    """

    cluster: Cluster
    clock: Clock
    observers: Observers
    failures: FailureHandler
    preemption: Preemption
    counts: Counts
    start: Start

    def skip(self, pod: PodInfo) -> bool:
        """Return True for a pod that needs no node, because it has one or is being deleted. Report the latter."""
        if pod.terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self.failures.events.record(pod, EventType.WARNING, FAILED_SCHEDULING, _SCHEDULING, note)
        return pod.terminating or self.cluster.placement(pod.uid) is not None

    def begin(self, queued: QueuedPod, evaluator: Evaluator) -> Attempt:
        """Begin the attempt of a pod that the queue handed out.

        Args:
            queued: the pod.
            evaluator: its profile's.

        Returns:
            The attempt.
        """
        return Attempt(queued, evaluator.runtime.profile, self.clock, plugins=self.observers.sampled())

    def fail(self, attempt: Attempt, problem: Exception) -> None:
        """End an attempt without a node: return the pod to the queue, report, and make room where PostFilter found some.

        Args:
            attempt: under way.
            problem: a `FitError`, or any exception that a plugin raised.
        """
        if not isinstance(problem, FitError):
            what = why(problem)
            _logger.error("scheduling pod %s broke: %s", attempt.pod.key, what, exc_info=problem)
            problem = broken(what)
        self.counts.errors += problem.internal
        attempt.failed(problem)
        if attempt.schedule_result is None:
            self.observers.decided(attempt)
        pod = self.failures.handle(attempt.queued, problem)
        self.observers.attempt_ended(attempt)
        # Evictions begin once the pod is back in the queue, so that the ends of its victims find it there.
        if pod is not None and problem.victims and problem.nominated_node:
            preemptor = Preemptor(pod, problem.nominated_node, attempt.profile.preempting)
            self.start(self.preemption.make_room(preemptor, problem.victims))
