"""Pods that no profile takes: who is told what, when, how often, and that nothing is left when a profile takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handlers.stage import Stage, operator
from placewright.api.decode import convert
from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.engine.unclaimedpods import (
    BURST,
    EVENTS_A_SECOND,
    PATIENCE_SECONDS,
    SETTLE_SECONDS,
    UnclaimedPods,
)
from placewright.kube.errors import Unreachable
from placewright.profiles.profilestate import ProfileStanding, Reason
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.policy import ProfilePolicy
from placewright.testing import World

DECISION = "placewright.dev/decision"
POLICY = ProfilePolicy(World().profiles["default-scheduler"].runtime)


class Scene:
    """A queue, a cluster, profiles by schedulerName, and what pods were told. Implements `EventRecorder`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.live = {"placewright": "default", "batch": "batch"}
        self.refused: dict[str, str] = {}
        self.history: Mapping[str, str] | Exception = {}
        self.told: list[tuple[str, str]] = []
        self.cluster = Cluster()
        self.queue = SchedulingQueue(lambda name: POLICY if name in self.live else None, lambda: self.now)
        self.unclaimed = UnclaimedPods(self.queue, self.cluster, lambda: self.live, self.standings, self, self.remembered, lambda: self.now)
        self.cluster.set_node(convert({"metadata": {"name": "node"}, "status": {"allocatable": {"cpu": "9", "pods": "99"}}}, Node))

    def standings(self) -> Mapping[str, ProfileStanding]:
        live = {profile: ProfileStanding(profile, name, 1, 1, Reason.ACTIVE, "") for name, profile in self.live.items()}
        bad = Reason.INVALID_PROFILE
        refused = {profile: ProfileStanding(profile, name, 1, None, bad, "bad") for name, profile in self.refused.items()}
        return {**refused, **live}

    async def remembered(self) -> Mapping[str, str]:
        if isinstance(self.history, Exception):
            raise self.history
        return self.history

    def record(self, pod: PodInfo, kind: str, reason: str, action: str, note: str) -> None:
        assert (kind, reason) == ("Warning", "NoSchedulingProfile")
        self.told.append((pod.name, note))

    def pod(self, name: str, scheduler: str, node: str = "", **status: Any) -> PodInfo:
        noted = {DECISION: "{}"} if node and status.pop("ours", False) else {}
        spec = {"schedulerName": scheduler, "nodeName": node}
        metadata = {"name": name, "namespace": "d", "uid": name, "annotations": noted}
        info = PodInfo(convert({"metadata": metadata, "spec": spec, "status": status}, Pod))
        if node:
            self.queue.delete(name)
            self.cluster.set_pod(info)
        else:
            self.queue.update(info)
        return info

    def delete(self, scheduler: str) -> None:
        profile = self.live.pop(scheduler)
        self.queue.reprioritise(scheduler)
        self.unclaimed.lost(scheduler, profile)

    def create(self, scheduler: str, profile: str) -> None:
        self.live[scheduler] = profile
        self.queue.reprioritise(scheduler)
        self.unclaimed.claimed(scheduler)

    async def beats(self, seconds: float) -> list[str]:
        """Who is told within so many seconds; a beat each."""
        self.told.clear()
        for _ in range(round(seconds)):
            self.now += 1.0
            await self.unclaimed.look()
        return [name for name, _ in self.told]

    def counted(self) -> dict[tuple[str, str], int]:
        return {(found.ours, found.why.value): number for found, number in self.unclaimed.waiting()}


@pytest.fixture
async def scene() -> Scene:
    """In the middle of a term."""
    made = Scene()
    await made.beats(2 * SETTLE_SECONDS)
    return made


async def test_pods_of_a_deleted_profile_are_told_once_within_seconds(scene: Scene) -> None:
    scene.pod("a", "batch")
    scene.delete("batch")
    assert await scene.beats(PATIENCE_SECONDS) == [], "it may be replaced"
    assert await scene.beats(2) == ["a"]
    assert "profile 'batch', which had it, was deleted" in scene.told[0][1]
    assert await scene.beats(600) == []
    scene.pod("b", "batch")
    assert await scene.beats(2) == ["b"]
    assert scene.counted() == {("batch", "deleted"): 2}


async def test_a_profile_that_is_replaced_frightens_nobody(scene: Scene) -> None:
    scene.pod("a", "batch")
    scene.delete("batch")
    await scene.beats(PATIENCE_SECONDS - 1)
    scene.create("batch", "batch")
    assert await scene.beats(60) == [] and scene.counted() == {}


