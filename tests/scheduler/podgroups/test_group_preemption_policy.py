"""A group's own `preemptionPolicy` goes before its members': for the group as a whole, and for a member that joins it."""

from __future__ import annotations

import pytest

from scheduler.makers import World, node, pod

from .makers import bound, native, native_member, tried

NEVER, LOWER = "Never", "PreemptLowerPriority"


async def evicted(world: World) -> int:
    await tried(world)
    await world.scheduler.drain()
    return len(world.evictor.evicted)


def full(policy: str | None, needed: int | None = 2) -> World:
    world = World().nodes(node("a").offers(cpu="3"))
    world.pods(*(pod(f"low-{number}").requests(cpu="1").priority(1).on("a") for number in range(3)))
    world.event_handlers.cluster_object(native("job", needed, **({} if policy is None else {"preemptionPolicy": policy})))
    return world


#: The group's policy, its members' policies, whether it evicts.
SITUATIONS = [
    (None, (None, None), True),
    (None, (None, NEVER), False),
    (NEVER, (None, None), False),
    (NEVER, (LOWER, LOWER), False),
    (LOWER, (None, None), True),
    (LOWER, (NEVER, None), True),
    (LOWER, (NEVER, NEVER), True),
]


@pytest.mark.parametrize(("policy", "own", "evicts"), SITUATIONS)
async def test_a_gang_evicts_as_its_group_says(policy: str | None, own: tuple[str | None, ...], *, evicts: bool) -> None:
    world = full(policy)
    makers = [native_member("job", f"m{number}").priority(100) for number in range(2)]
    world.pods(*(maker.spec(preemptionPolicy=mine) if mine else maker for maker, mine in zip(makers, own, strict=True)))
    assert await evicted(world) == (2 if evicts else 0)
    assert bound(world) == []


@pytest.mark.parametrize("needed", [1, None], ids=["gang", "basic"])
@pytest.mark.parametrize("own", [None, NEVER, LOWER])
@pytest.mark.parametrize("policy", [None, NEVER, LOWER])
async def test_a_member_that_joins_alone_evicts_as_its_group_says(policy: str | None, own: str | None, needed: int | None) -> None:
    world = full(policy, needed)
    world.nodes(node("b").offers(cpu="1"))
    world.pods(native_member("job", "first").priority(100).on("b"))
    joins = native_member("job", "joins").priority(100)
    world.pods(joins.spec(preemptionPolicy=own) if own else joins)
    assert await evicted(world) == (0 if (policy or own) == NEVER else 1)
