"""Replicas whose wall clocks are minutes apart exclude each other as well as any, and one of them stays in the lead."""

from __future__ import annotations

from .stage import LIFETIME, Stage, now

BURST = 200
MINUTES = 60.0
#: Seconds; the first is more than a lifetime.
APART = (20.0, 60.0, 600.0, 10 * 365 * 86_400.0)


async def test_clocks_minutes_apart(stage: Stage) -> None:
    await stage.nodes(10, cpu="2")
    apart = stage.random.choice((-1, 1)) * stage.random.uniform(3, 15) * MINUTES
    await stage.replicas_at_work(2, (apart, 0.0))
    async with stage.burst(BURST):
        await stage.until_bound(stage.random.randrange(20, 100))
        leader, heir = await stage.leader_and_heir()
        await leader.kill()
        await stage.until_recovered(now(), heir)
    await stage.until_settled()
    assert stage.history.bound == BURST


async def test_clocks_apart_and_idle(stage: Stage) -> None:
    await stage.nodes(2)
    apart = stage.random.choice(APART)
    clocks = [apart, 0.0, -apart / 2][: stage.random.randrange(2, 4)]
    stage.random.shuffle(clocks)
    await stage.replicas_at_work(len(clocks), clocks)
    before = set(stage.history.peers)
    began = now()
    await stage.until(lambda: now() > began + 4 * LIFETIME, "four lifetimes pass")
    assert stage.history.peers == before
    assert len([holder for _, holder in stage.history.holders if holder]) <= 2
    newcomer = await stage.replica(-2 * apart)
    await stage.until_ready(newcomer)
    await stage.until(lambda: len(stage.history.peers) == len(clocks) + 1, "the newcomer is a peer")
    joined = now()
    await stage.until(lambda: now() > joined + LIFETIME, "a lifetime passes")
    assert len([holder for _, holder in stage.history.holders if holder]) <= 2, "a newcomer takes the lead from nobody"
