"""Pods come, change and go: twice, late, out of order, and under a name that somebody else had."""

from __future__ import annotations

import pytest
from queue_makers import FakePolicy, PodMaker, World, pod

from placewright.api.objects import PodKey
from placewright.framework.events import Action, EventResource, QueueingHint, event_with_hint
from placewright.framework.podchanges import pod_update_events
from placewright.queue.queued import SubQueue

POD_UPDATES = {
    "UnscheduledPodUpdateLabel": (pod("web"), pod("web").labels(app="db")),
    "UnscheduledPodUpdateScaleDown": (pod("web").requests(cpu="2"), pod("web").requests(cpu="1")),
    "UnscheduledPodUpdateGatesEliminated": (pod("web").gates("a", "b"), pod("web")),
    "UnscheduledPodUpdateToleration": (pod("web"), pod("web").tolerates("gpu")),
    "UnscheduledPodUpdate": (pod("web"), pod("web").annotations(note="changed")),
    "AssignedPodUpdateLabel": (pod("web").on("n1"), pod("web").on("n1").labels(app="db")),
}


@pytest.mark.parametrize("label", POD_UPDATES)
def test_a_pod_update_is_told_as_what_changed(label: str) -> None:
    old, new = POD_UPDATES[label]
    assert [event.label for event in pod_update_events(old.build(), new.build())] == [label]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pod("web").requests(cpu="1"), pod("web").requests(cpu="2")),
        (pod("web").gates("a", "b"), pod("web").gates("b")),
        (pod("web"), pod("web")),
    ],
)
def test_a_change_that_helps_nobody_in_particular_is_a_generic_update(old: PodMaker, new: PodMaker) -> None:
    assert [event.action for event in pod_update_events(old.build(), new.build())] == [Action.UPDATE_OTHER]


def test_several_changes_at_once_are_several_events() -> None:
    events = pod_update_events(pod("web").build(), pod("web").labels(a="b").tolerates("gpu").build())
    assert [event.action for event in events] == [Action.UPDATE_POD_LABEL, Action.UPDATE_POD_TOLERATION]


def test_a_new_pod_is_active() -> None:
    world = World()
    world.add(pod("web"))
    assert world.place("web") is SubQueue.ACTIVE
    assert world.incoming == [("active", "UnscheduledPodAdd")]


def test_a_pod_that_is_added_twice_is_there_once() -> None:
    world = World()
    world.add(pod("web"), pod("web"))
    assert world.popped_names() == ["web"]


def test_a_pod_with_gates_is_gated_by_the_plugin_that_said_so() -> None:
    world = World()
    world.add(pod("web").gates("quota"))
    queued = world.queue.get("uid-web")
    assert queued is not None
    assert world.place("web") is SubQueue.GATED
    assert queued.gating_plugin == "SchedulingGates"
    assert "SchedulingGates" in queued.unschedulable_plugins
    assert world.queue.pop() is None
    assert world.queue.rejections("default-scheduler") == {"SchedulingGates": 1}


def test_removing_the_last_gate_makes_a_pod_active() -> None:
    eliminated = event_with_hint(EventResource.POD, Action.UPDATE_POD_GATES_ELIMINATED)
    world = World(FakePolicy(interests={"SchedulingGates": [eliminated]}))
    world.add(pod("web").gates("a", "b"))
    world.queue.update(pod("web").gates("b").build())
    assert world.place("web") is SubQueue.GATED
    world.queue.update(pod("web").build())
    assert world.place("web") is SubQueue.ACTIVE
    assert world.incoming[-1] == ("active", "UnscheduledPodUpdateGatesEliminated")


def test_an_unknown_pod_that_is_updated_is_added() -> None:
    world = World()
    world.queue.update(pod("web").build())
    assert world.place("web") is SubQueue.ACTIVE


def test_an_active_pod_is_replaced_where_it_stands() -> None:
    world = World()
    world.add(pod("a"), pod("b"))
    world.queue.update(pod("a").labels(app="new").build())
    first = world.pop()
    assert (first.pod.name, first.pod.labels) == ("a", {"app": "new"})


def test_a_priority_that_changes_in_the_queue_counts_at_once() -> None:
    world = World()
    world.add(pod("a"), pod("b"))
    world.queue.update(pod("b").priority(9).build())
    assert world.popped_names() == ["b", "a"]


def test_a_pod_in_backoff_is_replaced_where_it_stands() -> None:
    world = World()
    world.rejected(pod("web"))
    world.queue.update(pod("web").labels(app="new").build())
    assert world.place("web") is SubQueue.BACKOFF
    queued = world.queue.get("uid-web")
    assert queued is not None
    assert queued.pod.labels == {"app": "new"}


def test_a_waiting_pod_is_tried_again_only_when_its_rejecting_plugin_says_that_its_change_helps() -> None:
    def own(rejected: object, old: object, new: object) -> QueueingHint:
        return QueueingHint.QUEUE

    world = World(FakePolicy(interests={"TaintToleration": [event_with_hint(EventResource.POD, Action.UPDATE_POD_TOLERATION, own)]}))
    world.rejected(pod("web"), "TaintToleration")
    world.now += 5
    world.queue.update(pod("web").labels(app="x").build())
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    world.queue.update(pod("web").labels(app="x").tolerates("gpu").build())
    assert world.place("web") is SubQueue.ACTIVE


