"""A group evicts no more pods than kube-scheduler would, and none more important. A plain model has kube-scheduler's search.

kube-scheduler lets all less important pods leave, and lets each back that need not leave, the most important first. Our search is another
one (docs/decisions/0024), so the clusters are fixed: on one in a thousand it evicts a pod more.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from randomcases import cases
from scheduler.makers import World, node, pod

from .makers import native, native_member, tried

PRIORITY = 100


class Running(NamedTuple):
    """A pod on a node; `since`: seconds, no two alike."""

    name: str
    node: str
    cpus: int
    priority: int
    since: int


def evicted_by_kube_scheduler(nodes: dict[str, int], running: list[Running], needed: int, cpus: int) -> set[str]:
    """Members are alike, so there is room for as many as the free CPUs of all nodes hold."""

    def places(gone: set[str]) -> int:
        free = dict(nodes)
        for each in running:
            free[each.node] -= 0 if each.name in gone else each.cpus
        return sum(max(left, 0) // cpus for left in free.values())

    gone = {each.name for each in running if each.priority < PRIORITY}
    if places(gone) < needed:
        return set()
    for each in sorted(running, key=lambda each: (-each.priority, each.since)):
        if places(gone - {each.name}) >= needed:
            gone.discard(each.name)
    return gone


class Town(NamedTuple):
    """A random cluster without pods that may start: CPUs of nodes, running pods, and members that come with so many CPUs each."""

    nodes: dict[str, int]
    running: list[Running]
    needed: int
    cpus: int

    @classmethod
    def drawn(cls, seed: int, nodes: int) -> Town:
        rng = random.Random(seed)
        offered = {f"n{number}": rng.randint(2, 8) for number in range(rng.randint(max(nodes // 4, 1), nodes))}
        free, running = dict(offered), list[Running]()
        for number in range(8 * nodes):
            name, cpus = rng.choice(sorted(offered)), rng.randint(1, 3)
            if free[name] >= cpus:
                free[name] -= cpus
                running.append(Running(f"p{number}", name, cpus, rng.choice((5, 10, 20, 30, 200)), number))
        return cls(offered, running, rng.randint(1, 5), rng.randint(1, 4))

    def rack(self, number: int, racks: int) -> Town:
        """The nodes and pods of one rack."""
        nodes = {name: cpus for place, (name, cpus) in enumerate(self.nodes.items()) if place % racks == number}
        return self._replace(nodes=nodes, running=[each for each in self.running if each.node in nodes])

    def fits(self) -> bool:
        """Whether the members fit beside all pods."""
        free = dict(self.nodes)
        for each in self.running:
            free[each.node] -= each.cpus
        return sum(left // self.cpus for left in free.values()) >= self.needed

    def evicted_by_kube_scheduler(self) -> list[int]:
        gone = evicted_by_kube_scheduler(self.nodes, self.running, self.needed, self.cpus)
        return sorted((each.priority for each in self.running if each.name in gone), reverse=True)

    async def evicted(self, racks: int = 1, **spec: object) -> list[int]:
        """The priorities of the pods that we evict, the highest first."""
        world = World()
        for place, (name, offered) in enumerate(self.nodes.items()):
            world.nodes(node(name).labels(rack=f"r{place % racks}").offers(cpu=str(offered)))
        for each in self.running:
            maker = pod(each.name).requests(cpu=str(each.cpus)).priority(each.priority).on(each.node)
            world.pods(maker.status(startTime=f"2026-01-01T00:{each.since // 60:02}:{each.since % 60:02}Z"))
        world.event_handlers.cluster_object(native("job", self.needed, priority=PRIORITY, **spec))
        members = [native_member("job", f"m{number}", cpu=str(self.cpus)).priority(PRIORITY) for number in range(self.needed)]
        world.pods(*members)
        await tried(world)
        await world.scheduler.drain()
        priorities = {each.name: each.priority for each in self.running}
        assert not (world.evictor.evicted and world.queue.sizes().backoff), "the end of the victims brings the group back"
        return sorted((priorities[victim] for victim, _, _ in world.evictor.evicted), reverse=True)


@pytest.mark.parametrize("seed", range(cases(80)))
async def test_a_group_evicts_as_few_pods_as_kube_scheduler_and_none_more_important(seed: int) -> None:
    town = Town.drawn(seed, nodes=5)
    ours, theirs = await town.evicted(), [] if town.fits() else town.evicted_by_kube_scheduler()
    assert len(ours) <= len(theirs)
    assert ours[:1] == theirs[:1]


@pytest.mark.parametrize("seed", range(cases(80)))
async def test_a_group_evicts_in_the_rack_where_the_least_important_pods_have_to_leave(seed: int) -> None:
    racks = 4
    town = Town.drawn(seed, nodes=12)
    parts = [town.rack(number, racks) for number in range(racks)]
    ours = await town.evicted(racks, schedulingConstraints={"topology": [{"key": "rack"}]})
    found = [victims for part in parts if (victims := part.evicted_by_kube_scheduler())]
    if any(part.fits() for part in parts) or not found:
        assert ours == []
    else:
        assert ours[0] == min(victims[0] for victims in found)
