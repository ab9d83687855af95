"""Which waiting pods an event brings back."""

from __future__ import annotations

import logging

import pytest
from queue_makers import FakePolicy, World, near, pod

from placewright.api.pods import PodInfo
from placewright.framework.assignedpods import in_its_namespace, wanted_nearby
from placewright.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    NODE_DELETE,
    WILDCARD,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    always,
    event_with_hint,
)
from placewright.queue.queued import SubQueue

ON_NODE_ADD = event_with_hint(EventResource.NODE, Action.ADD)
ON_ANY_POD = event_with_hint(EventResource.POD, Action.ALL)
SCALED_DOWN = ClusterEvent(EventResource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, "AssignedPodUpdate")
RELABELLED = ClusterEvent(EventResource.ASSIGNED_POD, Action.UPDATE_POD_LABEL, "AssignedPodUpdate")


class Asked:
    """A hint that remembers whom it was asked about."""

    def __init__(self, answer: QueueingHint = QueueingHint.QUEUE) -> None:
        self.pods: list[str] = []
        self.answer = answer

    def __call__(self, rejected: PodInfo, old: object, new: object) -> QueueingHint:
        self.pods.append(rejected.name)
        return self.answer


def test_only_pods_whose_rejecting_plugins_care_are_asked_about() -> None:
    hint = Asked()
    world = World(FakePolicy(interests={"Fit": [event_with_hint(EventResource.NODE, Action.ADD, hint)], "Ports": []}))
    world.rejected(pod("ports"), "Ports")
    world.rejected(pod("fit"), "Fit")
    assert world.queue.move(NODE_ADD) == 1
    assert hint.pods == ["fit"]
    assert (world.place("fit"), world.place("ports")) == (SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE)
    assert world.incoming[-1] == ("backoff", "NodeAdd")


def test_a_hint_that_says_skip_leaves_the_pod_where_it_is() -> None:
    world = World(FakePolicy(interests={"Fit": [event_with_hint(EventResource.NODE, Action.ADD, Asked(QueueingHint.SKIP))]}))
    world.rejected(pod("web"), "Fit")
    assert world.queue.move(NODE_ADD) == 0
    assert world.place("web") is SubQueue.UNSCHEDULABLE


def test_one_of_several_rejecting_plugins_is_enough() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD], "Ports": []}))
    world.rejected(pod("web"), "Fit", "Ports")
    assert world.queue.move(NODE_ADD) == 1


def test_a_hint_is_not_asked_about_another_action_on_the_same_resource() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    world.rejected(pod("web"), "Fit")
    assert world.queue.move(NODE_DELETE) == 0


def test_the_hint_sees_the_object_before_and_after() -> None:
    seen = []

    def hint(rejected: PodInfo, old: object, new: object) -> QueueingHint:
        seen.append((rejected.name, old, new))
        return QueueingHint.SKIP

    world = World(FakePolicy(interests={"Fit": [event_with_hint(EventResource.NODE, Action.UPDATE, hint)]}))
    world.rejected(pod("web"), "Fit")
    world.queue.move(ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_LABEL), "before", "after")
    assert seen == [("web", "before", "after")]


def test_a_pod_whose_backoff_is_over_goes_straight_to_active() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    world.rejected(pod("web"), "Fit")
    world.now += 2
    world.queue.move(NODE_ADD)
    assert world.place("web") is SubQueue.ACTIVE


def test_a_pod_waiting_for_backoff_is_not_made_active_when_a_node_is_added() -> None:
    world = World(FakePolicy(interests={"Fit": [ON_NODE_ADD]}))
    world.rejected(pod("web"), "Fit")
    world.queue.move(NODE_ADD)
    assert world.queue.move(NODE_ADD) == 0
    assert world.place("web") is SubQueue.BACKOFF


def test_a_pending_plugins_hint_skips_backoff() -> None:
    world = World(FakePolicy(interests={"Gang": [ON_NODE_ADD], "Fit": [ON_NODE_ADD]}))
    world.rejected(pod("web"), "Fit", pending=["Gang"])
    world.queue.move(NODE_ADD)
    assert world.place("web") is SubQueue.ACTIVE


