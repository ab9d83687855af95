"""A nominated pod counts on its node for pods that are no more important. When it is nominated no more, they are tried again."""

from __future__ import annotations

import pytest

from placewright.api.objects import NodeName
from placewright.queue.queued import SubQueue

from .makers import PodMaker, World, node, pod


def vip(nominated_to: str = "a") -> PodMaker:
    maker = pod("vip").priority(5).requests(cpu="4")
    return maker.nominated(nominated_to) if nominated_to else maker


@pytest.fixture
def world() -> World:
    """One node that is as good as taken, and pods that wait for it."""
    world = World().nodes(node("a").offers(cpu="4"))
    for maker in (pod("peer").priority(5), pod("lesser"), pod("greater").priority(9), vip()):
        world.pods(maker)
        world.queue.return_unschedulable(world.pop(), {"NodeResourcesFit"})
    assert places(world) == dict.fromkeys(("peer", "lesser", "greater", "vip"), SubQueue.UNSCHEDULABLE)
    return world


def places(world: World) -> dict[str, SubQueue | None]:
    return {name: world.place(name) for name in ("peer", "lesser", "greater", "vip")}


def test_its_deletion_brings_back_pods_that_are_no_more_important(world: World) -> None:
    world.event_handlers.unscheduled_pod_gone(vip().build())
    assert places(world) == {
        "peer": SubQueue.BACKOFF,
        "lesser": SubQueue.BACKOFF,
        "greater": SubQueue.UNSCHEDULABLE,
        "vip": None,
    }


@pytest.mark.parametrize("now", ["", "b"], ids=["nowhere", "elsewhere"])
def test_so_does_another_nomination_which_is_no_reason_to_try_the_pod_itself(world: World, now: str) -> None:
    world.pods(vip(now))
    assert places(world) == {
        "peer": SubQueue.BACKOFF,
        "lesser": SubQueue.BACKOFF,
        "greater": SubQueue.UNSCHEDULABLE,
        "vip": SubQueue.UNSCHEDULABLE,
    }


def test_other_news_of_a_nominated_pod_brings_nobody_back(world: World) -> None:
    world.pods(vip().labels(a="b"))
    assert set(places(world).values()) == {SubQueue.UNSCHEDULABLE}


def test_a_nominated_pod_that_gets_its_node_brings_nobody_back(world: World) -> None:
    world.event_handlers.unscheduled_pod_gone(vip().on("a").build())
    assert places(world) == dict.fromkeys(("peer", "lesser", "greater"), SubQueue.UNSCHEDULABLE) | {"vip": None}


def test_the_deletion_of_a_pod_without_nomination_brings_nobody_back(world: World) -> None:
    world.event_handlers.unscheduled_pod_gone(pod("greater").build())
    assert {world.place(name) for name in ("peer", "lesser", "vip")} == {SubQueue.UNSCHEDULABLE}


def test_a_nominated_pod_that_goes_to_another_node_brings_back_pods_that_are_no_more_important(world: World) -> None:
    world.nodes(node("b").offers(cpu="4"))
    while (queued := world.queue.pop()) is not None:  # the new node brought all of them back
        world.queue.return_unschedulable(queued, {"NodeResourcesFit"})
    world.event_handlers.assigned_pod(pod("on-a").requests(cpu="1").on("a").build())
    world.queue.activate([vip().build()])
    binding = world.decide()
    assert binding is not None
    binding.close()
    assert world.node_of("vip") == "b"
    assert (world.place("peer"), world.place("lesser"), world.place("greater")) == (
        SubQueue.BACKOFF, SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE
    )  # fmt: skip


def test_the_deletion_of_a_pod_that_is_nominated_in_memory_only_does_so_too(world: World) -> None:
    world.pods(vip(""))
    for _ in range(2):  # its own withdrawal woke them
        world.queue.return_unschedulable(world.pop(), {"NodeResourcesFit"})
    known = world.queue.latest("uid-vip")
    assert known is not None
    world.queue.nominate(known, NodeName("a"))
    world.event_handlers.unscheduled_pod_gone(vip("").build())
    assert (world.place("peer"), world.place("lesser"), world.place("greater")) == (
        SubQueue.BACKOFF, SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE
    )  # fmt: skip
