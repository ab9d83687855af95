"""What the queue keeps of objects that came and went while pods are tried, or wait to be told: it counts bytes."""

from __future__ import annotations

import pytest

from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo, held_bytes
from placewright.framework.events import WILDCARD, Action, ClusterEvent, EventResource
from placewright.queue import inflight
from placewright.queue.hints import Hints
from placewright.queue.inflight import InFlightPods
from placewright.queue.queued import QueuedPod

ADDED = ClusterEvent(EventResource.POD, Action.ADD)


def a_pod(name: str, size: int = 0) -> PodInfo:
    return PodInfo(convert({"metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}", "annotations": {"a": "x" * size}}}, Pod))


def begun(pods: InFlightPods, name: str) -> QueuedPod:
    queued = QueuedPod(a_pod(name), 0.0)
    pods.begin(queued, Hints({}))
    return queued


def test_events_are_kept_up_to_the_bytes_of_what_they_are_about_and_a_pod_that_missed_more_is_told_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inflight, "EVENT_BYTES", 1_000_000)
    pods = InFlightPods()
    early = pods.get(begun(pods, "early").uid)
    assert early is not None
    large = held_bytes(a_pod("p00", 20_000))
    for number in range(20):
        pods.record(ADDED, None, a_pod(f"p{number:02}", 20_000))
    kept = 1_000_000 // large
    assert (pods.events_kept, pods.nbytes) == (kept, kept * large)
    late = pods.get(begun(pods, "late").uid)
    assert late is not None
    pods.record(ADDED, None, a_pod("small"))
    missed = pods.missed(early)
    assert missed[0].event is WILDCARD
    assert [each.new.name for each in pods.missed(late)] == ["small"]
    pods.end("uid-early")
    assert (pods.events_kept, pods.nbytes) == (1, held_bytes(a_pod("small")))
    pods.end("uid-late")
    assert (pods.events_kept, pods.nbytes) == (0, 0)


def test_one_event_about_something_larger_than_all_that_may_be_kept_is_anything_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight, "EVENT_BYTES", 10_000)
    pods = InFlightPods()
    early = pods.get(begun(pods, "early").uid)
    assert early is not None
    pods.record(ADDED, a_pod("p", 20_000), a_pod("p", 20_000))
    assert [each.event for each in pods.missed(early)] == [WILDCARD]
    assert pods.nbytes == 0
