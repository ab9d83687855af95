"""Attempts: one try to place a pod, from `pop` to its end, and the observers that metrics, traces and logs are made of."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeVar

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import why
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.steps import Steps
from placewright.queue.queued import QueuedPod
from placewright.scheduler.cycle import FitError, ScheduleResult, broken
from placewright.scheduler.failures import FailureHandler
from placewright.scheduler.messages import skip_deleting
from placewright.scheduler.ports import Clock, Start
from placewright.scheduler.preemption import Preemption, Preemptor

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
    """A group that was decided once. Times are seconds on the scheduler's clock.

    Attributes:
        profile: the generation that decided.
        result: the outcome.
        started: when the members were handed out.
        decided: when the members' nodes were known; None when they never were.
        ended: when the members were on their way to nodes or back in the queue. Bindings come later.
    """

    profile: ResolvedProfile
    result: GroupResult
    started: float
    decided: float | None
    ended: float


class Attempt:
    """One pod tried once. All times are seconds on the scheduler's clock.

    Attributes:
        queued: the pod in the queue. Its history goes on, so the figures at the start of the attempt are kept below.
        pod: the version that is tried.
        profile: the generation that decides.
        number: 1 for the pod's first attempt.
        queued_at: when the pod entered the queue, or came back after its last attempt.
        first_tried: when it was first handed out; equal to `started` for the first attempt.
        flushed: True when only the long timeout brought it back, and no event.
        together: how many members of its group were decided with it, itself included; 0 for a pod decided by itself.
        started: when it was handed out.
        decided: when a node was chosen or refused; None before.
        ended: when the attempt was over; None before.
        steps: the time that each extension point took.
        schedule_result: the choice; None when there was none.
        failure: why the pod has no node; None when it has one.
        result: the outcome; None while the attempt is under way.
    """

    __slots__ = (
        "_clock",
        "decided",
        "ended",
        "failure",
        "first_tried",
        "flushed",
        "number",
        "pod",
        "profile",
        "queued",
        "queued_at",
        "result",
        "schedule_result",
        "started",
        "steps",
        "together",
    )  # fmt: skip

    def __init__(self, queued: QueuedPod, profile: ResolvedProfile, clock: Clock, *, plugins: bool = False) -> None:
        """Begin an attempt now.

        Args:
            queued: just handed out.
            profile: the generation that decides.
            clock: seconds, monotonic.
            plugins: time each plugin, too.
        """
        self._clock = clock
        self.queued = queued
        self.pod: PodInfo = queued.pod
        self.profile = profile
        self.number = queued.attempts
        self.queued_at = queued.timestamp
        self.flushed = queued.flushed
        self.started = clock()
        self.steps = Steps(clock, plugins=plugins)
        self.first_tried = queued.initial_attempt_timestamp or self.started
        self.decided: float | None = None
        self.ended: float | None = None
        self.schedule_result: ScheduleResult | None = None
        self.failure: FitError | None = None
        self.result: Result | None = None
        self.together = 0

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
        unschedulable: attempts in which plugins rejected the pod.
        errors: attempts that broke.
        bound: Bindings that succeeded.
        bind_failures: Bindings that did not.
    """

    scheduled: int = 0
    unschedulable: int = 0
    errors: int = 0
    bound: int = 0
    bind_failures: int = 0


class Observer(Protocol):
    """Told of attempts and of the queue. Called in the midst of a decision: an implementation must be quick and never wait."""

    def attempt_ended(self, attempt: Attempt) -> None:
        """Note that an attempt is over; `result`, `ended` and the other attributes are set."""

    def pod_entered(self, place: str, event: str) -> None:
        """Note that a pod entered a sub-queue.

        Args:
            place: the sub-queue, as a value of `SubQueue`.
            event: the label of the event that brought it.
        """


class TrialObserver(Protocol):
    """Told of groups that are decided in one go. Called in the midst of the decision: an implementation must be quick and never wait."""

    def group_tried(self, attempts: Sequence[Attempt]) -> None:
        """Note that these members are about to be assumed on trial: columns show them from now on, and they may be taken back."""

    def group_settled(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Note the end of a trial: a member with a placement stays assumed, and a member with a failure has no node.

        Args:
            attempts: those of `group_tried`.
            at_once: no other event came between the two calls.
        """


@dataclass(slots=True)
class Observers:
    """Calls every observer. An observer that raises is logged and skipped, so that metrics can never stop scheduling.

    Attributes:
        members: observers of attempts and of the queue.
        deciding: called when a node is chosen or no node fits, before the node is assumed.
        decided_groups: called when a group was decided, or could not be.
        trials: told when members of a group begin and cease to be tried on the live columns.
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
            attempts: those of `group_tried`.
            at_once: no other event came between the two calls.
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
    """Begins attempts, and ends attempts that found no node, for single pods and groups alike.

    Attributes:
        cluster: where pods may stand already.
        clock: seconds, monotonic.
        observers: told of each attempt.
        failures: returns pods to the queue and reports.
        preemption: evicts the victims that PostFilter chose.
        counts: the outcomes so far.
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
        """Tell whether a pod needs no node any more.

        Args:
            pod: handed out by the queue.

        Returns:
            True for a pod that is being deleted, which is reported, or that has a node.
        """
        if pod.terminating:
            self.failures.skipped_deleting(pod, skip_deleting(pod))
            return True
        return self.cluster.placement(pod.uid) is not None

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
        self.counts.unschedulable += not problem.internal
        attempt.failed(problem)
        if attempt.schedule_result is None:
            self.observers.decided(attempt)
        pod = self.failures.handle(attempt.queued, problem)
        self.observers.attempt_ended(attempt)
        # Evictions begin when the pod is back in the queue, so that the events of its victims' ends find it there.
        if pod is not None and problem.victims and problem.nominated_node:
            preemptor = Preemptor(pod, problem.nominated_node, attempt.profile.preempting)
            self.start(self.preemption.make_room(preemptor, problem.victims))
