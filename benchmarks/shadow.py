"""Measures the cost of a shadow: two schedulers on equal clusters decide the same pods in turns, one of them beside a shadow.

As in `records`, but each pod is confirmed, as a watch would. Time, by which the shadow is held to its budget, is the processor's,
and goes on in the slices of its own side alone.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from benchmarks import records
from benchmarks.records import SLICE, Side, collecting_as_the_operator, in_turns
from placewright.api.objects import ObjectMeta
from placewright.api.profile import SHADOW, ProfileSpec, SchedulingProfile, ShadowSettings, default_profile
from placewright.api.profilelimits import MAX_SHADOW_BUDGET, MIN_SHADOW_BUDGET
from placewright.cluster.observedcluster import ObservedCluster
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.kinds import Manifest
from placewright.offline.world import offline_evaluator
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Observer, Observers
from placewright.shadow.shadows import Shadows
from placewright_lab.bench.benchmark import ResultTable, row_of, table
from placewright_lab.bench.decisions import WARM_UP
from placewright_lab.bench.workloads import WORKLOADS

SUMMARY: Final = "what a shadow costs the live profile: with and without one, in turns"
_COLUMNS: Final = {
    "workload": "{workload}",
    "nodes": "{nodes:,}",
    "pods": "{pods:,}",
    "budget": "{budget_percent:g} %",
    "alone/s": "{per_second[0]:,.0f}",
    "with a shadow/s": "{per_second[1]:,.0f}",
    "ratio": "{ratio:.3f}",
    "wanted": "≥ {wanted:.3f}",
    "decided": "{decided:,}",
}
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

    @property
    def wanted(self) -> float:
        """The least ratio that the budget allows."""
        return 1 - self.budget_percent / 100


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    records.options(parser)
    usual = ShadowSettings().budget_percent
    budget = f"the shadow's, in percent, {MIN_SHADOW_BUDGET:g} to {MAX_SHADOW_BUDGET:g} (default: {usual:g})"
    parser.add_argument("--budget", type=_budget, default=usual, metavar="PERCENT", help=budget)


def _budget(text: str) -> float:
    """An argparse type for `spec.shadow.budgetPercent`."""
    try:
        percent = float(text)
    except ValueError:
        percent = 0.0
    if not MIN_SHADOW_BUDGET <= percent <= MAX_SHADOW_BUDGET:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed {MIN_SHADOW_BUDGET:g} to {MAX_SHADOW_BUDGET:g}")
    return percent


def run(args: argparse.Namespace) -> Sequence[ResultTable]:
    """Measure each workload on each number of nodes."""
    with collecting_as_the_operator():
        measured = [measure_shadow(name, nodes, args.slices, args.budget) for name in args.workloads for nodes in args.nodes]
    title = "shadows: decisions a second of the live profile, processor time, medians; ratio of all slices with a shadow to without"
    return (table(title, [row_of(each, "per_second", "ratio", "wanted") for each in measured], _COLUMNS),)


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
