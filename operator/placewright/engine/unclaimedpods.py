"""Tells pods that no profile takes: one event for each pod, and a figure for metrics.

A deleted profile leaves its pods waiting, and a misspelt schedulerName belongs to no scheduler. No decision is made about either, so no
other part of the scheduler would tell their owners. `profiles.unclaimed` judges which names count. A name is judged with patience, so that
a profile that is replaced (deleted and made again) causes no event. Events go out at a bounded pace, in turns between names. Of ten
thousand pods the first hundred are told at once, and all within nine minutes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from placewright.api.decode import DecodeError
from placewright.api.profile import SHADOW
from placewright.cluster.cluster import Cluster
from placewright.engine.children import in_turns
from placewright.kube.errors import RequestError
from placewright.kube.history import HistoryStore
from placewright.kube.ratelimit import TokenBucket
from placewright.profiles.profilestate import TOOK_EFFECT, ProfileStanding, Reason
from placewright.profiles.unclaimed import (
    NO_PROFILE,
    ProfileNames,
    Unclaimed,
    Why,
    looked_at_by_others,
    placed_by_others,
)
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.ports import EventRecorder, EventType

_logger = logging.getLogger(__name__)

#: Seconds for which a name may be without a profile before its pods are told. Replacing a profile takes less, and so does the first
#: attempt of another scheduler.
PATIENCE_SECONDS: Final = 3.0
#: Seconds after the begin of a term in which every name counts as new: profiles may still come in.
SETTLE_SECONDS: Final = 5.0
#: Most events at once, and events a second in the long run.
BURST: Final = 100
EVENTS_A_SECOND: Final = 20.0
#: Seconds between two surveys for another scheduler of such names. Pods that are surveyed in one go of the event loop.
_SURVEY_SECONDS: Final = 10.0
_PODS_AT_ONCE: Final = 2_000
#: Names that are judged at a beat: comparing one with the names of all profiles takes a while, and a user can make up any number.
_NAMES_AT_ONCE: Final = 50
_RETRY_SECONDS: Final = 30.0
#: Uids that are remembered for each pod that waits; beyond that, uids of pods that left are dropped.
_KEPT_AT_MOST: Final = 2

#: The schedulerNames that profiles had in earlier terms, with the profiles' names.
Remembered = Callable[[], Awaitable[Mapping[str, str]]]


async def nothing_remembered() -> Mapping[str, str]:
    """Return no names, where no history is kept."""
    return {}


def remembered_by(store: HistoryStore) -> Remembered:
    """Read the schedulerNames of earlier profiles from their history, which outlives them.

    Args:
        store: reads the history.
    """

    async def read() -> Mapping[str, str]:
        found: dict[str, str] = {}
        for revision in await store.revisions():
            spec = revision.recorded.spec
            name = spec.get("schedulerName")
            if revision.result in TOOK_EFFECT and spec.get("mode") != SHADOW and isinstance(name, str):
                found[name] = revision.recorded.profile
        return found

    return read


@dataclass(slots=True)
class _Name:
    """A schedulerName that pods wait with, and no profile in effect has.

    Attributes:
        since: the time at which that was first seen, seconds of the clock.
        told: uids of pods that have had their event.
        strangers: uids of pods that another scheduler had placed at the first survey; None before it.
        elsewhere: another scheduler places pods of this name.
        sure: `elsewhere` was surveyed after the patience, right before the first pod is told.
        logged: the name was logged.
    """

    since: float
    told: set[str] = field(default_factory=set)
    strangers: frozenset[str] | None = None
    elsewhere: bool = False
    sure: bool = False
    logged: bool = False


@dataclass(eq=False)
class UnclaimedPods:
    """Watches the pods of schedulerNames that no profile has.

    Attributes:
        queue: has the waiting pods of all schedulerNames.
        cluster: has the pods on nodes, which tell of other schedulers.
        live: the schedulerNames in effect.
        standings: the standing of every profile, by name.
        events: events for the pods.
        remembered: reads the schedulerNames of profiles that were deleted before this replica led.
        clock: seconds, monotonic.
    """

    queue: SchedulingQueue
    cluster: Cluster
    live: Callable[[], Iterable[str]]
    standings: Callable[[], Mapping[str, ProfileStanding]]
    events: EventRecorder
    remembered: Remembered = nothing_remembered
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        #: The profile that had a schedulerName last: deleted in this process's time, and (`_earlier`) as the history has it.
        self._deleted: dict[str, str] = {}
        self._earlier: Mapping[str, str] | None = None
        self._ask_again = 0.0
        self._settled: float | None = None
        self._names: dict[str, _Name] = {}
        self._verdicts: dict[str, Unclaimed | None] = {}
        self._judged_by: ProfileNames | None = None
        self._pace = TokenBucket(EVENTS_A_SECOND, BURST, self.clock)
        self._surveyed = -_SURVEY_SECONDS

    # --- news of profiles ----------------------------------------------------------------------------------------------------------

    def lost(self, scheduler_name: str, profile: str) -> None:
        """Note that a schedulerName has no profile any more.

        Args:
            scheduler_name: scheduler name of the pods.
            profile: the name of the deleted profile.
        """
        self._deleted[scheduler_name] = profile
        self._names.pop(scheduler_name, None)

    def claimed(self, scheduler_name: str) -> None:
        """Note that a profile has this schedulerName, and forget which of its pods were told."""
        self._deleted.pop(scheduler_name, None)
        self._names.pop(scheduler_name, None)

    # --- what is seen --------------------------------------------------------------------------------------------------------------

    def waiting(self) -> Iterator[tuple[Unclaimed, int]]:
        """Return the schedulerNames that no profile takes, each with the number of pods that wait."""
        for lane in self.queue.profile_queues():
            found = self._verdicts.get(lane.name)
            if found is not None and len(lane) and self._is_due(lane):
                yield found, len(lane)

    # --- at a beat -----------------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget all names: another replica leads and tells. The history is read anew in the next term."""
        self._names.clear()
        self._earlier = self._settled = None

    async def look(self) -> None:
        """Judge the names that wait, and tell as many of their pods as the pace allows."""
        if self._settled is None:
            self._settled = self.clock() + SETTLE_SECONDS
        await self._recall()
        suspects = self._suspects()
        if not suspects:
            return
        await self._survey(suspects)
        self._tell([lane for lane in suspects if self._is_due(lane)])

    async def _recall(self) -> None:
        """Read the earlier profiles once a term. Without a history only profiles count that were deleted in this process's time."""
        if self._earlier is not None or self.clock() < self._ask_again:
            return
        try:
            self._earlier = await self.remembered()
        except (RequestError, DecodeError) as problem:
            _logger.debug("which profiles there were cannot be read, will be tried again: %s", problem)
            self._ask_again = self.clock() + _RETRY_SECONDS

    def _suspects(self) -> list[ProfileQueue]:
        """Lanes without a profile whose pods were likely meant for one."""
        lanes = {lane.name: lane for lane in self.queue.profile_queues() if not lane.served and len(lane)}
        names = self._profile_names()
        if names != self._judged_by:
            self._judged_by = names
            self._verdicts.clear()
        for gone in self._verdicts.keys() - lanes.keys():
            del self._verdicts[gone]
        for name in islice((name for name in lanes if name not in self._verdicts), _NAMES_AT_ONCE):
            self._verdicts[name] = names.judge(name)
        suspects = [lane for lane in lanes.values() if self._verdicts.get(lane.name) is not None]
        for gone in self._names.keys() - {lane.name for lane in suspects}:
            del self._names[gone]
        for lane in suspects:
            self._names.setdefault(lane.name, _Name(max(self.clock(), self._settled or 0.0)))
        return suspects

    def _profile_names(self) -> ProfileNames:
        live, standings = frozenset(self.live()), self.standings()
        refused = {
            each.scheduler_name: name
            for name, each in standings.items()
            if each.scheduler_name and each.reason.stalls and each.active_generation is None
        }
        held = {name: each.message for name, each in standings.items() if each.reason is Reason.PLUGIN_HANGING}
        return ProfileNames(live, refused, {**(self._earlier or {}), **self._deleted}, held)

    # --- other schedulers ----------------------------------------------------------------------------------------------------------

    async def _survey(self, suspects: Sequence[ProfileQueue]) -> None:
        """Find out whether another scheduler places pods of these names."""
        if not any(self._is_new(lane) for lane in suspects) and self.clock() < self._surveyed + _SURVEY_SECONDS:
            return
        self._surveyed = self.clock()
        placed = await self._placed_by_others({lane.name for lane in suspects})
        for lane in suspects:
            name, verdict = self._names.get(lane.name), self._verdicts.get(lane.name)
            if name is None or verdict is None:
                continue  # a profile came meanwhile
            found = frozenset(placed.get(lane.name, ()))
            if name.strangers is None:
                # Another scheduler may have shared the name of a profile until now: only pods that it places from now on tell.
                name.strangers = found if lane.name in self._deleted or verdict.why in (Why.REFUSED, Why.HANGING) else frozenset()
            name.sure = self._is_patient(name)
            name.elsewhere = bool(found - name.strangers) or (verdict.why is Why.MISSPELT and _somebody_looked(lane))

    def _is_new(self, lane: ProfileQueue) -> bool:
        name = self._names[lane.name]
        return name.strangers is None or (not name.sure and self._is_patient(name))

    def _is_patient(self, name: _Name) -> bool:
        return self.clock() - name.since >= PATIENCE_SECONDS

    async def _placed_by_others(self, names: set[str]) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = {}
        for number, placement in enumerate(tuple(self.cluster.placements()), 1):
            pod = placement.pod
            if pod.scheduler_name in names and not placement.assumed and placed_by_others(pod.pod):
                found.setdefault(pod.scheduler_name, set()).add(pod.uid)
            if number % _PODS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    # --- telling -------------------------------------------------------------------------------------------------------------------

    def _is_due(self, lane: ProfileQueue) -> bool:
        name = self._names.get(lane.name)
        return name is not None and not lane.served and name.sure and not name.elsewhere

    def _tell(self, lanes: Sequence[ProfileQueue]) -> None:
        for name, uid in in_turns(self._untold(lane) for lane in lanes):
            if not self._pace.take_now():
                return
            self._tell_one(name, uid)

    def _untold(self, lane: ProfileQueue) -> Iterator[tuple[str, str]]:
        told = self._names[lane.name].told
        if len(told) > _KEPT_AT_MOST * len(lane):  # most of them are gone
            told &= {queued.uid for queued in lane.unschedulable}
        return ((lane.name, queued.uid) for queued in lane.unschedulable if queued.uid not in told)

    def _tell_one(self, scheduler_name: str, uid: str) -> None:
        name, verdict = self._names[scheduler_name], self._verdicts[scheduler_name]
        pod = self.queue.latest(uid)
        name.told.add(uid)
        if pod is None or verdict is None:
            return
        if not name.logged:
            name.logged = True
            _logger.warning("%s", verdict)
        self.events.record(pod, EventType.WARNING, NO_PROFILE, "Scheduling", str(verdict))


def _somebody_looked(lane: ProfileQueue) -> bool:
    return any(looked_at_by_others(queued.pod.pod.status.conditions) for queued in lane.unschedulable)
