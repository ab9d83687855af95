"""The speed of decisions without an API server: the real queue, columns and cycle, and a binding that always succeeds.

One decision is: pop, PreFilter, Filter, PreScore, Score, choose, assume, Reserve, Permit. Every node is evaluated. Nothing here waits, so
that processor time is measured. On an idle machine it equals the time on the clock.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.objects import Condition, NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import default_profile
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.kinds import Manifest
from placewright.offline.world import offline_cycle, offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.ports import EventType
from placewright.scheduler.scheduler import Ports, Scheduler
from placewright_lab.bench.workloads import Workload

RUNS: Final = 3
WARM_UP: Final = 200


@dataclass(frozen=True, slots=True)
class Measurement:
    """A line of the table.

    Attributes:
        deployments: number of Deployments that the pods come from; None if the workload has none.
        running: pods on nodes before the first decision.
        placed, pending: measured pods by their outcome.
        wanted: decisions a second that we want; None without a goal.
        seconds: processor seconds of each run.
    """

    workload: str
    deployments: int | None
    nodes: int
    running: int
    pods: int
    placed: int
    pending: int
    wanted: int | None
    seconds: tuple[float, ...]

    @property
    def per_second(self) -> float:
        """Decisions a second in the median run."""
        return self.pods / statistics.median(self.seconds)

    @property
    def name(self) -> str:
        """Name of the workload, with the number of Deployments."""
        return self.workload if self.deployments is None else f"{self.workload} of {self.deployments}"


class Nothing:
    """The ports of a scheduler without an API server. They drop everything."""

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        """Drop the event: a benchmark has no reader of events."""

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Drop the condition: a benchmark has no reader of conditions."""

    def nomination_cleared(self, pod: PodInfo) -> None:
        """Drop the nomination."""

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        """Drop the condition."""

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Evict nothing, because the benchmark evicts no pod."""


@dataclass(frozen=True, slots=True)
class DecisionBenchmark:
    """A workload, and the setting of its profile.

    Attributes:
        deployments: number of Deployments that the pods come from; None if the workload has none.
        percentage: percentage of nodes to score; 0 for all.
    """

    name: str
    workload: Workload
    deployments: int | None = None
    percentage: int = 0

    def measure(self, nodes: int, pods: int) -> Measurement:
        """Decide so many pods on so many nodes, `RUNS` times on a fresh cluster each."""
        workload = self.workload
        before = workload.cluster(nodes)
        pending = workload.pods(pods + WARM_UP)
        profile = resolve(default_profile(preset=workload.preset, percentage_of_nodes_to_score=self.percentage), in_tree())
        outcomes = [run_once(before, pending, profile) for _ in range(RUNS)]
        placed, seconds = outcomes[-1][1], tuple(seconds for seconds, _ in outcomes)
        running = len(before) - nodes
        return Measurement(self.name, self.deployments, nodes, running, pods, placed, pods - placed, workload.wanted, seconds)


def run_once(before: Sequence[Manifest], pods: Sequence[Manifest], profile: ResolvedProfile) -> tuple[float, int]:
    """Decide all pods. Return the processor seconds and the number of placed pods after the warm-up."""
    world = world_from([*before, *pods], "benchmark")
    evaluator = offline_evaluator(profile, in_tree(), world.cluster)
    policy = ProfilePolicy(evaluator.runtime)
    queue = SchedulingQueue(lambda _name: policy, time.monotonic)
    ports = Ports(Nothing(), Nothing(), Nothing(), start=bound_at_once)
    scheduler = Scheduler(world.cluster, queue, lambda _name: evaluator, offline_cycle(world.cluster), ports, time.monotonic)
    for pod in world.pending.values():
        queue.add(pod)
    return timed(scheduler, len(pods) - WARM_UP, WARM_UP)


def timed(scheduler: Scheduler, count: int, warm_up: int) -> tuple[float, int]:
    """Make so many decisions about pods or groups, after a warm-up. Return the processor seconds, and the number of successes.

    Raises `RuntimeError` if the queue runs empty before, or if a decision fails with an error.
    """
    _decide(scheduler, warm_up)
    with nothing_old_collected:
        start = time.process_time()
        placed = _decide(scheduler, count)
        seconds = time.process_time() - start
    if scheduler.counts.errors:
        raise RuntimeError(f"{scheduler.counts.errors} decisions broke; their errors are in the log")
    return seconds, placed


def bound_at_once(binding: Coroutine[Any, Any, Any]) -> None:
    """Close the binding without running it: for these benchmarks the pod is bound."""
    binding.close()


class _Frozen:
    """A context that keeps old objects out of garbage collection until the outermost `with` ends."""

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        gc.collect()
        gc.freeze()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            gc.unfreeze()


#: A context that collects garbage once, and then leaves all remaining objects alone. So a cluster's size costs no time. A program with
#: a large heap opens it once around all measurements, and so pays for its heap once.
nothing_old_collected: Final = _Frozen()


def _decide(scheduler: Scheduler, count: int) -> int:
    placed = 0
    for _ in range(count):
        queued = scheduler.queue.pop()
        if queued is None:
            raise RuntimeError("the queue ran empty before the benchmark was over")
        before = scheduler.counts.scheduled
        scheduler.schedule_one(queued)
        if scheduler.counts.scheduled > before:
            for flight in tuple(scheduler.queue.in_flight):
                scheduler.queue.done(flight.queued.uid)
            placed += 1
    return placed
