"""Forgotten pods are found a few at a time, looked at twice, put back, and told of; and nothing is done where there is nothing to find."""

from __future__ import annotations

import pytest

from placewright.engine.reconcile import forgotten
from placewright.engine.reconcile.forgotten import (
    PATIENCE_SECONDS,
    PODS_A_BEAT,
    ROUND_SECONDS,
    WAITED_SECONDS,
    ForgottenPods,
)
from placewright.framework.events import WILDCARD
from placewright.queue.queued import SubQueue
from placewright.scheduler.selfcheck import SelfCheck
from scheduler.makers import World, node, pod


class Watch:
    """What looks for forgotten pods in a world, and how many it looked at."""

    def __init__(self, world: World, *, active: bool = True) -> None:
        self.world = world
        self.active = active
        self.slept: list[float] = []
        #: What each look takes, in seconds.
        self.takes = 0.0
        self._read = 0.0
        check = SelfCheck(world.cluster, world.queue, world.profiles.get, world.time)
        self.pods = ForgottenPods(check, world.events, lambda: self.active, lambda: world.now, self._stopwatch, self._sleep)

    def _stopwatch(self) -> float:
        self._read += self.takes
        return self._read

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.world.now += seconds

    async def beats(self, count: int, seconds: float = 1.0) -> int:
        """So many beats; how many pods they looked at."""
        before = self.pods.counts.looked
        for _ in range(count):
            await self.pods.beat()
            self.world.now += seconds
        return self.pods.counts.looked - before


def waiting(count: int, cpu: str = "2", *, alike: bool = False) -> World:
    """A full node, and pods that wait for room on it since long ago."""
    world = World().nodes(node("a").offers(cpu="2")).pods(pod("big").requests(cpu="2").on("a"))
    for number in range(count):
        world.pods(pod(f"p{number}").requests(cpu=cpu, memory="1Gi" if alike else f"{number + 1}Mi"))
        assert world.decide() is None
    world.now += WAITED_SECONDS
    return world


@pytest.fixture
def world() -> World:
    return waiting(1)