def test_another_plugins_hint_keeps_backoff_although_a_plugin_is_pending() -> None:
    world = World(FakePolicy(interests={"Gang": [], "Fit": [ON_NODE_ADD]}))
    world.rejected(pod("web"), "Fit", pending=["Gang"])
    world.queue.move(NODE_ADD)
    assert world.place("web") is SubQueue.BACKOFF


def test_a_hint_that_raises_counts_as_worth_trying_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(rejected: PodInfo, old: object, new: object) -> QueueingHint:
        raise RuntimeError("no such attribute")

    world = World(FakePolicy(interests={"Theirs": [event_with_hint(EventResource.NODE, Action.ADD, broken)]}))
    world.rejected(pod("web"), "Theirs")
    with caplog.at_level(logging.WARNING):
        assert world.queue.move(NODE_ADD) == 1
    assert "hint of Theirs failed for pod default/web" in caplog.text


def test_a_plugin_without_a_table_of_events_is_helped_by_any() -> None:
    world = World(FakePolicy(interests={"Theirs": None}))
    world.rejected(pod("web"), "Theirs")
    assert world.queue.move(NODE_DELETE) == 1


def test_the_wildcard_event_moves_every_rejected_pod() -> None:
    world = World(FakePolicy(interests={"Fit": [], "Ports": []}))
    world.rejected(pod("a"), "Fit")
    world.rejected(pod("b"), "Ports")
    assert world.queue.move(WILDCARD) == 2


def test_a_wildcard_event_about_one_pod_moves_no_other() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    a = world.rejected(pod("a"), "Fit")
    world.rejected(pod("b"), "Fit")
    assert world.queue.move(FORCE_ACTIVATE, None, a.pod) == 1
    assert (world.place("a"), world.place("b")) == (SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE)


def test_a_registration_for_pods_hears_of_assigned_and_unscheduled_ones() -> None:
    for resource in (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD):
        world = World(FakePolicy(interests={"Fit": [ON_ANY_POD]}))
        world.rejected(pod("web"), "Fit")
        assert world.queue.move(ClusterEvent(resource, Action.DELETE), pod("gone").build()) == 1


# --- gated pods --------------------------------------------------------------------------------------------------------------------


def test_a_gated_pod_hears_only_of_events_that_its_gating_plugin_registered() -> None:
    asked = Asked()
    world = World(FakePolicy(interests={"Door": [ON_NODE_ADD], "Fit": [event_with_hint(EventResource.NODE, Action.DELETE, asked)]}))
    world.policy.closed.add("uid-web")
    world.add(pod("web"))
    assert world.place("web") is SubQueue.GATED
    world.policy.closed.clear()
    assert world.queue.move(NODE_DELETE) == 0
    assert asked.pods == []
    assert world.queue.move(NODE_ADD) == 1
    assert world.place("web") is SubQueue.ACTIVE


def test_a_wildcard_event_does_not_touch_a_gated_pod_whose_plugin_named_its_events() -> None:
    world = World(FakePolicy(interests={"Door": [ON_NODE_ADD]}))
    world.policy.closed.add("uid-web")
    world.add(pod("web"))
    world.policy.closed.clear()
    assert world.queue.move(WILDCARD) == 0
    assert world.place("web") is SubQueue.GATED


def test_a_gated_pod_whose_plugin_names_no_events_is_checked_at_every_event() -> None:
    world = World(FakePolicy(interests={"Door": None}))
    world.policy.closed.add("uid-web")
    world.add(pod("web"))
    assert world.queue.move(NODE_ADD) == 0
    world.policy.closed.clear()
    assert world.queue.move(NODE_ADD) == 1


