"""A cluster that is never quiet: pods come and go, nodes are cordoned, added and removed, the profile's weights change.

What the controllers of a real cluster would do is done here: pods of nodes that are gone are deleted, and events do not stay for ever.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from pacing import paced
from placewright_lab.demo.feed import background

from .audit import OURS
from .stage import NODES, OWN_EVENTS, PROFILES, Stage, now

#: How long a pod lives, from the shortest to the longest, seconds.
LIVES: Final = (5.0, 15.0)
#: Pods that a node takes; with this many nodes more than live at a time, so that there is always room for most.
_PODS_A_NODE: Final = 110
_NODE_SECONDS: Final = 2.0
_PROFILE_SECONDS: Final = 5.0
_EVENTS_SECONDS: Final = 20.0
#: Requests under way at once, of those that create and of those that delete.
_AT_ONCE: Final = 32


def nodes_needed(a_second: float) -> int:
    """With a third to spare."""
    alive = a_second * sum(LIVES) / 2
    return int(alive * 4 / 3 / _PODS_A_NODE) + 4


class Churn:
    """Everything that happens.

    Attributes:
        created: pods so far.
        behind: by how much the last pod came late, seconds: more than a little means that this machine cannot make so many.
        changes: of nodes and profiles.
    """

    def __init__(self, stage: Stage, a_second: float) -> None:
        self.created = 0
        self.behind = 0.0
        self.changes = 0
        self._stage = stage
        self._rate = a_second
        self._random = stage.random
        self._doomed: deque[tuple[float, str]] = deque()
        self._extra = itertools.count()
        self._enough = False

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """It goes on while this is open; afterwards what was begun is finished, and nodes are as they were made."""
        await self._stage.nodes(nodes_needed(self._rate), cpu="64", memory="64Gi", pods=str(_PODS_A_NODE))
        yields = [self._come(), self._go(), *(self._again(*each) for each in self._changes())]
        tasks = [asyncio.create_task(each, name=each.__qualname__) for each in yields]
        try:
            yield
            self._enough = True
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def _changes(self) -> list[tuple[float, Callable[[], Coroutine[Any, Any, None]]]]:
        return [(_NODE_SECONDS, self._change_a_node), (_PROFILE_SECONDS, self._change_weights), (_EVENTS_SECONDS, self._forget_events)]

    async def _again(self, seconds: float, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        due = now() + seconds
        while not self._enough:
            if now() >= due:
                await act()
                self.changes += 1
                due = now() + seconds
            await asyncio.sleep(0.05)

    async def _come(self) -> None:
        began = now()
        slots = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            async for number in paced(self._rate):
                if self._enough:
                    return
                self.behind = now() - began - number / self._rate
                await slots.acquire()
                group.create_task(self._one()).add_done_callback(lambda _: slots.release())

    async def _one(self) -> None:
        uid = await self._stage.pod(cpu="10m", memory="1Mi")
        self.created += 1
        self._doomed.append((now() + self._random.uniform(*LIVES), uid))

    async def _go(self) -> None:
        slots = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            while not self._enough:
                while self._doomed and self._doomed[0][0] <= now():
                    await slots.acquire()
                    group.create_task(self._delete(self._doomed.popleft()[1])).add_done_callback(lambda _: slots.release())
                await asyncio.sleep(0.01)

    async def _delete(self, uid: str) -> None:
        if uid in self._stage.history.pods:
            await self._stage.delete_pod(uid)

    async def _change_a_node(self) -> None:
        nodes = self._stage.history.nodes
        cordoned = [node.name for node in nodes.values() if node.cordoned]
        added = [name for name in nodes if name.startswith("extra-")]
        change = self._random.choice(("cordon", "uncordon", "add", "remove"))
        if change == "add" or (change == "remove" and not added):
            await self._stage.node(f"extra-{next(self._extra)}", cpu="64", pods=str(_PODS_A_NODE))
        elif change == "remove":
            await self._remove(self._random.choice(added))
        elif change == "cordon" and len(cordoned) < 2:
            await self._cordon(self._random.choice(list(nodes)), cordon=True)
        elif cordoned:
            await self._cordon(self._random.choice(cordoned), cordon=False)

    async def _cordon(self, name: str, *, cordon: bool) -> None:
        await self._stage.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": cordon}})

    async def _remove(self, name: str) -> None:
        await self._stage.api.delete(f"{NODES}/{name}")
        for pod in [pod for pod in self._stage.history.pods.values() if pod.node == name]:
            await self._delete(pod.uid)

    async def _change_weights(self) -> None:
        weights = {"NodeResourcesFit": self._random.randint(1, 9), "PodTopologySpread": self._random.randint(1, 9)}
        await self._stage.api.patch(f"{PROFILES}/default", {"spec": {"schedulerName": OURS, "weights": weights}})

    async def _forget_events(self) -> None:
        await self._stage.api.delete(OWN_EVENTS)


class Memory:
    """What processes have resident, sampled."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        #: By process, (seconds since the start, MiB).
        self.samples: dict[str, list[tuple[float, float]]] = {}

    @asynccontextmanager
    async def sampled(self, seconds: float) -> AsyncIterator[None]:
        """Every so often while this is open."""

        async def sample() -> None:
            began = now()
            async for _ in paced(1 / seconds):
                for each in self._stage.replicas:
                    self.samples.setdefault(each.name, []).append((now() - began, each.memory() / 2**20))

        async with background(sample(), "memory") as sampling:
            yield
            assert not sampling.done(), sampling


def slope(samples: list[tuple[float, float]], since: float) -> float:
    """MiB a minute, by least squares, of what was sampled later than `since` seconds after the start; 0.0 of fewer than two samples."""
    later = [(at / 60, size) for at, size in samples if at >= since]
    if len(later) < 2:
        return 0.0
    middle = sum(at for at, _ in later) / len(later)
    mean = sum(size for _, size in later) / len(later)
    spread = sum((at - middle) ** 2 for at, _ in later)
    return sum((at - middle) * (size - mean) for at, size in later) / spread
