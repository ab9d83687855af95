"""A nominated pod counts on its node for pods that are no more important. When it is nominated no more, they are tried again."""

from __future__ import annotations

import pytest

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
    world.intake.unscheduled_pod_gone(vip().info())
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
    world.intake.unscheduled_pod_gone(vip().on("a").info())
    assert places(world) == dict.fromkeys(("peer", "lesser", "greater"), SubQueue.UNSCHEDULABLE) | {"vip": None}


def test_the_deletion_of_a_pod_without_nomination_brings_nobody_back(world: World) -> None:
    world.intake.unscheduled_pod_gone(pod("greater").info())
    assert {world.place(name) for name in ("peer", "lesser", "vip")} == {SubQueue.UNSCHEDULABLE}
