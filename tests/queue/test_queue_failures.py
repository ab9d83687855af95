"""A pod comes back without a node: where it goes, and what it must not have missed while it was being tried."""

from __future__ import annotations

import pytest
from queue_makers import FakePolicy, World, pod

from placewright.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    WILDCARD,
    Action,
    EventResource,
    QueueingHint,
    event_with_hint,
)
from placewright.queue.hints import Hints
from placewright.queue.inflight import InFlightPods
from placewright.queue.queue import AlreadyQueuedError
from placewright.queue.queued import QueuedPod, SubQueue

ON_NODE_ADD = event_with_hint(EventResource.NODE, Action.ADD)


def test_a_rejected_pod_waits_for_an_event() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    world.rejected(pod("web"), "Fit")
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    assert world.incoming[-1] == ("unschedulable", "ScheduleAttemptFailure")
    assert world.queue.rejections("default-scheduler") == {"Fit": 1}


def test_a_pod_that_failed_by_error_backs_off() -> None:
    world = World()
    world.rejected(pod("web"))
    assert world.place("web") is SubQueue.BACKOFF
    assert world.incoming[-1] == ("backoff", "ScheduleAttemptFailure")


def test_returning_a_pod_refreshes_its_time() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.add(pod("web"))
    queued = world.pop()
    world.now = 123.0
    world.queue.return_unschedulable(queued, {"Fit"})
    assert queued.timestamp == 123.0


@pytest.mark.parametrize("place", [SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE])
def test_a_pod_that_is_waiting_already_cannot_be_returned(place: SubQueue) -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    queued = world.rejected(pod("web"), *([] if place is SubQueue.BACKOFF else ["Fit"]))
    if place is SubQueue.ACTIVE:
        world.queue.activate([queued.pod])
    with pytest.raises(AlreadyQueuedError, match=f"Pod default/web is already present in the {place} queue"):
        world.queue.return_unschedulable(queued, {"Fit"})


def test_an_event_during_the_attempt_that_helps_sends_the_pod_to_backoff() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    world.add(pod("web"))
    queued = world.pop()
    world.queue.move(NODE_ADD)
    world.queue.return_unschedulable(queued, {"Fit"})
    assert world.place("web") is SubQueue.BACKOFF


def test_an_event_during_the_attempt_that_another_plugin_cares_about_does_not_help() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD], "Ports": []}))
    world.add(pod("web"))
    queued = world.pop()
    world.queue.move(NODE_ADD)
    world.queue.return_unschedulable(queued, {"Ports"})
    assert world.place("web") is SubQueue.UNSCHEDULABLE


def test_an_event_before_the_attempt_does_not_help() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    world.add(pod("early"), pod("web"))
    world.pop()
    world.queue.move(NODE_ADD)
    web = world.pop()
    world.queue.return_unschedulable(web, {"Fit"})
    assert world.place("web") is SubQueue.UNSCHEDULABLE


def test_a_pending_plugins_event_during_the_attempt_makes_the_pod_active_at_once() -> None:
    world = World(FakePolicy(interests={"Gang": [ON_NODE_ADD], "Fit": [event_with_hint(EventResource.ASSIGNED_POD, Action.DELETE)]}))
    world.add(pod("web"))
    queued = world.pop()
    world.queue.move(ASSIGNED_POD_DELETE)
    world.queue.move(NODE_ADD)
    world.queue.return_unschedulable(queued, {"Fit"}, {"Gang"})
    assert world.place("web") is SubQueue.ACTIVE


def test_a_pod_returned_without_backoff_goes_straight_to_active() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    world.policy.backoff = type(world.policy.backoff)(1, 0)
    world.add(pod("web"))
    queued = world.pop()
    world.queue.move(NODE_ADD)
    world.queue.return_unschedulable(queued, {"Fit"})
    assert world.place("web") is SubQueue.ACTIVE


def test_a_pod_whose_gate_closed_meanwhile_is_gated_when_it_would_be_tried_again() -> None:
    world = World()
    world.add(pod("web"))
    queued = world.pop()
    world.policy.closed.add("uid-web")
    assert world.queue.return_unschedulable(queued) is SubQueue.GATED
    assert queued.gating_plugin == "Door"


