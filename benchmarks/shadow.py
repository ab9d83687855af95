"""Measures the cost of a shadow: two schedulers on equal clusters decide the same pods in turns, one of them beside a shadow.

As `benchrecords`, but that each pod is confirmed, as a watch would. Time, by which the shadow is held to its budget, is the processor's,
and goes on in the slices of its own side alone.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from placewright.api.objects import ObjectMeta
from placewright.api.profile import SHADOW, ProfileSpec, SchedulingProfile, ShadowSettings, default_profile
from placewright.cluster.observedcluster import ObservedCluster
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.kinds import Manifest
from placewright.offline.world import offline_evaluator
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Observer, Observers
from placewright.shadow.shadows import Shadows
from placewright_lab.bench.decisions import WARM_UP
from placewright_lab.bench.recordcost import SLICE, Side, in_turns
from placewright_lab.bench.workloads import WORKLOADS

_LIVE: Final = "live"
_SHADOW: Final = "shadow"
#: Decisions after which a shadow gets its turn: the scheduler's own slices take some milliseconds, too.
_LOOK: Final = 20


@dataclass(frozen=True, slots=True)
class ShadowCost:
    """The result of the measurement.

    Attributes:
        budget_percent: of the time, that the shadow may take.
        decided: how many of the measured pods the shadow decided by the end.
        without, with_shadow: seconds of processor time of each slice, in the order of slices.
    """

    workload: str
    nodes: int
    pods: int
    budget_percent: float
    decided: int
    without: tuple[float, ...]
    with_shadow: tuple[float, ...]

    @property
    def per_second(self) -> tuple[float, float]:
        """Decisions a second of the live profile, without the shadow and with it, by the median slice."""
        return SLICE / statistics.median(self.without), SLICE / statistics.median(self.with_shadow)

    @property
    def ratio(self) -> float:
        """Decisions a second with a shadow over those without: of all slices, as the shadow works in some of them more than in others."""
        return sum(self.without) / sum(self.with_shadow)


def measure_shadow(name: str, nodes: int, slices: int, budget_percent: float) -> ShadowCost:
    """Decide so many slices of a workload's pods, with a shadow and without. Raises `KeyError` for an unknown workload."""
    workload = WORKLOADS[name]
    live = resolve(default_profile(_LIVE, preset=workload.preset), in_tree())
    before, pods = workload.cluster(nodes), workload.pods(slices * SLICE + WARM_UP)
    alone, shadowed = _Side(before, pods, live), _Side(before, pods, live)
    shadowed.attach(workload.preset, budget_percent)
    plain, beside = asyncio.run(in_turns([alone, shadowed], slices))
    decided = shadowed.shadows.by_name[_SHADOW].figures.decided
    return ShadowCost(name, nodes, slices * SLICE, budget_percent, decided, tuple(plain), tuple(beside))


class _Side(Side):
    """A side whose pods are shown on their nodes by a watch; it has a place for shadows, as an operator does, and perhaps one there.

    That works between two decisions whenever its time has come.
    """

    def __init__(self, before: Sequence[Manifest], pods: Sequence[Manifest], profile: ResolvedProfile) -> None:
        self._elsewhere = 0.0
        self._own = 0.0
        self._look_at = 0.0
        self._decided = 0
        super().__init__(before, pods, profile)

    def _observers(self, members: Sequence[Observer]) -> Observers:
        assert isinstance(self.cluster, ObservedCluster)
        self.shadows = Shadows(
            self.cluster, lambda each, cluster: offline_evaluator(each, in_tree(), cluster), self._clock, lambda: datetime.now(UTC)
        )
        return Observers(members, (self.shadows.decided,), trials=(self.shadows,))

    def attach(self, preset: str | None, budget_percent: float) -> None:
        """A shadow that weighs resources more, which knows the cluster before anything is measured."""
        spec = ProfileSpec(
            preset=preset, mode=SHADOW, shadows=_LIVE, shadow=ShadowSettings(budget_percent=budget_percent), weights={"NodeResourcesFit": 5}
        )
        self.shadows.adopt([resolve(SchedulingProfile(metadata=ObjectMeta(name=_SHADOW), spec=spec), in_tree())])
        found = self.shadows.by_name[_SHADOW]
        while not found.idle:
            found.work()
        self._own = self._clock()
        found.pace.due = self._own

    def _clock(self) -> float:
        return time.process_time() - self._elsewhere

    async def decide(self, count: int) -> None:
        self._elsewhere = time.process_time() - self._own
        await super().decide(count)
        self._own = self._clock()

    async def decide_one(self, queued: QueuedPod) -> None:
        await super().decide_one(queued)
        placement = self.cluster.placement(queued.uid)
        if placement is not None:
            self.cluster.set_pod(queued.pod.on(placement.node))
        self._decided += 1
        if len(self.shadows) and self._decided % _LOOK == 0 and (now := self._clock()) >= self._look_at:
            self._look_at = now + self.shadows.work()
