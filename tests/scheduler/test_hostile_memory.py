"""What the scheduler keeps of pods that came and went is bounded, however large they were and in whatever way."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import pytest

from hostilepods import KINDS, Dice, hostile_pod
from placewright.api.decode import convert
from placewright.api.objects import NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.framework.runtime import keptshapes
from scheduler.makers import World, node

MEBI = 2**20
NODES = 20
#: Bytes of JSON; some ten times as many in memory.
LARGEST = 150_000
#: So many of each kind, each in a text of its own.
ROUNDS = 3


@pytest.fixture
def allocated() -> Iterator[None]:
    """What is allocated is counted."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def size() -> float:
    """MiB that are allocated now."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / MEBI


async def come_and_go(world: World, pod: PodInfo) -> None:
    """A pod appears, is decided, or was bound by its creator, and is deleted."""
    if pod.node_name:
        world.intake.assigned_pod(pod)
    else:
        world.intake.unscheduled_pod(pod)
        queued = world.queue.pop()
        binding = None if queued is None else world.schedule(queued)
        if binding is not None:
            await binding
    world.intake.pod_gone(pod.uid)
    world.intake.assigned_pod_gone(pod.uid)
    world.queue.done(pod.uid)
    for remembered in (world.events.recorded, world.status.written, world.binder.bound, world.log.attempts, world.log.entered):
        remembered.clear()


def hostile(dice: Dice, number: int) -> PodInfo:
    body = hostile_pod(dice, number, "default-scheduler", node=f"n{number % NODES}" if dice.random() < 0.3 else "")
    body["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": str(number)}
    return PodInfo(convert(body, Pod))


@pytest.mark.usefixtures("allocated")
@pytest.mark.parametrize("seed", [1, 2])
async def test_little_is_kept_of_large_pods_that_are_gone(seed: int) -> None:
    world, dice = World().nodes(*(node(f"n{number}") for number in range(NODES))), Dice(seed, LARGEST)
    for number in range(len(KINDS)):
        await come_and_go(world, hostile(dice, number))
    before, made = size(), 0
    for number in range(len(KINDS), ROUNDS * len(KINDS)):
        pod = hostile(dice, number)
        made += len(pod.pod.metadata.name)
        await come_and_go(world, pod)
        del pod
    assert len(world.queue) == 0
    assert size() - before < 8


@pytest.mark.usefixtures("allocated")
async def test_columns_of_ever_new_signatures_take_what_they_are_said_to_take() -> None:
    world = World().nodes(*(node(f"n{number}") for number in range(NODES)))
    kept = world.evaluator.kept
    kept.budget.limit = MEBI // 2
    before = size()
    for number in range(200):
        await come_and_go(world, hostile(Dice(number, 4000), number))
    took = size() - before
    assert len(kept) > 10
    assert kept.nbytes <= MEBI // 2 + kept.nbytes / len(kept)
    assert took < 8, "with what everything else keeps"


async def test_a_pod_whose_signature_is_too_large_to_keep_is_decided_all_the_same() -> None:
    world = World().nodes(node("n0"), node("n1"))
    images = [{"name": f"c{number}", "image": f"{'x' * 1000}-{number}"} for number in range(100)]
    body = {"metadata": {"name": "p", "namespace": "d", "uid": "uid-p"}, "spec": {"containers": images}}
    pod = PodInfo(convert(body, Pod))
    world.intake.unscheduled_pod(pod)
    assert await world.attempt()
    assert world.cluster.placement("uid-p") is not None
    assert len(world.evaluator.kept) == 0
    assert world.evaluator.kept.nbytes == 0
    assert world.cluster.row(NodeName("n0")) is not None
    assert keptshapes.LARGEST_SIGNATURE < 100_000
