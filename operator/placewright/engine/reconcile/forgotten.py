"""Finds forgotten pods. At every beat some waiting pods are decided afresh. A pod that would fit is put back into the queue.

Invariant: however many pods wait, a beat takes `SHARE` of its time at most, `PODS_A_BEAT` pods, and `LOOKS_A_BEAT` node looks. A pod that
takes more is charged to the beats after it. A beat passes over no more than `PASSED_A_BEAT` pods, and the event loop runs other tasks
between two pods. No pod is looked at while pods wait to be tried now, or on a replica that does not lead.

Pods are looked at in rounds, the longest waiting first. If pods look alike, a round looks at the first alone, because all of them have the
same verdict. A pod that fits is looked at again `PATIENCE_SECONDS` later, as the reconciler does it. It counts as forgotten if no event
brought it back meanwhile and it still fits.

`placewright_forgotten_pods_total` counts the forgotten pods. It must stay 0: another figure means that a queueing hint missed an event, or
that a change causes no event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Final

from placewright.engine.children import in_turns
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.ports import Clock, EventRecorder, EventType
from placewright.scheduler.selfcheck import Forgotten, SelfCheck, SkipReason

_logger = logging.getLogger(__name__)

BEAT_SECONDS: Final = 1.0
#: Decision 35 has the cost of a pod. For pods whose plugins take long for each row, the time is the bound.
PODS_A_BEAT: Final = 10
#: Work as `api.podextent` estimates that of a decision; 50,000 nodes for pods that ask for little are within it.
LOOKS_A_BEAT: Final = 1_000_000
SHARE: Final = 0.01
PASSED_A_BEAT: Final = 200
#: Seconds between the begins of two rounds: without a pause a few waiting pods would be looked at all the time.
ROUND_SECONDS: Final = 30.0
#: Seconds that a pod has waited before it is looked at: an event that concerns it has brought it back by then.
WAITED_SECONDS: Final = 10.0
#: Seconds between the two looks at a pod that fits.
PATIENCE_SECONDS: Final = 5.0
#: Most kinds of refused pods that are remembered in a round.
_LIKENESSES: Final = 4096

#: The label of `scheduler_queue_incoming_pods_total` for pods that were put back.
FORGOTTEN: Final = "ForgottenPod"
_REASON: Final = "Forgotten"
_ACTION: Final = "Scheduling"


@dataclass(slots=True)
class ForgottenCounts:
    """Counts since the start.

    Attributes:
        looked: pods that were decided afresh.
        forgotten: pods that were put back, by the plugin whose queueing hint missed the event.
    """

    looked: int
    forgotten: Counter[str]


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A pod that fitted at the first look."""

    lane: ProfileQueue
    queued: QueuedPod
    attempts: int
    since: float


@dataclass(slots=True)
class _Allowance:
    """The rest of a beat's allowance: pods, looks, seconds. Looks and seconds are below 0 after a pod that took more than the rest."""

    pods: int = 0
    looks: int = 0
    seconds: float = 0.0

    def begin_beat(self) -> None:
        """Add a beat's allowance. A rest of the last beat is dropped, a debt is kept."""
        self.pods = PODS_A_BEAT
        self.looks = min(self.looks, 0) + LOOKS_A_BEAT
        self.seconds = min(self.seconds, 0.0) + SHARE * BEAT_SECONDS

    def spend(self, looks: int, seconds: float) -> None:
        """Charge a look at a pod.

        Args:
            looks: the work, as `SelfCheck.work` estimates it.
            seconds: the time.
        """
        self.pods -= 1
        self.looks -= looks
        self.seconds -= seconds

    @property
    def left(self) -> bool:
        """Whether another pod may be looked at."""
        return self.pods > 0 and self.looks > 0 and self.seconds > 0


