"""Pods that claim devices while replicas, claims, drivers and nodes come and go: no device twice, and in the end all are free again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from .api import Refused
from .stage import DRIVER, NODES, OWN_CLAIMS, SLICES, Stage, now
from .test_meanwhile import slow_down

Object = dict[str, Any]
NODE_COUNT = 10
#: Of each node.
DEVICES = 8
PODS = 80
#: By template, how many devices, which are to be of one node.
TEMPLATES = {"one": 1, "two": 2, "many": DEVICES + 1}
#: What pods claim, one as often as another: about a hundred of the eighty devices that there are, so that some wait; the last one for ever.
CLAIMING = (("one",), ("one",), ("two",), ("one", "one"), ("two",), (), ("one", "many"))
#: Seconds that each request of a replica takes, so that claims are written and pods not bound when something happens.
SLOW = 0.03

pytestmark = pytest.mark.devices(DEVICES)


async def test_devices_with_the_leader_killed_between_allocation_and_binding(stage: Stage) -> None:
    await set_up(stage)
    slow_down(stage, SLOW)
    leader, heir = await stage.leader_and_heir()  # before the pods, which may all be bound while it is asked for
    creating = asyncio.create_task(claiming_pods(stage))
    await stage.until(lambda: stage.history.bound > 5 and len(allocated_and_unbound(stage)) > 1, "claims have devices, their pods no node")
    await leader.kill()
    killed = now()
    assert allocated_and_unbound(stage)
    await creating
    await stage.until_recovered(killed, heir)
    await until_all_is_free_again(stage)


async def test_devices_with_10_percent_of_bindings_and_writes_to_claims_answered_409_429_500_or_never(stage: Stage) -> None:
    await set_up(stage)
    for proxy in stage.proxies:
        proxy.trouble.bindings = proxy.trouble.claims = 0.1
    began = now()
    await claiming_pods(stage)
    await stage.until_recovered(began)
    await stage.until_settled()
    assert sum(sum(each.counts.answers.values()) for each in stage.proxies) > PODS / 16
    await until_all_is_free_again(stage)


async def test_devices_with_claims_and_pods_deleted_meanwhile(stage: Stage) -> None:
    await set_up(stage)
    slow_down(stage, SLOW)
    began = now()
    creating = asyncio.create_task(claiming_pods(stage))
    await stage.until(lambda: held_claims(stage), "claims have devices")
    deleted: list[str] = []
    in_use: set[str] = set()
    while len(deleted) < PODS // 2:
        held = held_claims(stage)
        gone = await delete_something(stage)
        deleted.extend(gone)
        in_use |= held & set(gone)
        await stage.until(lambda: creating.done() or len(stage.created) > len(deleted), "more pods come")
        await asyncio.sleep(0)  # the pods go on coming beside this
    await creating
    await stage.until_recovered(began)
    # A controller makes a deleted claim anew, and on a busy machine that takes longer than all Bindings.
    await stage.until(lambda: not without_claim(stage), "pods find the claims that were made anew")
    assert in_use, "claims that had devices were deleted, too"
    await until_all_is_free_again(stage)
    assert await stage.faults() == []


async def test_devices_with_slices_changed_drivers_gone_and_nodes_deleted_meanwhile(stage: Stage) -> None:
    names = await set_up(stage)
    slow_down(stage, SLOW)
    began = now()
    creating = asyncio.create_task(claiming_pods(stage))
    fewest = published(stage)
    for number in range(12):
        await stage.until(lambda number=number: creating.done() or stage.history.bound > 3 * number, "pods are bound")  # type: ignore[misc]
        await change_devices(stage, stage.random.choice(names))
        fewest = min(fewest, published(stage))
    await creating
    fewest = min(fewest, published(stage))
    await restore(stage, names)
    await stage.until_recovered(began)
    assert fewest < published(stage), "devices were gone for a while"
    await until_all_is_free_again(stage)
    assert await stage.faults() == []


def without_claim(stage: Stage) -> list[str]:
    """Pods that wait and whose condition says that a claim is missing."""
    waiting = (pod for pod in stage.history.pods.values() if not (pod.node or pod.over or pod.leaving))
    return [pod.key for pod in waiting if "could not find" in pod.condition[2]]


async def set_up(stage: Stage) -> list[str]:
    """Nodes, whose devices are published, and replicas at work."""
    names = await stage.nodes(NODE_COUNT)
    for name, count in TEMPLATES.items():
        await stage.claim_template(name, count)
    await stage.until(lambda: published(stage) == NODE_COUNT * DEVICES, "devices are published")
    await stage.replicas_at_work(2)
    return names


async def claiming_pods(stage: Stage) -> None:
    """Pods that claim devices in different ways, among them some without."""
    slots = asyncio.Semaphore(8)

    async def one() -> None:
        async with slots:
            await stage.pod(templates=stage.random.choice(CLAIMING))

    async with asyncio.TaskGroup() as group:
        for _ in range(PODS):
            group.create_task(one())


def published(stage: Stage) -> int:
    return sum(map(len, stage.history.published().values()))


def held_claims(stage: Stage) -> set[str]:
    """Keys of the claims that have devices."""
    return {each.key for each in stage.history.claims.values() if each.allocated}


def allocated_and_unbound(stage: Stage) -> list[str]:
    """Claims that have devices, and whose pods have no node yet."""
    pods = stage.history.pods
    return [each.key for each in stage.history.claims.values() if each.allocated and each.owner in pods and not pods[each.owner].node]


async def delete_something(stage: Stage) -> list[str]:
    """A claim, used or not, or a pod: the claim's key or the pod's uid; empty where there was none."""
    claims = [each.key for each in stage.history.claims.values()]
    if claims and stage.random.random() < 0.6:
        held = sorted(held_claims(stage))
        key = stage.random.choice(held if held and stage.random.random() < 0.5 else claims)
        await stage.api.delete(f"{OWN_CLAIMS}/{key.partition('/')[2]}")
        return [key]
    pods = [uid for uid in stage.claiming if uid in stage.history.pods]
    if not pods:
        return []
    uid = stage.random.choice(pods)
    await stage.delete_pod(uid)
    return [uid]


async def change_devices(stage: Stage, node: str) -> None:
    """One of what happens to devices; to those of a node that is gone nothing does."""
    change = stage.random.choice(("fewer", "all", "gone", "cordon", "node"))
    mine = slices_of(stage, node)
    try:
        if change == "node":
            await stage.api.delete(f"{NODES}/{node}")
        elif change == "cordon":
            await stage.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
        elif change == "gone":
            for name in mine:
                await stage.api.delete(f"{SLICES}/{name}")
        elif mine:
            await publish(stage, mine[0], stage.random.randrange(DEVICES) if change == "fewer" else DEVICES)
    except Refused as refused:
        assert refused.code in (404, 409)  # noqa: PT017 - anything else is not of this test


async def publish(stage: Stage, name: str, count: int) -> None:
    """A new generation of a pool of which this is the only slice, with so many devices."""
    found = await stage.api.get(f"{SLICES}/{name}")
    spec = found["spec"]
    pool = {**spec["pool"], "generation": spec["pool"]["generation"] + 1}
    await stage.api.request("PUT", f"{SLICES}/{name}", {**found, "spec": {**spec, "pool": pool, "devices": devices(count)}})


def devices(count: int) -> list[Object]:
    return [{"name": f"gpu-{number}"} for number in range(count)]


async def restore(stage: Stage, names: list[str]) -> None:
    """All nodes are there, open, and have all their devices."""
    slow_down(stage, 0.0)
    for name in names:
        was_there = name in stage.history.nodes
        await stage.node(name)
        await stage.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": False}})
        if was_there and not slices_of(stage, name):
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices(DEVICES)}
            body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{name}-again"}, "spec": spec}
            await stage.api.create(SLICES, body)
        else:
            await stage.until(lambda name=name: slices_of(stage, name), "the driver has published its devices")  # type: ignore[misc]
            await publish(stage, slices_of(stage, name)[0], DEVICES)
    await stage.until(lambda: published(stage) == NODE_COUNT * DEVICES, "all devices are published again")


def slices_of(stage: Stage, node: str) -> list[str]:
    return [name for name, each in stage.history.slices.items() if each.node == node]


async def until_all_is_free_again(stage: Stage) -> None:
    """All is settled, then all pods go; then pods that take every single device are placed, and go."""
    for proxy in stage.proxies:
        await proxy.calm()
    assert await stage.faults() == []
    await until_empty(stage)
    uids = [await stage.pod(templates=("two",)) for _ in range(published(stage) // 2)]
    await stage.until(lambda: all(map(stage.node_of, uids)), "every device is used again")
    await stage.until_told()
    await until_empty(stage)


async def until_empty(stage: Stage) -> None:
    """Until all pods with claims are gone, and all claims with them."""
    slots = asyncio.Semaphore(8)

    async def delete(uid: str) -> None:
        async with slots:
            await stage.delete_pod(uid)

    await asyncio.gather(*(delete(uid) for uid in stage.claiming if uid in stage.history.pods))
    await stage.until(lambda: not stage.history.claims, "no claim is left")
