"""A pod is deleted and created anew, with the same name, while it is being bound.

API servers before 1.23 (and some of 1.25 and 1.26) do not look at a Binding's uid: they bind the new pod, and answer that all is well.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from framework.scripts import Script
from placewright.queue.check import check_invariants
from placewright.queue.queued import SubQueue

from .makers import CONFLICT, UNKNOWN, PodMaker, World, node, pod
from .scripted import late

EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def old() -> PodMaker:
    return pod("web").uid("old").created(EARLIER).requests(cpu="1")


def new() -> PodMaker:
    """Created within the same second, as a busy controller does it."""
    return pod("web").uid("new").created(EARLIER).requests(cpu="3")


class Scene:
    """The old pod is on its way to node a; then it is deleted, and the new one created."""

    def __init__(self, world: World, script: Script) -> None:
        self.world, self.script = world, script
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        world.binder.answers["old"] = self.answer

    async def begin(self) -> None:
        self.world.pods(old())
        self.task = asyncio.ensure_future(self.world.attempt())
        await asyncio.sleep(0)
        assert [uid for _, uid, _, _ in self.world.binder.bound] == ["old"], "its Binding is on its way"
        self.world.event_handlers.unscheduled_pod_gone(old().build())
        self.world.pods(new())

    async def answered(self, problem: Exception | None = None) -> bool | None:
        if problem is None:
            self.answer.set_result(None)
        else:
            self.answer.set_exception(problem)
        return await self.task

    def is_right(self, replaced: int = 1) -> bool:
        """The new pod stands where it stands, with what it asks for; of the old one nothing is left."""
        world = self.world
        check_invariants(world.queue)
        return (
            world.requested("a") == 3000
            and world.cluster.placement("old") is None
            and world.cluster.assumed_count == 0
            and not world.queue.uids()
            and not len(world.queue.in_flight)
            and not world.binding.unresolved
            and not world.binding.given_up
            and world.event_handlers.repairs.replaced == replaced
        )


@pytest.fixture
async def scene() -> Scene:
    script = late("Late")
    made = Scene(World(script.kind).nodes(node("a")), script)
    await made.begin()
    return made


async def test_the_watch_shows_the_new_pod_before_the_binding_is_answered(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.world.pods(new().on("a"))
    with caplog.at_level(logging.WARNING):
        assert await scene.answered() is False
    assert scene.is_right()
    assert scene.script.calls[-1] == ("Late", "unreserve", ("a",))
    assert scene.world.events.reasons("web") == [], "the old pod was not scheduled"


async def test_the_watch_shows_the_new_pod_after_the_binding_is_answered(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    assert await scene.answered() is True
    assert scene.world.requested("a") == 1000
    with caplog.at_level(logging.WARNING):
        scene.world.pods(new().on("a"))
    assert scene.is_right()
    assert len(caplog.messages) == 1
    assert "uid new" in caplog.messages[0] and "uid old" in caplog.messages[0] and "node a" in caplog.messages[0]


@pytest.mark.parametrize("told_by", ["the watch", "the reconciler"])
async def test_a_binding_of_unknown_outcome_that_reached_the_new_pod(scene: Scene, told_by: str) -> None:
    assert await scene.answered(UNKNOWN) is False
    if told_by == "the watch":
        scene.world.pods(new().on("a"))
        assert scene.is_right()
    else:
        scene.world.reconciler.unscheduled().listed()
        assert [each.uid for each in scene.world.reconciler.doubtful()] == ["old"]
        scene.world.reconciler.looked(old().build(), new().on("a").build())
        scene.world.pods(new().on("a"))
        assert scene.is_right(replaced=0)
        assert scene.world.event_handlers.repairs.forgotten == 1


async def test_the_new_pod_is_itself_being_bound_to_the_same_node(scene: Scene) -> None:
    scene.world.binder.answers["new"] = CONFLICT
    own = scene.world.decide()
    assert own is not None and scene.world.requested("a") == 4000
    scene.world.pods(new().on("a"))
    assert await own is True, "it stands where we wanted it, whoever's Binding it was"
    assert await scene.answered() is False
    assert scene.is_right()


async def test_the_new_pod_is_itself_being_bound_to_another_node(scene: Scene) -> None:
    scene.world.nodes(node("a").cordoned(), node("b"))
    scene.world.binder.answers["new"] = CONFLICT
    own = scene.world.decide()
    assert own is not None and scene.world.requested("b") == 3000
    scene.world.pods(new().on("a"))
    assert await own is False
    assert await scene.answered() is False
    assert scene.is_right()
    assert scene.world.requested("b") == 0


async def test_a_new_pod_that_another_scheduler_sees_to_is_counted_as_it_is(scene: Scene) -> None:
    scene.world.event_handlers.unscheduled_pod_gone(new().build())
    scene.world.pods(new().scheduler("another").on("a"))
    await scene.answered()
    assert scene.is_right()


async def test_an_api_server_that_looks_at_the_uid_refuses_and_the_new_pod_is_placed_by_itself(scene: Scene) -> None:
    assert await scene.answered(CONFLICT) is False
    assert scene.world.requested("a") == 0 and scene.world.queue.locate("new") is SubQueue.ACTIVE
    assert await scene.world.attempt() is True
    scene.world.pods(new().on("a"))
    assert scene.is_right(replaced=0)
    assert scene.world.events.reasons("web") == ["Scheduled"]


async def test_old_news_of_a_predecessor_takes_nothing_from_the_pod_that_is_being_bound() -> None:
    """The watch of assigned pods lags behind: it shows the predecessor on its node when its successor has been placed already."""
    world = World().nodes(node("a"))
    for predecessor, successor in [(old(), new().created(LATER)), (old(), new())]:
        world.pods(predecessor)
        await world.attempt()
        world.event_handlers.unscheduled_pod_gone(predecessor.build())
        world.pods(successor)
        await world.attempt()
        world.pods(predecessor.on("a"))
        assert world.cluster.placement("new") is not None
        assert world.requested("a") == 4000
        assert world.event_handlers.repairs.replaced == 0
        world.event_handlers.assigned_pod_gone("old")
        world.pods(successor.on("a"))
        world.event_handlers.assigned_pod_gone("new")
        assert world.requested("a") == 0


async def test_a_list_that_was_under_way_does_not_bring_the_old_pod_back(scene: Scene) -> None:
    with scene.world.reconciler.watching():
        comparison = scene.world.reconciler.unscheduled()
        scene.world.pods(new().on("a"))
        await scene.answered()
        comparison.shown(old().build().pod)
        comparison.listed()
        assert comparison.suspects == {}
    assert scene.is_right()
