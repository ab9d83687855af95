"""The API server restarts, forgets, drops watches and answers badly: every pod is placed once, whatever is heard of it, and how often."""

from __future__ import annotations

import asyncio
import re
from typing import Final

import pytest

from .stage import Stage, now

BURST = 300
PODS_A_SECOND = 50.0
#: Each replica watches some fifteen collections: most of them have been dropped, or told, more than once.
MANY = 20
#: Of a burst, what may be on its way when trouble begins.
BEGINS = (10, 60)
A_FEW = 3
#: Each replica opens some fifteen connections at once after a restart. No more, so that the lead stays where it is.
RESETS = 10
#: Seconds in which Kopf attempts each of its requests again and again, and the lead is lost.
AWAY_SECONDS: Final = 5.0
#: The absence, what it means for the Lease, and for this replica.
MOST_LINES = 3
#: What no reader of a log knows: Kopf's attempts, classes and tuples of Python.
OBJECTS: Final = re.compile(r" kopf\.|Error\b|\('|<")
#: In a replica's log: Kopf did not survive, or what the reconciler had to mend for it.
BLIND: Final = re.compile(r"Kopf's watching ended|reconciler: [1-9]\d* pods were missed|is used by transport")


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


@pytest.mark.parametrize("refuse", [True, False], ids=["refuses", "resets"])
async def test_api_server_away_is_logged_in_few_lines(stage: Stage, refuse: bool) -> None:
    await stage.node("node-0")
    (replica,) = await stage.replicas_at_work(1)
    await stage.until(lambda: now() > replica.proxy.last_request + 0.5, "it is at rest")
    written = len(replica.log.read_text())
    away = now()
    if refuse:
        replica.proxy.cut(refuse=True)
    else:
        await replica.proxy.reset()
    await stage.until(lambda: now() > away + AWAY_SECONDS, "it was away")
    during = replica.log.read_text()[written:].splitlines()
    await replica.proxy.heal()
    await stage.until(lambda: " is back after " in replica.log.read_text(), "it is back")
    assert len([line for line in during if " is away: " in line]) == 1
    assert len(during) <= MOST_LINES, during
    assert [line for line in during if OBJECTS.search(line)] == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("restarts", [3, 50])
async def test_api_server_killed_again_and_again(stage: Stage, restarts: int) -> None:
    """Connections are reset as TLS begins: uvloop then closed the descriptors of others, among them those of Kopf's watches."""
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    for _ in range(restarts):
        await asyncio.gather(*(each.reset() for each in stage.proxies))
        uids = await stage.pods(A_FEW)
        expected = [each.counts.connections_reset + RESETS for each in stage.proxies]
        await stage.until(
            lambda expected=expected: all(one.counts.connections_reset >= many for one, many in zip(stage.proxies, expected, strict=True)),
            "connections are reset",
        )
        await asyncio.gather(*(each.heal() for each in stage.proxies))
        await stage.until(lambda uids=uids: all(map(stage.node_of, uids)), "pods of the meantime are bound")
    await stage.until_settled()
    assert [line for each in stage.replicas for line in each.log.read_text().splitlines() if BLIND.search(line)] == []


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
