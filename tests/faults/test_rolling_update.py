"""Three replicas are replaced, one after the other, while pods keep coming."""

from __future__ import annotations

from itertools import pairwise

from .stage import Stage, now

REPLICAS = 3
PODS_A_SECOND = 40.0


async def test_rolling_update_of_three_replicas_under_load(stage: Stage) -> None:
    await stage.nodes(10, cpu="16", pods="1000")
    old = await stage.replicas_at_work(REPLICAS)
    stage.random.shuffle(old)
    codes = []
    async with stage.steadily(PODS_A_SECOND, cpu="10m", memory="1Mi"):
        began = now()
        for each in old:
            await stage.until_ready(await stage.replica())
            codes.append(await each.end())
        ended = now()
        await stage.until_recovered(ended)
    await stage.until_settled()
    moments = [each.at for each in stage.requests() if each.code == 201 and began < each.at]
    stage.recovery = max(after - before for before, after in pairwise(moments))
    assert codes == [0] * REPLICAS
    assert stage.history.bound == len(stage.created)
