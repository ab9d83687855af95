"""Profiles come, change, pause and go while their pods are in the queue."""

from __future__ import annotations

import asyncio

from queue_makers import FakePolicy, World, pod

from placewright.framework.events import NODE_ADD, WILDCARD, Action, EventResource, event_with_hint
from placewright.queue.policy import BackoffPolicy
from placewright.queue.queued import SubQueue

NAME = "default-scheduler"
ON_NODE_ADD = event_with_hint(EventResource.NODE, Action.ADD)


def swap(world: World, policy: FakePolicy | None, *reconsidered: str) -> None:
    """Another profile under the same scheduler name, or none; plugins that may judge otherwise under it."""
    if policy is None:
        del world.policies[NAME]
    else:
        world.policies[NAME] = policy
    world.queue.reprioritise(NAME, frozenset(reconsidered))


def test_a_changed_order_holds_for_pods_that_wait_already() -> None:
    world = World()
    world.add(pod("low").priority(1), pod("high").priority(2))
    swap(world, FakePolicy(descending=False))
    assert world.popped_names() == ["low", "high"]


def test_pods_of_equal_priority_keep_their_place_when_the_profile_changes() -> None:
    world = World()
    names = [f"pod-{number}" for number in range(10)]
    world.add(*map(pod, names))
    world.queue.delete("uid-pod-3")
    swap(world, FakePolicy())
    assert world.popped_names() == [name for name in names if name != "pod-3"]


def test_a_changed_backoff_holds_for_pods_that_back_off_already() -> None:
    world = World(FakePolicy(backoff=BackoffPolicy(60, 60)))
    world.rejected(pod("web"))
    world.now += 5
    assert world.queue.flush_backoff() == 0
    swap(world, FakePolicy(backoff=BackoffPolicy(1, 10)))
    assert world.queue.flush_backoff() == 1


def test_gated_pods_are_checked_again_under_the_new_profile() -> None:
    world = World(FakePolicy(closed={"uid-a", "uid-b"}))
    world.add(pod("a"), pod("b"))
    swap(world, FakePolicy(closed={"uid-b"}))
    assert (world.place("a"), world.place("b")) == (SubQueue.ACTIVE, SubQueue.GATED)


def test_pods_that_only_a_disabled_plugin_rejected_are_tried_again() -> None:
    world = World(FakePolicy(interests={"Fit": [], "Ports": []}))
    world.rejected(pod("ports"), "Ports")
    world.rejected(pod("both"), "Fit", "Ports")
    world.now += 5
    swap(world, FakePolicy(interests={"Fit": []}))
    assert (world.place("ports"), world.place("both")) == (SubQueue.ACTIVE, SubQueue.UNSCHEDULABLE)
    assert world.incoming[-1] == ("active", "ProfileUpdate")


def test_pods_tried_again_after_a_change_still_wait_for_their_backoff() -> None:
    world = World(FakePolicy(interests={"Ports": []}))
    world.rejected(pod("web"), "Ports")
    swap(world, FakePolicy())
    assert world.place("web") is SubQueue.BACKOFF


def test_a_pod_that_a_plugin_rejected_which_was_disabled_meanwhile_is_tried_again() -> None:
    world = World(FakePolicy(interests={"Ports": []}))
    world.add(pod("web"))
    queued = world.pop()
    swap(world, FakePolicy(interests={"Fit": []}))
    world.queue.return_unschedulable(queued, {"Ports"})
    assert world.place("web") is SubQueue.BACKOFF


def test_pods_that_a_reconsidered_plugin_rejected_are_tried_again_and_no_others() -> None:
    world = World(FakePolicy(interests={"Fit": [], "Ports": [], "Taints": []}))
    world.rejected(pod("ports"), "Ports")
    world.rejected(pod("both"), "Fit", "Ports")
    world.rejected(pod("fit"), "Fit")
    world.now += 5
    swap(world, FakePolicy(interests={"Fit": [], "Ports": [], "Taints": []}), "Ports", "Taints")
    places = {name: world.place(name) for name in ("ports", "both", "fit")}
    assert places == {"ports": SubQueue.ACTIVE, "both": SubQueue.ACTIVE, "fit": SubQueue.UNSCHEDULABLE}


def test_an_attempt_that_was_rejected_under_an_earlier_generation_is_repeated() -> None:
    """Its plugin may have other arguments by now, and pods in flight cannot be asked about when the profile changes."""
    world = World(FakePolicy(interests={"Fit": []}))
    world.add(pod("web"))
    queued = world.pop()
    swap(world, FakePolicy(interests={"Fit": []}), "Fit")
    world.queue.return_unschedulable(queued, {"Fit"})
    assert world.place("web") is SubQueue.BACKOFF


def test_a_longer_backoff_holds_for_pods_that_back_off_already() -> None:
    world = World(FakePolicy(backoff=BackoffPolicy(1, 10)))
    world.rejected(pod("web"))
    swap(world, FakePolicy(backoff=BackoffPolicy(60, 60)))
    world.now += 5
    assert world.queue.flush_backoff() == 0
    world.now += 60
    assert world.queue.flush_backoff() == 1


def test_all_rejected_pods_are_tried_again_when_asked_for() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.rejected(pod("web"), "Fit")
    world.queue.reprioritise(NAME, None)
    assert world.place("web") is SubQueue.BACKOFF


