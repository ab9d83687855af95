"""Random histories of a cluster whose pods ask for shares of devices: what the API server knows, and a scheduler that comes and goes.

`Api` is what would be true of the hardware: nodes, and pods bound to them with the annotations of their Bindings. `overcommitted` looks at
that alone, and shares nothing with the plugin.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.scheduler.cycle import SchedulingCycle
from scheduler.makers import REFUSED, UNKNOWN, NodeMaker, PodMaker, World, node, pod

RESOURCE = "openb/gpu-milli"
UNITS = 1000
ANNOTATION = "placewright.dev/devices"
SHARES = (100, 250, 330, 500, 600, 760, 1000)
TYPICAL: list[dict[str, Any]] = [
    {"requests": {RESOURCE: "500", "cpu": "2"}, "popularity": 5},
    {"requests": {RESOURCE: "330", "cpu": "1"}, "popularity": 3},
    {"requests": {RESOURCE: "1000", "cpu": "4"}, "popularity": 8},
    {"requests": {RESOURCE: "4000", "cpu": "8"}, "popularity": 1},
]


def gpu_node(name: str, gpus: int, cpu: int = 64) -> NodeMaker:
    maker = node(name).offers(cpu=str(cpu), memory="256Gi")
    return maker.offers(**{RESOURCE: str(gpus * UNITS)}) if gpus else maker


def gpu_pod(name: str, units: int, cpu: int = 1) -> PodMaker:
    return pod(name).requests(**({"cpu": str(cpu)} | ({RESOURCE: str(units)} if units else {})))


class Api:
    """The truth.

    Attributes:
        gpus: by node.
        makers: by uid, every pod that exists.
        bound: by uid, the pod on its node, with its annotations.
    """

    def __init__(self) -> None:
        self.gpus: dict[str, int] = {}
        self.makers: dict[str, PodMaker] = {}
        self.bound: dict[str, PodInfo] = {}

    def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """As an API server does: a pod that is gone, or on a node, stays as it is."""
        if pod.uid in self.makers and pod.uid not in self.bound:
            self.bound[pod.uid] = self.makers[pod.uid].on(node).build().annotated(annotations)

    def overcommitted(self) -> list[str]:
        """Each device that pods have more of than it has, each share that is on several, each device that is not there."""
        return list(self._complaints())

    def _complaints(self) -> Iterator[str]:
        used: dict[tuple[str, int], int] = defaultdict(int)
        for bound in self.bound.values():
            asked = bound.requests.get(RESOURCE, 0)
            devices = json.loads((bound.pod.metadata.annotations or {}).get(ANNOTATION, "{}")).get(RESOURCE, [])
            number = 0 if not asked else max(asked // UNITS, 1)
            if len(devices) != number or len(set(devices)) != number:
                yield f"{bound.key} asks for {asked} and has devices {devices}"
            if not all(0 <= device < self.gpus[bound.node_name] for device in devices):
                yield f"{bound.key} on {bound.node_name} has devices {devices}"
            for device in devices:
                used[bound.node_name, device] += min(asked, UNITS)
        yield from (f"{device} has {units} units on it" for device, units in used.items() if units > UNITS)


class History:
    """One run. Every step leaves API server and scheduler somewhere between two events."""

    def __init__(self, seed: int, **spec: Any) -> None:
        self.rng = random.Random(seed)
        self.api = Api()
        self.spec = spec
        self.generation = 1
        self.restarts = self.rolled_back = self.made = 0
        self._unseen: list[str] = []
        self._under_way: list[asyncio.Task[bool]] = []
        self._held: list[tuple[asyncio.Future[None], bool]] = []
        self.api.gpus["n0"] = 4
        for index in range(1, self.rng.randint(3, 6)):
            self.api.gpus[f"n{index}"] = self.rng.choice([0, 1, 2, 4, 8])
        self.world = self._start()

    def _start(self) -> World:
        world = World(generation=self.generation, **self.spec)
        world.binder.bind = self._bind  # type: ignore[method-assign]
        world.cycle = SchedulingCycle(world.cluster, world.queue.nominator, self.rng)
        for name, gpus in self.api.gpus.items():
            world.nodes(gpu_node(name, gpus))
        for uid, maker in self.api.makers.items():
            if uid in self.api.bound:
                world.event_handlers.assigned_pod(self.api.bound[uid])
            else:
                world.event_handlers.unscheduled_pod(maker.build())
        return world

    async def _bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Bound; or refused; or nobody knows; or after others have been decided."""
        fate = self.rng.random()
        if fate < 0.2:
            held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._held.append((held, self.rng.random() < 0.5))
            await held
        if fate < 0.35:
            self.rolled_back += 1
            raise REFUSED
        self.api.bind(pod, node, annotations)
        if pod.uid in self.api.bound:
            self._unseen.append(pod.uid)
        if fate < 0.45:
            raise UNKNOWN

    # --- steps ------------------------------------------------------------------------------------------------------------------

    async def step(self) -> None:
        """Something happens."""
        steps = (self._come, self._decide, self._decide, self._decide, self._release, self._show, self._go, self._swap, self._restart)
        await self.rng.choices(steps, (30, 20, 20, 20, 15, 25, 12, 1, 2))[0]()
        self.world.now += 20
        await _settle()

    async def _come(self) -> None:
        self.made += 1
        units = self.rng.choice([0, *SHARES, *SHARES, 2000, 4000])
        maker = gpu_pod(f"p{self.made:04d}", units, self.rng.randint(1, 8))
        info = maker.build()
        self.api.makers[info.uid] = maker
        self.world.event_handlers.unscheduled_pod(info)

    async def _decide(self) -> None:
        queued = self.world.queue.pop()
        binding = None if queued is None else self.world.schedule(queued)
        if binding is not None:
            self._under_way.append(asyncio.get_running_loop().create_task(binding))

    async def _release(self) -> None:
        if self._held:
            self._held.pop(self.rng.randrange(len(self._held)))[0].set_result(None)

    async def _show(self) -> None:
        """The watch tells of a Binding, also of one whose answer was lost."""
        if self._unseen:
            uid = self._unseen.pop(self.rng.randrange(len(self._unseen)))
            if uid in self.api.bound:
                self.world.event_handlers.unscheduled_pod_gone(self.api.bound[uid])
                self.world.event_handlers.assigned_pod(self.api.bound[uid])

    async def _go(self) -> None:
        if self.api.bound:
            uid = self.rng.choice(sorted(self.api.bound))
            del self.api.bound[uid], self.api.makers[uid]
            self._unseen = [each for each in self._unseen if each != uid]
            self.world.event_handlers.pod_gone(uid)

    async def _swap(self) -> None:
        """Another generation of the profile: its plugins are new."""
        self.generation += 1
        self.world.use_profile(generation=self.generation, **self.spec)

    async def _restart(self) -> None:
        """What was under way is lost with the process, before or after it reached the API server."""
        await self.end()
        self.restarts += 1
        self._unseen.clear()
        self.world = self._start()

    async def end(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._under_way.clear()
        self._held.clear()


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
