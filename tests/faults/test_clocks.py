"""Replicas whose wall clocks are minutes apart exclude each other as well as any."""

from __future__ import annotations

from .stage import Stage, now

BURST = 200
MINUTES = 60.0


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
