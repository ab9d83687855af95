"""What holds for all hints: whom they are asked about, how often, and what comes of a hint that breaks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from framework.makers import Scene
from hints.waiting_room import WaitingRoom
from placewright.api.pods import PodInfo
from placewright.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    event_with_hint,
)
from placewright.plugins.catalog import in_tree
from placewright.testing import node, pod

OTHERS: Final = ("NodePorts", "TaintToleration", "VolumeRestrictions", "PodTopologySpread", "InterPodAffinity")
MANY: Final = 50


def room_where(monkeypatch: pytest.MonkeyPatch, plugin: str, events: Callable[..., Sequence[ClusterEventWithHint]]) -> WaitingRoom:
    """A room in which this in-tree plugin registers these events instead of its own."""
    monkeypatch.setattr(in_tree()[plugin], "events", lambda _self: events())
    return WaitingRoom()


def test_a_hint_that_raises_has_the_pod_tried_again_and_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_pod: PodInfo, _old: Any, _new: Any) -> QueueingHint:
        raise AttributeError("no such thing")

    room = room_where(monkeypatch, "NodeName", lambda: [event_with_hint(EventResource.NODE, Action.ADD, broken)])
    room.reject(pod("me").build(), "NodeName")
    room.reject(pod("other").build(), "NodePorts")
    with caplog.at_level(logging.WARNING):
        room.move(NODE_ADD, None, node("n", pods="0").build())
    assert room.tried_again(pod("me").build())
    assert "hint of NodeName failed for pod default/me" in caplog.text


def test_a_hint_that_raises_keeps_no_other_pod_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(rejected: PodInfo, _old: Any, _new: Any) -> QueueingHint:
        if rejected.name == "first":
            raise KeyError(rejected.name)
        return QueueingHint.QUEUE if rejected.name == "third" else QueueingHint.SKIP

    room = room_where(monkeypatch, "NodeName", lambda: [event_with_hint(EventResource.NODE, Action.ADD, broken)])
    for name in ("first", "second", "third"):
        room.reject(pod(name).build(), "NodeName")
    room.move(NODE_ADD, None, node("n").build())
    assert [room.tried_again(pod(name).build()) for name in ("first", "second", "third")] == [True, False, True]


def test_a_plugin_is_asked_once_about_each_pod_that_it_rejected_and_about_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def remembers(rejected: PodInfo, _old: Any, _new: Any) -> QueueingHint:
        asked.append(rejected.name)
        return QueueingHint.SKIP

    room = room_where(monkeypatch, "NodeResourcesFit", lambda: [event_with_hint(EventResource.POD, Action.DELETE, remembers)])
    for number in range(MANY):
        room.reject(pod(f"other-{number}").build(), OTHERS[number % len(OTHERS)])
    mine = [f"mine-{number}" for number in range(3)]
    for name in mine:
        room.reject(pod(name).build(), "NodeResourcesFit")
    room.move(ASSIGNED_POD_DELETE, pod("gone", on="n").build())
    assert sorted(asked) == mine


def test_a_plugin_without_a_table_of_events_is_helped_by_any() -> None:
    assert WaitingRoom().runtime.interests["ImageLocality"] is None
    for event in (ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_LABEL), ASSIGNED_POD_DELETE, NODE_ADD):
        room = WaitingRoom()
        room.reject(pod("me").build(), "ImageLocality")
        room.move(event, pod("gone", on="n").build(), None)
        assert room.tried_again(pod("me").build())


def test_a_label_of_a_pod_on_a_node_is_shown_to_pods_that_keep_away_from_others_but_not_to_those_that_do_not() -> None:
    """Only the former could be helped: kube-scheduler shows it to neither and lets them wait for its timeout."""
    wary = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
    ]}}}  # fmt: skip
    room = WaitingRoom()
    room.reject(pod("wary", **wary).build(), "InterPodAffinity")
    room.reject(pod("plain").build(), "InterPodAffinity")
    labelled = ClusterEvent(EventResource.ASSIGNED_POD, Action.UPDATE_POD_LABEL)
    room.move(labelled, pod("db", on="n", labels={"app": "db"}).build(), pod("db", on="n").build())
    assert (room.tried_again(pod("wary").build()), room.tried_again(pod("plain").build())) == (True, False)


@pytest.mark.parametrize("plugin", ["NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit", "InterPodAffinity"])
def test_an_object_that_is_no_node_helps_nobody(plugin: str) -> None:
    kind = in_tree()[plugin]
    events = kind(kind.Args(), Scene().handle()).events() or ()
    [about_nodes] = [each.hint for each in events if each.event.resource is EventResource.NODE]
    assert about_nodes(pod("me").build(), None, object()) is QueueingHint.SKIP


def test_what_one_pod_kept_away_from_is_not_taken_for_what_another_did() -> None:
    """What a leaving pod's terms mean is kept between hints, by the terms and their namespace."""

    def wary(name: str, app: str) -> PodInfo:
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
        return pod(name, on="n", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}).build()

    web, db = pod("web", labels={"app": "web"}).build(), pod("db", labels={"app": "db"}).build()
    room = WaitingRoom()
    for rejected in (web, db):
        room.reject(rejected, "InterPodAffinity")
    room.move(ASSIGNED_POD_DELETE, wary("of-web", "web"))
    assert (room.tried_again(web), room.tried_again(db)) == (True, False)
    room.move(ASSIGNED_POD_DELETE, wary("of-db", "db"))
    assert room.tried_again(db)