def test_new_hints_hold_after_a_change() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.rejected(pod("web"), "Fit")
    assert world.queue.move(NODE_ADD) == 0
    swap(world, FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    assert world.queue.move(NODE_ADD) == 1


def test_pods_of_a_paused_profile_keep_their_place_and_are_not_handed_out() -> None:
    world = World()
    world.policies["gpu"] = FakePolicy(paused=True)
    world.add(pod("first").scheduler("gpu").priority(9), pod("second").scheduler("gpu"), pod("other"))
    assert world.popped_names() == ["other"]
    assert world.queue.sizes("gpu").active == 2
    world.policies["gpu"].paused = False
    world.queue.reprioritise("gpu")
    assert world.popped_names() == ["first", "second"]


def test_pods_of_a_paused_profile_are_not_taken_from_backoff_either() -> None:
    world = World(FakePolicy(interests={"Fit": None}))
    world.rejected(pod("web"), "Fit")
    world.queue.move(NODE_ADD)
    world.policy.paused = True
    assert world.queue.pop() is None
    assert world.place("web") is SubQueue.BACKOFF


def test_pods_of_a_deleted_profile_wait_and_are_picked_up_when_it_comes_back() -> None:
    world = World(FakePolicy(interests={"Fit": []}, closed={"uid-gated"}))
    world.rejected(pod("refused"), "Fit")
    world.rejected(pod("broken"))
    world.add(pod("fresh"), pod("gated"))
    assert world.queue.sizes() == (1, 1, 1, 1, 0)
    swap(world, None)
    assert world.queue.sizes() == (0, 0, 4, 0, 0)
    assert world.queue.pop() is None
    swap(world, FakePolicy(interests={"Fit": []}))
    assert world.queue.sizes() == (2, 2, 0, 0, 0)
    assert (world.place("fresh"), world.place("gated")) == (SubQueue.ACTIVE, SubQueue.ACTIVE)


def test_nothing_brings_pods_back_while_their_profile_is_missing() -> None:
    world = World(FakePolicy(interests={"Fit": None}))
    queued = world.rejected(pod("web"), "Fit")
    swap(world, None)
    world.now += 1000
    assert world.queue.move(WILDCARD) == 0
    assert world.queue.flush_unschedulable() == 0
    assert world.queue.flush_backoff() == 0
    world.queue.activate([queued.pod])
    world.queue.update(pod("web").labels(app="x").build())
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    assert world.queue.next_backoff_expiry is None


def test_an_attempt_that_outlives_its_profile_ends_among_the_waiting() -> None:
    world = World()
    world.add(pod("web"))
    queued = world.pop()
    swap(world, None)
    world.queue.return_unschedulable(queued)
    assert world.place("web") is SubQueue.UNSCHEDULABLE


def test_pods_that_come_before_their_profile_wait_for_it() -> None:
    world = World()
    world.add(pod("web").scheduler("soon"))
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    world.policies["soon"] = FakePolicy()
    world.queue.reprioritise("soon")
    assert world.popped_names() == ["web"]


def test_nothing_is_kept_of_scheduler_names_without_pods_and_profile() -> None:
    world = World()
    for number in range(50):
        world.add(pod(f"web-{number}").scheduler(f"theirs-{number}"))
        world.queue.delete(f"uid-web-{number}")
    assert list(world.queue.profile_queues()) == []


def test_a_profile_that_goes_without_leaving_pods_leaves_nothing() -> None:
    world = World()
    world.add(pod("web"))
    world.queue.delete("uid-web")
    swap(world, None)
    assert list(world.queue.profile_queues()) == []


def test_a_pod_that_stays_gated_is_not_counted_as_coming_in_again() -> None:
    world = World(FakePolicy(closed={"uid-web"}))
    world.add(pod("web"))
    swap(world, FakePolicy(closed={"uid-web"}))
    assert world.incoming == [("gated", "UnscheduledPodAdd")]


def test_sizes_are_told_by_scheduler_name() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.policies["gpu"] = FakePolicy()
    world.rejected(pod("a"), "Fit")
    world.add(pod("b").scheduler("gpu"), pod("c").scheduler("gpu"))
    world.pop()
    assert world.queue.sizes(NAME) == (0, 0, 1, 0, 0)
    assert world.queue.sizes("gpu") == (1, 0, 0, 0, 1)
    assert world.queue.sizes() == (1, 0, 1, 0, 1)
    assert world.queue.sizes("unknown") == (0, 0, 0, 0, 0)


def test_a_held_profile_hands_out_no_pod_until_it_is_released() -> None:
    world = World()
    world.policies["other"] = FakePolicy()
    world.add(pod("urgent").priority(9), pod("foreign").scheduler("other"))
    world.queue.hold(NAME)
    assert world.popped_names() == ["foreign"]
    assert world.place("urgent") is SubQueue.ACTIVE
    world.queue.release(NAME)
    assert world.popped_names() == ["urgent"]


async def test_who_waits_for_a_pod_hears_of_a_release() -> None:
    world = World()
    world.add(pod("web"))
    world.queue.hold(NAME)
    waiting = asyncio.create_task(world.queue.wait_for_pod())
    await asyncio.sleep(0)
    assert not waiting.done()
    world.queue.release(NAME)
    await asyncio.wait_for(waiting, 5)
    assert world.pop().pod.name == "web"
