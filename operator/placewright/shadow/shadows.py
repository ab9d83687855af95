"""All shadows of one scheduler. Events and decisions are noted on their tapes, and each shadow works in its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import ShadowStatus
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.eventhandlers import ClusterEventObserver
from placewright.scheduler.ports import Clock
from placewright.shadow.shadow import Build, Shadow
from placewright.shadow.tape import Decided, EntryKind, choice_of

#: Seconds between two looks for work where there is none now.
LOOK_SECONDS: Final = 0.02
#: One note of so many is timed.
TIMED: Final = 16
#: Most seconds that a note counts as: a longer one was interrupted.
LONGEST_NOTE: Final = 50e-6


@dataclass(eq=False)
class Shadows(ClusterEventObserver):
    """The shadows of one scheduler. They observe the live cluster, the event handlers, and the scheduler's decisions.

    Observing only notes events and decisions. `work`, which `run` calls, replays them.

    Attributes:
        live: the live cluster.
        build: makes the plugins of a profile around a cluster. Errors of their constructors are raised.
        clock: seconds, finer than a microsecond.
        now: time of day, for reports.
        seed: seed of each shadow's choices among nodes of equal totals.
        by_name: shadows at work, by name of the profile.
    """

    live: Cluster
    build: Build
    clock: Clock
    now: Callable[[], datetime]
    seed: int = 0

    def __post_init__(self) -> None:
        self.by_name: dict[str, Shadow] = {}
        self._beside: dict[str, list[Shadow]] = {}
        self._some = asyncio.Event()
        self._notes = 0
        #: The uid of a pod whose placement was noted with its decision. The cluster is about to report it.
        self._standing = ""
        #: Members of groups that are being tried, whose placements may be taken back.
        self._tried: set[str] = set()

    def __len__(self) -> int:
        return len(self.by_name)

    def adopt(self, profiles: Iterable[ResolvedProfile]) -> None:
        """Replace the shadows by shadows of these profiles. A known generation goes on. A paused profile has no shadow."""
        known, self.by_name, self._beside = self.by_name, {}, {}
        for profile in profiles:
            if profile.shadows is None or profile.settings.paused:
                continue
            found = known.get(profile.name)
            if found is None or found.profile is not profile:
                found = Shadow(profile, self.live, self.build, self.clock, self.now, self.seed)
            self.by_name[profile.name] = found
            self._beside.setdefault(profile.shadows, []).append(found)
        self.live.report_to(self if self.by_name else None)
        if self.by_name:
            self._some.set()
        else:
            self._some.clear()

    def report(self, name: str) -> ShadowStatus | None:
        """Return the last report of a shadow; None for a profile that is no shadow, or is paused."""
        found = self.by_name.get(name)
        return None if found is None else found.report

    # --- turns ---------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Call `work` whenever a shadow is due, until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(self.work())

    def work(self) -> float:
        """Do a piece of work of each shadow that is due. Return the seconds until the next may be due."""
        now, soonest = self.clock(), LOOK_SECONDS
        for shadow in tuple(self.by_name.values()):
            if not shadow.idle:
                if shadow.pace.due <= now:
                    shadow.work()
                soonest = min(soonest, shadow.pace.due - now)
        return max(soonest, 0.0)

    # --- events and decisions -----------------------------------------------------------------------------------------------------

    def decided(self, attempt: Attempt) -> None:
        """Note a decision of the live profile. An attempt that ended with an error is no decision."""
        beside = self._beside.get(attempt.profile.name)
        if beside is None or attempt.uid in self._tried or _broke(attempt):
            return
        began = self.clock() if self._timed() else 0.0
        takers = _note_decision(beside, (attempt,))
        if takers == len(self.by_name) and attempt.schedule_result is not None:
            self._standing = attempt.uid  # the entry tells all shadows of the placement
        if began:
            self._charge_sample(beside, began)

    def group_tried(self, attempts: Sequence[Attempt]) -> None:
        """`TrialObserver`: note nothing of a group's members until it is settled, because most trial placements are taken back."""
        if self.by_name:
            self._tried.update(attempt.uid for attempt in attempts)

    def group_settled(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """`TrialObserver`: note the decision of a group, unless it had an error or asked an extender, which shadows do not ask.

        Args:
            attempts: attempts of its members.
            at_once: whether no other event came while the group was decided.
        """
        if not self._tried:
            return
        began = self.clock()
        self._tried.difference_update(attempt.uid for attempt in attempts)
        decided = at_once and not any(map(_broke, attempts))
        beside = self._beside.get(attempts[0].profile.name, ()) if decided else ()
        takers = _note_decision(beside, attempts)
        self._charge(self.by_name.values(), self.clock() - began)
        if takers < len(self.by_name):
            for attempt in attempts:
                placement = self.live.placement(attempt.uid)
                if placement is not None:
                    self._note(EntryKind.POD_STANDS, placement.pod, placement.node)
                elif not at_once:  # the pod may have been deleted meanwhile
                    self._note(EntryKind.POD_LEFT, attempt.uid)

    def node_set(self, node: Node) -> None:
        """`ClusterListener`: note a node that appeared or changed."""
        self._note(EntryKind.NODE_SET, node)

    def node_removed(self, name: NodeName) -> None:
        """`ClusterListener`: note a removed node."""
        self._note(EntryKind.NODE_REMOVED, name)

    def pod_stands(self, pod: PodInfo, node: NodeName) -> None:
        """`ClusterListener`: note a pod on a node.

        Args:
            pod: the pod as it is now.
            node: its node.
        """
        if pod.uid != self._standing and pod.uid not in self._tried:
            self._note(EntryKind.POD_STANDS, pod, node)
        self._standing = ""

    def pod_left(self, uid: str) -> None:
        """`ClusterListener` and `ClusterEventObserver`: note a pod that left the cluster, or the queue unless it is on a node."""
        if self.by_name and uid not in self._tried and self.live.placement(uid) is None:
            self._note(EntryKind.POD_LEFT, uid)

    def object_put(self, item: ClusterObject) -> None:
        """`ClusterEventObserver`: note an object that appeared or changed."""
        self._note(EntryKind.OBJECT_PUT, item)

    def object_removed(self, item: ClusterObject) -> None:
        """`ClusterEventObserver`: note a removed object."""
        self._note(EntryKind.OBJECT_REMOVED, item)

    def _note(self, kind: EntryKind, subject: object, where: object = None) -> None:
        if not self.by_name:
            return
        began = self.clock() if self._timed() else 0.0
        for shadow in self.by_name.values():
            shadow.tape.note(kind, subject, where)
        if began:
            self._charge_sample(self.by_name.values(), began)

    def _timed(self) -> bool:
        """Return whether this note is timed."""
        self._notes += 1
        return self._notes % TIMED == 0

    def _charge_sample(self, shadows: Collection[Shadow], began: float) -> None:
        """Charge the shadows for notes. One timed note stands for many; if it was interrupted, only part of it counts."""
        self._charge(shadows, min(self.clock() - began, LONGEST_NOTE) * TIMED)

    def _charge(self, shadows: Collection[Shadow], seconds: float) -> None:
        now = self.clock()
        for shadow in shadows:
            shadow.pace.charge(seconds / len(shadows), now)


def _note_decision(shadows: Iterable[Shadow], attempts: Sequence[Attempt]) -> int:
    """Note a decision on each tape that takes it; return their number."""
    takers = [shadow.tape for shadow in shadows if shadow.tape.takes_decision(len(attempts))]
    if takers:
        decided = tuple(map(_decided, attempts))
        for tape in takers:
            tape.note_decision(decided)
    return len(takers)


def _broke(attempt: Attempt) -> bool:
    return attempt.failure is not None and attempt.failure.internal


def _decided(attempt: Attempt) -> Decided:
    result = attempt.schedule_result
    return Decided(attempt.pod, attempt.profile.generation, None if result is None else choice_of(result))
