"""What the scheduler keeps of pods that came and went is bounded, however large they were and in whatever way."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import pytest

from hostilepods import KINDS, Dice, hostile_pod
from placewright.api.boundedcache import forget_unasked
from placewright.api.decode import convert
from placewright.api.objects import NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.selectors import CompiledRequirement, Selector
from placewright.cluster.tally import Tally
from placewright.framework.runtime.podcolumns import LARGEST_TEXT, PodColumns
from scheduler.makers import World, node

MEBI = 2**20
NODES = 20
#: Bytes of JSON; some ten times as many in memory.
LARGEST = 150_000
#: So many of each kind, each in a text of its own.
ROUNDS = 3


@pytest.fixture
def allocated() -> Iterator[None]:
    """What is allocated is counted, also what only the collector would free: it counts objects and not bytes, so it comes late."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def size() -> float:
    """MiB that are allocated now."""
    return tracemalloc.get_traced_memory()[0] / MEBI


async def come_and_go(world: World, pod: PodInfo) -> None:
    """A pod appears, is decided, or was bound by its creator, and is deleted."""
    if pod.node_name:
        world.event_handlers.assigned_pod(pod)
    else:
        world.event_handlers.unscheduled_pod(pod)
        queued = world.queue.pop()
        binding = None if queued is None else world.schedule(queued)
        if binding is not None:
            await binding
    world.event_handlers.pod_gone(pod.uid)
    world.event_handlers.assigned_pod_gone(pod.uid)
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
    world.event_handlers.unscheduled_pod(pod)
    assert await world.attempt()
    assert world.cluster.placement("uid-p") is not None
    assert len(world.evaluator.kept) == 0
    assert world.evaluator.kept.nbytes == 0
    assert world.cluster.row(NodeName("n0")) is not None
    assert LARGEST_TEXT < 100_000


def picky(number: int, values: int, operator: str = "NotIn") -> PodInfo:
    """A pod like no other, whose node affinity lists so many values; no node has one, so every node is right, or with `In` none."""
    listed = [f"{number}-{each}-{'v' * 40}" for each in range(values)]
    terms = [{"matchExpressions": [{"key": "k", "operator": operator, "values": listed}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    spec = {"schedulerName": "default-scheduler", "affinity": affinity, "containers": [{"name": "c"}]}
    return PodInfo(convert({"metadata": {"name": f"p{number}", "namespace": "d", "uid": f"uid-{number}"}, "spec": spec}, Pod))


def picky_world() -> World:
    return World().nodes(*(node(f"n{number}") for number in range(NODES)))


@pytest.mark.usefixtures("allocated")
@pytest.mark.parametrize("operator", ["NotIn", "In"])
async def test_nothing_is_kept_of_a_pod_that_is_much_to_compile_once_the_next_one_comes(operator: str) -> None:
    world = picky_world()
    await come_and_go(world, picky(0, 10, operator))
    before = size()
    for number in range(1, 31):
        await come_and_go(world, picky(number, 6000, operator))
    await come_and_go(world, picky(31, 10, operator))
    forget_unasked()  # texts that were read
    assert size() - before < 1, "30 pods, each of 1 MiB when compiled"
    assert len(world.evaluator.kept) == 2


@pytest.mark.usefixtures("allocated")
async def test_shapes_of_pods_take_what_is_counted_and_go_when_no_pod_asked_for_them_for_two_beats() -> None:
    world = picky_world()
    kept = world.evaluator.kept
    await come_and_go(world, picky(0, 10))
    before, counted = size(), kept.nbytes
    for number in range(1, 101):
        await come_and_go(world, picky(number, 300))
    forget_unasked()
    assert len(kept) == 101, "each was asked for since the last beat"
    took = size() - before
    assert took / 1.3 < (kept.nbytes - counted) / MEBI < 1.3 * took
    for number in (7, 9):
        await come_and_go(world, picky(number, 300))
    forget_unasked()
    assert len(kept) == 2
    forget_unasked()
    forget_unasked()
    assert (len(kept), kept.nbytes) == (0, 0)
    assert size() - before < 0.5


@pytest.mark.usefixtures("allocated")
async def test_what_authors_of_pods_choose_the_size_of_takes_half_of_the_share() -> None:
    world = picky_world()
    kept = world.evaluator.kept
    kept.budget.limit = 4 * MEBI
    await come_and_go(world, picky(0, 10))
    before = size()
    for number in range(1, 151):
        await come_and_go(world, picky(number, 300))
    assert 20 < len(kept) < 100
    forget_unasked()  # texts that were read
    assert size() - before < 2 * 1.3, "2 MiB of texts"


@pytest.mark.usefixtures("allocated")
async def test_all_that_plugins_worked_out_of_pods_of_many_shapes_goes_by_the_second_beat() -> None:
    world = picky_world()

    def choosy(number: int) -> PodInfo:
        """A pod with a constraint and a term of its own, which plugins compile and count."""
        labels = {"app": f"a{number}"}
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
        spread = [{"maxSkew": 9, "whenUnsatisfiable": "ScheduleAnyway", **term}]
        wanted = [{"matchExpressions": [{"key": f"k{number}", "operator": "DoesNotExist"}]}]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wanted}}}
        spec = {"affinity": affinity, "topologySpreadConstraints": spread, "containers": [{"name": "c"}]}
        spec["schedulerName"] = "default-scheduler"
        return PodInfo(
            convert({"metadata": {"name": f"c{number}", "namespace": "d", "uid": f"c{number}", "labels": labels}, "spec": spec}, Pod)
        )

    kinds = (PodColumns, Tally, CompiledRequirement, Selector)
    for number in range(3):
        await come_and_go(world, choosy(number))
    for _ in range(2):
        forget_unasked()
    before = alive(kinds)
    for number in range(3, 153):
        await come_and_go(world, choosy(number))
    assert all(now >= then + 150 for now, then in zip(alive(kinds), before, strict=True)), "each kind is kept for pods that come again"
    for _ in range(2):
        forget_unasked()
    assert alive(kinds) == before


def alive(kinds: tuple[type, ...]) -> list[int]:
    """Number of objects of each kind that Python's collector knows."""
    gc.collect()
    objects = gc.get_objects()
    return [sum(type(each) is kind for each in objects) for kind in kinds]