def test_an_update_with_several_changes_moves_a_waiting_pod_once() -> None:
    world = World(FakePolicy(interests={"Fit": None}))
    world.rejected(pod("web"), "Fit")
    world.incoming.clear()
    world.queue.update(pod("web").labels(app="x").tolerates("gpu").build())
    assert world.incoming == [("backoff", "UnscheduledPodUpdateLabel")]


def test_an_update_that_repeats_the_known_version_is_ignored() -> None:
    world = World(FakePolicy(interests={"Fit": None}))
    world.rejected(pod("web").version("7"), "Fit")
    world.queue.update(pod("web").version("7").build())
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    world.queue.update(pod("web").version("8").build())
    assert world.place("web") is SubQueue.BACKOFF


@pytest.mark.parametrize("place", [p for p in SubQueue if p is not SubQueue.IN_FLIGHT])
def test_a_deleted_pod_is_gone_from_wherever_it_was(place: SubQueue) -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    match place:
        case SubQueue.ACTIVE:
            world.add(pod("web"))
        case SubQueue.BACKOFF:
            world.rejected(pod("web"))
        case SubQueue.UNSCHEDULABLE:
            world.rejected(pod("web"), "Fit")
        case _:
            world.add(pod("web").gates("a"))
    assert world.place("web") is place
    deleted = world.queue.delete("uid-web")
    assert deleted is not None
    assert deleted.name == "web"
    assert world.place("web") is None
    assert world.queue.uid_of(PodKey("default/web")) is None
    assert world.queue.sizes() == (0, 0, 0, 0, 0)


def test_deleting_an_unknown_pod_is_no_error() -> None:
    assert World().queue.delete("nobody") is None


def test_a_namesake_with_another_uid_replaces_the_old_pod() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.rejected(pod("web"), "Fit")
    world.add(pod("web").uid("second"))
    assert world.place("web") is None
    assert world.queue.uid_of(PodKey("default/web")) == "second"
    assert world.pop().attempts == 1


def test_the_late_deletion_of_the_old_pod_does_not_touch_its_namesake() -> None:
    world = World()
    world.add(pod("web"), pod("web").uid("second"))
    world.queue.delete("uid-web")
    assert world.queue.locate("second") is SubQueue.ACTIVE


def test_a_late_update_of_the_old_pod_does_not_replace_its_namesake() -> None:
    world = World()
    world.add(pod("web").uid("second").created("2026-01-02T00:00:00Z"))
    world.queue.update(pod("web").created("2026-01-01T00:00:00Z").build())
    assert world.queue.locate("second") is SubQueue.ACTIVE
    assert world.place("web") is None


def test_a_namesake_is_tried_while_the_attempt_of_the_old_pod_still_runs() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.add(pod("web"))
    old = world.pop()
    world.add(pod("web").uid("second"))
    second = world.pop()
    assert second.uid == "second"
    assert world.queue.return_unschedulable(old, {"Fit"}) is None
    assert world.queue.locate("second") is SubQueue.IN_FLIGHT
    world.queue.return_unschedulable(second, {"Fit"})
    assert world.queue.locate("second") is SubQueue.UNSCHEDULABLE
    assert len(world.queue) == 1


def test_the_old_pods_attempt_ending_well_does_not_take_its_namesake_along() -> None:
    world = World()
    world.add(pod("web"))
    world.pop()
    world.add(pod("web").uid("second"))
    world.queue.done("uid-web")
    assert world.queue.locate("second") is SubQueue.ACTIVE


def test_an_old_pod_whose_attempt_is_over_does_not_come_back_beside_its_namesake() -> None:
    world = World()
    world.add(pod("web"))
    old = world.pop()
    world.queue.done("uid-web")
    world.add(pod("web").uid("second"))
    assert world.queue.return_unschedulable(old) is None
    assert world.queue.uid_of(PodKey("default/web")) == "second"


def test_a_pod_that_vanishes_and_reappears_during_its_attempt_stays_in_flight() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.add(pod("web"))
    queued = world.pop()
    world.queue.delete("uid-web")
    world.add(pod("web").labels(app="x"))
    assert world.place("web") is SubQueue.IN_FLIGHT
    assert world.queue.pop() is None
    world.queue.return_unschedulable(queued, {"Fit"})
    assert world.place("web") is SubQueue.UNSCHEDULABLE


def test_a_pod_that_changes_hands_is_queued_for_its_new_scheduler() -> None:
    world = World()
    world.policies["gpu"] = FakePolicy()
    world.add(pod("web"))
    world.queue.update(pod("web").scheduler("gpu").build())
    assert world.queue.sizes("default-scheduler").active == 0
    assert world.queue.sizes("gpu").active == 1


def test_a_gate_that_raises_leaves_the_pod_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(FakePolicy(interests={"Fit": None}))
    queued = world.rejected(pod("web"), "Fit")

    def broken(pod: object) -> None:
        raise RuntimeError("plugin bug")

    monkeypatch.setattr(world.policy, "pre_enqueue", broken)
    with pytest.raises(RuntimeError, match="plugin bug"):
        world.queue.activate([queued.pod])
    assert world.place("web") is SubQueue.UNSCHEDULABLE
