"""Groups of pods while replicas, the API server, nodes and members come and go: each is placed as a whole, or says why it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .stage import LIFETIME, Stage, now
from .test_meanwhile import change_node, restore, slow_down

NODE_COUNT = 10
CPU = "6"
#: Members and what each asks for: fifty groups come to 44 of 60 CPUs, however they fall.
SHAPES = ((2, "200m"), (3, "100m"), (5, "200m"), (8, "100m"), (12, "100m"))
GROUPS = 50
#: Groups that never fit, though most of their members would: more than there is room for, or larger than nodes.
TOO_LARGE = ((31, "2"), (2, "7"))
#: Seconds that each request of a replica takes, so that groups are halfway when something happens.
SLOW = 0.03


async def test_groups_with_the_leader_killed_in_mid_group(stage: Stage) -> None:
    await stage.nodes(NODE_COUNT, cpu=CPU)
    await stage.replicas_at_work(2)
    slow_down(stage, SLOW)
    async with groups_coming(stage):
        await stage.until(lambda: stage.history.bound > 20 and halfway(stage), "a group is halfway")
        leader, heir = await stage.leader_and_heir()
        await leader.kill()
        killed = now()
        await stage.until_recovered(killed, heir)
    await until_placed(stage)
    assert await stage.faults() == []


async def test_groups_with_the_leader_frozen_past_its_lifetime_and_thawed(stage: Stage) -> None:
    await stage.nodes(NODE_COUNT, cpu=CPU)
    await stage.replicas_at_work(2)
    slow_down(stage, SLOW)
    async with groups_coming(stage):
        await stage.until(lambda: stage.history.bound > 20 and halfway(stage), "a group is halfway")
        leader, heir = await stage.leader_and_heir()
        leader.freeze()
        frozen = now()
        await stage.until_recovered(frozen, heir)
        await stage.until(lambda: now() > frozen + LIFETIME + stage.random.random(), "its lifetime is over")
        leader.thaw()
    await stage.group("later", 5)
    await until_placed(stage)
    assert leader.alive


async def test_groups_with_10_percent_of_bindings_answered_409_429_500_or_never(stage: Stage) -> None:
    await stage.nodes(NODE_COUNT, cpu=CPU)
    await stage.replicas_at_work(2)
    for proxy in stage.proxies:
        proxy.trouble.bindings = 0.1
    began = now()
    async with groups_coming(stage):
        await stage.until_recovered(began)
    await until_placed(stage)
    assert sum(sum(each.counts.answers.values()) for each in stage.proxies) > GROUPS / 5


async def test_groups_with_watches_dropped_and_the_api_server_restarted(stage: Stage) -> None:
    await stage.nodes(NODE_COUNT, cpu=CPU)
    await stage.replicas_at_work(2)
    slow_down(stage, SLOW)
    for proxy in stage.proxies:
        proxy.drop_watches_every(stage.random.uniform(0.5, 0.8))
    async with groups_coming(stage):
        await stage.until(lambda: stage.history.bound > 20 and halfway(stage), "a group is halfway")
        down = stage.random.uniform(0.3, 2.0)
        await stage.restart_api_server(down)
        await stage.until_recovered(now() + down)
    await until_placed(stage)
    assert all(each.counts.watches_dropped for each in stage.proxies)


async def test_groups_with_nodes_deleted_cordoned_and_shrunk_meanwhile(stage: Stage) -> None:
    names = await stage.nodes(NODE_COUNT, cpu="4")
    await stage.replicas_at_work(2)
    slow_down(stage, SLOW)
    async with groups_coming(stage):
        for number in range(10):
            await stage.until_bound(1 + number * 8)
            await change_node(stage, stage.random.choice(names))
    slow_down(stage, 0.0)
    began = now()
    for name in names:
        await restore(stage, name)
    await stage.group("later", 2)
    await stage.until_recovered(began)
    assert await stage.faults() == []


async def test_groups_with_members_deleted_and_replaced_by_namesakes_meanwhile(stage: Stage) -> None:
    await stage.nodes(NODE_COUNT, cpu=CPU)
    await stage.replicas_at_work(2)
    slow_down(stage, SLOW)
    began = now()
    async with groups_coming(stage):
        changed: set[str] = set()
        while len(changed) < GROUPS:
            uid = stage.random.choice(stage.created)
            if uid in stage.history.pods and stage.history.pods[uid].group and uid not in changed:
                changed.add(uid)
                await delete_or_replace(stage, uid)
            await asyncio.sleep(0)  # the groups go on coming beside this
    await stage.until_recovered(began)
    slow_down(stage, 0.0)
    assert await stage.faults() == []


async def delete_or_replace(stage: Stage, uid: str) -> None:
    """Sometimes another pod of the same name and group comes at once."""
    pod = stage.history.first[uid]
    await stage.delete_pod(uid)
    if stage.random.random() < 0.6:
        await stage.pod(stage.name_of(uid), cpu=f"{pod.asks['cpu']}m", group=pod.group)


@asynccontextmanager
async def groups_coming(stage: Stage) -> AsyncIterator[None]:
    """Groups are being created while this is open, several at a time, some of which can never be placed; when it is left they have been."""
    shapes = [(*stage.random.choice(SHAPES), 0) for _ in range(GROUPS)]
    for needed, cpu in TOO_LARGE:
        shapes.insert(stage.random.randrange(GROUPS), (needed, cpu, 0))
    # Members beyond what is needed come along, and join where they come late.
    shapes[3] = (3, "100m", 6)
    slots = asyncio.Semaphore(4)

    async def one(number: int, needed: int, cpu: str, members: int) -> None:
        async with slots:
            await stage.group(f"group-{number}", needed, members, cpu=cpu)

    async with asyncio.TaskGroup() as creating:
        for number, (needed, cpu, members) in enumerate(shapes):
            creating.create_task(one(number, needed, cpu, members))
        yield


def placed_of(stage: Stage) -> dict[str, int]:
    """By group, how many of its members have a node."""
    counts = dict.fromkeys(stage.groups, 0)
    for pod in stage.history.pods.values():
        if pod.group and pod.node:
            counts[pod.group] += 1
    return counts


def halfway(stage: Stage) -> bool:
    """Whether a group has some of its members on nodes, and not enough yet."""
    return any(0 < placed < stage.groups[group] for group, placed in placed_of(stage).items())


async def until_placed(stage: Stage) -> None:
    """Until nobody waits but those that fit nowhere; there is room for everybody else."""
    slow_down(stage, 0.0)
    hopeless = len(TOO_LARGE)

    def missing() -> list[str]:
        placed = placed_of(stage)
        return [group for group, needed in stage.groups.items() if placed[group] < needed]

    await stage.until(lambda: len(missing()) == hopeless, "all groups that fit are placed")
    assert all(placed_of(stage)[group] == 0 for group in missing())
