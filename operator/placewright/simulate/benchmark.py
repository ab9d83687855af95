"""How fast pods are decided without an API server: the real queue, columns and cycle, and a binding that always succeeds.

One decision is: pop, PreFilter, Filter, PreScore, Score, choose, assume, Reserve, Permit. Every node is evaluated.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.ports import EventType
from placewright.scheduler.scheduler import Ports, Scheduler
from placewright.simulate.workload import GPU_PODS, PodShape, make_pods, mixed_nodes, plain_pods
from placewright.simulate.world import offline_cycle, offline_evaluator, world_from

Manifest = dict[str, Any]
#: Makes that many pending pods.
Workload = Callable[[int], list[Manifest]]

RUNS: Final = 3
WARM_UP: Final = 200
_VARIANTS: Final = 22


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table.

    Attributes:
        placed, pending: what became of the measured pods.
        seconds: of each run.
    """

    workload: str
    nodes: int
    pods: int
    placed: int
    pending: int
    seconds: tuple[float, ...]

    @property
    def per_second(self) -> float:
        """Decisions a second, by the median run."""
        return self.pods / statistics.median(self.seconds)

    @property
    def microseconds(self) -> float:
        """Per decision, by the median run."""
        return 1e6 / self.per_second


class Nothing:
    """Ports to nowhere."""

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        """Nobody reads events here."""

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Nobody reads conditions here."""

    def nomination_cleared(self, pod: PodInfo) -> None:
        """Nor nominations."""

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Nobody is evicted here."""


def openb_mix(count: int) -> list[Manifest]:
    """Pods in the proportions of a cluster that shares GPUs, with some 150 distinct requests, as the openb trace has them."""
    shapes = [_varied(shape, step) for shape in GPU_PODS for step in range(_VARIANTS)]
    return make_pods(shapes, count, seed=0)


def _varied(shape: PodShape, step: int) -> PodShape:
    return shape._replace(cpu_milli=shape.cpu_milli // 4 + 250 * step, memory_mib=shape.memory_mib // 4 + 512 * step)


WORKLOADS: Final[dict[str, Workload]] = {"plain": plain_pods, "openb-mix": openb_mix}


def measure(workload: str, nodes: int, pods: int) -> Measurement:
    """Decide `pods` pods on `nodes` nodes, `RUNS` times on a fresh cluster each."""
    manifests = WORKLOADS[workload](pods + WARM_UP)
    outcomes = [_run(manifests, nodes) for _ in range(RUNS)]
    placed = outcomes[-1][1]
    return Measurement(workload, nodes, pods, placed, pods - placed, tuple(seconds for seconds, _ in outcomes))


def _run(pods: Sequence[Manifest], nodes: int) -> tuple[float, int]:
    """(seconds, placed) of everything after the warm-up."""
    world = world_from([*mixed_nodes(nodes), *pods], "benchmark")
    evaluator = offline_evaluator(resolve(SchedulingProfile(), in_tree()), in_tree(), world.cluster)
    policy = ProfilePolicy(evaluator.runtime)
    queue = SchedulingQueue(lambda _name: policy, time.monotonic)
    ports = Ports(Nothing(), Nothing(), Nothing())
    scheduler = Scheduler(world.cluster, queue, lambda _name: evaluator, offline_cycle(world.cluster), ports, time.monotonic)
    for pod in world.pending.values():
        queue.add(pod)
    _decide(scheduler, WARM_UP)
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    placed = _decide(scheduler, len(pods) - WARM_UP)
    seconds = time.perf_counter() - start
    gc.unfreeze()
    if scheduler.counts.errors:
        raise RuntimeError(f"{scheduler.counts.errors} decisions broke; their errors are in the log")
    return seconds, placed


def _decide(scheduler: Scheduler, count: int) -> int:
    placed = 0
    for _ in range(count):
        queued = scheduler.queue.pop()
        if queued is None:
            raise RuntimeError("the queue ran empty before the benchmark was over")
        binding = scheduler.schedule(queued)
        if binding is not None:
            binding.close()  # bound, as far as this benchmark is concerned
            scheduler.queue.done(queued.uid)
            placed += 1
    return placed


