"""What the base classes of the contract say for authors who write only what they must."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

import msgspec
import numpy as np
import pytest

from framework.makers import Scene
from framework.scripts import Script, bare
from placewright.api.objects import Node, ObjectMeta
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework import interface
from placewright.framework import registry as registry_room
from placewright.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULABLE_TIMEOUT,
    WILDCARD,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    EventKeys,
    EventResource,
    QueueingHint,
    always,
    event_with_hint,
)
from placewright.framework.interface import (
    ArgsT,
    CycleState,
    Diagnosis,
    FilterPlugin,
    MaxNormalised,
    NoArgs,
    PermitResult,
    Plugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    ScorePlugin,
)
from placewright.framework.registry import ENTRY_POINT_GROUP, InstalledPlugins
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.framework.sources import ObjectSource
from placewright.framework.status import SUCCESS
from placewright.plugins.catalog import in_tree
from placewright.testing import pod

NOWHERE: Any = Cluster()


class Bare(FilterPlugin, ScorePlugin):
    """Writes only what it must."""

    name = "Bare"

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Any) -> Any:
        return np.ones(len(rows), np.bool_)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Any) -> Any:
        return []

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Any) -> Any:
        return np.zeros(len(rows), np.int64)


# --- base classes ---------------------------------------------------------------------------------------------------------------------


def test_who_writes_only_what_it_must_reads_the_node_promises_nothing_and_hears_of_everything() -> None:
    plugin = Bare(NoArgs(), Scene().handle())
    state, raw = CycleState(), np.array([3, 1])
    assert (plugin.reads, plugin.default_weight, plugin.Args) == (Reads.NODE, 1, NoArgs)
    assert (plugin.sign(pod("p").build()), plugin.events(), plugin.fingerprint(state, NOWHERE)) == ((), None, None)
    assert (plugin.failure(state, pod("p").build(), NOWHERE, raw), plugin.summarise(state, raw)) == (SUCCESS, None)
    assert ScorePlugin.normalise(plugin, state, raw, None) is raw


def test_whether_scores_are_normalised_is_known_by_who_writes_the_summary() -> None:
    class Scaled(Bare, MaxNormalised):
        name = "Scaled"

    class Below(Scaled):
        name = "Below"

    class Mine(Bare):
        def summarise(self, state: CycleState, raw: Any) -> Any:
            return int(raw.max())

    class NotAnyMore(Scaled):
        summarise = ScorePlugin.summarise  # type: ignore[assignment]

    assert [kind.normalised for kind in (Bare, Scaled, Below, Mine, NotAnyMore)] == [False, True, True, True, False]


def test_arguments_of_a_class_statement_go_on_to_other_bases() -> None:
    class Named:
        def __init_subclass__(cls, *, title: str = "", **rest: Any) -> None:
            super().__init_subclass__(**rest)
            cls.title = title  # type: ignore[attr-defined]

    class Titled(Bare, Named, title="Sir"):
        pass

    assert Titled.title == "Sir"  # type: ignore[attr-defined]


# --- arguments and their types --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeatArgs:
    seats: int = 4


@dataclass(frozen=True)
class ManySeatArgs(SeatArgs):
    rows: int = 2


def test_the_first_base_names_the_arguments_of_a_plugin_and_of_those_that_extend_it() -> None:
    class Seats(PreFilterPlugin[SeatArgs], FilterPlugin):
        pass

    class MoreSeats(Seats):
        pass

    class Limit(FilterPlugin[ArgsT]):
        pass

    class SeatLimit(Limit[SeatArgs], ScorePlugin):
        pass

    assert [kind.Args for kind in (Seats, MoreSeats, Limit, SeatLimit)] == [SeatArgs, SeatArgs, NoArgs, SeatArgs]


def test_a_plugin_that_names_no_arguments_in_its_bases_may_set_them_as_before() -> None:
    class Plain(FilterPlugin):
        Args = SeatArgs

    class Inside(FilterPlugin["Inside.Args"]):  # type: ignore[name-defined]
        @dataclass(frozen=True)
        class Args:
            seats: int = 4

    class Narrower(FilterPlugin[SeatArgs]):
        Args = ManySeatArgs

    class Whatever(FilterPlugin[Any]):
        pass

    assert (Plain.Args, Narrower.Args, Whatever.Args) == (SeatArgs, ManySeatArgs, NoArgs)
    assert Inside.Args.__qualname__.endswith("Inside.Args")


def test_arguments_of_two_classes_that_have_nothing_to_do_with_each_other_are_refused() -> None:
    with pytest.raises(TypeError, match="Torn: Args is NoArgs, but its base has arguments of SeatArgs"):

        class Torn(FilterPlugin[SeatArgs]):
            Args = NoArgs


def test_a_plugin_without_parameters_is_built_with_the_arguments_of_the_profile() -> None:
    args = SeatArgs(7)
    handle = Scene().handle()
    assert (Bare(args, handle).args, Bare(args, handle).handle) == (args, handle)


def test_an_event_is_made_with_and_without_the_class_of_its_objects() -> None:
    event = ClusterEvent(EventResource.NODE, Action.ADD)
    assert ClusterEventWithHint[Node](event) == ClusterEventWithHint(event)
    keys = EventKeys[Node](lambda _pod: ["x"], lambda _old, _new: None)
    assert (list(keys.of_pod(pod("p").build())), keys.of_event(None, None)) == (["x"], None)
    with pytest.raises(AttributeError):
        ClusterEventWithHint(event).event = event  # type: ignore[misc]


def test_a_source_is_made_with_and_without_the_class_of_its_objects() -> None:
    class Rack(msgspec.Struct, frozen=True):
        metadata: ObjectMeta = ObjectMeta()

    declared = (Rack, "example.com", "racks", ("v1",))
    assert ObjectSource[Rack](*declared) == ObjectSource(*declared)


# --- points ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", list(ExtensionPoint))
def test_a_plugin_has_the_points_whose_base_it_extends_and_must_write_their_methods(point: ExtensionPoint) -> None:
    kind = type("Unwritten", (point.base,), {"name": "Unwritten"})
    assert [other for other in ExtensionPoint if other.implemented_by(kind)] == [point]
    with pytest.raises(TypeError, match="abstract"):
        kind(NoArgs(), Scene().handle())


def test_points_are_passed_in_the_order_of_the_contract() -> None:
    assert " ".join(ExtensionPoint) == (
        "preEnqueue queueSort preFilter filter postFilter preScore score reserve permit preBind bind postBind"
    )


def test_a_profile_names_each_plugin_once_in_the_order_in_which_a_pod_meets_it() -> None:
    scripts = Script("S").scores().reserves(), Script("F").filters().pre_enqueues(), Script("R").reserves()
    profile = bare(*scripts).evaluator().runtime.profile
    assert profile.plugin_names == ("F", "PrioritySort", "S", "R", "DefaultBinder")
    assert (profile.at(ExtensionPoint.RESERVE), profile.at(ExtensionPoint.PERMIT)) == (("S", "R"), ())


def test_every_name_of_the_contract_is_there() -> None:
    assert all(hasattr(interface, name) for name in interface.__all__)
    assert sorted(interface.__all__, key=lambda name: (not name.isupper(), name)) == interface.__all__


def test_results_that_say_only_a_status_leave_everything_else_as_it_is() -> None:
    assert (PreFilterResult().status, PreFilterResult().nodes) == (SUCCESS, None)
    assert PermitResult(SUCCESS).timeout == 0.0
    result = PostFilterResult(SUCCESS)
    assert (result.nominated_node, result.victims, result.alternatives) == (None, (), None)
    first, second = Diagnosis(1), Diagnosis(1)
    first.unschedulable_plugins.add("A")
    assert (second.unschedulable_plugins, second.rejections, second.absent, second.postfilter_message) == (set(), [], None, "")


# --- what plugins remember ------------------------------------------------------------------------------------------------------------


def test_every_attempt_begins_with_nothing_remembered() -> None:
    first, second = CycleState(), CycleState()
    first.write("A", 1)
    first.skip_filter.add("A")
    first.annotations["k"] = "v"
    first.activate["p"] = pod("p").build()
    assert (second.data, second.skip_filter, second.skip_score, second.annotations, second.activate, second.abandoned) == (
        {}, set(), set(), {}, {}, False
    )  # fmt: skip


def test_what_is_remembered_is_read_as_the_kind_that_it_is_or_of_which_it_is() -> None:
    state = CycleState()
    state.write("A", True)
    assert state.read("A", int) is True
    state.write("A", "later")
    assert state.read("A", str) == "later"


@pytest.mark.parametrize("point", ["pre_filter", "pre_score"])
def test_what_is_kept_of_one_plugin_is_not_what_another_wrote_beside_it(point: str) -> None:
    """The wide one is asked anew about each pod, and has nothing to remember of the second."""

    def remember(state: CycleState, asked: PodInfo, *_: Any) -> Any:
        if asked.name == "p":
            state.write("Wide", asked.name)
        return PreFilterResult() if point == "pre_filter" else SUCCESS

    def note(state: CycleState, asked: PodInfo, *_: Any) -> Any:
        state.write("Local", asked.name)
        return PreFilterResult() if point == "pre_filter" else SUCCESS

    scripts = [Script("Wide", reads=Reads.CLUSTER), Script("Local")]
    for script, answer in zip(scripts, (remember, note), strict=True):
        getattr(script.filters().scores(), f"{point}s")(answer)
    evaluator = bare(*scripts).evaluator()
    known = []
    for name in "pq":
        evaluation = evaluator.evaluate(pod(name).build())
        evaluator.score(evaluation)
        known.append(evaluation.state.data)
    assert known == [{"Wide": "p", "Local": "p"}, {"Local": "p"}]


def test_an_evaluation_knows_its_pod_whether_or_not_it_is_refused() -> None:
    gate = Script("A").pre_filters()
    evaluator = bare(gate).evaluator()
    asked = pod("p").build()
    assert evaluator.evaluate(asked).pod is asked
    gate.told["pre_filter"] = PreFilterResult(interface.Status(interface.Code.PENDING))
    other = bare(gate).evaluator().evaluate(asked)
    assert (other.pod, other.count) == (asked, 0)
    assert isinstance(other.state, CycleState)


def test_an_evaluator_that_is_told_of_no_nominations_has_none() -> None:
    scene = bare(Script("A").filters())
    evaluator = Evaluator(scene.evaluator().runtime, scene.cluster)
    assert evaluator.evaluate(pod("p").build()).count == 2


# --- events ---------------------------------------------------------------------------------------------------------------------------


def test_an_interest_without_a_hint_is_always_worth_a_try() -> None:
    registered = event_with_hint(EventResource.NODE, Action.ADD)
    assert registered.event == ClusterEvent(EventResource.NODE, Action.ADD)
    assert registered.hint is always
    assert always(pod("p").build(), None, None) is QueueingHint.QUEUE


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (WILDCARD, "Wildcard"),
        (UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (FORCE_ACTIVATE, "ForceActivate"),
        (ASSIGNED_POD_ADD, "AssignedPodAdd"),
        (ASSIGNED_POD_DELETE, "AssignedPodDelete"),
        (NODE_ADD, "NodeAdd"),
        (NODE_DELETE, "NodeDelete"),
    ],
)
def test_an_event_is_called_as_metrics_call_it(event: ClusterEvent, label: str) -> None:
    assert event.label == label
    assert event.wildcard == (event.resource is EventResource.ANY)
    if not event.wildcard:
        assert label == f"{event.resource}{'Add' if event.action is Action.ADD else 'Delete'}"


def test_an_update_is_any_of_the_updates_and_neither_adding_nor_deleting() -> None:
    updates = [action for action in Action if action.name not in ("ADD", "DELETE")]
    assert all(action in Action.UPDATE and action in Action.ALL for action in updates)
    assert not Action.UPDATE & (Action.ADD | Action.DELETE)
    assert Action.ALL == Action.UPDATE | Action.ADD | Action.DELETE


@pytest.mark.parametrize("resource", list(EventResource))
def test_a_registration_for_pods_hears_of_assigned_and_waiting_ones_and_any_other_of_its_own_kind(resource: EventResource) -> None:
    event = ClusterEvent(resource, Action.DELETE)
    heard = {other for other in EventResource if event.concerns(ClusterEvent(other, Action.DELETE))}
    pods = {EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD}
    assert heard == ({resource, EventResource.POD} if resource in pods else {resource})
    assert event.concerns(WILDCARD)
    assert not event.concerns(ClusterEvent(resource, Action.ADD | Action.UPDATE))


# --- plugins of installed packages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "there"), [("mine", True), ("Mine", True), ("Other", False), ("somewhere", False)])
def test_a_plugin_that_was_installed_since_is_found_by_its_entry_or_its_class(
    monkeypatch: pytest.MonkeyPatch, name: str, there: bool
) -> None:
    def offered(*, group: str) -> list[EntryPoint]:
        assert group == ENTRY_POINT_GROUP == "placewright.plugins"
        return [EntryPoint("first", "somewhere:First", group), EntryPoint("mine", "somewhere:Mine", group)]

    monkeypatch.setattr(registry_room, "entry_points", offered)
    assert (name in InstalledPlugins()) is there


def test_a_registry_is_a_map_that_lists_plugins_in_the_order_in_which_they_came() -> None:
    registry = in_tree()
    assert list(registry.extended([Bare])) == [*registry, "Bare"]
    assert "Bare" not in registry
    assert issubclass(registry["NodeAffinity"], PreFilterPlugin)
    with pytest.raises(KeyError):
        _ = registry["Bare"]
    assert all(issubclass(kind, Plugin) for kind in registry.values())
