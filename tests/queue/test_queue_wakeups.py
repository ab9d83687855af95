"""Pods that are tried again at a stated time: at that time, once, and not if anything brought them back before."""

from __future__ import annotations

import random

from queue_makers import FakePolicy, World, pod

from placewright.framework.events import Action, ClusterEvent, ClusterEventWithHint, EventResource
from placewright.queue.check import check_invariants
from placewright.queue.queued import TIME_HAS_COME, SubQueue

NODE_ADD = ClusterEvent(EventResource.NODE, Action.ADD, "NodeAdd")
LISTENS = FakePolicy(interests={"Fit": [ClusterEventWithHint(NODE_ADD)]})


def waiting(world: World, name: str = "a", seconds: float = 60.0) -> str:
    world.rejected(pod(name), "Fit")
    world.queue.retry_after(f"uid-{name}", seconds)
    return f"uid-{name}"


def flush(world: World, now: float) -> None:
    world.now = now
    world.queue.flush_backoff()


def test_a_pod_leaves_the_unschedulable_ones_when_its_time_has_come_and_not_before() -> None:
    world = World(LISTENS)
    uid = waiting(world)
    assert (world.queue.wake_ups.of(uid), world.queue.next_backoff_expiry) == (60.0, 160.0)
    flush(world, 159)
    assert world.place("a") is SubQueue.UNSCHEDULABLE
    flush(world, 160)
    assert world.place("a") is SubQueue.ACTIVE
    assert world.incoming[-1] == ("active", TIME_HAS_COME)
    assert (len(world.queue.wake_ups), world.queue.next_backoff_expiry) == (0, None)


def test_a_time_that_comes_early_waits_for_the_pods_backoff() -> None:
    world = World(LISTENS)
    waiting(world, seconds=0.5)
    flush(world, 100.9)
    assert world.place("a") is SubQueue.BACKOFF
    flush(world, 102)
    assert world.place("a") is SubQueue.ACTIVE


def test_a_pod_that_was_tried_since_is_not_tried_for_its_old_time() -> None:
    world = World(LISTENS)
    uid = waiting(world)
    world.queue.move(NODE_ADD)
    flush(world, 103)
    world.queue.return_unschedulable(world.pop(), {"Fit"})
    assert world.queue.wake_ups.of(uid) is None
    flush(world, 160)
    assert world.place("a") is SubQueue.UNSCHEDULABLE


def test_of_two_times_the_latest_that_was_stated_counts() -> None:
    world = World(LISTENS)
    uid = waiting(world, seconds=10)
    world.queue.retry_after(uid, 50)
    flush(world, 120)
    assert world.place("a") is SubQueue.UNSCHEDULABLE
    flush(world, 150)
    assert world.place("a") is SubQueue.ACTIVE


def test_a_pod_that_is_given_up_is_brought_back_too_because_no_event_tells_of_the_time() -> None:
    world = World(LISTENS)
    queued = world.queue.get(waiting(world))
    assert queued is not None
    queued.given_up_at = 130.0
    flush(world, 160)
    assert world.place("a") is SubQueue.ACTIVE


def test_pods_of_a_profile_that_is_gone_stay_parked() -> None:
    world = World(LISTENS)
    waiting(world)
    del world.policies["default-scheduler"]
    world.queue.reprioritise("default-scheduler")
    flush(world, 160)
    assert world.place("a") is SubQueue.UNSCHEDULABLE


def test_no_time_is_kept_of_a_pod_that_the_queue_does_not_hold() -> None:
    world = World(LISTENS)
    uid = waiting(world)
    world.queue.delete(uid)
    world.queue.retry_after(uid, 10)
    assert (len(world.queue.wake_ups), world.queue.wake_ups.next) == (0, None)


def test_there_is_one_time_for_each_pod_however_often_it_is_stated() -> None:
    world = World(LISTENS)
    uids = [waiting(world, f"p{n}") for n in range(10)]
    rng = random.Random(3)
    for _ in range(5_000):
        world.queue.retry_after(rng.choice(uids), rng.uniform(10, 1000))
    assert len(world.queue.wake_ups) == 10
    assert len(world.queue.wake_ups._entries) <= 2 * 10 + 65
    flush(world, 1_100)
    assert sorted(world.popped_names()) == [f"p{n}" for n in range(10)]


def test_against_a_plain_model_in_random_order() -> None:
    """A dictionary of times, looked through whole at each second."""
    for seed in range(30):
        rng, world = random.Random(seed), World(LISTENS)
        times: dict[str, float] = {}
        for second in range(100, 160):
            name = f"p{rng.randrange(8)}"
            if world.place(name) is None:
                world.rejected(pod(name), "Fit")
            if world.place(name) is SubQueue.UNSCHEDULABLE:
                wanted = rng.uniform(0, 30)
                world.queue.retry_after(f"uid-{name}", wanted)
                times[name] = world.now + wanted
            if rng.random() < 0.2:
                world.queue.delete(f"uid-p{(gone := rng.randrange(8))}")
                times.pop(f"p{gone}", None)
            flush(world, second + 1.0)
            due = {each for each, time in times.items() if time <= world.now}
            assert all(world.place(each) in (SubQueue.ACTIVE, SubQueue.BACKOFF) for each in due)
            assert all(world.place(each) is SubQueue.UNSCHEDULABLE for each in times.keys() - due)
            times = {each: time for each, time in times.items() if each not in due}
            while (queued := world.queue.pop()) is not None:
                world.queue.done(queued.uid)
            check_invariants(world.queue)