async def test_nothing_is_left_when_a_profile_takes_the_pods_and_they_are_told_anew_when_it_goes_again(scene: Scene) -> None:
    scene.pod("a", "batch")
    scene.delete("batch")
    assert await scene.beats(5) == ["a"]
    scene.create("batch", "another")
    assert scene.counted() == {}, "at once, not at the next beat"
    scene.delete("batch")
    assert scene.counted() == {}
    assert await scene.beats(5) == ["a"]
    assert "profile 'another', which had it, was deleted" in scene.told[0][1]


async def test_a_misspelt_name_is_told_what_was_likely_meant_and_counted_under_that(scene: Scene) -> None:
    for number in range(3):
        scene.pod(f"a{number}", "placewrigth")
    scene.pod("b", "Batch")
    assert sorted(await scene.beats(5)) == ["a0", "a1", "a2", "b"]
    assert scene.counted() == {("placewright", "misspelt"): 3, ("batch", "misspelt"): 1}


async def test_a_profile_that_comes_under_the_misspelt_name_takes_its_pods(scene: Scene) -> None:
    scene.pod("a", "placewrigth")
    await scene.beats(5)
    scene.create("placewrigth", "odd")
    assert scene.counted() == {} and await scene.beats(60) == []


async def test_pods_of_a_profile_that_never_took_effect_are_told_that_it_is_refused(scene: Scene) -> None:
    scene.refused["gpus"] = "inference"
    scene.pod("a", "gpus")
    assert await scene.beats(5) == ["a"]
    assert scene.counted() == {("gpus", "refused"): 1}


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano", "nobody-in-particular"])
async def test_pods_of_others_hear_nothing(scene: Scene, scheduler: str) -> None:
    scene.create("default-scheduler2", "near")
    scene.create("volcanoo", "near, too")
    scene.pod("a", scheduler)
    assert await scene.beats(60) == [] and scene.counted() == {}


async def test_where_another_scheduler_has_placed_a_pod_a_name_that_resembles_ours_is_its_own(scene: Scene) -> None:
    scene.pod("old", "batch2", "node")
    scene.pod("a", "batch2")
    assert await scene.beats(60) == []


async def test_where_another_scheduler_has_said_why_a_pod_waits_a_name_that_resembles_ours_is_its_own(scene: Scene) -> None:
    scene.pod("a", "batch2", conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])
    scene.pod("b", "batch2")
    assert await scene.beats(60) == []


async def test_a_gate_is_no_sign_of_another_scheduler(scene: Scene) -> None:
    scene.pod("a", "batch2", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}])
    assert await scene.beats(5) == ["a"]


async def test_when_another_scheduler_begins_to_place_pods_nobody_else_is_told(scene: Scene) -> None:
    scene.pod("before", "batch", "node")
    for number in range(3):
        scene.pod(f"a{number}", "batch")
    scene.delete("batch")
    assert len(await scene.beats(5)) == 3, "who shared the name before says nothing about now"
    scene.pod("a0", "batch", "node")
    scene.pod("b", "batch")
    await scene.beats(12)
    scene.pod("c", "batch")
    assert await scene.beats(60) == [] and scene.counted() == {}


async def test_another_scheduler_that_takes_over_at_once_is_seen_before_anybody_is_told(scene: Scene) -> None:
    scene.create("default-scheduler", "all")
    scene.pod("kube-proxy", "default-scheduler", "node")
    scene.pod("a", "default-scheduler")
    scene.delete("default-scheduler")
    await scene.beats(1)
    scene.pod("b", "default-scheduler", "node")
    assert await scene.beats(60) == []


async def test_what_was_deleted_before_this_replica_led_stands_in_the_history() -> None:
    scene = Scene()
    scene.history = {"web": "frontends", "batch": "batch"}
    scene.pod("a", "web")
    scene.pod("b", "batch")
    assert await scene.beats(SETTLE_SECONDS + PATIENCE_SECONDS) == [], "profiles may still be coming in"
    assert await scene.beats(3) == ["a"]
    assert scene.counted() == {("web", "deleted"): 1}


async def test_a_profile_that_was_made_again_under_another_schedulername_leaves_the_pods_of_the_old_one() -> None:
    scene = Scene()
    scene.history = {"web": "batch"}  # as the profile batch had it before it was deleted and made again
    scene.pod("a", "web")
    assert await scene.beats(20) == ["a"]


async def test_a_name_of_old_that_another_scheduler_has_by_now_is_its_own() -> None:
    scene = Scene()
    scene.history = {"default-scheduler": "all"}
    scene.pod("kube-proxy", "default-scheduler", "node")
    scene.pod("a", "default-scheduler")
    assert await scene.beats(60) == []


