"""One attempt to place a pod, from the queue's hand to its end, and who hears of it: metrics, traces and the log are made of these."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

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
from placewright.scheduler.preemption import Preemption

_logger = logging.getLogger(__name__)

#: Of so many attempts, the plugins' times are taken in one: kube-scheduler's 10 %.
PLUGINS_SAMPLED: Final = 10


class Result(enum.StrEnum):
    """What came of an attempt, as kube-scheduler's metrics name it."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class GroupResult(enum.StrEnum):
    """What came of an attempt to decide a group, likewise."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    WAITING_ON_PREEMPTION = "waiting_on_preemption"
    ERROR = "error"


class GroupAttempt(NamedTuple):
    """A group decided once. Times are seconds on the scheduler's clock.

    Attributes:
        profile: the generation that decided.
        started, decided, ended: when its members were handed out, when it was known where they could go, or None where that never was,
            and when they were on their way to their nodes or back in the queue. Bindings come later.
    """

    profile: ResolvedProfile
    result: GroupResult
    started: float
    decided: float | None
    ended: float


class Attempt:
    """One pod tried once. All times are seconds on the scheduler's clock.

    Attributes:
        queued: the pod in the queue; its history goes on, so what it said at the start is kept below.
        pod: as it was tried.
        profile: the generation that decided.
        number: 1 for the pod's first attempt.
        queued_at: when the pod entered the queue, or came back after the last attempt.
        first_tried: when it was first handed out; equal to `started` for the first attempt.
        flushed: True when no event brought it back, only the long timeout.
        together: so many members of its group were decided with it, itself included; 0 for a pod decided by itself.
        started, decided, ended: when it was handed out, when a node was chosen or refused, when all was over; None: not yet.
        steps: what took how long.
        placement: the choice; None when there was none.
        failure: why the pod has no node; None when it has.
        result: None while the attempt is under way.
    """

    __slots__ = (
        "_clock", "decided", "ended", "failure", "first_tried", "flushed", "number", "placement", "pod", "profile", "queued", "queued_at",
        "result", "started", "steps", "together",
    )  # fmt: skip

    def __init__(self, queued: QueuedPod, profile: ResolvedProfile, clock: Clock, *, plugins: bool = False) -> None:
        """`plugins`: take the plugins' times, too."""
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
        self.placement: ScheduleResult | None = None
        self.failure: FitError | None = None
        self.result: Result | None = None
        self.together = 0

    @property
    def uid(self) -> str:
        """The pod's."""
        return self.pod.uid

    def chose(self, placement: ScheduleResult) -> None:
        """A node was chosen."""
        self.placement = placement
        self.decided = self._clock()

    def succeeded(self) -> None:
        """The pod is bound."""
        self._end(Result.SCHEDULED)

    def failed(self, failure: FitError) -> None:
        """The pod has no node: none was chosen, or the choice was taken back."""
        self.failure = failure
        self._end(Result.ERROR if failure.internal else Result.UNSCHEDULABLE)

    def _end(self, result: Result) -> None:
        self.result = result
        self.ended = self._clock()
        if self.decided is None:
            self.decided = self.ended


@dataclass(slots=True)
class Counts:
    """What came of attempts since the start."""

    scheduled: int = 0
    unschedulable: int = 0
    errors: int = 0
    bound: int = 0
    bind_failures: int = 0


class Observer(Protocol):
    """Hears what happens to pods. Called in the midst of deciding: it must be quick, and never wait."""

    def attempt_ended(self, attempt: Attempt) -> None:
        """An attempt is over; `result`, `ended` and the rest are filled in."""

    def pod_entered(self, place: str, event: str) -> None:
        """A pod entered a place of the queue (`Place`'s value) because of an event (its label)."""


