from __future__ import annotations

import asyncio

import pytest

from placewright.api.decode import convert
from placewright.api.objects import ObjectMeta
from placewright.api.storage import PersistentVolume
from placewright.api.workloads import PodDisruptionBudget
from placewright.framework.events import ClusterEvent
from placewright.queue.check import check_invariants
from placewright.queue.queued import SubQueue
from placewright.scheduler.eventhandlers import node_update_events
from placewright.testing import persistent_volume_claim, replica_set

from .makers import UNKNOWN, NodeMaker, World, node, pod


@pytest.fixture
def world() -> World:
    return World().nodes(node("a"))


@pytest.fixture
def moved(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of events that the queue was told."""
    labels: list[str] = []

    def move(event: ClusterEvent, *_: object, **__: object) -> int:
        labels.append(event.label)
        return 0

    monkeypatch.setattr(world.queue, "move", move)
    return labels


# --- pods without a node -------------------------------------------------------------------------------------------------------------


def test_the_same_news_twice_changes_nothing(world: World) -> None:
    web = pod("web").build()
    for _ in range(2):
        world.event_handlers.unscheduled_pod(web)
    assert len(world.queue) == 1
    for _ in range(2):
        world.event_handlers.unscheduled_pod_gone(web)
    assert len(world.queue) == 0
    on_a = pod("web").on("a").requests(cpu="1").build()
    for _ in range(2):
        world.event_handlers.assigned_pod(on_a)
    assert world.requested("a") == 1000
    for _ in range(2):
        world.event_handlers.assigned_pod_gone("uid-web")
    assert world.requested("a") == 0


def test_news_of_nobody_is_no_error(world: World) -> None:
    world.event_handlers.unscheduled_pod_gone(pod("nobody").build())
    world.event_handlers.assigned_pod_gone("uid-nobody")
    world.event_handlers.node_gone("nowhere")  # type: ignore[arg-type]
    assert len(world.queue) == 0
    assert (world.cluster.node_count, world.cluster.pod_count_total) == (1, 0)


async def test_a_late_unscheduled_version_of_a_bound_pod_does_not_bring_it_back(world: World) -> None:
    world.pods(pod("web"))
    await world.attempt()
    world.pods(pod("web").labels(late="news"))
    assert len(world.queue) == 0
    world.pods(pod("web").on("a"))
    world.pods(pod("web").labels(late="news"))
    assert len(world.queue) == 0


async def test_the_bound_pod_leaving_the_unscheduled_watch_keeps_its_room(world: World) -> None:
    """Kopf says DELETED with the object's node set."""
    world.pods(pod("web").requests(cpu="1"))
    await world.attempt()
    world.event_handlers.unscheduled_pod_gone(pod("web").on("a").build())
    assert world.requested("a") == 1000


def test_an_unscheduled_pod_that_is_shown_with_a_node_or_finished_leaves_the_queue(world: World) -> None:
    world.pods(pod("web"), pod("job"))
    world.event_handlers.unscheduled_pod(pod("web").on("elsewhere").build())
    world.event_handlers.unscheduled_pod(pod("job").phase("Failed").build())
    assert len(world.queue) == 0


def test_a_pod_that_somebody_else_bound_leaves_the_queue(world: World) -> None:
    world.pods(pod("web"))
    world.pods(pod("web").on("a").requests(cpu="1"))
    assert len(world.queue) == 0
    assert world.requested("a") == 1000


async def test_confirming_an_assumed_pod_does_not_end_its_attempt_early(world: World) -> None:
    """The binding itself ends it, with the event and PostBind, when its answer comes."""
    world.pods(pod("web"))
    world.binder.answers["uid-web"] = answer = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(world.attempt())
    await asyncio.sleep(0)
    world.pods(pod("web").on("a"))
    assert world.place("web") is SubQueue.IN_FLIGHT
    answer.set_result(None)
    assert await task is True
    assert world.events.reasons("web") == ["Scheduled"]
    check_invariants(world.queue)


def test_a_namesake_takes_the_place_of_the_old_pod(world: World) -> None:
    world.pods(pod("web").created("2026-01-01T00:00:00Z"))
    world.pods(pod("web").uid("second").created("2026-01-02T00:00:00Z"))
    assert world.queue.uids() == {"second"}
    world.pods(pod("web").created("2026-01-01T00:00:00Z").labels(late="news"))
    assert world.queue.uids() == {"second"}


# --- pods on nodes ---------------------------------------------------------------------------------------------------------------


def test_a_pod_may_come_before_its_node(world: World) -> None:
    world.pods(pod("web").on("late").requests(cpu="1")).nodes(node("late"))
    row = world.cluster.row("late")  # type: ignore[arg-type]
    assert row is not None
    assert world.cluster.pod_count[row] == 1


def test_a_finished_pod_frees_its_room(world: World) -> None:
    world.pods(pod("job").on("a").requests(cpu="1"), pod("job").on("a").requests(cpu="1").phase("Succeeded"))
    assert world.requested("a") == 0


async def test_a_pod_that_finished_before_it_was_seen_running_ends_an_unknown_binding(world: World) -> None:
    world.pods(pod("job").requests(cpu="1"))
    world.binder.answers["uid-job"] = UNKNOWN
    await world.attempt()
    world.pods(pod("job").on("a").requests(cpu="1").phase("Succeeded"))
    assert not world.binding.unresolved
    assert world.requested("a") == 0
    assert len(world.queue) == 0


def test_news_about_pods_on_nodes_wakes_those_who_may_care(world: World, moved: list[str]) -> None:
    web = pod("web").on("a")
    first = web.build()
    world.event_handlers.assigned_pod(first)
    world.event_handlers.assigned_pod(first)
    world.event_handlers.assigned_pod(web.labels(tier="gold").build())
    world.event_handlers.assigned_pod(pod("web").on("b").labels(tier="gold").build())
    world.event_handlers.assigned_pod_gone("uid-web")
    world.event_handlers.assigned_pod_gone("uid-web")
    assert moved == [
        "AssignedPodAdd", "AssignedPodUpdateLabel", "AssignedPodUpdate", "AssignedPodDelete", "AssignedPodDelete",
    ]  # fmt: skip


def test_a_confirmed_assumption_wakes_as_a_new_pod_does(world: World, moved: list[str]) -> None:
    world.cluster.assume(pod("web").build(), "a")  # type: ignore[arg-type]
    world.pods(pod("web").on("a"))
    assert moved == ["AssignedPodAdd"]


# --- nodes -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "labels"),
    [
        (node("a"), node("a").offers(cpu="9"), ["NodeUpdateAllocatable"]),
        (node("a"), node("a").labels(zone="z"), ["NodeUpdateLabel"]),
        (node("a").taint("gpu"), node("a"), ["NodeUpdateTaint"]),
        (node("a").cordoned(), node("a"), ["NodeUpdateTaint"]),
        (node("a"), node("a").cordoned(), []),
        (node("a").condition("Ready", "False"), node("a").condition("Ready", "True"), ["NodeUpdateCondition"]),
        (node("a").condition("Ready", "True", since="09:00"), node("a").condition("Ready", "True", since="09:01"), []),
        (node("a"), node("a").annotations(note="x"), ["NodeUpdateAnnotation"]),
        (node("a"), node("a").features("Fast"), ["NodeUpdateDeclaredFeature"]),
        (node("a"), node("a").offers(cpu="9").labels(zone="z"), ["NodeUpdateAllocatable", "NodeUpdateLabel"]),
        (node("a"), node("a"), []),
    ],
)
def test_what_changed_about_a_node_is_said_and_nothing_else(before: NodeMaker, after: NodeMaker, labels: list[str]) -> None:
    assert [event.label for event in node_update_events(before.build(), after.build())] == labels


