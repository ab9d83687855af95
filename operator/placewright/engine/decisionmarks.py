"""Keeps the marks of decisions that may end the process.

A mark is written before such a decision and removed after it. If the process ends in between, the mark stays, and the next leader counts a
death for it. A decision is marked when much work is expected, or when its pod is a suspect that is tried again. An ordinary pod costs one
comparison and no write. A spec that was decided in this term is not marked again, unless its work has more than doubled.

If the API server does not take a mark, the pod waits with backoff and other pods go on. No mark is tried for a while then. So a server that
hangs delays one pod by the time of a write, and not each. If it refuses for good (no right, no namespace), one warning says so and
decisions go on without marks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from placewright.api.decisionmarks import DecisionMark, heavy_work, marked
from placewright.api.decode import DecodeError
from placewright.cluster.cluster import Cluster
from placewright.kube.decisionmarks import MarkStore
from placewright.kube.errors import CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, ApiError, RequestError, RetryBackoff
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, Suspicion
from placewright.scheduler.attempts import FAILED_SCHEDULING, SCHEDULER_ERROR
from placewright.scheduler.messages import go_duration
from placewright.scheduler.ports import EventRecorder, EventType, Precautions, StatusWriter

_logger = logging.getLogger(__name__)

#: Seconds that a decision waits for its mark to be written. All decisions wait meanwhile, as the scheduler decides one at a time.
WRITE_SECONDS: Final = 2.0
#: Seconds after its last death at which a mark is removed: in a day its pod has been mended or deleted.
FORGET_SECONDS: Final = 24 * 3600.0
#: Most marks of one namespace, and of all namespaces. Beyond that, those whose last death is longest ago are removed first.
MOST_IN_NAMESPACE: Final = 16
MOST_MARKS: Final = 256
#: Members with which a group's decision counts as heavy.
MANY_MEMBERS: Final = 256
#: Seconds for which decisions go on without marks after the API server refused one for good.
_WITHOUT_SECONDS: Final = 600.0
_REFUSALS: Final = frozenset({INVALID, NOT_FOUND, FORBIDDEN})
#: Specs that are remembered as decided in this term; the oldest are forgotten first.
_MOST_PROVEN: Final = 1024


@dataclass(slots=True)
class MarkCounts:
    """Counts of marks since the start: written, removed, deaths counted, writes that failed."""

    opened: int = 0
    closed: int = 0
    death: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class _Deciding:
    """A mark that is open.

    Attributes:
        work: the expected work, as `heavy_work` counts it.
        accused: all marks of this spec or group; they are removed when this decision ends.
    """

    mark: DecisionMark
    work: int
    accused: Sequence[DecisionMark]


@dataclass(eq=False)
class MarkKeeper(Precautions):
    """Writes marks before decisions, removes them after, and counts deaths when a term begins: `scheduler.ports.Precautions`.

    Attributes:
        store: reads and writes marks.
        identity: identity of this replica; each mark names the replica that wrote it.
        queue: has the suspects, and knows the pods in flight.
        cluster: knows the pods that have a node, whose decision is over.
        clock: the queue's: seconds, monotonic.
        now: seconds since 1970, for the times in marks.
        counts: counts for metrics.
    """

    store: MarkStore
    identity: str
    queue: SchedulingQueue
    cluster: Cluster
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.counts = MarkCounts()
        #: Open marks by uid of the pod that was handed out.
        self._open: dict[str, _Deciding] = {}
        #: Held while a mark is written or removed: the removal of an old mark must not remove a new one of the same name.
        self._writing = asyncio.Lock()
        self._to_close: dict[str, DecisionMark] = {}
        #: The most work with which a decision has ended, by the name of the spec's mark.
        self._proven: OrderedDict[str, int] = OrderedDict()
        self._backoff, self._failures, self._not_before = RetryBackoff(1.0, 60.0), 0, 0.0
        self._without_until = 0.0
        #: Deaths that each suspect was last told of, by its uid.
        self._told: dict[str, int] = {}

    # --- before and after a decision -----------------------------------------------------------------------------------------------

    def due(self, queued: QueuedPod) -> bool:
        """Whether a mark must be written before this pod is decided. Called for every pod: one comparison for an ordinary one."""
        group, suspects = queued.pod_group, self.queue.suspects
        if group is not None and (len(group.members) >= MANY_MEMBERS or any(heavy_work(each.pod) for each in group.members.values())):
            return True
        return heavy_work(queued.pod) > 0 or (bool(suspects) and suspects.accuses(queued))

    async def take(self, queued: QueuedPod) -> str:
        """Write a mark for the decision about this pod, or its group.

        Args:
            queued: the pod that was handed out.

        Returns:
            Empty if the decision may begin; else the reason why there is no mark, for the pod's condition.
        """
        self.review()
        heaviest = queued.pod if queued.pod_group is None else max((each.pod for each in queued.pod_group.members.values()), key=heavy_work)
        work = heavy_work(heaviest)
        accused = self.queue.suspects.marks.speaking_for(heaviest)
        whom = accused[0].pod if accused else marked(heaviest, heavy=work > 0)
        suspect = bool(self.queue.suspects) and self.queue.suspects.accuses(queued)
        if self.clock() < self._without_until or (not suspect and 0 < work <= 2 * self._proven.get(whom.name, 0)):
            return ""
        if self.clock() < self._not_before:
            return _cannot("the API server did not take the last one")
        try:
            async with asyncio.timeout(WRITE_SECONDS), self._writing:
                self._to_close.pop(whom.name, None)
                mark = await self.store.open(whom, self.identity)
        except (RequestError, DecodeError, TimeoutError) as problem:
            if not suspect:  # without an answer the mark may have been written
                self._to_close[whom.name] = DecisionMark(whom, opened_by=self.identity)
            return self._not_taken(problem)
        self._failures = 0
        self.counts.opened += 1
        self._open[queued.uid] = _Deciding(mark, work, accused)
        return ""

    def _not_taken(self, problem: Exception) -> str:
        """Judge a failed write. Returns empty if decisions go on without marks, else the reason for which the pod waits."""
        self.counts.failed += 1
        if isinstance(problem, DecodeError) or _for_good(problem):
            self._without_until = self.clock() + _WITHOUT_SECONDS
            _logger.warning("decisions that may end the process are not marked: %s; apply manifests/base (role.yaml)", problem)
            return ""
        temporary = problem if isinstance(problem, RequestError) else None
        self._not_before = self.clock() + self._backoff.delay(self._failures, temporary)
        self._failures += 1
        return _cannot(str(problem) or "no answer in time")

    def review(self) -> None:
        """Have the marks of ended decisions removed. Called before each new mark and at every beat."""
        for uid, deciding in tuple(self._open.items()):
            flight = self.queue.in_flight.get(uid)
            if flight is None or flight.gone or self.cluster.placement(uid) is not None:
                del self._open[uid]
                self._prove(deciding)

    def _prove(self, deciding: _Deciding) -> None:
        mark, suspects = deciding.mark, self.queue.suspects
        name = mark.pod.name
        self._to_close[name] = mark
        self._proven[name] = max(deciding.work, self._proven.pop(name, 0))
        if len(self._proven) > _MOST_PROVEN:
            self._proven.popitem(last=False)
        for each in deciding.accused:
            self._to_close.setdefault(each.pod.name, each)
            suspects.marks.clear(each.pod.namespace, each.pod.name)
        if deciding.accused:
            _logger.info("%s was decided, and is tried like any other again", mark.pod.subject)
            suspects.anew()

    # --- a loop that hangs: called from the watchdog's thread ------------------------------------------------------------------------

    def marked_already(self, uid: str) -> bool:
        """Whether the decision about the pod of this uid has a mark."""
        return uid in self._open

    def hung(self, mark: DecisionMark) -> None:
        """Have a mark removed that the watchdog wrote while the loop hung. Called in the loop: it turns again, so the decision is over."""
        self._to_close[mark.pod.name] = mark

    # --- terms ---------------------------------------------------------------------------------------------------------------------

    async def begin_term(self) -> None:
        """Read the marks that earlier leaders left, before the first decision of a term. A mark that is open counts a death.

        Raises:
            RequestError: the API server did not answer; the term cannot begin yet.
        """
        self._open, self._to_close, self._failures, self._not_before, self._without_until = {}, {}, 0, 0.0, 0.0
        self._proven.clear()
        self._told.clear()
        inherited = [await self._inherited(mark) for mark in await self._listed()]
        kept, surplus = _bounded([each for each in inherited if each is not None], self.clock())
        self._to_close.update({mark.pod.name: mark for mark in surplus})
        self.queue.suspects.marks.adopt(kept)
        self.queue.suspects.anew()

    async def _listed(self) -> list[DecisionMark]:
        try:
            return await self.store.marks()
        except ApiError as refusal:
            if not _for_good(refusal):
                raise
            self._not_taken(refusal)
            return []

    async def _inherited(self, mark: DecisionMark) -> tuple[DecisionMark, float] | None:
        """Return a mark with the time of its last death on the clock; None for a mark that counts no death."""
        if mark.opened_by == self.identity:  # this process wrote it in an earlier term, and is alive
            self._to_close[mark.pod.name] = mark
            return None
        if not mark.opened_by:
            age = min(max(self.now() - mark.died_at, 0.0), FORGET_SECONDS)
            return mark, self.clock() - age
        try:
            died = await self.store.count_death(mark, self.now())
        except RequestError as problem:
            if isinstance(problem, ApiError) and problem.status == CONFLICT:
                raise  # another client changed the mark meanwhile: the caller reads all marks again
            _logger.warning("deciding %s ended a replica, and its mark could not be written: %s", mark.pod.subject, problem)
            died = mark._replace(deaths=mark.deaths + 1)
        self.counts.death += 1
        what = "deciding %s ended a replica or its term (%s), %d times by now: it is tried after all others"
        _logger.warning(what, mark.pod.subject, mark.opened_by, died.deaths)
        return died, self.clock()

    async def end_term(self) -> None:
        """Remove all open marks at a clean end, so that the next leader counts no death. Best effort."""
        self.review()
        self._to_close.update({deciding.mark.pod.name: deciding.mark for deciding in self._open.values()})
        self._open.clear()
        await self._close_all()

    # --- what runs -----------------------------------------------------------------------------------------------------------------

    async def beat(self, events: EventRecorder, status: StatusWriter) -> None:
        """Remove marks that are due, let one suspect into the queue, and tell suspects why they wait.

        Args:
            events: events for suspects that wait.
            status: status for their PodScheduled condition.
        """
        self.review()
        self._forget_old()
        await self._close_all()
        self.queue.suspects.let_in()
        if self.queue.suspects or self._told:
            self._tell(events, status)

    async def _close_all(self) -> None:
        for name, mark in tuple(self._to_close.items()):
            try:
                async with asyncio.timeout(WRITE_SECONDS), self._writing:
                    if self._to_close.get(name) is not mark:
                        continue
                    await self.store.close(mark)
                    del self._to_close[name]
            except (RequestError, TimeoutError) as problem:
                if _for_good(problem):
                    del self._to_close[name]
                _logger.info("the mark of %s is still there: %s", mark.pod.subject, str(problem) or "no answer in time")
                return
            self.counts.closed += 1

    def _forget_old(self) -> None:
        suspects = self.queue.suspects
        old = suspects.marks.older_than(self.clock() - FORGET_SECONDS) if suspects else []
        for mark in old:
            suspects.marks.clear(mark.pod.namespace, mark.pod.name)
            self._to_close[mark.pod.name] = mark
        if old:
            suspects.anew()

    def _tell(self, events: EventRecorder, status: StatusWriter) -> None:
        """Tell each waiting suspect why it waits, once for each number of deaths."""
        self._told = {uid: deaths for uid, deaths in self._told.items() if self.queue.get(uid) is not None}
        for queued in self.queue.suspects:
            suspicion = queued.suspicion
            if suspicion is not None and self._told.get(queued.uid) != suspicion.deaths:
                self._told[queued.uid] = suspicion.deaths
                message = why_last(suspicion, self.clock())
                events.record(queued.pod, EventType.WARNING, FAILED_SCHEDULING, "Scheduling", message)
                status.pod_unscheduled(queued.pod, SCHEDULER_ERROR, message, None)


def why_last(suspicion: Suspicion, now: float) -> str:
    """Return the reason for which a suspect waits, for its condition and event.

    Args:
        suspicion: the deaths, and the time before which the suspect is not tried.
        now: the time on the same clock.

    Returns:
        A sentence for the pod's owner.
    """
    times = "once" if suspicion.deaths == 1 else f"{suspicion.deaths} times"
    wait = max(suspicion.not_before - now, 0.0)
    when = f"not before {go_duration(float(round(wait)))} have passed" if wait >= 1 else "as soon as that is so"
    ended = f"deciding this pod, or one like it, ended the scheduler's process {times}"
    return f"{ended}: it is tried again when no other pod is being decided or bound, {when}"


def _cannot(why: str) -> str:
    return f"this pod takes much work to decide, and that could not be noted before ({why}): it is tried again"


def _for_good(problem: Exception) -> bool:
    """Whether the API server would refuse the same request again, for want of a right or a namespace."""
    return isinstance(problem, ApiError) and problem.status in _REFUSALS


def _bounded(known: Iterable[tuple[DecisionMark, float]], now: float) -> tuple[list[tuple[DecisionMark, float]], list[DecisionMark]]:
    """Split marks into kept ones and surplus: old marks, and beyond the bounds those marks whose last death is longest ago."""
    kept: list[tuple[DecisionMark, float]] = []
    surplus: list[DecisionMark] = []
    of_namespace: dict[str, int] = {}
    for mark, at in sorted(known, key=lambda each: -each[1]):
        many = of_namespace.get(mark.pod.namespace, 0)
        if now - at >= FORGET_SECONDS or many >= MOST_IN_NAMESPACE or len(kept) >= MOST_MARKS or not mark.deaths:
            surplus.append(mark)
        else:
            of_namespace[mark.pod.namespace] = many + 1
            kept.append((mark, at))
    return kept, surplus
