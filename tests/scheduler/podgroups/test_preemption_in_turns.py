"""The search for whom a group could make leave takes turns with the event loop, and finds what it finds in one go."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from placewright.scheduler.turns import TURN_SECONDS
from scheduler.makers import World, node, pod
from seeds import seeds

from .makers import group, members

MINIMUM = 12


def full(seed: int, *, spread: bool = False) -> World:
    """Nodes full of less important pods, with a group that wants room on them."""
    rng = random.Random(seed)
    world = World().nodes(*(node(f"n{n}").offers(cpu="4", pods="110") for n in range(8)))
    for index in range(32):
        world.pods(pod(f"low-{index}").requests(cpu="1").priority(rng.choice((0, 1, 2))).on(f"n{index % 8}"))
    world.event_handlers.cluster_object(group("job", MINIMUM))
    wanted = [maker.priority(100).requests(cpu=rng.choice(("1", "2"))) for maker in members("job", MINIMUM)]
    return world.pods(*(maker.spread("kubernetes.io/hostname", max_skew=2) if spread else maker for maker in wanted))


def columns(world: World) -> dict[str, Any]:
    """What is counted on the rows."""
    cluster = world.cluster
    cpu = cluster.resources.column("cpu").requested.tolist()
    return {"cpu": cpu, "pods": cluster.pod_count.tolist(), "assumed": cluster.assumed_count}


class Hasty:
    """Runs a world's scheduler with a clock on which every step takes longer than a turn, beside somebody who looks and acts."""

    def __init__(self, world: World, step: float = 2 * TURN_SECONDS) -> None:
        self.world = world
        self.turns = 0
        self.meanwhile: dict[int, Callable[[], Any]] = {}
        self.seen: list[dict[str, Any]] = []
        self._step = step
        evaluate = world.cycle.evaluate

        def slowly(*args: Any, **more: Any) -> Any:
            self.world.now += self._step
            return evaluate(*args, **more)

        world.cycle.evaluate = slowly  # type: ignore[method-assign]

    async def run(self) -> None:
        """Decide until nobody is in flight and nobody may be tried."""
        deciding = asyncio.create_task(self.world.scheduler.run())
        while self.turns < 2000:
            self.turns += 1
            self.seen.append(columns(self.world))
            self.meanwhile.get(self.turns, lambda: None)()
            await asyncio.sleep(0)
            if not len(self.world.queue.in_flight) and self.world.queue.sizes().active == 0:
                break
        deciding.cancel()
        with suppress(asyncio.CancelledError):
            await deciding
        await self.world.scheduler.drain()


def outcome(world: World) -> dict[str, Any]:
    nominated = {f"job-{n}": world.queue.nominator.node_of(f"uid-job-{n}") for n in range(MINIMUM)}
    return {"left": sorted(world.evictor.evicted), "nominated": nominated}


@seeds(range(20))
async def test_the_same_pods_leave_as_in_one_go(seed: int) -> None:
    spread = seed % 2 == 0
    at_once = full(seed, spread=spread)
    assert at_once.decide() is None
    await at_once.scheduler.drain()
    hasty = Hasty(full(seed, spread=spread))
    await hasty.run()
    assert outcome(at_once)["left"], "or nothing was compared"
    assert outcome(hasty.world) == outcome(at_once)
    assert hasty.turns > MINIMUM, "or others had no turns"


@seeds(range(6))
async def test_nothing_that_is_only_supposed_is_seen_by_others(seed: int) -> None:
    world = full(seed)
    before = columns(world)
    hasty = Hasty(world)
    await hasty.run()
    searching = [seen for seen in hasty.seen if not seen["assumed"]]
    assert len(searching) > MINIMUM
    assert all(seen == before for seen in searching)


@seeds(range(40))
async def test_whatever_happens_meanwhile_nothing_is_counted_twice_or_lost(seed: int) -> None:
    rng = random.Random(seed)
    world = full(seed)
    hasty = Hasty(world, rng.choice((0.4, 1, 2)) * TURN_SECONDS)
    what: list[Callable[[], Any]] = [
        lambda: world.event_handlers.assigned_pod_gone(f"uid-low-{rng.randrange(32)}"),
        lambda: world.pods(pod(f"new-{rng.randrange(9)}").requests(cpu="1").on(f"n{rng.randrange(8)}")),
        lambda: world.event_handlers.node_gone(f"n{rng.randrange(8)}"),
        lambda: world.nodes(node(f"n{rng.randrange(10)}").offers(cpu="4")),
        lambda: world.event_handlers.pod_gone(f"uid-job-{rng.randrange(MINIMUM)}"),
    ]
    for _ in range(rng.randrange(1, 6)):
        hasty.meanwhile[rng.randrange(1, 60)] = rng.choice(what)
    await hasty.run()
    cluster = world.cluster
    standing: dict[str, list[Any]] = {}
    for placement in cluster.placements():
        standing.setdefault(placement.node, []).append(placement.pod)
    for name in [name for name in cluster.names if name is not None]:
        row = cluster.row(name)
        here = standing.get(name, [])
        assert cluster.pod_count[row] == len(here)
        assert cluster.resources.column("cpu").requested[row] == sum(each.requests.get("cpu", 0) for each in here)
    assert not len(world.queue.in_flight)
    for number in range(MINIMUM):
        if world.queue.get(f"uid-job-{number}") is None:
            assert world.queue.nominator.node_of(f"uid-job-{number}") is None, "a pod that is gone keeps no room"


async def test_who_loses_the_lead_meanwhile_makes_nobody_leave() -> None:
    world = full(1)
    before = columns(world)
    hasty = Hasty(world)
    leading = [True]
    world.scheduler.attempts.failures = _without_lead(world, leading)
    world.scheduler.loop.lead = world.scheduler.attempts.failures.lead
    hasty.meanwhile[20] = leading.clear
    await hasty.run()
    assert world.evictor.evicted == []
    assert columns(world) == before


def _without_lead(world: World, leading: list[bool]) -> Any:
    """The failure handler as it is, with a lead that lasts as long as the list has something in it."""
    handler = world.scheduler.attempts.failures

    class Lead:
        @property
        def active(self) -> bool:
            return bool(leading)

        async def wait_active(self) -> None:
            """At once."""

    return type(handler)(handler.queue, handler.events, handler.status, Lead())
