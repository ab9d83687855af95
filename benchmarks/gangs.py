"""Measures decisions about groups of pods without an API server: the real queue, columns and cycle, and bindings that always succeed.

One decision is: pop, take the other members along, and for each of them PreFilter, Filter, PreScore, Score, choose, assume, Reserve; then
Permit for all. The members of a group are equal, as a job's are. As in `benchmark`, the processor's time is measured. The decisions run on
an event loop, as the operator's do. A probe measures how long they hold it.

Measures how long an event loop was held: the longest time between two of its turns, seen by another task on it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from placewright.api.podgroups import GROUP_LABEL
from placewright.cli.options import whole_number
from placewright.offline.kinds import Manifest
from placewright.offline.world import world_from
from placewright.scheduler.scheduler import Scheduler
from placewright.scheduler.turns import Turns
from placewright_lab.bench.benchmark import MOST_NODES, MOST_PODS, ResultTable, row_of, table
from placewright_lab.bench.decisions import RUNS, nothing_old_collected, offline_scheduler, openb_mix
from placewright_lab.bench.madeup import gpu_nodes
from placewright_lab.demo.feed import background
from placewright_lab.readers.openb import NAMESPACE


class LoopProbe:
    """Looks at the clock at every turn of the running event loop, while `looking` is open.

    Attributes:
        longest: the longest time between two turns, in seconds.
        turns: number of turns.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        """Measure nothing yet. `clock` is the processor's time, so that a machine's other work does not count."""
        self.longest = 0.0
        self.turns = 0
        self._clock = clock

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Self]:
        """Look for as long as the context is open."""
        async with background(self._look(), "loop probe"):
            await asyncio.sleep(0)
            yield self
            await asyncio.sleep(0)

    async def _look(self) -> None:
        before = self._clock()
        while True:
            await asyncio.sleep(0)
            now = self._clock()
            self.longest = max(self.longest, now - before)
            self.turns += 1
            before = now


SUMMARY: Final = "groups of pods that are placed all or none, without an API server"
NODES: Final = 1523
#: Pods of all groups together, by default.
PODS: Final = 2400
MEMBERS: Final = 8
WANTED: Final = 200
_WARM_UP_PODS: Final = 160
_COLUMNS: Final = {
    "nodes": "{nodes:,}",
    "groups": "{groups:,}",
    "members": "{members:,}",
    "groups/s": "{per_second:,.1f}",
    "wanted": "≥ {wanted}",
    "µs/pod": "{microseconds:,.0f}",
    "arriving µs/pod": "{arriving:,.0f}",
    "loop held ms": "{held:,.1f}",
    "placed": "{placed:,}",
}


@dataclass(frozen=True, slots=True)
class Groups:
    """One line of the table.

    Attributes:
        members: number of members of each group; all of them are needed.
        placed: groups that found nodes.
        seconds: processor time of each run.
        arrivals: seconds in which a pod was taken into the queue, of each run.
        holds: the longest time for which the event loop was held, in seconds, of each run.
    """

    nodes: int
    groups: int
    members: int
    placed: int
    seconds: tuple[float, ...]
    arrivals: tuple[float, ...]
    holds: tuple[float, ...]

    @property
    def per_second(self) -> float:
        """Groups decided a second, by the median run."""
        return self.groups / statistics.median(self.seconds)

    @property
    def microseconds(self) -> float:
        """The time of a member's decision, by the median run."""
        return 1e6 * statistics.median(self.seconds) / (self.groups * self.members)

    @property
    def wanted(self) -> int | None:
        """Groups a second that are wanted; None for other sizes than the usual one."""
        return WANTED if self.members == MEMBERS else None

    @property
    def arriving(self) -> float:
        """Microseconds in which a pod was taken into the queue, by the median run."""
        return 1e6 * statistics.median(self.arrivals)

    @property
    def held(self) -> float:
        """The longest time for which the event loop was held, in milliseconds."""
        return 1000 * max(self.holds)