def test_nodes_that_come_and_go_are_said_once(world: World, moved: list[str]) -> None:
    world.nodes(node("b"), node("b"))
    world.event_handlers.node_gone("b")  # type: ignore[arg-type]
    world.event_handlers.node_gone("b")  # type: ignore[arg-type]
    assert moved == ["NodeAdd", "NodeDelete"]


async def test_a_freed_node_wakes_the_pod_that_needs_it() -> None:
    world = World().nodes(node("a").cordoned()).pods(pod("web"))
    await world.attempt()
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    world.now += 10
    world.nodes(node("a"))
    assert world.place("web") is SubQueue.ACTIVE
    assert await world.attempt() is True


@pytest.mark.parametrize("amount", ["a lot", "", "1 Gi", "0x10", "NaN"])
async def test_a_node_with_an_unreadable_quantity_keeps_its_last_state_and_costs_no_other(
    world: World, amount: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.nodes(node("a").offers(cpu=amount), node("b").offers(memory=amount), node("c"))
    assert [name for name in world.cluster.names if name] == ["a", "c"]
    assert "node a keeps its last known state: status.allocatable" in caplog.text
    world.pods(pod("web").requests(cpu="4"))
    assert await world.attempt() is True


# --- volumes and what belongs to them -------------------------------------------------------------------------------------------------


def volume(version: str, phase: str = "Available") -> PersistentVolume:
    return convert({"metadata": {"name": "disk", "resourceVersion": version}, "status": {"phase": phase}}, PersistentVolume)


def test_every_change_of_a_volume_is_told_once(world: World, moved: list[str]) -> None:
    for news in (volume("1"), volume("1"), volume("2", "Bound")):
        world.event_handlers.cluster_object(news)
    world.event_handlers.cluster_object_gone(volume("2", "Bound"))
    world.event_handlers.cluster_object_gone(volume("2", "Bound"))
    assert moved == ["PersistentVolumeAdd", "PersistentVolumeUpdate", "PersistentVolumeDelete"]


def test_kinds_that_no_plugin_waits_for_move_nobody(world: World, moved: list[str]) -> None:
    budget = PodDisruptionBudget(metadata=ObjectMeta(name="calm", namespace="default"))
    world.event_handlers.cluster_object(budget)
    world.event_handlers.cluster_object_gone(budget)
    assert moved == []


def test_a_workload_is_told_of_when_it_selects_other_pods_and_not_when_its_status_changes(world: World, moved: list[str]) -> None:
    for version, app in (("1", "web"), ("2", "web"), ("3", "db")):
        world.show(replica_set("web").selects(app=app).version(version))
    assert moved == ["ReplicaSetAdd", "ReplicaSetUpdate"]


def test_a_pod_that_waits_for_its_claim_is_tried_again_when_the_claim_comes(world: World) -> None:
    world.show(pod("web").volume_claims("data"))
    assert world.decide() is None
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    world.show(persistent_volume_claim("other"))
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    world.show(persistent_volume_claim("data"))
    assert world.place("web") is not SubQueue.UNSCHEDULABLE