def test_a_gated_pod_is_not_let_in_by_the_plugin_that_rejected_it_before() -> None:
    not_yet = event_with_hint(EventResource.NODE, Action.ADD, Asked(QueueingHint.SKIP))
    world = World(FakePolicy(interests={"Door": [not_yet], "Fit": [ON_NODE_ADD]}))
    queued = world.rejected(pod("web"), "Fit")
    world.policy.closed.add("uid-web")
    world.queue.activate([queued.pod])
    assert world.place("web") is SubQueue.GATED
    world.policy.closed.clear()
    assert world.queue.move(NODE_ADD) == 0


# --- pods that appear or change on nodes -----------------------------------------------------------------------------------------------


def cluster_of_rejected(hint: Asked) -> World:
    """Pods rejected by plugins that register pods with this hint, narrowed as the plugins in the tree do it."""
    frees = [event_with_hint(EventResource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, hint)]
    counts = [event_with_hint(EventResource.POD, Action.ALL, hint, in_its_namespace)]
    attracts = [event_with_hint(EventResource.POD, Action.ALL, hint, wanted_nearby)]
    world = World(FakePolicy(interests={"Fit": frees, "Spread": counts, "Affinity": attracts}))
    world.rejected(pod("fit"), "Fit")
    world.rejected(pod("spread-here"), "Spread")
    world.rejected(pod("spread-elsewhere").namespace("other"), "Spread")
    world.rejected(pod("near-db").pod_affinity("zone", app="db"), "Affinity")
    world.rejected(pod("near-web").pod_affinity("zone", app="web"), "Affinity")
    return world


@pytest.mark.parametrize("event", [ASSIGNED_POD_ADD, RELABELLED])
def test_a_pod_on_a_node_helps_only_spread_in_its_namespace_and_affinity_that_it_matches(event: ClusterEvent) -> None:
    hint = Asked()
    world = cluster_of_rejected(hint)
    assert world.queue.move(event, None, pod("db-0").labels(app="db").on("n1").build()) == 2
    assert sorted(hint.pods) == ["near-db", "spread-here"]


@pytest.mark.parametrize("event", [ASSIGNED_POD_ADD, RELABELLED])
@pytest.mark.parametrize("events", [[ON_ANY_POD], None])
def test_a_plugin_that_narrows_nothing_hears_of_every_pod_on_a_node(event: ClusterEvent, events: list[ClusterEventWithHint] | None) -> None:
    world = World(
        FakePolicy(interests={"Theirs": events, "Spread": [event_with_hint(EventResource.POD, Action.ALL, always, in_its_namespace)]})
    )
    world.rejected(pod("theirs"), "Theirs")
    world.rejected(pod("both"), "Theirs", "Spread")
    world.rejected(pod("spread"), "Spread")
    assert world.queue.move(event, None, pod("db-0").namespace("data").on("n1").build()) == 2
    assert world.place("spread") is SubQueue.UNSCHEDULABLE


def test_a_pod_on_a_node_helps_a_pod_of_a_plugin_that_is_off_by_now_only_where_its_affinity_means_it() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.rejected(pod("web"), "Fit", "Gone")
    world.rejected(pod("near-db").pod_affinity("zone", app="db"), "Fit", "Gone")
    assert world.queue.move(ASSIGNED_POD_ADD, None, pod("db-0").labels(app="db").on("n1").build()) == 1
    assert world.place("web") is SubQueue.UNSCHEDULABLE


def test_where_a_narrowing_raises_the_hint_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_rejected: PodInfo, _old: object, _new: object) -> bool:
        raise RuntimeError("no such attribute")

    hint = Asked()
    world = World(FakePolicy(interests={"Theirs": [event_with_hint(EventResource.POD, Action.ADD, hint, broken)]}))
    world.rejected(pod("web"), "Theirs")
    with caplog.at_level(logging.WARNING):
        assert world.queue.move(ASSIGNED_POD_ADD, None, pod("db-0").on("n1").build()) == 1
    assert hint.pods == ["web"]
    assert "events of Theirs failed for pod default/web" in caplog.text


@pytest.mark.parametrize("event", [ASSIGNED_POD_DELETE, SCALED_DOWN])
def test_a_pod_that_frees_resources_may_help_everybody(event: ClusterEvent) -> None:
    hint = Asked()
    world = cluster_of_rejected(hint)
    db = pod("db-0").labels(app="db").on("n1").build()
    assert world.queue.move(event, db, db) == 5