class _Run(NamedTuple):
    """The result of one run; times in seconds."""

    seconds: float
    placed: int
    arrival: float
    hold: float


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--nodes", type=whole_number(1, MOST_NODES), default=NODES, help=f"default: {NODES}, as openb has")
    parser.add_argument("--groups", type=whole_number(1, MOST_PODS), help=f"default: as many as {PODS} pods make, at least 1")
    parser.add_argument("--members", type=whole_number(1, 10_000), default=MEMBERS, help=f"of each group (default: {MEMBERS})")


def run(args: argparse.Namespace) -> Sequence[ResultTable]:
    """Measure groups of one size."""
    row = row_of(measure_groups(args.nodes, args.groups, args.members), "per_second", "microseconds", "wanted", "arriving", "held")
    return (table(f"groups: members alike, processor time, median of {RUNS} runs", [row], _COLUMNS),)


def measure_groups(nodes: int = NODES, groups: int | None = None, members: int = MEMBERS) -> Groups:
    """Decide groups of pods in the openb proportions on nodes like openb's, `RUNS` times on a fresh cluster each.

    Raises `RuntimeError` if a decision breaks.
    """
    groups = max(PODS // members, 1) if groups is None else groups
    warm_up = max(_WARM_UP_PODS // members, 1)
    manifests = [*gpu_nodes(nodes), *_groups(groups + warm_up, members)]
    runs = [_run(manifests, groups, warm_up) for _ in range(RUNS)]
    seconds, placed, arrivals, holds = zip(*runs, strict=True)
    return Groups(nodes, groups, members, placed[-1], seconds, arrivals, holds)


def _groups(groups: int, members: int) -> list[Manifest]:
    """Make PodGroups and their pods. The pods of each are copies of one of the mix."""
    made: list[Manifest] = []
    for index, shape in enumerate(openb_mix(groups)):
        name = f"job-{index:05d}"
        meta = {"name": name, "namespace": NAMESPACE, "uid": name}
        made.append({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": members}})
        labels = {**shape["metadata"]["labels"], GROUP_LABEL: name}
        made += [
            {**shape, "metadata": {"name": f"{name}-{member}", "namespace": NAMESPACE, "uid": f"{name}-{member}", "labels": labels}}
            for member in range(members)
        ]
    return made


def _run(manifests: Sequence[Manifest], groups: int, warm_up: int) -> _Run:
    """Measure one run after the warm-up; the arrivals include it."""
    world = world_from(manifests, "benchmark")
    scheduler = offline_scheduler(world)
    start = time.process_time()
    for pod in world.pending.values():
        scheduler.queue.add(pod)
    arrival = (time.process_time() - start) / len(world.pending)
    return asyncio.run(_decided(scheduler, groups, warm_up, arrival))


async def _decided(scheduler: Scheduler, groups: int, warm_up: int, arrival: float) -> _Run:
    for _ in range(warm_up):
        await _decide(scheduler)
    with nothing_old_collected:
        async with LoopProbe().looking() as probe:
            start = time.process_time()
            placed = sum([await _decide(scheduler) for _ in range(groups)])
            seconds = time.process_time() - start
    if scheduler.counts.errors:
        raise RuntimeError(f"{scheduler.counts.errors} decisions broke; their errors are in the log")
    return _Run(seconds, placed, arrival, probe.longest)


async def _decide(scheduler: Scheduler) -> bool:
    """Whether the next group was placed; its pods are gone afterwards."""
    queued = scheduler.queue.pop()
    if queued is None:
        raise RuntimeError("the queue ran empty before the benchmark was over")
    before = scheduler.counts.scheduled
    turns = Turns(time.monotonic, lambda: True)
    await turns.take(scheduler.schedule_in_steps(queued, turns))
    await asyncio.sleep(0)  # as after each slice of decisions
    placed = scheduler.counts.scheduled > before
    for flight in tuple(scheduler.queue.in_flight):
        scheduler.queue.done(flight.queued.uid)
    return placed