async def test_a_pod_that_fits_at_two_looks_is_put_back_counted_and_told_of(world: World, caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(world)
    world.cluster.remove_pod("uid-big")
    await watch.beats(2)
    assert (world.place("p0"), watch.pods.counts.forgotten) == (SubQueue.UNSCHEDULABLE, {})
    world.now += PATIENCE_SECONDS
    await watch.beats(1)
    assert world.place("p0") is SubQueue.ACTIVE
    assert watch.pods.counts.forgotten == {"NodeResourcesFit": 1}
    assert world.log.entered[-1] == ("active", "ForgottenPod")
    [(name, kind, _, _, note)] = [each for each in world.events.recorded if each[2] == "Forgotten"]
    assert (name, kind.value, note.partition(",")[0]) == ("p0", "Warning", "it would fit on a")
    assert "forgotten: pod default/p0: it would fit on a" in caplog.text


async def test_what_brings_the_pod_back_between_the_looks_clears_it(world: World) -> None:
    watch = Watch(world)
    world.cluster.remove_pod("uid-big")
    await watch.beats(2)
    world.queue.retry("uid-p0")
    world.queue.return_unschedulable(world.pop(), {"NodeResourcesFit"}, filtered=True)
    world.now += PATIENCE_SECONDS
    await watch.beats(1)
    assert watch.pods.counts.forgotten == {}


async def test_room_that_goes_again_before_the_second_look_clears_it(world: World) -> None:
    watch = Watch(world)
    world.cluster.remove_pod("uid-big")
    await watch.beats(2)
    world.cluster.set_pod(pod("big").requests(cpu="2").on("a").build())
    world.now += PATIENCE_SECONDS
    await watch.beats(3)
    assert (watch.pods.counts.forgotten, world.place("p0")) == ({}, SubQueue.UNSCHEDULABLE)


async def test_a_pod_that_was_tried_a_moment_ago_is_not_looked_at() -> None:
    world = waiting(1)
    world.now -= 1
    assert await Watch(world).beats(2, seconds=0.1) == 0


@pytest.mark.parametrize("why", ["another leads", "pods wait to be tried", "news is yet to be told"])
async def test_nothing_is_looked_at_while(why: str, world: World) -> None:
    watch = Watch(world, active=why != "another leads")
    if why == "pods wait to be tried":
        world.pods(pod("new"))
    if why == "news is yet to be told":
        world.queue.sweeps.a_slice = 0
        world.queue.move(WILDCARD)
    assert await watch.beats(5) == 0


async def test_nothing_is_done_where_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluated(*_: object) -> None:
        raise AssertionError("a pod was decided")

    monkeypatch.setattr(SelfCheck, "look", evaluated)
    monkeypatch.setattr(SelfCheck, "likeness", evaluated)
    world = World().nodes(node("a"))
    await world.pods(pod("placed")).attempt()
    assert await Watch(world).beats(5) == 0


async def test_a_beat_looks_at_a_few_pods_and_all_have_their_turn() -> None:
    world = waiting(3 * PODS_A_BEAT)
    watch = Watch(world)
    assert [await watch.beats(1) for _ in range(5)] == [PODS_A_BEAT, PODS_A_BEAT, PODS_A_BEAT, 0, 0]


async def test_the_more_there_is_to_look_at_the_fewer_pods_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large the cluster and the pods, so many looks a second; what one pod takes beyond that is made up for."""
    world = waiting(9)
    monkeypatch.setattr(SelfCheck, "work", lambda *_: forgotten.LOOKS_A_BEAT * 2)
    watch = Watch(world)
    assert [await watch.beats(1) for _ in range(9)] == [1, 0, 1, 0, 1, 0, 1, 0, 1]


async def test_a_pod_that_takes_long_is_made_up_for_by_the_beats_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its plugins take for each row: looking takes no more than its share of the time."""
    monkeypatch.setattr(forgotten, "SHARE", 0.25)
    watch = Watch(waiting(9))
    watch.takes = 0.5
    assert [await watch.beats(1) for _ in range(6)] == [1, 0, 1, 0, 1, 0]


async def test_a_pod_that_waits_alone_is_not_looked_at_all_the_time(world: World) -> None:
    assert await Watch(world).beats(100) == 100 // ROUND_SECONDS + 1


async def test_of_pods_that_look_alike_one_is_looked_at_in_a_round() -> None:
    world = waiting(100, alike=True)
    assert [await Watch(world).beats(2)] == [1]


async def test_a_beat_passes_over_no_more_than_a_few_pods_that_look_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgotten, "PASSED_A_BEAT", 7)
    world = waiting(20, alike=True)
    watch = Watch(world)
    asked = 0
    likeness = SelfCheck.likeness

    def counted(self: SelfCheck, queued: object) -> object:
        nonlocal asked
        asked += 1
        return likeness(self, queued)  # type: ignore[arg-type]

    monkeypatch.setattr(SelfCheck, "likeness", counted)
    await watch.beats(1)
    assert asked == 6  # and a round began


async def test_pods_that_look_alike_are_all_found_when_they_fit() -> None:
    world = waiting(3, cpu="500m", alike=True)
    world.cluster.remove_pod("uid-big")
    watch = Watch(world)
    for _ in range(20):
        await watch.beats(1)
        if world.queue.sizes().active:
            await world.attempt()
    assert watch.pods.counts.forgotten == {"NodeResourcesFit": 3}
    assert {world.node_of(f"p{number}") for number in range(3)} == {"a"}


async def test_when_asked_all_pods_are_looked_at_at_once_and_again_after_a_while() -> None:
    world = waiting(3 * PODS_A_BEAT, cpu="50m")
    watch = Watch(world)
    world.cluster.remove_pod("uid-big")
    found = await watch.pods.look_at_all()
    assert len(found) == 3 * PODS_A_BEAT == watch.pods.counts.forgotten["NodeResourcesFit"]
    assert watch.slept == [PATIENCE_SECONDS]
    assert world.place("p0") is SubQueue.ACTIVE


async def test_a_replica_that_stands_by_looks_at_nothing_when_asked(world: World) -> None:
    watch = Watch(world, active=False)
    world.cluster.remove_pod("uid-big")
    assert await watch.pods.look_at_all() == []
    assert (watch.pods.counts.looked, world.place("p0")) == (0, SubQueue.UNSCHEDULABLE)