def test_the_version_that_arrived_during_the_attempt_is_what_waits() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.add(pod("web"))
    queued = world.pop()
    began_with = queued.pod
    world.queue.update(pod("web").labels(app="new").build())
    assert queued.pod is began_with, "an attempt must not see its pod change"
    world.queue.return_unschedulable(queued, {"Fit"})
    assert queued.pod.labels == {"app": "new"}


def test_the_pods_own_update_during_the_attempt_is_put_before_the_rejecting_plugin() -> None:
    seen = []

    def own_toleration(rejected: object, old: object, new: object) -> QueueingHint:
        seen.append((old, new))
        return QueueingHint.QUEUE

    on_toleration = event_with_hint(EventResource.POD, Action.UPDATE_POD_TOLERATION, own_toleration)
    world = World(FakePolicy(interests={"TaintToleration": [on_toleration]}))
    world.add(pod("web"))
    queued = world.pop()
    before, after = queued.pod, pod("web").tolerates("gpu").build()
    world.queue.update(after)
    world.queue.return_unschedulable(queued, {"TaintToleration"})
    assert world.place("web") is SubQueue.BACKOFF
    assert seen == [(before, after)]


def test_a_pod_deleted_during_its_attempt_does_not_come_back() -> None:
    world = World()
    world.add(pod("web"))
    queued = world.pop()
    world.queue.delete("uid-web")
    assert world.place("web") is None
    assert world.queue.return_unschedulable(queued, {"Fit"}) is None
    assert len(world.queue) == 0
    assert len(world.queue.in_flight) == 0


def test_a_rejection_by_a_plugin_that_the_profile_does_not_list_waits_for_any_event() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.rejected(pod("web"), "Extender")
    assert world.place("web") is SubQueue.UNSCHEDULABLE, "tried again at once, it would be tried again forever"
    assert world.queue.move(NODE_ADD) == 1


def test_a_pod_nobody_knows_is_taken_back_rather_than_lost() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.add(pod("web"))
    queued = world.pop()
    world.queue.done("uid-web")
    world.queue.return_unschedulable(queued, {"Fit"})
    assert world.place("web") is SubQueue.BACKOFF


def test_done_after_a_return_changes_nothing() -> None:
    world = World()
    world.rejected(pod("web"))
    world.queue.done("uid-web")
    assert world.place("web") is SubQueue.BACKOFF


def test_events_are_remembered_only_while_somebody_is_in_flight() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    world.queue.move(NODE_ADD)
    assert world.queue.in_flight.events_kept == 0
    world.add(pod("a"), pod("b"))
    world.pop()
    world.queue.move(NODE_ADD)
    world.pop()
    world.queue.move(NODE_ADD)
    assert world.queue.in_flight.events_kept == 2
    world.queue.done("uid-a")
    assert world.queue.in_flight.events_kept == 1
    world.queue.done("uid-b")
    assert world.queue.in_flight.events_kept == 0


def test_an_event_that_no_plugin_registered_for_is_not_remembered() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    world.add(pod("web"))
    world.pop()
    world.queue.move(ASSIGNED_POD_DELETE)
    assert world.queue.in_flight.events_kept == 0
    world.queue.move(WILDCARD)
    assert world.queue.in_flight.events_kept == 1


def test_when_too_many_events_came_the_pod_is_told_that_anything_may_have_happened() -> None:
    flights = InFlightPods(limit=3)
    queued = QueuedPod(pod("web").build(), 0.0)
    flights.begin(queued, Hints({}))
    for _ in range(4):
        flights.record(NODE_ADD, None, None)
    flight = flights.get("uid-web")
    assert flight is not None
    assert [happening.event for happening in flights.missed(flight)] == [WILDCARD, NODE_ADD, NODE_ADD, NODE_ADD]


def test_finishing_out_of_order_forgets_no_event_that_somebody_missed() -> None:
    flights = InFlightPods()
    for name in ("a", "b", "c"):
        flights.begin(QueuedPod(pod(name).build(), 0.0), Hints({}))
        flights.record(NODE_ADD, None, name)
    flights.end("uid-b")
    c, a = flights.get("uid-c"), flights.get("uid-a")
    assert a is not None and c is not None
    assert [happening.new for happening in flights.missed(a)] == ["a", "b", "c"]
    flights.end("uid-a")
    assert [happening.new for happening in flights.missed(c)] == ["c"]
    assert flights.events_kept == 1
