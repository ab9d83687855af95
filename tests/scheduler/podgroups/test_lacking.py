"""What a group lacks is said in one line."""

from __future__ import annotations

import pytest

from scheduler.makers import World, node

from .makers import group, member, members, tried


async def told(world: World) -> str:
    """What the event of the first member says about its group."""
    await tried(world)
    notes = [note for name, _, reason, _, note in world.events.recorded if (name, reason) == ("job-0", "FailedScheduling")]
    return notes[-1]


async def test_each_resource_is_named_with_the_members_that_lack_it() -> None:
    world = World().nodes(node("a").offers(cpu="2", memory="1Gi", **{"example.com/gpu": "1"}))
    world.event_handlers.cluster_object(group("job", 4))
    gpus = [member("job", index).requests(**{"cpu": "100m", "memory": "400Mi", "example.com/gpu": "1"}) for index in range(3)]
    world.pods(*gpus, member("job", 3).requests(memory="700Mi"))
    assert "needs 3 more members placed: 2 lack example.com/gpu, 1 lacks memory" in await told(world)


async def test_a_member_that_no_node_could_hold_is_named_before_any_member_is_placed() -> None:
    world = World().nodes(node("a").offers(cpu="8", memory="1Gi"))
    world.event_handlers.cluster_object(group("job", 4))
    world.pods(*members("job", 3), member("job", 3).requests(memory="8Gi"))
    assumed: list[str] = []
    assume = world.cluster.assume
    world.cluster.assume = lambda each, name: (assumed.append(each.name), assume(each, name))[1]  # type: ignore[method-assign]
    assert "needs 1 more member placed: 1 lacks memory" in await told(world)
    assert assumed == []


async def test_other_reasons_are_told_in_their_own_words() -> None:
    world = World().nodes(node("a").taint("gpu-only"))
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*members("job", 2))
    assert "needs 2 more members placed: 2 find no node (node(s) had untolerated taint" in await told(world)


async def test_members_that_are_kept_back_by_something_else_are_counted() -> None:
    world = World().nodes(node("a"))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3, "2"))
    queued = world.pop()
    assert queued.pod.name == "job-2", "the last one opened the gate"
    world.event_handlers.unscheduled_pod(member("job", 0).gates("quota").build())
    assert world.schedule(queued) is None
    assert any("needs 2 more members placed: 2 are not there to be tried" in note for _, _, _, _, note in world.events.recorded)


async def test_a_member_that_was_let_in_before_others_left_says_how_many_there_are() -> None:
    world = World().nodes(node("a"))
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3, "2"))
    queued = world.pop()
    world.event_handlers.unscheduled_pod_gone(member("job", 0).build())
    assert world.schedule(queued) is None
    notes = [note for _, _, _, _, note in world.events.recorded]
    assert any("spec.minMember is 3, but there are 2 pods of it" in note for note in notes), notes


async def test_a_group_over_two_profiles_waits_and_is_told_so() -> None:
    world = World().nodes(node("a"))
    world.use_profile(name="other", schedulerName="other")
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(member("job", 0), member("job", 1).scheduler("other"))
    await tried(world)
    assert world.binder.bound == []
    assert world.requested("a") == 0


@pytest.mark.parametrize("count", [0, -3])
async def test_a_group_that_is_declared_wrongly_waits(count: int) -> None:
    world = World().nodes(node("a"))
    world.event_handlers.cluster_object(group("job", count))
    world.pods(*members("job", 2))
    await tried(world)
    assert world.binder.bound == []
