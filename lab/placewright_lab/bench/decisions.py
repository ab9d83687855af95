"""How fast pods are decided without an API server: the real queue, columns and cycle, and a binding that always succeeds.

One decision is: pop, PreFilter, Filter, PreScore, Score, choose, assume, Reserve, Permit. Every node is evaluated.
Nothing here waits, so the processor's time is measured: on a machine that has nothing else to do it is the time on the clock.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

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

RUNS: Final = 3
WARM_UP: Final = 200


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table.

    Attributes:
        deployments: from how many the pods come; None where the workload does not say.
        running: pods on nodes before the first decision.
        placed, pending: the measured pods, by their outcome.
        wanted: decisions a second; None where nothing was set.
        seconds: of processor time, of each run.
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
        """Decisions a second, by the median run."""
        return self.pods / statistics.median(self.seconds)

    @property
    def name(self) -> str:
        """The workload, with the number of Deployments."""
        return self.workload if self.deployments is None else f"{self.workload} of {self.deployments}"


class Nothing:
    """Ports to nowhere."""

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        """Drop the event: a benchmark has no reader of events."""

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Drop the condition: a benchmark has no reader of conditions."""

    def nomination_cleared(self, pod: PodInfo) -> None:
        """Nor nominations."""

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        """Drop the condition."""

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Ignored: the benchmark evicts no pod."""


class DecisionWorkload(Protocol):
    """The pods to place, and the cluster."""

    @property
    def wanted(self) -> int | None:
        """Decisions a second that we want; None where nothing was set."""

    @property
    def preset(self) -> str | None:
        """The evaluator of the profile that decides."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """On how many nodes it is measured by default."""

    @property
    def count(self) -> int:
        """How many pods by default."""

    def cluster(self, nodes: int) -> list[Manifest]:
        """Return the nodes, and the pods on them."""

    def pods(self, count: int) -> list[Manifest]:
        """Pending pods."""


@dataclass(frozen=True, slots=True)
class DecisionBenchmark:
    """A workload, and how it is decided.

    Attributes:
        deployments: from how many the pods come; None where the workload does not say.
        percentage: of nodes to score; 0 for all.
    """

    name: str
    workload: DecisionWorkload
    deployments: int | None = None
    percentage: int = 0

    def measure(self, nodes: int, pods: int) -> Measurement:
        """Decide `pods` pods on `nodes` nodes, `RUNS` times on a fresh cluster each."""
        workload = self.workload
        before = workload.cluster(nodes)
        pending = workload.pods(pods + WARM_UP)
        profile = resolve(default_profile(preset=workload.preset, percentage_of_nodes_to_score=self.percentage), in_tree())
        outcomes = [run_once(before, pending, profile) for _ in range(RUNS)]
        placed, seconds = outcomes[-1][1], tuple(seconds for seconds, _ in outcomes)
        running = len(before) - nodes
        return Measurement(self.name, self.deployments, nodes, running, pods, placed, pods - placed, workload.wanted, seconds)


def run_once(before: Sequence[Manifest], pods: Sequence[Manifest], profile: ResolvedProfile) -> tuple[float, int]:
    """(seconds, placed) of everything after the warm-up."""
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
    """(seconds of processor time, successes) of so many decisions about pods or groups, after others that are not counted.

    Raises `RuntimeError` when the queue runs empty before, or a decision breaks.
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
    """Keeps old objects out of garbage collection until the outermost `with` ends. Reentrant."""

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


#: Collects garbage, and then nothing that is left, so that a cluster's size costs no time while this is open. A program with a large heap
#: of its own opens it once around all that it measures, and pays for its heap once.
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