@pytest.mark.parametrize(
    ("term", "helped"),
    [
        ({"labelSelector": {"matchLabels": {"app": "db"}}, "namespaces": ["data"]}, True),
        ({"labelSelector": {"matchLabels": {"app": "db"}}, "namespaces": ["else"]}, False),
        ({"labelSelector": {"matchLabels": {"app": "db"}}}, False),
        ({"labelSelector": {"matchLabels": {"app": "db"}}, "namespaceSelector": {}}, True),
        ({"labelSelector": {}, "namespaces": ["data"]}, True),
        ({"namespaces": ["data"]}, False),
    ],
)
def test_affinity_terms_look_at_namespaces_as_the_filter_does(term: dict[str, object], helped: bool) -> None:
    world = World(FakePolicy(interests={"InterPodAffinity": [event_with_hint(EventResource.POD, Action.ALL, always, wanted_nearby)]}))
    world.rejected(near(pod("web"), {"topologyKey": "zone", **term}), "InterPodAffinity")
    db = pod("db-0").namespace("data").labels(app="db").on("n1").build()
    assert world.queue.move(ASSIGNED_POD_ADD, None, db) == int(helped)


def test_an_affinity_term_that_does_not_parse_matches_nothing() -> None:
    bad = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}}
    world = World(FakePolicy(interests={"InterPodAffinity": [event_with_hint(EventResource.POD, Action.ALL, always, wanted_nearby)]}))
    world.rejected(near(pod("web"), bad), "InterPodAffinity")
    assert world.queue.move(ASSIGNED_POD_ADD, None, pod("db-0").labels(app="db").on("n1").build()) == 0


def test_affinity_is_read_from_the_newest_version_of_a_pod() -> None:
    world = World(
        FakePolicy(interests={"InterPodAffinity": [event_with_hint(EventResource.ASSIGNED_POD, Action.ADD, always, wanted_nearby)]})
    )
    world.rejected(pod("web").pod_affinity("zone", app="db"), "InterPodAffinity")
    db, cache = (pod(name).labels(app=name).on("n1").build() for name in ("db", "cache"))
    assert world.queue.move(ASSIGNED_POD_ADD, None, cache) == 0
    world.queue.update(pod("web").pod_affinity("zone", app="cache").build())
    assert world.queue.move(ASSIGNED_POD_ADD, None, db) == 0
    assert world.queue.move(ASSIGNED_POD_ADD, None, cache) == 1


# --- activation ----------------------------------------------------------------------------------------------------------------------


def test_activation_skips_backoff_and_waiting() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    backing_off = world.rejected(pod("broken"))
    waiting = world.rejected(pod("refused"), "Fit")
    world.queue.activate([backing_off.pod, waiting.pod, pod("unknown").build()])
    assert world.queue.sizes() == (2, 0, 0, 0, 0)
    assert world.incoming[-2:] == [("active", "ForceActivate")] * 2


def test_activation_of_an_active_pod_changes_nothing() -> None:
    world = World()
    world.add(pod("a"), pod("b"))
    before = list(world.incoming)
    world.queue.activate([pod("b").build()])
    assert world.incoming == before
    assert world.popped_names() == ["a", "b"]


def test_activation_does_not_open_a_gate() -> None:
    world = World()
    world.add(pod("web").gates("quota"))
    world.queue.activate([pod("web").build()])
    assert world.place("web") is SubQueue.GATED


def test_a_pod_activated_during_its_attempt_is_tried_again_and_no_other_is() -> None:
    world = World(FakePolicy(interests={"Fit": []}))
    world.add(pod("a"), pod("b"))
    a, b = world.pop(), world.pop()
    world.queue.activate([a.pod])
    world.queue.return_unschedulable(a, {"Fit"})
    world.queue.return_unschedulable(b, {"Fit"})
    assert (world.place("a"), world.place("b")) == (SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE)
