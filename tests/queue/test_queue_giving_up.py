"""Pods that have waited longer than their profile allows: who is given up and when, what brings them back, and what a live change does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from queue_makers import FakePolicy

from placewright.api.givenup import GIVEN_UP
from placewright.framework.events import NODE_ADD, Action, EventResource, event_with_hint
from placewright.queue.check import check_invariants
from placewright.queue.events import A_SLICE
from placewright.queue.queue import MAX_UNSCHEDULABLE_SECONDS, SchedulingQueue
from placewright.queue.queued import SubQueue
from placewright.testing import node, pod
from placewright.testing.pods import PodMaker

ON_NODES = {"NodeResourcesFit": (event_with_hint(EventResource.NODE, Action.ADD),)}
FIT = frozenset({"NodeResourcesFit"})
#: The time of day at which the queue's clock stands at 0.
BEGIN = 1_800_000_000.0


class Room:
    """A queue of one profile, whose clock and time of day a test moves."""

    def __init__(self, *, give_up_after: float | None = 60.0, slices: int | None = None) -> None:
        self.now = 0.0
        self.policy: FakePolicy | None = FakePolicy(ON_NODES)
        self.policy.give_up_after = give_up_after
        self.queue = SchedulingQueue(lambda _: self.policy, lambda: self.now, slices=slices, wall=lambda: BEGIN + self.now)

    def waits(self, *pods: PodMaker) -> None:
        """Pods come, are tried and are rejected."""
        for each in pods:
            self.queue.add(each.build())
        self.reject()

    def reject(self) -> None:
        while (queued := self.queue.pop()) is not None:
            self.queue.return_unschedulable(queued, FIT, filtered=True)

    def after(self, seconds: float) -> list[str]:
        """Names of pods whose standing changes within so many seconds."""
        self.now += seconds
        while self.queue.giving_up.step(A_SLICE) >= A_SLICE:
            pass
        check_invariants(self.queue)
        told = [queued.pod.name for queued in self.queue.giving_up.news.values()]
        self.queue.giving_up.news.clear()
        return told

    def change(self, give_up_after: float | None) -> None:
        self.policy = FakePolicy(ON_NODES, give_up_after=give_up_after)
        self.queue.reprioritise("default-scheduler", frozenset())

    def given_up(self) -> set[str]:
        return {queued.pod.name for _, queued in self.queue.pods() if queued.given_up_at is not None}


def created(seconds: float) -> str:
    return datetime.fromtimestamp(BEGIN + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_pod_is_given_up_once_it_has_waited_so_long_and_not_again() -> None:
    room = Room()
    room.waits(pod("web").created(created(0)))
    assert room.after(59) == []
    assert room.after(1) == ["web"]
    assert room.after(600) == []
    assert room.given_up() == {"web"}


def test_without_the_field_nothing_is_kept_and_nobody_is_given_up() -> None:
    room = Room(give_up_after=None)
    room.waits(pod("web").created(created(0)))
    assert room.after(10_000) == []
    (queued,) = (each for _, each in room.queue.pods())
    assert queued.given_up_at is None
    assert all(queue.wait_limit is None for queue in room.queue.profile_queues())


def test_the_wait_counts_from_the_creation_so_that_a_new_leader_goes_on() -> None:
    room = Room()
    room.waits(pod("old").created(created(-50)), pod("new").created(created(0)), pod("undated"))
    assert room.after(10) == ["old"]
    assert room.after(50) == ["new", "undated"]


def test_a_time_that_is_none_or_lies_ahead_counts_from_the_arrival() -> None:
    room = Room()
    room.waits(pod("odd").created("yesterday"), pod("ahead").created(created(500)))
    assert room.after(59) == []
    assert room.after(1) == ["odd", "ahead"]


def test_a_pod_with_scheduling_gates_has_not_waited() -> None:
    room = Room()
    gated = pod("web").created(created(0))
    room.waits(gated.gates("quota"))
    assert room.after(1000) == []
    room.queue.update(gated.version("2").build())
    room.now += 2
    room.queue.flush_backoff()
    room.reject()
    assert room.after(57) == []
    assert room.after(1) == ["web"]


def test_a_pod_whose_gates_went_before_this_process_came_counts_from_when_it_was_first_seen() -> None:
    """Its creation says nothing: no field tells when the last gate went."""
    room = Room()
    once_gated = pod("web").created(created(-10_000)).metadata(generation=2)
    room.waits(once_gated)
    assert room.after(59) == []
    assert room.after(1) == ["web"]
    marked = once_gated.status(conditions=[{"type": GIVEN_UP, "status": "True"}])
    later = Room()
    later.waits(marked)
    assert later.after(0) == ["web"], "an earlier leader has seen it wait"


def test_a_pod_that_was_never_rejected_is_not_given_up() -> None:
    room = Room()
    room.queue.add(pod("web").created(created(0)).build())
    assert room.after(100) == []
    queued = room.queue.pop()
    assert queued is not None
    room.queue.return_unschedulable(queued)  # an error
    assert room.after(0) == []
    assert room.given_up() == set()


def test_a_pod_that_a_plugin_gates_is_given_up_like_one_that_is_rejected() -> None:
    room = Room()
    assert room.policy is not None
    web = pod("web").created(created(0))
    room.policy.closed.add(web.build().uid)
    room.waits(web)
    assert room.after(60) == ["web"]
    assert room.queue.locate(web.build().uid) is SubQueue.GATED


def test_only_an_event_that_may_help_brings_it_back_and_it_stays_given_up() -> None:
    room = Room()
    room.waits(pod("web").created(created(0)))
    room.after(60)
    room.now += MAX_UNSCHEDULABLE_SECONDS + 1
    assert room.queue.flush_unschedulable() == 0, "the timeout passes it over"
    assert room.queue.move(NODE_ADD, None, node("a").build()) == 1
    room.reject()
    assert room.after(0) == []
    assert room.given_up() == {"web"}
    assert room.queue.locate("uid-web") is SubQueue.UNSCHEDULABLE


def test_the_timeout_passes_over_given_up_pods_also_where_it_goes_in_slices() -> None:
    room = Room(slices=2)
    room.waits(*(pod(f"old-{number}").created(created(-100)) for number in range(5)), *(pod(f"new-{number}") for number in range(5)))
    assert room.after(0) == [f"old-{number}" for number in range(5)]
    room.now = MAX_UNSCHEDULABLE_SECONDS + 1
    room.queue.flush_unschedulable()
    room.queue.sweeps.sweep_all()
    assert {queued.pod.name for place, queued in room.queue.pods() if place is SubQueue.UNSCHEDULABLE} == {f"old-{i}" for i in range(5)}


def test_a_pod_that_leaves_is_forgotten_everywhere() -> None:
    room = Room()
    room.waits(*(pod(name).created(created(0)) for name in ("a", "b", "c")))
    room.queue.delete("uid-a")
    assert room.after(60) == ["b", "c"]
    (queue,) = room.queue.profile_queues()
    limit = queue.wait_limit
    assert limit is not None
    room.queue.delete("uid-b")
    room.queue.move(NODE_ADD, None, node("a").build())
    queued = room.queue.pop()
    assert queued is not None
    room.queue.done(queued.uid)
    assert not limit.given_up
    assert limit.next_deadline() is None


# --- live changes ------------------------------------------------------------------------------------------------------------------


def test_a_shorter_limit_gives_up_who_waits_already() -> None:
    room = Room(give_up_after=600)
    room.waits(pod("old").created(created(-100)), pod("new").created(created(0)))
    assert room.after(0) == []
    room.change(60)
    assert room.after(0) == ["old"]
    assert room.after(60) == ["new"]


def test_a_limit_that_comes_gives_up_who_waits_already_and_one_that_goes_takes_all_back() -> None:
    room = Room(give_up_after=None)
    room.waits(pod("old").created(created(-100)), pod("new").created(created(0)))
    room.change(60)
    assert room.after(0) == ["old"]
    room.change(None)
    assert room.after(0) == ["old"]
    assert room.given_up() == set()
    assert all(queue.wait_limit is None for queue in room.queue.profile_queues())
    room.change(30)
    assert room.after(30) == ["old", "new"]


def test_a_longer_limit_takes_back_who_may_wait_longer_and_gives_it_up_later() -> None:
    room = Room()
    room.waits(pod("old").created(created(-100)), pod("new").created(created(0)))
    assert room.after(60) == ["old", "new"]
    room.change(120)
    assert room.after(0) == ["new"]
    assert room.given_up() == {"old"}
    assert room.after(60) == ["new"]


def test_a_profile_that_goes_and_comes_back_changes_nothing() -> None:
    room = Room()
    room.waits(pod("web").created(created(-100)))
    assert room.after(0) == ["web"]
    kept, room.policy = room.policy, None
    room.queue.reprioritise("default-scheduler", None)
    assert room.after(100) == []
    room.policy = kept
    room.queue.reprioritise("default-scheduler", None)
    assert room.after(0) == []
    assert room.given_up() == {"web"}


@pytest.mark.parametrize(("before", "after"), [(None, 60.0), (6000.0, 60.0), (60.0, None), (60.0, 6000.0)])
def test_a_change_is_judged_in_slices(before: float | None, after: float | None) -> None:
    room = Room(give_up_after=before, slices=A_SLICE)
    pods = 10 * A_SLICE
    room.waits(*(pod(f"web-{number}").created(created(-100)) for number in range(pods)))
    room.after(0)
    room.change(after)
    looked_at = [room.queue.giving_up.step(A_SLICE) for _ in range(3 * pods // A_SLICE + 3)]
    assert max(looked_at) <= A_SLICE, "no step looks at more"
    assert looked_at[-1] < A_SLICE
    assert len(room.given_up()) == (pods if after == 60.0 else 0)


# --- groups ------------------------------------------------------------------------------------------------------------------------


def members(*names: str, **since: float) -> list[PodMaker]:
    return [pod(name).in_group("train").created(created(since.get(name, 0.0))) for name in names]


def test_members_of_a_group_are_given_up_together_when_the_oldest_has_waited_so_long() -> None:
    room = Room()
    room.waits(*members("a", "b", "c", a=-50.0), pod("alone").created(created(0)))
    assert sorted(room.after(10)) == ["a", "b", "c"]
    room.waits(*members("late", late=5.0))
    assert room.after(0) == ["late"], "it shares the standing of its group"
    assert room.after(50) == ["alone"]


def test_a_group_that_is_about_to_be_tried_is_judged_after_that() -> None:
    room = Room()
    room.waits(*members("a", "b"))
    room.now = 59
    room.queue.retry("uid-a")
    queued = room.queue.pop()
    assert queued is not None
    assert queued.pod.name == "a"
    assert room.after(5) == []
    room.queue.return_unschedulable(queued, FIT)
    assert sorted(room.after(1)) == ["a", "b"]


def test_a_longer_limit_takes_a_group_back_together() -> None:
    room = Room()
    room.waits(*members("a", "b", a=-50.0))
    assert sorted(room.after(10)) == ["a", "b"]
    room.change(1000)
    assert sorted(room.after(0)) == ["a", "b"]
    assert room.given_up() == set()
    room.change(65)
    assert room.after(4) == []
    assert sorted(room.after(1)) == ["a", "b"]


def test_a_member_with_a_scheduling_gate_neither_waits_nor_keeps_the_others() -> None:
    room = Room()
    one, two = members("a", "b")
    room.waits(one, two.gates("quota"))
    assert room.after(60) == ["a"]
