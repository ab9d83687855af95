"""The API server restarts, forgets, drops watches and answers badly: every pod is placed once, whatever is heard of it, and how often."""

from __future__ import annotations

from .stage import Stage, now

BURST = 300
ROUNDS = 3
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
    await in_rounds(stage)
    await stage.until(lambda: all(each.counts.watches_dropped > 10 for each in stage.proxies), "watches are dropped")
    await stage.until_recovered(began)
    assert stage.history.bound == BURST


async def test_410_on_every_resume(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    for proxy in stage.proxies:
        proxy.trouble.gone = stage.random.choice(("status", "event"))
        proxy.drop_watches_every(stage.random.uniform(0.8, 1.2))
    began = now()
    await in_rounds(stage)
    await stage.until(lambda: all(each.counts.told_gone > 5 for each in stage.proxies), "watches are told that history is gone")
    await stage.until_recovered(began)
    assert stage.history.bound == BURST


async def in_rounds(stage: Stage) -> None:
    """Pods in several goes, so that each meets watches in another state; with room for all but one."""
    for _ in range(ROUNDS):
        await stage.pods(BURST // ROUNDS)
        await stage.until_settled()


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
