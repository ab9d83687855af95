"""The leader is killed, stands still, or is cut off: another takes over, and nothing is decided twice."""

from __future__ import annotations

from .stage import Stage, now

#: As many pods as there is room for; beside the one that shows who leads, one has to wait.
BURST = 300


async def test_the_leader_is_killed_in_mid_burst(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    first, second = await stage.replica(), await stage.replica()
    await stage.until_ready(first, second)
    leader = await stage.until_led()
    heir = second if leader is first else first
    async with stage.burst(BURST):
        await stage.until_bound(stage.random.randrange(20, 150))
        await leader.kill()
        killed = now()
        await stage.until_recovered(killed, heir)
    await stage.until_settled()
    assert stage.history.bound == BURST
    assert {each.replica for each in stage.requests() if each.at > killed} == {heir.name}