class ForgottenPods:
    """Looks for forgotten pods, a few at every beat.

    Attributes:
        counts: counts for metrics.
    """

    def __init__(
        self, check: SelfCheck, events: EventRecorder, active: Callable[[], bool], clock: Clock,
        stopwatch: Clock = time.perf_counter, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:  # fmt: skip
        """Look at no pod yet.

        Args:
            check: decides pods afresh.
            events: events for forgotten pods.
            active: whether this replica leads.
            clock: the queue's: seconds, monotonic.
            stopwatch: seconds, for the time of looks.
            sleep: waits for so many seconds.
        """
        self.counts = ForgottenCounts(0, Counter())
        self._queue = check.queue
        self._check = check
        self._events = events
        self._active = active
        self._clock = clock
        self._stopwatch = stopwatch
        self._sleep = sleep
        self._round: Iterator[tuple[ProfileQueue, QueuedPod | None]] = iter(())
        self._refused: set[Hashable] = set()
        self._round_due = clock()
        self._suspects: deque[_Suspect] = deque()
        self._allowance = _Allowance()

    async def run(self) -> None:
        """Call `beat` at every beat, until cancelled."""
        while True:
            await self._sleep(BEAT_SECONDS)
            await self.beat()

    async def beat(self) -> None:
        """Look at as many pods as the allowance of a beat admits."""
        if not self._active():
            self._suspects.clear()
        self._allowance.begin_beat()
        for _ in range(PASSED_A_BEAT):
            if not (self._allowance.left and self._may_look()):
                return
            began = self._stopwatch()
            looks = self._step()
            if looks is None:
                return
            if looks:
                self._allowance.spend(looks, self._stopwatch() - began)
                await asyncio.sleep(0)

    def _step(self) -> int | None:
        """Look at one more pod. Returns its work, 0 for a pod that was passed over, None without a pod to look at."""
        now = self._clock()
        if self._suspects and now >= self._suspects[0].since + PATIENCE_SECONDS:
            return self._look_again(self._suspects.popleft())
        found = next(self._round, None)
        if found is not None:
            return self._look(*found)
        if now >= self._round_due:
            self._refused.clear()
            self._round, self._round_due = self._new_round(), now + ROUND_SECONDS
            return 0
        return None

    async def look_at_all(self) -> list[Forgotten]:
        """Look at every waiting pod now, for the debug dump, and again at each that fits.

        Returns:
            The forgotten pods, which were put back into the queue.
        """
        fitting: list[_Suspect] = []
        for lane, queued in self._new_round() if self._active() else ():
            if queued is not None and isinstance(self._decided(lane, queued), Forgotten):
                fitting.append(_Suspect(lane, queued, queued.attempts, self._clock()))
            await asyncio.sleep(0)
        forgotten: list[Forgotten] = []
        if fitting:
            await self._sleep(PATIENCE_SECONDS)
        for suspect in fitting if self._active() else ():
            found = self._still_forgotten(suspect)
            if found is not None:
                forgotten.append(self._put_back(suspect, found))
            await asyncio.sleep(0)
        return forgotten

    # --- rounds -------------------------------------------------------------------------------------------------------------------

    def _may_look(self) -> bool:
        busy = any(lane.open and lane.active for lane in self._queue.profile_queues())
        return self._active() and not busy and not self._queue.sweeps.behind

    def _new_round(self) -> Iterator[tuple[ProfileQueue, QueuedPod | None]]:
        """Iterate over the pods that wait now, one of each profile in turn. A pod that has left by its turn is None."""
        lanes = [lane for lane in self._queue.profile_queues() if lane.served]
        turns = in_turns(zip(repeat(lane), lane.unschedulable.uids(), strict=False) for lane in lanes)
        return ((lane, lane.unschedulable.get(uid)) for lane, uid in turns)

    # --- looking ------------------------------------------------------------------------------------------------------------------

    def _look(self, lane: ProfileQueue, queued: QueuedPod | None) -> int:
        """Look at a pod for the first time. Returns its work, 0 if it was passed over."""
        if queued is None or self._clock() < queued.timestamp + WAITED_SECONDS:
            return 0
        likeness = self._check.likeness(queued)
        if likeness is not None and likeness in self._refused:
            return 0
        found = self._decided(lane, queued)
        if isinstance(found, SkipReason) and found is not SkipReason.BROKEN:
            return 0
        if isinstance(found, Forgotten):
            self._suspects.append(_Suspect(lane, queued, queued.attempts, self._clock()))
        elif likeness is not None and len(self._refused) < _LIKENESSES:
            self._refused.add(likeness)
        return max(self._check.work(queued.pod), 1)

    def _look_again(self, suspect: _Suspect) -> int:
        """Look for the second time at a pod that fitted. Returns its work."""
        found = self._still_forgotten(suspect)
        if found is not None:
            self._put_back(suspect, found)
        return max(self._check.work(suspect.queued.pod), 1)

    def _still_forgotten(self, suspect: _Suspect) -> Forgotten | None:
        if suspect.queued.attempts != suspect.attempts:
            return None
        found = self._decided(suspect.lane, suspect.queued)
        return found if isinstance(found, Forgotten) else None

    def _decided(self, lane: ProfileQueue, queued: QueuedPod) -> Forgotten | SkipReason | None:
        found = self._check.look(lane, queued)
        self.counts.looked += not isinstance(found, SkipReason)
        return found

    def _put_back(self, suspect: _Suspect, found: Forgotten) -> Forgotten:
        self.counts.forgotten[found.plugin] += 1
        _logger.warning("forgotten: pod %s: %s", found.key, found, extra={"about": found.plugin})
        self._events.record(suspect.queued.pod, EventType.WARNING, _REASON, _ACTION, str(found))
        self._queue.retry(found.uid, FORGOTTEN)
        return found
