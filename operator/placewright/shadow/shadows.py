"""All shadows of one scheduler: notes events and decisions on their tapes, and runs each in its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import ShadowStatus
from placewright.cluster.objects import ClusterObject
from placewright.cluster.observedcluster import ObservedCluster
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


class Shadows(ClusterEventObserver):
    """Listens to the live cluster, to the event handlers' objects and pods, and to decisions as one of the scheduler's observers.

    The three only note; the work is done in `work`, which `run` calls.
    """

    def __init__(
        self,
        live: ObservedCluster,
        build: Build,
        clock: Clock,
        now: Callable[[], datetime],
        seed: int = 0,
    ) -> None:
        """Have no shadows yet.

        Args:
            live: the live cluster.
            build: makes the plugins of a profile around a cluster, and raises any error of their constructors.
            clock: seconds, finer than a microsecond.
            now: the time in reports.
            seed: of each shadow's choices among nodes of equal totals.
        """
        self._live = live
        self._build = build
        self._clock = clock
        self._now = now
        self._seed = seed
        self._shadows: dict[str, Shadow] = {}
        self._beside: dict[str, list[Shadow]] = {}
        self._some = asyncio.Event()
        self._notes = 0
        #: The uid of a pod whose placement was noted with its decision, and is about to be shown by the cluster.
        self._standing = ""
        #: Members of groups that are being tried, whose placements may be taken back.
        self._tried: set[str] = set()

    def __len__(self) -> int:
        return len(self._shadows)

    def adopt(self, profiles: Iterable[ResolvedProfile]) -> None:
        """Take the shadows in effect. A known generation goes on, a new one begins anew, and a paused one does not work.

        Args:
            profiles: of the shadows.
        """
        known, self._shadows, self._beside = self._shadows, {}, {}
        for profile in profiles:
            if profile.shadows is None or profile.settings.paused:
                continue
            found = known.get(profile.name)
            if found is None or found.profile is not profile:
                found = Shadow(profile, self._live, self._build, self._clock, self._now, self._seed)
            self._shadows[profile.name] = found
            self._beside.setdefault(profile.shadows, []).append(found)
        self._live.report_to(self if self._shadows else None)
        if self._shadows:
            self._some.set()
        else:
            self._some.clear()

    @property
    def by_name(self) -> Mapping[str, Shadow]:
        """The shadows at work, by name of the profile."""
        return self._shadows

    def report(self, name: str) -> ShadowStatus | None:
        """Return the last report of a shadow; None for a profile that is no shadow, or is paused."""
        found = self._shadows.get(name)
        return None if found is None else found.report

    # --- turns ---------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Call `work` in its time, until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(self.work())

    def work(self) -> float:
        """Do a piece of work of each shadow that is due. Returns the seconds until the next may be due."""
        now, soonest = self._clock(), LOOK_SECONDS
        for shadow in tuple(self._shadows.values()):
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
        began = self._clock() if self._timed() else 0.0
        decided: Decided | None = None
        takers = 0
        for shadow in beside:
            if shadow.tape.takes_decision():
                takers += 1
                decided = decided or _decided(attempt)
                shadow.tape.note_decision(decided)
        if takers == len(self._shadows) and attempt.schedule_result is not None:
            self._standing = attempt.uid  # the entry tells all shadows of the placement
        if began:
            self._charge_sample(beside, began)

    def group_tried(self, attempts: Sequence[Attempt]) -> None:
        """`TrialObserver`: note nothing of a group's members until it is settled, because most trial placements are taken back."""
        if self._shadows:
            self._tried.update(attempt.uid for attempt in attempts)

    def group_settled(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """`TrialObserver`: note the decision of a group, unless it had an error or asked an extender, which shadows do not ask.

        Args:
            attempts: of its members.
            at_once: the group was decided in one go.
        """
        if not self._tried:
            return
        began = self._clock()
        self._tried.difference_update(attempt.uid for attempt in attempts)
        decided = at_once and not any(map(_broke, attempts))
        beside = self._beside.get(attempts[0].profile.name, ()) if decided else ()
        takers = [shadow.tape for shadow in beside if shadow.tape.takes_decision(len(attempts))]
        if takers:
            members = tuple(map(_decided, attempts))
            for tape in takers:
                tape.note_group(members)
        self._charge(self._shadows.values(), self._clock() - began)
        if len(takers) < len(self._shadows):
            for attempt in attempts:
                placement = self._live.placement(attempt.uid)
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
            pod: as it is now.
            node: its node.
        """
        if pod.uid != self._standing and pod.uid not in self._tried:
            self._note(EntryKind.POD_STANDS, pod, node)
        self._standing = ""

    def pod_left(self, uid: str) -> None:
        """`ClusterListener` and `ClusterEventObserver`: note a pod that left the cluster, or the queue unless it is on a node."""
        if self._shadows and uid not in self._tried and self._live.placement(uid) is None:
            self._note(EntryKind.POD_LEFT, uid)

    def object_put(self, item: ClusterObject) -> None:
        """`ClusterEventObserver`: note an object that appeared or changed."""
        self._note(EntryKind.OBJECT_PUT, item)

    def object_removed(self, item: ClusterObject) -> None:
        """`ClusterEventObserver`: note a removed object."""
        self._note(EntryKind.OBJECT_REMOVED, item)

    def _note(self, kind: EntryKind, subject: object, where: object = None) -> None:
        if not self._shadows:
            return
        began = self._clock() if self._timed() else 0.0
        for shadow in self._shadows.values():
            shadow.tape.note(kind, subject, where)
        if began:
            self._charge_sample(self._shadows.values(), began)

    def _timed(self) -> bool:
        """Whether this note is timed."""
        self._notes += 1
        return self._notes % TIMED == 0

    def _charge_sample(self, shadows: Collection[Shadow], began: float) -> None:
        """Charge the shadows for notes: one timed note stands for many, without an interruption in it."""
        self._charge(shadows, min(self._clock() - began, LONGEST_NOTE) * TIMED)

    def _charge(self, shadows: Collection[Shadow], seconds: float) -> None:
        now = self._clock()
        for shadow in shadows:
            shadow.pace.charge(seconds / len(shadows), now)


def _broke(attempt: Attempt) -> bool:
    return attempt.failure is not None and attempt.failure.internal


def _decided(attempt: Attempt) -> Decided:
    result = attempt.schedule_result
    return Decided(attempt.pod, attempt.profile.generation, None if result is None else choice_of(result))
