"""Finds forgotten pods: at every beat some waiting pods are decided afresh, and those that would fit are put back into the queue.

Invariant: whatever waits, a beat looks at no more than `PODS_A_BEAT` pods, `LOOKS_A_BEAT` things, and for `SHARE` of its time; what one pod
takes beyond that is taken from the beats after it. It passes over no more than `PASSED_A_BEAT`, and between two pods the event loop has its
turn. Nothing happens while pods wait to be tried now, nor on a replica that does not lead.

Pods are taken round by round, those first that have waited longest. Of pods that look alike only the first of a round is looked at: what
is true of it is true of them, and nobody is looked at again before the next round. A pod that fits is looked at again `PATIENCE_SECONDS`
later, as the reconciler does it; it counts as forgotten if no news brought it back meanwhile, and it fits still.

`placewright_forgotten_pods_total` counts what is found. It must stay 0: anything else is a hint that slept, or a change that nobody tells.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Final

from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.ports import Clock, EventRecorder, EventType
from placewright.scheduler.selfcheck import Forgotten, Left, SelfCheck

_logger = logging.getLogger(__name__)

BEAT_SECONDS: Final = 1.0
#: see decision 0035 for what a pod costs. Pods whose plugins take long for each row are bounded by time alone.
PODS_A_BEAT: Final = 10
#: As `api.podextent` estimates a decision: 50,000 nodes for pods that ask for little.
LOOKS_A_BEAT: Final = 1_000_000
SHARE: Final = 0.01
PASSED_A_BEAT: Final = 200
#: Rounds begin so far apart; a few pods that wait would be looked at all the time.
ROUND_SECONDS: Final = 30.0
#: So long a pod has waited before it is looked at: what brings it back by itself has done so.
WAITED_SECONDS: Final = 10.0
#: Between the two looks at a pod that fits.
PATIENCE_SECONDS: Final = 5.0
#: Kinds of pods that are remembered in a round.
_LIKENESSES: Final = 4096

#: The label of `scheduler_queue_incoming_pods_total` for pods that were put back.
FORGOTTEN: Final = "ForgottenPod"
_REASON: Final = "Forgotten"
_ACTION: Final = "Scheduling"


@dataclass(slots=True)
class ForgottenCounts:
    """What came of it since the start.

    Attributes:
        looked: pods that were decided afresh.
        forgotten: pods that were put back, by the plugin whose hint slept.
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
    """What is left of a beat: pods, looks, seconds; the latter two below 0 where a pod took more than there was."""

    pods: int = 0
    looks: int = 0
    seconds: float = 0.0

    def begin_beat(self) -> None:
        """A beat's worth; what was not used is gone."""
        self.pods = PODS_A_BEAT
        self.looks = min(self.looks, 0) + LOOKS_A_BEAT
        self.seconds = min(self.seconds, 0.0) + SHARE * BEAT_SECONDS

    def spend(self, looks: int, seconds: float) -> None:
        """A pod was looked at."""
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
        counts: what came of it.
    """

    def __init__(
        self, check: SelfCheck, events: EventRecorder, active: Callable[[], bool], clock: Clock,
        stopwatch: Clock = time.perf_counter, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:  # fmt: skip
        """`active`: whether this replica may write what it decided. `stopwatch`: takes the time of looks, in seconds."""
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
        """Look at every beat, until cancelled."""
        while True:
            await self._sleep(BEAT_SECONDS)
            await self.beat()

    async def beat(self) -> None:
        """Look at as many pods as a beat may."""
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
        """Look at one more pod: how many things that looked at, 0 for one that was passed over; None where there is none to look at now."""
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
        """Look at every waiting pod now, and again at those that fit; the forgotten ones, put back. For the debug dump."""
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

    # --- whom ---------------------------------------------------------------------------------------------------------------------

    def _may_look(self) -> bool:
        busy = any(lane.open and lane.active for lane in self._queue.profile_queues())
        return self._active() and not busy and not self._queue.sweeps.behind

    def _new_round(self) -> Iterator[tuple[ProfileQueue, QueuedPod | None]]:
        """Pods as they wait now, None for those that wait no more; of each profile one after the other, as long as it has any."""
        lanes = deque((lane, iter(lane.unschedulable.uids())) for lane in self._queue.profile_queues() if lane.served)
        while lanes:
            lane, uids = lanes.popleft()
            uid = next(uids, None)
            if uid is not None:
                yield lane, lane.unschedulable.get(uid)
                lanes.append((lane, uids))

    # --- looking ------------------------------------------------------------------------------------------------------------------

    def _look(self, lane: ProfileQueue, queued: QueuedPod | None) -> int:
        """The first look at a pod; how many things it looked at."""
        if queued is None or self._clock() < queued.timestamp + WAITED_SECONDS:
            return 0
        likeness = self._check.likeness(queued)
        if likeness is not None and likeness in self._refused:
            return 0
        found = self._decided(lane, queued)
        if isinstance(found, Left) and found is not Left.BROKEN:
            return 0
        if isinstance(found, Forgotten):
            self._suspects.append(_Suspect(lane, queued, queued.attempts, self._clock()))
        elif likeness is not None and len(self._refused) < _LIKENESSES:
            self._refused.add(likeness)
        return max(self._check.work(queued.pod), 1)

    def _look_again(self, suspect: _Suspect) -> int:
        """The second look at a pod that fitted; how many things it looked at."""
        found = self._still_forgotten(suspect)
        if found is not None:
            self._put_back(suspect, found)
        return max(self._check.work(suspect.queued.pod), 1)

    def _still_forgotten(self, suspect: _Suspect) -> Forgotten | None:
        if suspect.queued.attempts != suspect.attempts:
            return None
        found = self._decided(suspect.lane, suspect.queued)
        return found if isinstance(found, Forgotten) else None

    def _decided(self, lane: ProfileQueue, queued: QueuedPod) -> Forgotten | Left | None:
        found = self._check.look(lane, queued)
        self.counts.looked += not isinstance(found, Left)
        return found

    def _put_back(self, suspect: _Suspect, found: Forgotten) -> Forgotten:
        self.counts.forgotten[found.plugin] += 1
        _logger.warning("forgotten: pod %s: %s", found.key, found, extra={"about": found.plugin})
        self._events.record(suspect.queued.pod, EventType.WARNING, _REASON, _ACTION, str(found))
        self._queue.retry(found.uid, FORGOTTEN)
        return found
