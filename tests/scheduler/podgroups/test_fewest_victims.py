"""A group evicts no more pods than kube-scheduler would, and none more important. A plain model has kube-scheduler's search.

kube-scheduler lets all less important pods leave, and lets each back that need not leave, the most important first.
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


@pytest.mark.parametrize("seed", range(cases(80)))
async def test_a_group_evicts_as_few_pods_as_kube_scheduler_and_none_more_important(seed: int) -> None:
    rng = random.Random(seed)
    nodes = {f"n{number}": rng.randint(2, 8) for number in range(rng.randint(1, 5))}
    free, running = dict(nodes), list[Running]()
    for number in range(40):
        name, cpus = rng.choice(sorted(nodes)), rng.randint(1, 3)
        if free[name] >= cpus:
            free[name] -= cpus
            running.append(Running(f"p{number}", name, cpus, rng.choice((5, 10, 20, 30, 200)), number))
    cpus, needed = rng.randint(1, 4), rng.randint(1, 5)
    world = World().nodes(*(node(name).offers(cpu=str(offered)) for name, offered in nodes.items()))
    for each in running:
        maker = pod(each.name).requests(cpu=str(each.cpus)).priority(each.priority).on(each.node)
        world.pods(maker.status(startTime=f"2026-01-01T00:00:{each.since:02}Z"))
    world.event_handlers.cluster_object(native("job", needed, priority=PRIORITY))
    world.pods(*(native_member("job", f"m{number}", cpu=str(cpus)).priority(PRIORITY) for number in range(needed)))
    await tried(world)
    await world.scheduler.drain()
    priorities = {each.name: each.priority for each in running}
    if sum(left // cpus for left in free.values()) >= needed:
        assert world.evictor.evicted == []
        return
    theirs = sorted(map(priorities.__getitem__, evicted_by_kube_scheduler(nodes, running, needed, cpus)), reverse=True)
    ours = sorted((priorities[victim] for victim, _, _ in world.evictor.evicted), reverse=True)
    assert len(ours) <= len(theirs)
    assert ours[:1] == theirs[:1]
