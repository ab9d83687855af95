"""Measures the cost of decision records: two schedulers on equal clusters decide the same pods in turns, one of them with records.

In turns, because a machine is never the same for long: what slows one slice down slows its neighbour, too. A decision here goes from the
queue to a binding that takes no time, as that is where attempts end, and a silent observer stands where metrics would.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import default_profile
from placewright.cli.options import whole_number
from placewright.cluster.observedcluster import ObservedCluster
from placewright.explain.records import OVERALL, Records
from placewright.framework.runtime.handle import build_evaluator
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.runtime.rowchecks import NoNominations
from placewright.offline.kinds import Manifest
from placewright.offline.world import OfflineCluster
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.nominator import Nominator
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Attempt, Observer, Observers
from placewright.scheduler.cycle import SchedulingCycle
from placewright.scheduler.decisiondetail import DecisionDetail
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.scheduler import Ports, Scheduler
from placewright_lab.bench.benchmark import ResultTable, counts, names, row_of, table
from placewright_lab.bench.decisions import WARM_UP, Nothing, nothing_old_collected
from placewright_lab.bench.workloads import WORKLOADS

SUMMARY: Final = "what decision records cost: with and without them, in turns"
#: Pods decided before it is the other scheduler's turn.
SLICE: Final = 100
_USUAL: Final = ("plain", "openb-mix")
_COLUMNS: Final = {
    "workload": "{workload}",
    "nodes": "{nodes:,}",
    "pods": "{pods:,}",
    "records": "{records:,}",
    "µs without": "{microseconds_without:,.0f}",
    "ratio": "{ratio:.3f}",
    "quartiles": "{quartiles[0]:.3f} to {quartiles[1]:.3f}",
    "wanted": "≤ 1.05",
}


@dataclass(frozen=True, slots=True)
class RecordCost:
    """The result of the measurement.

    Attributes:
        records: kept at the end.
        without, with_records: seconds of processor time of each slice, in the order of slices.
    """

    workload: str
    nodes: int
    pods: int
    records: int
    without: tuple[float, ...]
    with_records: tuple[float, ...]

    @property
    def microseconds_without(self) -> float:
        """The time of one decision without records, by the median slice."""
        return statistics.median(self.without) / SLICE * 1e6

    @property
    def ratio(self) -> float:
        """How many times as long as without records a decision takes: of the median slices."""
        return statistics.median(self.with_records) / statistics.median(self.without)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile of the ratios of neighbouring slices."""
        ratios = [one / other for one, other in zip(self.with_records, self.without, strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, high


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a benchmark with two sides."""
    parser.add_argument("--workloads", type=names(tuple(WORKLOADS)), default=_USUAL, metavar="W,W,...", help=f"default: {','.join(_USUAL)}")
    parser.add_argument("--nodes", type=counts(1), default=(1000, 5000), metavar="N,N,...", help="default: 1000,5000")
    parser.add_argument("--slices", type=whole_number(2, 10_000), default=100, help=f"of {SLICE} pods on each side (default: 100)")


def run(args: argparse.Namespace) -> Sequence[ResultTable]:
    """Measure each workload on each number of nodes."""
    with collecting_as_the_operator():
        measured = [measure_records(name, nodes, args.slices) for name in args.workloads for nodes in args.nodes]
    title = "decision records: processor time with them over that without, of median slices; quartiles of neighbouring ones"
    return (table(title, [row_of(each, "ratio", "quartiles", "microseconds_without") for each in measured], _COLUMNS),)


@contextmanager
def collecting_as_the_operator() -> Iterator[None]:
    """Collect garbage as seldom as the operator does, while the context is open: the cost of code that keeps objects depends on it."""
    from placewright.handlers.operator import GC_THRESHOLDS  # noqa: PLC0415 - it brings Kopf along

    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def measure_records(name: str, nodes: int, slices: int) -> RecordCost:
    """Decide so many slices of a workload's pods, at least two, with records and without. Raises `KeyError` for an unknown workload."""
    workload = WORKLOADS[name]
    profile = resolve(default_profile(preset=workload.preset), in_tree())
    before, pods = workload.cluster(nodes), workload.pods(slices * SLICE + WARM_UP)
    records = Records(time.time)
    sides = [Side(before, pods, profile), Side(before, pods, profile, records)]
    plain, kept = asyncio.run(in_turns(sides, slices))
    return RecordCost(name, nodes, slices * SLICE, len(records.last(OVERALL)), tuple(plain), tuple(kept))


async def in_turns(sides: Sequence[Side], slices: int) -> list[list[float]]:
    """Seconds of processor time of each slice, side by side, after a warm-up."""
    for side in sides:
        await side.decide(WARM_UP)
    seconds: list[list[float]] = [[] for _ in sides]
    with nothing_old_collected:
        for number in range(slices):
            for place in (0, 1) if number % 2 else (1, 0):
                start = time.process_time()
                await sides[place].decide(SLICE)
                seconds[place].append(time.process_time() - start)
    return seconds


class Side:
    """One of two schedulers, on a cluster of its own.

    Attributes:
        cluster: its columns.
        evaluator: of the profile.
        queue: of its pods.
        observers: who hears of its decisions.
    """

    def __init__(
        self, before: Sequence[Manifest], pods: Sequence[Manifest], profile: ResolvedProfile, records: Records | None = None
    ) -> None:
        """`records`: are kept by this side, as the operator keeps them."""
        world = OfflineCluster(ObservedCluster())
        for manifest in (*before, *pods):
            world.add(manifest, "benchmark")
        self.cluster = world.cluster
        evaluator = self.evaluator = build_evaluator(profile, in_tree(), world.cluster, _Instantly(), NoNominations())
        policy = ProfilePolicy(evaluator.runtime)
        self.observers = self._observers([_Silent()] if records is None else [_Silent(), records])
        self._absent = 0.0
        self._left = time.perf_counter()
        self._detail = DecisionDetail(self._time_of_its_own, on=records is not None)
        self.queue = SchedulingQueue(lambda _name: policy, time.monotonic)
        cycle = SchedulingCycle(world.cluster, Nominator(), random.Random(0), self._detail)
        self._bindings: list[Coroutine[Any, Any, Any]] = []
        ports = Ports(Nothing(), Nothing(), Nothing(), self.observers, start=self._bindings.append)
        self._scheduler = Scheduler(world.cluster, self.queue, lambda _name: evaluator, cycle, ports, time.monotonic)
        for pod in world.pending.values():
            self.queue.add(pod)

    def _observers(self, members: Sequence[Observer]) -> Observers:
        return Observers(members)

    def _time_of_its_own(self) -> float:
        """Seconds of its own turns: the best nodes are told within a share of the time, and the other's turns are none of it."""
        return time.perf_counter() - self._absent

    async def decide(self, count: int) -> None:
        """The next pods of the queue."""
        self._absent += time.perf_counter() - self._left
        for _ in range(count):
            queued = self.queue.pop()
            if queued is None:
                raise RuntimeError("the queue ran empty before the benchmark was over")
            await self.decide_one(queued)
        if self._scheduler.counts.errors:
            raise RuntimeError(f"{self._scheduler.counts.errors} decisions broke; their errors are in the log")
        self._left = time.perf_counter()

    async def decide_one(self, queued: QueuedPod) -> None:
        """A pod, and its binding."""
        self._scheduler.schedule_one(queued)
        while self._bindings:
            await self._bindings.pop()


class _Instantly:
    """Binds at once."""

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Done."""

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """Never called: another port binds."""
        await send()


class _Silent:
    """An observer that does nothing."""

    def attempt_ended(self, attempt: Attempt) -> None:
        """Not heard."""

    def pod_entered(self, place: str, event: str) -> None:
        """Not heard."""
