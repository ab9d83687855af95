"""How long a failed pod waits, and the periodic work that ends the waiting."""

from __future__ import annotations

import pytest
from queue_makers import FakePolicy, World, pod

from placewright.queue.policy import BackoffPolicy
from placewright.queue.queued import QueuedPod, SubQueue


def failed(times: int, *plugins: str, at: float = 100.0) -> QueuedPod:
    """A pod that failed that often in a row, at the same moment."""
    queued = QueuedPod(pod("web").build(), at)
    for _ in range(times):
        queued.record_failure(at, set(plugins), set())
    return queued


def test_backoff_doubles_up_to_its_maximum() -> None:
    policy = BackoffPolicy()
    assert [policy.duration(n) for n in range(7)] == [0, 1, 2, 4, 8, 10, 10]


def test_backoff_does_not_overflow_after_very_many_failures() -> None:
    assert BackoffPolicy(1, 10).duration(100_000) == 10


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_backoff_that_is_no_time_is_refused_with_the_field_it_was_found_in(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"backoff\.maxSeconds: found .*, allowed is"):
        BackoffPolicy(1.0, seconds)


def test_a_maximum_of_zero_switches_backoff_off() -> None:
    assert failed(5, "Fit").backing_off_until(BackoffPolicy(1, 0), 100.0) is None


def test_a_pod_that_never_failed_does_not_back_off() -> None:
    assert failed(0).backing_off_until(BackoffPolicy(), 100.0) is None


def test_errors_in_a_row_count_before_rejections() -> None:
    queued = failed(3, "Fit")
    assert queued.backoff_window(BackoffPolicy()) == 104
    queued.record_failure(100.0, set(), set())
    assert (queued.consecutive_errors, queued.unschedulable_count) == (1, 3)
    assert queued.backoff_window(BackoffPolicy()) == 101


def test_a_rejection_ends_the_row_of_errors() -> None:
    queued = failed(4)
    assert queued.consecutive_errors == 4
    queued.record_failure(100.0, {"Fit"}, set())
    assert (queued.consecutive_errors, queued.unschedulable_count) == (0, 1)


def test_a_pending_plugin_counts_as_a_rejection() -> None:
    queued = failed(0)
    queued.record_failure(100.0, set(), {"Gang"})
    assert (queued.consecutive_errors, queued.unschedulable_count) == (0, 1)


def test_backoff_ends_with_the_whole_second_it_falls_into() -> None:
    queued = failed(1, "Fit", at=10.3)
    policy = BackoffPolicy()
    assert queued.backing_off_until(policy, 11.0) == 11
    assert queued.backing_off_until(policy, 11.99) == 11
    assert queued.backing_off_until(policy, 12.0) is None


def test_completed_backoffs_of_both_kinds_become_active_with_the_flush() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.rejected(pod("refused"), "Fit")
    world.queue.flush_unschedulable(max_wait=-1)
    world.add(pod("broken"))
    world.queue.return_unschedulable(world.pop())
    assert world.queue.sizes().backoff == 2
    world.now = 101.5
    assert world.queue.flush_backoff() == 0
    world.now = 102.0
    world.incoming.clear()
    assert world.queue.flush_backoff() == 2
    assert world.incoming == [("active", "BackoffComplete")] * 2
    assert world.queue.sizes() == (2, 0, 0, 0, 0)


def test_the_flush_does_not_ask_the_gates_again() -> None:
    world = World()
    world.rejected(pod("web"))
    world.policy.closed.add("uid-web")
    world.now += 5
    checks = world.policy.gate_checks
    world.queue.flush_backoff()
    assert world.place("web") is SubQueue.ACTIVE
    assert world.policy.gate_checks == checks


def test_the_next_backoff_expiry_is_when_the_flush_has_something_to_do() -> None:
    world = World()
    world.now = 100.7
    world.rejected(pod("web"))
    assert world.queue.next_backoff_expiry == 102.0
    world.now = 101.99
    assert world.queue.flush_backoff() == 0
    world.now = 102.0
    assert world.queue.flush_backoff() == 1


def test_there_is_no_next_backoff_expiry_while_nothing_backs_off() -> None:
    world = World()
    world.rejected(pod("web"))
    world.queue.delete("uid-web")
    assert world.queue.next_backoff_expiry is None


def test_each_profile_has_its_own_backoff() -> None:
    world = World()
    world.policies["patient"] = FakePolicy(backoff=BackoffPolicy(30, 60))
    world.rejected(pod("quick"))
    world.rejected(pod("slow").scheduler("patient"))
    world.now += 10
    world.queue.flush_backoff()
    assert (world.place("quick"), world.place("slow")) == (SubQueue.ACTIVE, SubQueue.BACKOFF)


def test_a_pod_waits_five_minutes_for_an_event_and_is_then_tried_anyway() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    queued = world.rejected(pod("web"), "Fit")
    world.now += 300
    assert world.queue.flush_unschedulable() == 0
    world.now += 1
    assert world.queue.flush_unschedulable() == 1
    assert world.place("web") is SubQueue.ACTIVE
    assert world.incoming[-1] == ("active", "UnschedulableTimeout")
    assert queued.flushed


def test_a_pod_that_was_flushed_says_so_only_until_its_next_failure() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    queued = world.rejected(pod("web"), "Fit")
    world.now += 301
    world.queue.flush_unschedulable()
    world.pop()
    world.queue.return_unschedulable(queued, {"Fit"})
    assert not queued.flushed


def test_gated_pods_are_not_flushed() -> None:
    world = World()
    world.add(pod("web").gates("quota"))
    world.now += 10_000
    assert world.queue.flush_unschedulable() == 0
    assert world.place("web") is SubQueue.GATED
