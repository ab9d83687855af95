"""The API server restarts, forgets, drops watches and answers badly: every pod is placed once, whatever is heard of it, and how often."""

from __future__ import annotations

from .stage import Stage, now

BURST = 300
PODS_A_SECOND = 50.0
#: Each replica watches some fifteen collections: most of them have been dropped, or told, more than once.
MANY = 20
#: Of a burst, what may be on its way when trouble begins.
BEGINS = (10, 60)


async def test_api_server_restarted(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    async with stage.burst(BURST):
        await stage.until_bound(stage.random.randrange(*BEGINS))
        down = stage.random.uniform(0.3, 2.0)
        await stage.restart_api_server(down)
        await stage.until_recovered(now() + down)
    await stage.until_settled()
    assert stage.history.bound == BURST


async def test_watches_dropped_every_second(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    for proxy in stage.proxies:
        proxy.drop_watches_every(stage.random.uniform(0.8, 1.2))
    began = now()
    async with stage.steadily(PODS_A_SECOND):
        await stage.until(lambda: enough(stage, *(each.counts.watches_dropped for each in stage.proxies)), "watches are dropped")
    await stage.until_recovered(began)
    await stage.until_settled()
    assert stage.history.bound == len(stage.created)


async def test_410_on_every_resume(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    for proxy in stage.proxies:
        proxy.trouble.gone = stage.random.choice(("status", "event"))
        proxy.drop_watches_every(stage.random.uniform(0.8, 1.2))
    began = now()
    async with stage.steadily(PODS_A_SECOND):
        await stage.until(lambda: enough(stage, *(each.counts.told_gone for each in stage.proxies)), "watches are told 410")
    await stage.until_recovered(began)
    await stage.until_settled()
    assert stage.history.bound == len(stage.created)


def enough(stage: Stage, *counts: int) -> bool:
    """Whether there was trouble for each replica, and work."""
    return all(count > MANY for count in counts) and len(stage.created) >= BURST // 2


async def test_10_percent_of_bindings_answered_409_429_500_or_never(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    for proxy in stage.proxies:
        proxy.trouble.bindings = 0.1
    began = now()
    await stage.pods(BURST)
    await stage.until_recovered(began)
    await stage.until_settled()
    assert stage.history.bound == BURST
    assert sum(sum(each.counts.answers.values()) for each in stage.proxies) > BURST / 30
