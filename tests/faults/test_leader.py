"""The leader is killed, stands still, or is cut off: another takes over, and nothing is decided twice."""

from __future__ import annotations

from .stage import LIFETIME, Stage, now

#: As many pods as there is room for; beside the one that shows who leads, one has to wait.
BURST = 300
LATER = 50


async def test_leader_killed_in_mid_burst(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    async with stage.burst(BURST):
        await stage.until_bound(stage.random.randrange(20, 150))
        leader, heir = await stage.leader_and_heir()
        await leader.kill()
        killed = now()
        await stage.until_recovered(killed, heir)
    await stage.until_settled()
    assert stage.history.bound == BURST
    assert {each.replica for each in stage.requests() if each.at > killed} == {heir.name}


async def test_leader_frozen_past_its_lifetime_and_thawed(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    async with stage.burst(BURST - LATER):
        await stage.until_bound(stage.random.randrange(20, 100))
        leader, heir = await stage.leader_and_heir()
        leader.freeze()
        frozen = now()
        await stage.until_recovered(frozen, heir)
        await stage.until(lambda: now() > frozen + LIFETIME + stage.random.random(), "its lifetime is over")
        leader.thaw()
    await stage.pods(LATER)
    await stage.until_settled()
    assert stage.history.bound == BURST
    assert leader.alive
    assert heir.alive


async def test_leader_cut_off_and_healed(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    async with stage.burst(BURST - LATER):
        await stage.until_bound(stage.random.randrange(20, 100))
        leader, heir = await stage.leader_and_heir()
        leader.proxy.cut(refuse=stage.random.random() < 0.5)
        cut = now()
        await stage.until_recovered(cut, heir)
        await stage.until(lambda: now() > cut + LIFETIME + stage.random.random(), "its lifetime is over")
        await leader.proxy.heal()
    await stage.pods(LATER)
    await stage.until_settled()
    assert stage.history.bound == BURST
    assert leader.alive
    assert heir.alive
