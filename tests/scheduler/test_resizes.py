"""A pod whose resize its kubelet defers displaces pods of lower priority on its node, if its profile says so."""

from __future__ import annotations

import random
from typing import Any

import pytest

from placewright.testing import World, disruption_budget, node, pod, profile
from placewright.testing.pods import PodMaker

PREEMPT = {"preemption": {"deferredResizes": "Preempt"}}


def growing(cpu: str, *, runs_with: str = "1", reason: str = "Deferred", name: str = "grows", **more: str) -> PodMaker:
    """A pod on node `a` that is to have `cpu`, and runs with less."""
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    conditions += [{"type": kind, "status": status} for kind, status in more.items()]
    resources = {"requests": {"cpu": runs_with}}
    running = [{"name": "main", "resources": resources, "allocatedResources": {"cpu": runs_with}}]
    return pod(name).requests(cpu=cpu).on("a").priority(100).status(conditions=conditions, containerStatuses=running)


def world_of(*pods: PodMaker, cpu: str = "4", objects: Any = (), **spec: Any) -> World:
    return World(profile=profile().spec(**(spec or PREEMPT)), nodes=[node("a", cpu=cpu)], pods=pods, objects=objects, watches=False)


def review(world: World, seconds: int = 1) -> list[str]:
    """The pods that were evicted in so many seconds."""
    world.advance(seconds)
    return [victim for victim, _, _ in world.evictor.evicted]


def small(count: int, **labels: str) -> list[PodMaker]:
    return [pod(f"low-{number}").requests(cpu="1").on("a").priority(number).labels(**labels) for number in range(count)]


def test_the_least_important_pods_leave_and_the_others_stay() -> None:
    world = world_of(growing("2"), *small(3))
    assert review(world, 5) == ["low-0"], "nothing more leaves while a victim is on its way"
    world.remove("low-0")
    assert review(world, 30) == ["low-0"], "the resize has room, and the kubelet will see it"
    assert [event.reason for event in world.events.recorded] == ["Preempted"]


@pytest.mark.parametrize(
    "subject",
    [
        growing("2", reason="Infeasible"),
        growing("2", PodResizePreemptionDisabled="True"),
        growing("2").status(conditions=[]),
        growing("2").deleting(),
        growing("2").never_preempts(),
        growing("2").scheduler("another"),
    ],
    ids=["infeasible", "the node forbids it", "no condition", "it leaves", "preemptionPolicy", "another profile"],
)
def test_these_pods_displace_none(subject: PodMaker) -> None:
    assert review(world_of(subject, *small(3)), 20) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"preemption": {"deferredResizes": "Wait"}},
        {"preemption": {"maxVictims": 1}},
        {"preemption": {"deferredResizes": "Preempt", "policy": "Never"}},
        {"preemption": {"deferredResizes": "Preempt", "protect": {}}},
    ],
)
def test_the_profile_decides(spec: dict[str, Any]) -> None:
    assert review(world_of(growing("2"), *small(3), **spec), 20) == []


def test_a_limit_that_is_lifted_after_the_resize_was_deferred_is_followed() -> None:
    world = world_of(growing("2"), *small(3), preemption={"deferredResizes": "Wait"})
    assert review(world, 20) == []
    world.use(profile().spec(**PREEMPT))
    assert review(world, 12) == ["low-0"]


def test_an_event_says_once_why_no_eviction_helps() -> None:
    world = world_of(growing("5"), *small(1))
    assert review(world, 60) == []
    assert [(event.reason, event.note) for event in world.events.recorded] == [("ResizeWaits", "preemption: Insufficient cpu")]


def test_larger_wishes_are_tried_at_once() -> None:
    world = world_of(growing("9"), *small(3))
    review(world, 20)
    world.show(growing("3"))
    assert review(world) == ["low-1", "low-0"]


def test_a_pod_that_a_budget_guards_leaves_last() -> None:
    low = [*small(2, app="guarded"), pod("high").requests(cpu="1").on("a").priority(50)]
    world = world_of(growing("2"), *low, objects=[disruption_budget("all").selects(app="guarded").allows(0)])
    assert review(world) == ["high"]


@pytest.mark.parametrize("seed", range(60))
def test_what_leaves_is_needed_and_enough_and_of_lower_priority(seed: int) -> None:
    """A plain model: the node's amounts are added up anew, without columns."""
    rng = random.Random(seed)
    offered = {"cpu": rng.randint(4, 12), "memory": rng.randint(4, 12)}
    wish = {name: rng.randint(1, 6) for name in offered}
    others = {
        f"p-{number}": ({name: rng.randint(0, 3) for name in offered}, rng.choice([10, 50, 99, 100, 200]))
        for number in range(rng.randint(1, 8))
    }
    subject = growing("1").requests({"cpu": str(wish["cpu"]), "memory": f"{wish['memory']}Gi"})
    made = [
        pod(name).requests({"cpu": str(asks["cpu"]), "memory": f"{asks['memory']}Gi"}).on("a").priority(priority)
        for name, (asks, priority) in others.items()
    ]
    world = World(
        profile=profile().spec(**PREEMPT),
        nodes=[node("a", cpu=str(offered["cpu"]), memory=f"{offered['memory']}Gi")], pods=[subject, *made], watches=False,
    )  # fmt: skip

    def fits(gone: set[str]) -> bool:
        stays = [asks for name, (asks, _) in others.items() if name not in gone]
        return all(wish[name] + sum(asks[name] for asks in stays) <= offered[name] for name in offered)

    lower = {name for name, (_, priority) in others.items() if priority < 100}
    victims = set(review(world))
    if fits(set()) or not fits(lower):
        assert not victims
    else:
        assert victims <= lower and fits(victims)
        assert not any(fits(victims - {name}) for name in victims)


def test_pods_that_no_eviction_helps_do_not_keep_others_from_their_turn() -> None:
    """More of them than a review takes, and all of a higher priority."""
    hopeless = [growing("99", name=f"large-{number}").priority(200).on(f"n{number}") for number in range(40)]
    nodes = [node(f"n{number}", cpu="4") for number in range(40)]
    world = World(profile=profile().spec(**PREEMPT), nodes=[node("a", cpu="4"), *nodes], pods=hopeless, watches=False)
    world.advance(20)
    for each in (growing("2"), *small(3)):
        world.show(each)
    assert review(world, 15) == ["low-0"]


@pytest.mark.parametrize("ends", ["resized", "deleted", "finished"])
def test_nothing_is_kept_of_a_resize_that_is_over(ends: str) -> None:
    world = world_of(growing("2"), *small(3))
    assert review(world) == ["low-0"]
    if ends == "deleted":
        world.remove("grows")
    else:
        world.show(pod("grows").requests(cpu="2").on("a").priority(100).phase("Succeeded" if ends == "finished" else "Running"))
    assert review(world, 20) == ["low-0"]
    assert not world.cluster.deferred_resizes
    assert not world.scheduler.resizes._waits
