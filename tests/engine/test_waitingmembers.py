"""Gated members of groups: who is told, when, and that nobody is told twice."""

from __future__ import annotations

import asyncio

import pytest

from placewright.api.decode import convert
from placewright.api.objects import Condition, NodeName, Pod
from placewright.api.podgroups import CoschedulingPodGroup, PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.engine.children import while_leading
from placewright.engine.podgroupstatus import PATIENCE_SECONDS, WaitingMembers
from placewright.framework.status import SUCCESS, Status, unresolvable
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.ports import StatusChannels
from placewright.testing import World


class Gate(ProfilePolicy):
    """A profile that keeps pods back for a reason, in the name of a plugin."""

    def __init__(self) -> None:
        super().__init__(World().profiles["default-scheduler"].runtime)
        self.reason = "too few"
        self.plugin = "GangScheduling"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return unresolvable(self.reason).by(self.plugin) if self.reason else SUCCESS


class Scene:
    """A queue with gated members, and what was said. Implements all three channels."""

    def __init__(self) -> None:
        self.now = 0.0
        self.gate = Gate()
        self.cluster = Cluster()
        self.queue = SchedulingQueue(lambda _: self.gate, lambda: self.now)
        self.told: list[tuple[str, str]] = []
        self.groups: list[tuple[str, int, int, str]] = []
        self.events: list[str] = []
        self.done = asyncio.Event()
        self.gated = WaitingMembers(
            self.queue, self.cluster.pod_groups, lambda _: self.gate, StatusChannels(self, self, self), lambda: self.now
        )

    def member(self, name: str, group: str = "train") -> None:
        labels = {"scheduling.x-k8s.io/pod-group": group}
        content = {"metadata": {"name": name, "namespace": "d", "uid": name, "labels": labels}, "spec": {"schedulerName": "x"}}
        self.queue.update(PodInfo(convert(content, Pod)))

    def declare(self, minimum: int) -> None:
        content = {"metadata": {"name": "train", "namespace": "d"}, "spec": {"minMember": minimum}}
        self.cluster.objects.put(convert(content, CoschedulingPodGroup))

    def look(self, after: float = PATIENCE_SECONDS) -> list[tuple[str, str]]:
        """What is said so many seconds later."""
        self.now += after
        self.told.clear()
        asyncio.run(self.gated.look())
        return self.told

    def record(self, pod: PodInfo, kind: str, reason: str, action: str, note: str) -> None:
        self.events.append(f"{pod.name}: {kind} {reason} {note}")

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        assert (reason, nominated_node) == ("Unschedulable", None)
        self.told.append((pod.name, message))

    def pod_nominated(self, pod: PodInfo, node: NodeName) -> None:
        raise AssertionError("nobody nominates")

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        raise AssertionError("members that wait are not given up here")

    def group_given_up(self, pod_group: PodGroup, condition: Condition) -> None:
        raise AssertionError("nor are groups")

    def group_waits(self, pod_group: PodGroup, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        self.groups.append((pod_group.ref.name, placed, missing, message))

    def group_placed(self, pod_group: PodGroup, placed: int) -> None:
        raise AssertionError("nobody is placed")


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_members_are_told_once_after_a_moment_and_their_group_with_them(scene: Scene) -> None:
    scene.declare(3)
    scene.member("a")
    scene.member("b")
    assert scene.look(PATIENCE_SECONDS - 0.1) == [], "the others may be on their way"
    assert scene.look(0.1) == [("a", "too few"), ("b", "too few")]
    assert scene.groups == [("train", 0, 3, "too few")]
    assert scene.events == ["a: Warning FailedScheduling too few", "b: Warning FailedScheduling too few"]
    assert scene.look() == [] and len(scene.groups) == 1


def test_a_member_that_comes_later_is_told_and_the_others_only_what_is_new(scene: Scene) -> None:
    scene.member("a")
    scene.look()
    scene.member("b")
    assert scene.look() == [("b", "too few")]
    scene.gate.reason = "still too few"
    assert scene.look() == [("a", "still too few"), ("b", "still too few")]


def test_a_group_that_nobody_declares_has_no_object_to_be_told_on(scene: Scene) -> None:
    scene.member("a")
    assert scene.look() == [("a", "too few")] and scene.groups == []


def test_who_is_kept_by_another_plugin_is_not_told_of_groups(scene: Scene) -> None:
    scene.gate.plugin = "SchedulingGates"
    scene.member("a")
    assert scene.look() == []


def test_a_member_that_was_tried_before_others_left_is_told_too(scene: Scene) -> None:
    scene.gate.reason = ""
    scene.member("a")
    tried = scene.queue.pop()
    assert tried is not None
    scene.queue.return_unschedulable(tried, {"GangScheduling"})
    assert scene.look() == [], "there are enough of them"
    scene.gate.reason = "too few"
    scene.member("b")
    assert scene.look() == [("a", "too few"), ("b", "too few")]


def test_who_may_be_tried_is_told_nothing_and_anew_when_he_is_kept_again(scene: Scene) -> None:
    scene.member("a")
    scene.look()
    scene.gate.reason = ""
    assert scene.look() == []
    scene.gate.reason = "too few"
    assert scene.look() == [("a", "too few")]


def test_what_was_told_is_forgotten_with_the_last_member(scene: Scene) -> None:
    scene.member("a")
    scene.look()
    scene.queue.delete("a")
    assert scene.look() == [] and scene.gated.told == {}
    scene.member("a")
    assert scene.look() == [("a", "too few")]


async def test_a_replica_tells_nobody_while_it_does_not_lead_and_all_of_it_whenever_it_begins_to(scene: Scene) -> None:
    scene.member("a")
    scene.now = 100.0
    leads = [False, False, True, True, False, True, True]
    told_by: list[int] = []

    def active() -> bool:
        told_by.append(len(scene.told))
        if len(told_by) == len(leads):
            scene.done.set()
        return leads[min(len(told_by), len(leads)) - 1]

    running = asyncio.create_task(while_leading(0.0, active, scene.gated.look, scene.gated.told.clear))
    async with asyncio.timeout(10):
        await scene.done.wait()
    running.cancel()
    await asyncio.wait([running])
    assert told_by == [0, 0, 0, 1, 1, 1, 2]
