"""manifests/samples/policy/give-up.yaml: a pod that waits too long is told once, keeps waiting for a change, and is placed after one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.test_groupstatus import Groups
from handlers.stage import WITH_GROUPS, Object, Running, Stage, new_stage, operator
from placewright.api.givenup import GIVEN_UP
from policy.samples import apply_sample

SAMPLE = "give-up.yaml"


def told(stage: Stage, name: str) -> Object:
    return stage.condition(name, GIVEN_UP)


def events(stage: Stage, name: str) -> list[str]:
    return [note for reason, note in stage.events(name) if reason == "GivenUp"]


def knows(running: Running) -> int:
    """How many pods this operator counts as given up."""
    return sum(len(queue.wait_limit.given_up) for queue in running.engine.deciding.queue.profile_queues() if queue.wait_limit is not None)


async def test_a_pod_that_nothing_can_hold_is_given_up_and_placed_when_a_node_comes(stage: Stage) -> None:
    scheduler = apply_sample(stage, SAMPLE, giveUpAfterSeconds=1)
    stage.pod("big", cpu="32", scheduler=scheduler).pod("small", scheduler=scheduler)
    async with operator(stage) as running:
        await stage.until(lambda: told(stage, "big").get("status") == "True" and events(stage, "big"))
        found = told(stage, "big")
        assert found["reason"] == "WaitedTooLong"
        assert ", and profile give-up gives up after 1s; rejected last by NodeResourcesFit; tried again" in found["message"]
        assert events(stage, "big") == [found["message"]]
        assert stage.condition("big")["reason"] == "Unschedulable", "PodScheduled stays kube-scheduler's"
        tried = running.engine.deciding.queue.get(stage.show("big")["metadata"]["uid"])
        assert tried is not None
        before = tried.attempts
        running.engine.deciding.queue.flush_unschedulable(0.0)
        running.engine.deciding.queue.flush_backoff()
        assert tried.attempts == before and not stage.node_of("big"), "the timeout does not bring it back"
        stage.node("large", cpu="64")
        await stage.until(lambda: stage.node_of("big") == "large")
        await stage.until(lambda: told(stage, "big").get("status") == "False")
        assert told(stage, "big")["message"] == "assigned to large"
        assert knows(running) == 0
    assert not told(stage, "small")
    assert len(events(stage, "big")) == 1


async def test_the_next_leader_tells_nobody_again(stage: Stage) -> None:
    scheduler = apply_sample(stage, SAMPLE, giveUpAfterSeconds=1)
    stage.pod("big", cpu="32", scheduler=scheduler)
    async with operator(stage):
        await stage.until(lambda: told(stage, "big") and events(stage, "big"))
    first = told(stage, "big")
    async with operator(stage) as running:
        await stage.until(lambda: knows(running) == 1 and not running.engine.deciding.queue.giving_up.news)
    assert told(stage, "big") == first
    assert len(events(stage, "big")) == 1


async def test_a_live_change_gives_up_and_takes_back(stage: Stage) -> None:
    scheduler = apply_sample(stage, SAMPLE)
    stage.pod("big", cpu="32", scheduler=scheduler)
    async with operator(stage) as running:
        await stage.until(lambda: stage.condition("big").get("reason") == "Unschedulable")
        assert not told(stage, "big")
        stage.edit_profile("give-up", giveUpAfterSeconds=1)
        await stage.until(lambda: told(stage, "big").get("status") == "True")
        stage.edit_profile("give-up", giveUpAfterSeconds=7200)
        await stage.until(lambda: told(stage, "big").get("status") == "False")
        assert told(stage, "big")["reason"] == "ProfileChanged"
        assert told(stage, "big")["message"] == "profile give-up gives up after 2h0m0s now"
        assert knows(running) == 0
        assert len(events(stage, "big")) == 1


# --- groups ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def grouped() -> AsyncIterator[Stage]:
    async with new_stage(WITH_GROUPS) as made:
        yield made.nodes(2)


async def test_members_of_a_group_are_given_up_together_and_its_object_says_so(grouped: Stage) -> None:
    scheduler = apply_sample(grouped, SAMPLE, giveUpAfterSeconds=1)
    groups = Groups(grouped)
    groups.declare(3, native=True)
    groups.members("a", "b", "c", cpu="3", native=True, scheduler=scheduler)

    def said() -> Object:
        return next((each for each in groups.status(native=True).get("conditions") or () if each["type"] == GIVEN_UP), {})

    async with operator(grouped):
        await grouped.until(lambda: all(told(grouped, name).get("status") == "True" for name in "abc") and said())
        assert said()["status"] == "True"
        await grouped.until(lambda: events(grouped, "train"))
        grouped.node("more")
        await grouped.until(lambda: grouped.placed("a", "b", "c"))
        await grouped.until(lambda: said()["status"] == "False")
    assert [len(events(grouped, name)) for name in ("a", "b", "c", "train")] == [1, 1, 1, 1]
