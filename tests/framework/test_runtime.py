"""What a profile's plugins come to when they are built: their order, the events that they hear of, and how pods are signed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from framework.makers import Scene
from placewright.api.pods import PodInfo
from placewright.framework.events import Action, ClusterEvent, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.interface import PreEnqueuePlugin
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.framework.status import SUCCESS, Status
from placewright.profiles.defaults import DEFAULT_PLUGINS
from placewright.testing import pod


def test_the_default_profile_runs_in_kube_schedulers_order() -> None:
    profile = Scene().evaluator().runtime.profile
    for point in ExtensionPoint:
        order = [DEFAULT_PLUGINS.index(name) for name in profile.at(point)]
        assert order == sorted(order)
    assert profile.at(ExtensionPoint.FILTER)[:3] == ("NodeUnschedulable", "NodeName", "TaintToleration")


class Listens(PreEnqueuePlugin):
    """Registers what the test says."""

    name = "Listens"
    interests: ClassVar[Sequence[ClusterEventWithHint] | None] = None

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return SUCCESS

    def events(self) -> Sequence[ClusterEventWithHint] | None:
        return self.interests


NODE_TAINT = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_TAINT)


@pytest.mark.parametrize(
    ("registered", "hears_taints"),
    [
        ((event_with_hint(EventResource.NODE, Action.ADD),), True),
        ((event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),), True),
        ((event_with_hint(EventResource.NODE, Action.UPDATE_NODE_LABEL),), False),
        ((event_with_hint(EventResource.POD, Action.ADD),), False),
        ((), False),
    ],
)
def test_who_waits_for_new_nodes_also_hears_of_taints_that_go(
    monkeypatch: pytest.MonkeyPatch, registered: tuple[ClusterEventWithHint, ...], hears_taints: bool
) -> None:
    monkeypatch.setattr(Listens, "interests", registered)
    spec = {"plugins": {"multiPoint": {"enabled": [{"name": "Listens"}]}}}
    heard = Scene(extra=(Listens,), spec=spec).evaluator().runtime.interests["Listens"]
    assert heard is not None
    assert any(NODE_TAINT.concerns(i.event) for i in heard) is hears_taints
    assert len(heard) <= len(registered) + 1


def test_a_plugin_that_says_nothing_is_interested_in_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listens, "interests", None)
    spec = {"plugins": {"multiPoint": {"enabled": [{"name": "Listens"}]}}}
    assert Scene(extra=(Listens,), spec=spec).evaluator().runtime.interests["Listens"] is None


def test_one_plugin_that_cannot_sign_keeps_the_pod_from_sharing() -> None:
    from placewright.framework.scalar import ScalarScore  # noqa: PLC0415

    class Names(ScalarScore):
        name = "Names"

        def sign(self, pod: PodInfo) -> None:
            return None

        def score_node(self, pod: PodInfo, node: Any, pods: Any) -> int:
            return len(pod.name)

    spec = {"plugins": {"multiPoint": {"enabled": [{"name": "Names"}]}}}
    assert Scene(extra=(Names,), spec=spec).evaluator().runtime.sign(pod("p").build()) is None
    plain = Scene().evaluator().runtime
    assert plain.sign(pod("p", cpu="1").build()) == plain.sign(pod("q", cpu="1").build())
    assert plain.sign(pod("p", cpu="1").build()) != plain.sign(pod("q", cpu="2").build())
