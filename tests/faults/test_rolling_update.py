"""Replicas are replaced, one after the other, while pods keep coming: by others of the same version, or of another one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from .replica import Replica
from .stage import Stage, now

REPLICAS = 3
PODS_A_SECOND = 40.0


async def test_rolling_update_of_three_replicas_under_load(stage: Stage) -> None:
    await stage.nodes(10, cpu="16", pods="1000")
    old = await stage.replicas_at_work(REPLICAS)
    async with stage.steadily(PODS_A_SECOND, cpu="10m", memory="1Mi"):
        began = now()
        await replaced(stage, old)
        await stage.until_recovered(now())
    await all_bound_since(stage, began)


async def test_upgrade_from_an_older_version_and_back_under_load(stage: Stage, older: Path) -> None:
    """Both versions are at work at a time, and each takes over from the other."""
    await stage.nodes(10, cpu="16", pods="1000")
    old = await stage.replicas_at_work(2, source=older)
    async with stage.steadily(PODS_A_SECOND, cpu="10m", memory="1Mi"):
        began = now()
        new = await replaced(stage, old)
        await stage.until_recovered(now())
        await replaced(stage, new, source=older)
        await stage.until_recovered(now())
    await all_bound_since(stage, began)


async def replaced(stage: Stage, old: list[Replica], source: Path | None = None) -> list[Replica]:
    """Replace each of them, in any order, by one that is ready before it is ended; the new ones."""
    new = []
    for each in stage.random.sample(old, len(old)):
        new.append(await stage.replica(source=source))
        await stage.until_ready(new[-1])
        assert await each.end() == 0
    return new


async def all_bound_since(stage: Stage, began: float) -> None:
    """All pods have to get nodes; notes the longest time between two Bindings."""
    await stage.until_settled()
    moments = [each.at for each in stage.requests() if each.code == 201 and began < each.at]
    stage.recovery = max(after - before for before, after in pairwise(moments))
    assert stage.history.bound == len(stage.created)
