"""A plugin that breaks while a group is decided: nothing is held, nobody is lost, and the group is tried again together."""

from __future__ import annotations

import pytest

from placewright.queue.check import check_invariants
from placewright.queue.queued import SubQueue
from scheduler.makers import World, node
from scheduler.scripted import late

from .makers import bound, group, members


def oh(*_: object) -> None:
    raise RuntimeError("oh")


def broken_at(step: str) -> World:
    """A plugin that raises at this step for the last of three members."""
    script = late("Late")
    usual = script.told[step]
    script.told[step] = lambda _state, pod, _node: oh() if pod.name == "job-2" else usual
    world = World(script.kind).nodes(node("a"))
    world.event_handlers.cluster_object(group("job", 3))
    return world.pods(*members("job", 3))


@pytest.mark.parametrize("step", ["reserve", "permit", "pre_bind"])
async def test_all_members_are_tried_again_together(step: str) -> None:
    world = broken_at(step)
    assert not await world.attempt()
    assert bound(world) == []
    assert world.requested("a") == 0
    assert [world.place(f"job-{n}") for n in range(3)] == [SubQueue.BACKOFF] * 3
    check_invariants(world.queue)


async def test_a_postfilter_that_breaks_leaves_nobody_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().nodes(node("a").offers(cpu="1"))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3))
    [preemption] = [plugin for plugin in world.evaluator.runtime.post_filter if plugin.name == "DefaultPreemption"]
    monkeypatch.setattr(preemption, "post_filter", oh)
    assert world.decide() is None
    assert world.requested("a") == 0
    assert [world.place(f"job-{n}") for n in range(3)] == [SubQueue.BACKOFF] * 3
    assert any("RuntimeError: oh" in note for _, _, _, _, note in world.events.recorded)


async def test_planning_that_breaks_keeps_nothing_and_the_group_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(pluginConfig=[{"name": "GangScheduling", "args": {"reservationAfterSeconds": 0}}]).nodes(node("a").offers(cpu="1"))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3))
    monkeypatch.setattr(world.evaluator.checker, "check_row", oh)
    assert world.decide() is None
    assert [world.place(f"job-{n}") for n in range(3)] == [SubQueue.UNSCHEDULABLE] * 3
    assert len(world.scheduler.pod_groups.reservations) == 0
