"""Which pod is handed out next."""

from __future__ import annotations

from queue_makers import FakePolicy, World, pod

from placewright.queue.queued import SubQueue


def test_a_higher_priority_goes_first() -> None:
    world = World()
    world.add(pod("low").priority(1), pod("none"), pod("high").priority(1000), pod("negative").priority(-5))
    assert world.popped_names() == ["high", "low", "none", "negative"]


def test_equal_priorities_go_in_order_of_their_time_in_the_queue() -> None:
    world = World()
    for name in ("first", "second", "third"):
        world.add(pod(name))
        world.now += 0.25
    assert world.popped_names() == ["first", "second", "third"]


def test_pods_of_the_same_instant_go_in_order_of_arrival() -> None:
    world = World()
    names = [f"pod-{number}" for number in range(20)]
    world.add(*map(pod, names))
    assert world.popped_names() == names


def test_a_failed_attempt_sends_a_pod_behind_its_equals() -> None:
    world = World(FakePolicy(interests={"Fit": None}))
    world.add(pod("unlucky"), pod("other"))
    unlucky = world.pop()
    world.now += 1
    world.queue.return_unschedulable(unlucky, {"Fit"})
    world.queue.activate([unlucky.pod])
    assert world.popped_names() == ["other", "unlucky"]


def test_an_empty_queue_hands_out_nothing() -> None:
    assert World().queue.pop() is None


def test_attempts_are_counted_and_the_first_is_dated() -> None:
    world = World()
    world.add(pod("web"))
    world.now += 3
    queued = world.pop()
    assert (queued.attempts, queued.initial_attempt_timestamp) == (1, 100.0)
    world.queue.return_unschedulable(queued)
    world.now += 5
    world.queue.flush_backoff()
    again = world.pop()
    assert again is queued
    assert (again.attempts, again.initial_attempt_timestamp) == (2, 100.0)


def test_a_gated_pod_has_no_first_attempt_until_it_is_let_in() -> None:
    world = World()
    world.add(pod("web").gates("quota"))
    queued = world.queue.get("uid-web")
    assert queued is not None
    assert queued.initial_attempt_timestamp is None
    world.now = 250.0
    world.queue.update(pod("web").build())
    assert world.pop().initial_attempt_timestamp == 250.0


def test_a_popped_pod_is_in_flight_until_it_is_done() -> None:
    world = World()
    world.add(pod("web"))
    world.pop()
    assert world.place("web") is SubQueue.IN_FLIGHT
    world.queue.done("uid-web")
    assert world.place("web") is None
    assert len(world.queue) == 0


def test_with_nothing_active_a_pod_is_taken_from_backoff_before_its_time() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.rejected(pod("web"), "Fit")
    world.queue.flush_unschedulable(max_wait=-1)
    assert world.place("web") is SubQueue.BACKOFF
    assert world.pop().pod.name == "web"
    assert world.incoming[-1] == ("active", "PopFromBackoffQ")


def test_active_pods_go_before_those_in_backoff_whatever_their_priority() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.rejected(pod("important").priority(9), "Fit")
    world.queue.flush_unschedulable(max_wait=-1)
    world.add(pod("plain"))
    assert world.popped_names() == ["plain", "important"]


def test_pods_in_backoff_go_by_the_second_in_which_it_ends_then_by_priority() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.now = 100.1
    world.rejected(pod("low"), "Fit")
    world.now = 100.9
    world.rejected(pod("high").priority(7), "Fit")
    world.now = 101.0
    world.rejected(pod("later").priority(99), "Fit")
    world.queue.flush_unschedulable(max_wait=-1)
    assert world.queue.sizes().backoff == 3
    assert world.popped_names() == ["high", "low", "later"]


def test_a_pod_that_failed_by_error_is_never_taken_before_its_time() -> None:
    world = World()
    world.rejected(pod("web"))
    assert world.place("web") is SubQueue.BACKOFF
    assert world.queue.pop() is None


def test_profiles_share_one_order() -> None:
    world = World()
    world.policies["gpu"] = FakePolicy()
    world.add(pod("a").priority(1), pod("b").priority(3).scheduler("gpu"), pod("c").priority(2))
    assert world.popped_names() == ["b", "c", "a"]