class TrialObserver(Protocol):
    """Hears of groups that are decided in one go. Called in the midst of that: it must be quick, and never wait."""

    def group_tried(self, attempts: Sequence[Attempt]) -> None:
        """These members are about to be assumed for the time being: what is seen of them on the columns is not so yet."""

    def group_settled(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """The trial is over: a member with a placement is assumed for good, and one with a failure has no node.

        `at_once`: nothing else happened in between.
        """


@dataclass(slots=True)
class Observers:
    """Calls every observer. One that raises is logged and skipped, so that metrics can never stop scheduling."""

    members: Sequence[Observer] = ()
    #: Who hears of each choice when it is made, and of pods for which there is none; `attempt_ended` comes when all is over.
    deciding: Sequence[Callable[[Attempt], None]] = ()
    #: Who hears of groups that were decided, or could not be.
    decided_groups: Sequence[Callable[[GroupAttempt], None]] = ()
    #: Who hears when members of a group begin and cease to be tried on the live columns.
    trials: Sequence[TrialObserver] = ()
    _unsampled: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Observer]:
        return iter(self.members)

    def sampled(self) -> bool:
        """Whether the next attempt is one of those whose plugins' times are taken: one in `PLUGINS_SAMPLED`, where anybody observes."""
        self._unsampled = (self._unsampled + 1) % PLUGINS_SAMPLED
        return self._unsampled == 0 and bool(self.members)

    def decided(self, attempt: Attempt) -> None:
        """A node was chosen, and is not assumed yet; or there is none."""
        for listener in self.deciding:
            try:
                listener(attempt)
            except Exception:
                _logger.exception("an observer broke at the decision of pod %s", attempt.pod.key)

    def group_tried(self, attempts: Sequence[Attempt]) -> None:
        """Members of a group are about to be tried."""
        for listener in self.trials:
            try:
                listener.group_tried(attempts)
            except Exception:
                _logger.exception("an observer broke before a group was tried")

    def group_settled(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """What came of it."""
        for listener in self.trials:
            try:
                listener.group_settled(attempts, at_once=at_once)
            except Exception:
                _logger.exception("an observer broke when a group was settled")

    def attempt_ended(self, attempt: Attempt) -> None:
        """Tell all of them."""
        for member in self.members:
            try:
                member.attempt_ended(attempt)
            except Exception:
                _logger.exception("an observer broke at the end of an attempt of pod %s", attempt.pod.key)

    def group_ended(self, attempt: GroupAttempt) -> None:
        """A group was decided, or could not be."""
        for listener in self.decided_groups:
            try:
                listener(attempt)
            except Exception:
                _logger.exception("an observer broke at the end of an attempt of a group")

    def pod_entered(self, place: str, event: str) -> None:
        """Tell all of them."""
        for member in self.members:
            try:
                member.pod_entered(place, event)
            except Exception:
                _logger.exception("an observer broke when a pod entered %s", place)


@dataclass(slots=True)
class Attempts:
    """Begins attempts, and ends those that found no node; whichever way a pod is decided, by itself or with its group.

    Attributes:
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
        """True for a pod that needs no node any more: it is being deleted, or has one."""
        if pod.terminating:
            self.failures.skipped_deleting(pod, skip_deleting(pod))
            return True
        return self.cluster.placement(pod.uid) is not None

    def begin(self, queued: QueuedPod, evaluator: Evaluator) -> Attempt:
        """The attempt of a pod that the queue handed out."""
        return Attempt(queued, evaluator.runtime.profile, self.clock, plugins=self.observers.sampled())

    def fail(self, attempt: Attempt, problem: Exception) -> None:
        """End an attempt without a node: requeue the pod, say why, and make room where PostFilter found some.

        `problem`: a `FitError`, or whatever a plugin raised.
        """
        if not isinstance(problem, FitError):
            what = why(problem)
            _logger.error("scheduling pod %s broke: %s", attempt.pod.key, what, exc_info=problem)
            problem = broken(what)
        self.counts.errors += problem.internal
        self.counts.unschedulable += not problem.internal
        attempt.failed(problem)
        if attempt.placement is None:
            self.observers.decided(attempt)
        pod = self.failures.handle(attempt.queued, problem)
        self.observers.attempt_ended(attempt)
        if pod is not None and problem.victims and problem.nominated_node:
            self.start(self.preemption.make_room(pod, problem.nominated_node, problem.victims))