async def test_a_name_of_old_under_which_only_ours_stand_is_ours() -> None:
    scene = Scene()
    scene.history = {"web": "frontends"}
    scene.pod("placed", "web", "node", ours=True)
    scene.pod("a", "web")
    assert await scene.beats(20) == ["a"]


async def test_a_history_that_cannot_be_read_is_asked_again() -> None:
    scene = Scene()
    scene.history = Unreachable("away")
    scene.pod("a", "web")
    assert await scene.beats(20) == []
    scene.history = {"web": "frontends"}
    assert await scene.beats(60) == ["a"]


async def test_ten_thousand_pods_are_no_storm_and_keep_no_other_name_waiting(scene: Scene) -> None:
    for number in range(10_000):
        scene.pod(f"a{number}", "batch")
    scene.pod("b", "placewrigth")
    scene.delete("batch")
    told = await scene.beats(6)
    assert "b" in told and len(told) <= BURST + 3 * EVENTS_A_SECOND
    for _ in range(30):
        assert len(await scene.beats(1)) <= EVENTS_A_SECOND
    assert scene.counted()["batch", "deleted"] == 10_000
    heard = {*told}
    for _ in range(12):
        heard |= {*await scene.beats(60)}
    assert len(heard) >= 10_000 - 30 * EVENTS_A_SECOND


async def test_pods_that_come_and_go_are_each_told_once_and_not_remembered_for_ever(scene: Scene) -> None:
    for number in range(50):
        scene.pod(f"a{number}", "placewrigth")
        told = await scene.beats(5)
        assert told == [f"a{number}"]
        if number:
            scene.queue.delete(f"a{number - 1}")
    (name,) = scene.unclaimed._names.values()
    assert len(name.told) <= 4


async def test_many_made_up_names_are_judged_a_few_at_a_time_and_all_in_the_end(scene: Scene) -> None:
    for number in range(300):
        scene.pod(f"a{number}", f"placewright{number}")
    assert len(await scene.beats(60)) == 300


async def test_a_replica_that_stands_by_counts_nothing(scene: Scene) -> None:
    scene.pod("a", "placewrigth")
    await scene.beats(5)
    scene.unclaimed.reset()
    assert scene.counted() == {}


async def test_a_pod_that_leaves_is_not_counted(scene: Scene) -> None:
    scene.pod("a", "placewrigth")
    await scene.beats(5)
    scene.queue.delete("a")
    assert scene.counted() == {}


# --- an operator at work ---------------------------------------------------------------------------------------------------------


async def test_an_operator_tells_pods_of_a_deleted_profile_and_places_them_when_it_is_back(stage: Stage) -> None:
    stage.profile("batch", schedulerName="batch").profile("spare", schedulerName="spare")
    (first,) = stage.pods(1, scheduler="batch")
    async with operator(stage) as running:
        await stage.until(lambda: stage.placed(first))
        stage.delete_profile("batch")
        await stage.until(lambda: "batch" not in running.engine.deciding.live.active)
        (waiting,) = stage.pods(1, scheduler="batch")
        (misspelt,) = stage.pods(1, scheduler="bacth")
        (theirs,) = stage.pods(1, scheduler="default-scheduler")
        await stage.until(lambda: stage.events(waiting))
        assert [reason for reason, _ in stage.events(waiting)] == ["NoSchedulingProfile"]
        assert stage.events(theirs) == []
        stage.profile("batch", schedulerName="batch")
        await stage.until(lambda: stage.placed(waiting))
        await stage.until(lambda: stage.events(misspelt))
        assert stage.events(misspelt)[0][1].startswith("no profile takes pods of schedulerName 'bacth' (did you mean 'batch'?)")
        assert [(found.ours, number) for found, number in running.engine.deciding.unclaimed.waiting()] == [("batch", 1)]


async def test_an_operator_that_is_started_later_knows_from_the_history(stage: Stage) -> None:
    stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "namespaces"), "", {"metadata": {"name": "placewright-system"}})
    stage.profile("batch", schedulerName="batch")
    (first,) = stage.pods(1, scheduler="batch")
    revisions = stage.sandbox.resource("apps", "v1", "controllerrevisions").key
    async with operator(stage):
        await stage.until(lambda: stage.placed(first))
        await stage.until(lambda: len(stage.sandbox.store.listed(revisions)) == 2)
    stage.delete_profile("batch")
    (waiting,) = stage.pods(1, scheduler="batch")
    async with operator(stage):
        await stage.until(lambda: stage.events(waiting))
    assert "profile 'batch', which had it, was deleted" in stage.events(waiting)[0][1]
