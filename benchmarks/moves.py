"""Measures the cost of cluster events while thousands of pods wait, and how long they hold the event loop.

Pods wait because a plugin rejected them; then events come as watches bring them, each followed by a turn of the event loop.
Nothing is decided. As in `benchmark`, the processor's time is measured; hints are counted as they are asked.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from benchmarks.gangs import LoopProbe
from placewright.api.decode import convert
from placewright.api.devices import ResourceClaim
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.cli.options import whole_number
from placewright.framework.events import ClusterEvent, QueueingHint, QueueingHintFn
from placewright.offline.kinds import Manifest
from placewright.offline.world import world_from
from placewright.queue.events import A_SLICE
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright_lab.bench.benchmark import MOST_PODS, ResultTable, row_of, table
from placewright_lab.bench.decisions import ZONE, nothing_old_collected, offline_scheduler
from placewright_lab.readers.openb import NAMESPACE, node_manifest, pod_manifest

SUMMARY: Final = "events while thousands of pods wait: their cost, and how long they hold the event loop"
WAITING: Final = 20_000
CLAIMS: Final = 5_000
#: The event loop should not be held for longer, in milliseconds.
HOLD_WANTED_MS: Final = 20
_COLUMNS: Final = {
    "event": "{event}",
    "waiting": "{waiting:,}",
    "events": "{events:,}",
    "moved": "{moved:,}",
    "hints asked": "{asked:,}",
    "µs/event": "{microseconds:,.0f}",
    "held ms": "{held:,.1f}",
    "wanted": f"≤ {HOLD_WANTED_MS}",
}
#: Number of events of a kind, if each concerns all pods.
_FEW: Final = 5
_NODE: Final = "node-00000"


#: Something that watches tell.
News = Callable[[], object]


class Stage:
    """A queue with waiting pods, and the event handlers that feed it.

    Attributes:
        asked: number of hints that were asked.
        later: so many seconds the queue's clock is ahead.
    """

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        world = world_from(manifests, "benchmark")
        self.asked = 0
        self.later = 0.0
        scheduler = offline_scheduler(world, clock=self._clock, timed=self._counted, slices=A_SLICE)
        self.queue = scheduler.queue
        self.event_handlers = ClusterEventHandlers(world.cluster, self.queue, scheduler.binding)
        self.pods = list(world.pending.values())

    def _clock(self) -> float:
        return time.monotonic() + self.later

    def _counted(self, _plugin: str, _event: ClusterEvent, hint: QueueingHintFn) -> QueueingHintFn:
        def counting(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
            self.asked += 1
            return hint(pod, old, new)

        return counting

    def arrive(self) -> None:
        """Add all pods."""
        for pod in self.pods:
            self.event_handlers.unscheduled_pod(pod)

    def reject(self, *plugins: str) -> None:
        """Try every pod that may be tried, and reject it by these plugins. Without plugins its attempt fails by error, and it backs off."""
        for _ in range(self.queue.sizes().active):
            queued = self.queue.pop()
            assert queued is not None  # it is active
            self.queue.return_unschedulable(queued, set(plugins))

    def all_backing_off(self) -> list[News]:
        """End the backoff of pods whose attempts failed by error, a slice at a time."""
        self.queue.flush_unschedulable(-1.0)
        self.queue.sweeps.sweep_all()
        self.reject()
        self.later = 60.0
        return [lambda: [self.queue.flush_backoff(A_SLICE)]] * (len(self.pods) // A_SLICE + 1)


@dataclass(frozen=True, slots=True)
class Moves:
    """One line of the table.

    Attributes:
        waiting: pods that waited before the first event.
        moved: number of them that were made active, or began to wait.
        asked: hints that were asked.
        seconds: processor time until the last pod was told of the last event.
        hold: the longest time for which the event loop was held, in seconds.
    """

    event: str
    waiting: int
    events: int
    moved: int
    asked: int
    seconds: float
    hold: float

    @property
    def microseconds(self) -> float:
        """The cost of an event."""
        return 1e6 * self.seconds / self.events

    @property
    def held(self) -> float:
        """The longest time for which the event loop was held, in milliseconds."""
        return 1000 * self.hold


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    for option, count, pods in (
        ("waiting", WAITING, "that wait for room"),
        ("claims", CLAIMS, "that wait for claims"),
    ):
        parser.add_argument(f"--{option}", type=whole_number(20, MOST_PODS), default=count, help=f"pods {pods} (default: {count})")


def run(args: argparse.Namespace) -> Sequence[ResultTable]:
    """Measure each kind of event on pods of its own."""
    measured = (*_rejected(args.waiting), *_claiming(args.claims))
    rows = [row_of(each, "microseconds", "held") for each in measured]
    return (table("events while pods wait: processor time, one run each", rows, _COLUMNS),)


async def _measured(event: str, stage: Stage, news: Sequence[News]) -> Moves:
    stage.asked = 0
    sizes = stage.queue.sizes()
    minding = asyncio.create_task(stage.queue.sweeps.run())
    with nothing_old_collected:
        async with LoopProbe().looking() as probe:
            start = time.process_time()
            for tell in news:
                tell()
                await asyncio.sleep(0)
            await stage.queue.sweeps.caught_up()
            seconds = time.process_time() - start
    minding.cancel()
    await asyncio.gather(minding, return_exceptions=True)
    left = stage.queue.sizes()
    waited = sizes.unschedulable + sizes.gated
    moved = abs(waited - left.unschedulable - left.gated) or sizes.backoff - left.backoff
    return Moves(event, waited or sizes.backoff, len(news), moved, stage.asked, seconds, probe.longest)


# --- pods that wait for room -----------------------------------------------------------------------------------------------------


def _rejected(waiting: int) -> Iterator[Moves]:
    """Measure events while pods wait that NodeResourcesFit rejected, because the only node is full."""
    base = [_node(_NODE), _running("running", _NODE), *(_pod(f"p-{i:06d}") for i in range(waiting))]
    kinds: dict[str, Callable[[Stage], list[News]]] = {
        "a node that holds any of them is added": lambda stage: [lambda: stage.event_handlers.node(_made(_node("another")))],
        "a node is added that holds none": lambda stage: [
            partial(stage.event_handlers.node, _made(_node(f"small-{i}", cpu=500))) for i in range(_FEW)
        ],
        "a node's allocatable grows": lambda stage: [lambda: stage.event_handlers.node(_made(_node(_NODE, cpu=64_000)))],
        "a pod on a node is deleted": lambda stage: [lambda: stage.event_handlers.assigned_pod_gone("running")],
        "their backoff ends": Stage.all_backing_off,
        "no event helped them for too long": lambda stage: [lambda: stage.queue.flush_unschedulable(-1.0)],
    }
    for event, news in kinds.items():
        stage = Stage(base)
        stage.arrive()
        stage.reject("NodeResourcesFit")
        yield asyncio.run(_measured(event, stage, news(stage)))


def _node(name: str, cpu: int = 32_000) -> Manifest:
    node = node_manifest(name, cpu_milli=cpu, memory_mib=512 * 1024)
    node["metadata"]["labels"][ZONE] = "zone-a"
    return node


def _made(manifest: Manifest) -> Node:
    return convert(manifest, Node)


def _running(name: str, node: str) -> Manifest:
    pod = _pod(name, cpu=32_000)
    pod["spec"]["nodeName"] = node
    return pod


# --- pods that wait for claims ---------------------------------------------------------------------------------------------------


def _claiming(claims: int) -> Iterator[Moves]:
    """Measure events about claims while pods wait that each name a missing claim of their own."""
    stage = Stage([_node(_NODE), *(_with_claim(f"p-{index:06d}") for index in range(claims))])
    stage.arrive()
    others, used = ([_claim(f"other-{index:06d}", reserved=reserved) for index in range(claims)] for reserved in (False, True))
    named = [_claim(f"p-{index:06d}") for index in range(claims)]
    added, gone = stage.event_handlers.cluster_object, stage.event_handlers.cluster_object_gone

    def measured(event: str, handler: Callable[[ResourceClaim], object], changed: Sequence[ResourceClaim]) -> Moves:
        return asyncio.run(_measured(event, stage, [partial(handler, claim) for claim in changed]))

    yield measured("claims of others are added", added, others)
    yield measured("their claims are added", added, named)
    stage.reject("DynamicResources")
    yield measured("claims of others change", added, used)
    yield measured("claims of others are deleted", gone, used)


def _with_claim(name: str) -> Manifest:
    pod = _pod(name)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    return pod


def _claim(name: str, *, reserved: bool = False) -> ResourceClaim:
    version = "2" if reserved else "1"
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "resourceVersion": version}
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    status = {"reservedFor": [{"resource": "pods", "name": "user", "uid": "user"}]} if reserved else {}
    return convert({"metadata": meta, "spec": spec, "status": status}, ResourceClaim)


def _pod(name: str, *, cpu: int = 1000) -> Manifest:
    pod = pod_manifest(name, cpu_milli=cpu, memory_mib=1024, labels={})
    pod["metadata"]["uid"] = name
    return pod
