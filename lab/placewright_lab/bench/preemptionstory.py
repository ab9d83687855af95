"""How fast pods that preempt get their nodes: the whole story, without an API server.

As in scheduler_perf's PreemptionBasic every node is full of less important pods, and each preemptor needs the room of three of them. A
preemptor fails, is nominated, its victims are evicted; each victim's end comes as news, as a watch brings it, and so does the nomination.
Then the preemptor is decided again, and bound. Evictions and Bindings succeed at once. The processor's time is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from placewright.api.objects import NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import default_profile
from placewright.framework.events import ClusterEvent, QueueingHint, QueueingHintFn
from placewright.framework.runtime.handle import NoVolumeWriter, ProfileHandle
from placewright.offline.kinds import Manifest
from placewright.offline.world import world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.events import A_SLICE
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.attempts import Counts
from placewright.scheduler.cycle import SchedulingCycle
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.scheduler import Ports, Scheduler
from placewright_lab.bench.decisions import Nothing, nothing_old_collected
from placewright_lab.bench.loopprobe import LoopProbe
from placewright_lab.readers.openb import node_manifest, pod_manifest

NODES: Final = 5000
PREEMPTORS: Final = 1000
#: Running pods that fill a node, and how many of them a preemptor needs the room of.
PER_NODE: Final = 4
VICTIMS: Final = 3
#: Seconds without an attempt after which the story does not go on.
_STUCK_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class PreemptionStory:
    """One line of the table.

    Attributes:
        evicted: victims.
        attempts: decisions, ones that found no node included.
        asked: hints that were asked.
        seconds: of processor time, until the last preemptor was bound.
        hold: the longest time for which the event loop was held, in seconds.
    """

    nodes: int
    preemptors: int
    evicted: int
    attempts: int
    asked: int
    seconds: float
    hold: float

    @property
    def per_second(self) -> float:
        """Preemptors a second."""
        return self.preemptors / self.seconds


class _ApiServer(Nothing):
    """Evictions and Bindings that succeed, and the news of them; implements the ports to the API server."""

    def __init__(self) -> None:
        self.bound = 0
        self.evicted = 0
        self.intake: ClusterEventHandlers | None = None

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """The nomination is shown with the pod's next version."""
        if nominated_node is not None and nominated_node != pod.nominated_node:
            shown = _newer(pod.pod, status=replace(pod.pod.status, nominated_node_name=nominated_node))
            self._later(lambda intake: intake.unscheduled_pod(PodInfo(shown)))

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Have the pod be gone in a moment."""
        self.evicted += 1
        self._later(lambda intake: intake.assigned_pod_gone(victim.uid))

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Have the pod stand there in a moment."""
        self.bound += 1
        shown = _newer(pod.pod, spec=replace(pod.pod.spec, node_name=node))
        self._later(lambda intake: intake.assigned_pod(PodInfo(shown)))

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """There are no extenders here."""
        raise NotImplementedError

    def _later(self, news: Callable[[ClusterEventHandlers], None]) -> None:
        intake = self.intake
        assert intake is not None  # it is there before anything is decided
        asyncio.get_running_loop().call_soon(news, intake)


_versions = itertools.count(1)


def _newer(pod: Pod, **changes: Any) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, resource_version=str(next(_versions))), **changes)


def measure_story(nodes: int = NODES, preemptors: int = PREEMPTORS) -> PreemptionStory:
    """Let so many pods preempt on a full cluster, and wait until all of them are bound.

    Raises `RuntimeError` where some never are, or a decision breaks.
    """
    return asyncio.run(_story(nodes, preemptors))


async def _story(nodes: int, preemptors: int) -> PreemptionStory:
    world = world_from(_manifests(nodes, preemptors), "benchmark")
    server, asked = _ApiServer(), itertools.count()

    def counted(_plugin: str, _event: ClusterEvent, hint: QueueingHintFn) -> QueueingHintFn:
        def counting(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
            next(asked)
            return hint(pod, old, new)

        return counting

    queue = SchedulingQueue(lambda _name: policy, time.monotonic, timed=counted, slices=A_SLICE)
    handle = ProfileHandle(world.cluster, server, queue.nominator, (), NoVolumeWriter(), members=queue.pod_groups)
    evaluator = handle.evaluator(resolve(default_profile(), in_tree()), in_tree())
    policy = ProfilePolicy(evaluator.runtime)
    cycle = SchedulingCycle(world.cluster, queue.nominator, random.Random(0))
    scheduler = Scheduler(world.cluster, queue, lambda _name: evaluator, cycle, Ports(server, server, server), time.monotonic)
    server.intake = ClusterEventHandlers(world.cluster, queue, scheduler.binding)
    for pod in world.pending.values():
        queue.add(pod)
    running = [asyncio.create_task(work) for work in (scheduler.run(), queue.sweeps.run())]
    with nothing_old_collected:
        async with LoopProbe() as probe:
            start = time.process_time()
            await _until_bound(server, scheduler.counts, preemptors)
            seconds = time.process_time() - start
    for task in running:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*running)
    counts = scheduler.counts
    if counts.errors:
        raise RuntimeError(f"{counts.errors} decisions broke; their errors are in the log")
    return PreemptionStory(nodes, preemptors, server.evicted, counts.scheduled + counts.unschedulable, next(asked), seconds, probe.longest)


async def _until_bound(server: _ApiServer, counts: Counts, preemptors: int) -> None:
    tried, since = 0, time.monotonic()
    while server.bound < preemptors:
        if counts.scheduled + counts.unschedulable > tried:
            tried, since = counts.scheduled + counts.unschedulable, time.monotonic()
        if time.monotonic() - since > _STUCK_SECONDS:
            raise RuntimeError(f"{preemptors - server.bound} pods were not bound, and none was tried for {_STUCK_SECONDS:.0f} s")
        await asyncio.sleep(0)


def _manifests(nodes: int, preemptors: int) -> list[Manifest]:
    made = [node_manifest(f"node-{index:05d}", cpu_milli=4000, memory_mib=32 * 1024) for index in range(nodes)]
    made += [_pod(f"low-{index:06d}", 900, 0, f"node-{index % nodes:05d}") for index in range(PER_NODE * nodes)]
    return [*made, *(_pod(f"high-{index:06d}", 3000, 10) for index in range(preemptors))]


def _pod(name: str, cpu: int, priority: int, node: str = "") -> Manifest:
    pod = pod_manifest(name, cpu_milli=cpu, memory_mib=500, labels={})
    pod["metadata"] |= {"uid": name, "resourceVersion": "0"}
    pod["spec"] |= {"priority": priority, **({"nodeName": node} if node else {})}
    return pod
