"""One profile's plugins are called in the order, and with the consequences, that the contract promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from framework.makers import Scene, pod
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEvent, EventInterest, EventResource, interest
from placewright.framework.interface import (
    BindPlugin,
    CycleState,
    Diagnosis,
    PermitPlugin,
    PermitResult,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    ReservePlugin,
)
from placewright.framework.resolved import ExtensionPoint
from placewright.framework.runtime import MAX_PERMIT_TIMEOUT, ProfileRuntime
from placewright.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable, unschedulable
from placewright.profiles.defaults import DEFAULT_PLUGINS

NODE = NodeName("n")


class Recorder(ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin, PreEnqueuePlugin, PostFilterPlugin):
    """Notes its calls; answers what the test says."""

    calls: ClassVar[list[str]] = []
    answers: ClassVar[dict[str, Any]] = {}

    def _called(self, point: str, default: Any = SUCCESS) -> Any:
        self.calls.append(f"{self.name}.{point}")
        return self.answers.get(f"{self.name}.{point}", default)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        status: Status = self._called("pre_enqueue")
        return status

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        result: PostFilterResult = self._called("post_filter", PostFilterResult(unschedulable(f"{self.name} had no idea")))
        return result

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        status: Status = self._called("reserve")
        return status

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        self._called("unreserve")

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        result: PermitResult = self._called("permit", PermitResult(SUCCESS))
        return result

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        status: Status = self._called("pre_bind")
        return status

    async def bind(self, state: CycleState, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> Status:
        status: Status = self._called("bind")
        return status

    def post_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        self._called("post_bind")


class One(Recorder):
    name = "One"


class Two(Recorder):
    name = "Two"


class Three(Recorder):
    name = "Three"


@pytest.fixture
def runtime() -> ProfileRuntime:
    """One, Two and Three, instead of all plugins but PrioritySort."""
    Recorder.calls.clear()
    Recorder.answers.clear()
    plugins = (One, Two, Three)
    points = {"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}, *({"name": p.name} for p in plugins)]}
    return Scene(extra=plugins, spec={"plugins": {"multiPoint": points}}).evaluator().runtime


CALL: tuple[CycleState, PodInfo, NodeName] = (CycleState(), pod("p"), NODE)


def test_the_default_profile_runs_in_kube_schedulers_order() -> None:
    profile = Scene().evaluator().runtime.profile
    for point in ExtensionPoint:
        order = [DEFAULT_PLUGINS.index(name) for name in profile.at(point)]
        assert order == sorted(order)
    assert profile.at(ExtensionPoint.FILTER)[:3] == ("NodeUnschedulable", "NodeName", "TaintToleration")


def test_the_first_gate_that_is_closed_speaks(runtime: ProfileRuntime) -> None:
    assert runtime.run_pre_enqueue(pod("p")) == SUCCESS
    Recorder.answers["Two.pre_enqueue"] = unresolvable("closed")
    Recorder.calls.clear()
    assert runtime.run_pre_enqueue(pod("p")) == unresolvable("closed").by("Two")
    assert Recorder.calls == ["One.pre_enqueue", "Two.pre_enqueue"]


def test_what_was_reserved_is_unreserved_in_reverse_when_one_refuses(runtime: ProfileRuntime) -> None:
    Recorder.answers["Two.reserve"] = unschedulable("taken")
    assert runtime.run_reserve(*CALL) == unschedulable("taken").by("Two")
    assert Recorder.calls == ["One.reserve", "Two.reserve", "Three.unreserve", "Two.unreserve", "One.unreserve"]


def test_a_pod_waits_for_everybody_who_wants_it_to_but_not_for_ever(runtime: ProfileRuntime) -> None:
    Recorder.answers["One.permit"] = PermitResult(Status(Code.WAIT), 5.0)
    Recorder.answers["Three.permit"] = PermitResult(Status(Code.WAIT), math.inf)
    assert runtime.run_permit(*CALL) == (SUCCESS, {"One": 5.0, "Three": MAX_PERMIT_TIMEOUT})


def test_one_refusal_of_permit_ends_all_waiting(runtime: ProfileRuntime) -> None:
    Recorder.answers["One.permit"] = PermitResult(Status(Code.WAIT), 5.0)
    Recorder.answers["Two.permit"] = PermitResult(unschedulable("no"))
    assert runtime.run_permit(*CALL) == (unschedulable("no").by("Two"), {})
    assert "Three.permit" not in Recorder.calls


async def test_pre_bind_ends_at_the_first_failure_and_a_skip_is_none(runtime: ProfileRuntime) -> None:
    Recorder.answers |= {"One.pre_bind": SKIP, "Two.pre_bind": error("no volume")}
    assert await runtime.run_pre_bind(*CALL) == error('running PreBind plugin "Two": no volume').by("Two")
    assert Recorder.calls == ["One.pre_bind", "Two.pre_bind"]


async def test_the_first_bind_plugin_that_does_not_skip_binds(runtime: ProfileRuntime) -> None:
    Recorder.answers["One.bind"] = SKIP
    assert await runtime.run_bind(*CALL, {}) == SUCCESS.by("Two")
    assert Recorder.calls == ["One.bind", "Two.bind"]


async def test_a_pod_that_every_bind_plugin_skips_is_not_taken_for_bound(runtime: ProfileRuntime) -> None:
    Recorder.answers |= {"One.bind": SKIP, "Two.bind": SKIP, "Three.bind": SKIP}
    assert await runtime.run_bind(*CALL, {}) == error("every Bind plugin skipped the pod")


def test_everybody_hears_of_a_binding(runtime: ProfileRuntime) -> None:
    runtime.run_post_bind(*CALL)
    assert Recorder.calls == ["One.post_bind", "Two.post_bind", "Three.post_bind"]


def test_what_all_post_filters_said_is_joined(runtime: ProfileRuntime) -> None:
    Recorder.answers["Two.post_filter"] = PostFilterResult(unschedulable(), NodeName(""))
    result = runtime.run_post_filter(CycleState(), pod("p"), Diagnosis(1))
    assert result.status.message == "One had no idea, Three had no idea"
    assert result.nominated_node == "", "a nomination that one of them cleared stays cleared"


@pytest.mark.parametrize("final", [SUCCESS, error("broken"), unresolvable("hopeless")])
def test_a_post_filter_that_is_sure_ends_it(runtime: ProfileRuntime, final: Status) -> None:
    sure = PostFilterResult(final, NODE)
    Recorder.answers["Two.post_filter"] = sure
    found = runtime.run_post_filter(CycleState(), pod("p"), Diagnosis(1))
    assert (found.status.code, found.nominated_node) == (final.code, NODE)
    assert found.status.message.removeprefix('running PostFilter plugin "Two": ') == final.message
    assert "Three.post_filter" not in Recorder.calls


class Listens(PreEnqueuePlugin):
    """Registers what the test says."""

    name = "Listens"
    interests: ClassVar[Sequence[EventInterest] | None] = None

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return SUCCESS

    def events(self) -> Sequence[EventInterest] | None:
        return self.interests


NODE_TAINT = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_TAINT)


@pytest.mark.parametrize(
    ("registered", "hears_taints"),
    [
        ((interest(EventResource.NODE, Action.ADD),), True),
        ((interest(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),), True),
        ((interest(EventResource.NODE, Action.UPDATE_NODE_LABEL),), False),
        ((interest(EventResource.POD, Action.ADD),), False),
        ((), False),
    ],
)
def test_who_waits_for_new_nodes_also_hears_of_taints_that_go(
    monkeypatch: pytest.MonkeyPatch, registered: tuple[EventInterest, ...], hears_taints: bool
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
    assert Scene(extra=(Names,), spec=spec).evaluator().runtime.sign(pod("p")) is None
    plain = Scene().evaluator().runtime
    assert plain.sign(pod("p", cpu="1")) == plain.sign(pod("q", cpu="1"))
    assert plain.sign(pod("p", cpu="1")) != plain.sign(pod("q", cpu="2"))
