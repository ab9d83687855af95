"""Rules of the plugins that need no other pod: what the golden cases and the scalar model leave to be said."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from framework.makers import Scene, names
from placewright.api.errors import BindError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.errors import CycleError
from placewright.framework.interface import CycleState
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.framework.status import Code
from placewright.plugins.catalog import in_tree
from placewright.plugins.defaultbinder import DefaultBinder
from placewright.plugins.imagelocality import normalised_image_name
from placewright.plugins.noderesources.args import ShapePoint
from placewright.plugins.noderesources.strategies import broken_linear
from placewright.plugins.prioritysort import PrioritySort
from placewright.plugins.schedulinggates import SchedulingGates
from placewright.testing import node, pod

REGISTRY = in_tree()
#: kube-scheduler's extension points, as profiles may name them; PreEnqueue of preemption is the queue's matter here.
UPSTREAM = {
    "SchedulingGates": {"preEnqueue"},
    "PrioritySort": {"queueSort"},
    "NodeUnschedulable": {"filter"},
    "NodeName": {"filter"},
    "TaintToleration": {"filter", "preScore", "score"},
    "NodeAffinity": {"preFilter", "filter", "preScore", "score"},
    "NodePorts": {"preFilter", "filter"},
    "NodeResourcesFit": {"preFilter", "filter", "preScore", "score"},
    "PodTopologySpread": {"preFilter", "filter", "preScore", "score"},
    "InterPodAffinity": {"preFilter", "filter", "preScore", "score"},
    "NodeResourcesBalancedAllocation": {"preScore", "score"},
    "ImageLocality": {"score"},
    "DefaultBinder": {"bind"},
}


@pytest.mark.parametrize(("name", "points"), UPSTREAM.items())
def test_a_profile_may_name_a_plugin_wherever_kube_schedulers_has_it(name: str, points: set[str]) -> None:
    assert {point.value for point in ExtensionPoint if point.implemented_by(REGISTRY[name])} == points


def test_higher_priority_goes_first_and_then_who_waited_longer() -> None:
    key = PrioritySort(None, Scene().handle()).sort_key
    known = {"new": (1, 9.0), "old": (1, 3.0), "urgent": (7, 9.5), "idle": (-1, 0.0)}
    waiting = [(pod(name, priority=priority).build(), since) for name, (priority, since) in known.items()]
    assert [p.name for p, since in sorted(waiting, key=lambda pair: key(*pair))] == ["urgent", "old", "new", "idle"]


def test_gates_are_named_in_the_reason() -> None:
    plugin = SchedulingGates(None, Scene().handle())
    gated = plugin.pre_enqueue(pod("p", schedulingGates=[{"name": "a"}, {"name": "b"}]).build())
    assert (gated.code, gated.message) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "waiting for scheduling gates: [a b]")
    assert plugin.pre_enqueue(pod("p").build()).ok


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("nginx", "nginx:latest"), ("nginx:1", "nginx:1"), ("host:5000/nginx", "host:5000/nginx:latest"),
        ("host:5000/nginx:1", "host:5000/nginx:1"), ("nginx@sha256:ab", "nginx@sha256:ab"), ("", ":latest"),
    ],
)  # fmt: skip
def test_an_image_without_a_tag_is_the_latest(name: str, full: str) -> None:
    assert normalised_image_name(name) == full


def test_a_falling_shape_is_cut_towards_zero() -> None:
    shape = (ShapePoint(0, 10), ShapePoint(30, 0), ShapePoint(100, 5))
    found = broken_linear(shape, np.array([0, 1, 29, 30, 65, 100]))
    assert list(found) == [100, 97, 4, 0, 25, 50]


def test_the_score_of_resources_leaves_out_what_is_said_of_the_pod_as_a_whole_and_the_filter_does_not() -> None:
    whole = {"resources": {"requests": {"cpu": "2", "memory": "12Gi"}}}
    scene = Scene().with_nodes(node("a"), node("b"))
    evaluator = scene.evaluator()

    def raw(one: PodInfo) -> int:
        evaluation = evaluator.evaluate(one)
        evaluator.score(evaluation)
        return scene.parts(evaluator, evaluation)["a"]["NodeResourcesFit"].raw

    assert raw(pod("p", cpu="1", **whole).build()) == raw(pod("q", cpu="1").build())
    assert raw(pod("p", cpu="1", **whole).build()) != raw(pod("p", cpu="2", **whole).build())
    assert evaluator.evaluate(pod("p", resources={"requests": {"cpu": "5"}}).build()).count == 0
    scene.place(pod("standing", **whole), "a")
    assert scene.cluster.scoring_cpu[0] == 2000, "on its node it counts as a whole"


def prefer(**term: Any) -> dict[str, Any]:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [{"key": "k", **term}]}}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def test_a_preference_that_does_not_parse_fails_the_cycle() -> None:
    evaluator = Scene().with_nodes(node("a"), node("b")).evaluator()
    evaluation = evaluator.evaluate(pod("p", **prefer(operator="Gt", values=["x"])).build())
    said = r'running PreScore plugin "NodeAffinity": \[0\].matchExpressions\[0\].values\[0\]: Invalid value: "x": '
    with pytest.raises(CycleError, match=said):
        evaluator.score(evaluation)


def test_a_required_term_that_does_not_parse_only_matches_nothing() -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Near"}]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    scene = Scene().with_nodes(node("a"))
    evaluation = scene.evaluator().evaluate(pod("p", **spec).build())
    assert names(scene.cluster, evaluation.feasible) == set()


class OneAnswer:
    """A binder that always answers the same."""

    def __init__(self, answer: BindError | None) -> None:
        self._answer = answer
        self.bound: list[tuple[str, str, dict[str, str]]] = []

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        if self._answer is not None:
            raise self._answer
        self.bound.append((pod.key, node, annotations))


class Binding:
    """The part of a handle that the plugin asks for."""

    def __init__(self, binder: OneAnswer) -> None:
        self.binder = binder


async def bind(answer: BindError | None) -> tuple[OneAnswer, Any]:
    binder = OneAnswer(answer)
    handle: Any = Binding(binder)
    status = await DefaultBinder(None, handle).bind(CycleState(), pod("p").build(), NodeName("n"), {"k": "v"})
    return binder, status


async def test_the_default_binder_binds_with_the_annotations() -> None:
    binder, status = await bind(None)
    assert status.ok
    assert binder.bound == [("default/p", "n", {"k": "v"})]


async def test_a_refused_binding_is_an_error_and_an_unknown_one_is_left_to_who_can_find_out() -> None:
    _, status = await bind(BindError("409: taken", conflict=True))
    assert (status.code, status.message) == (Code.ERROR, "409: taken")
    with pytest.raises(BindError, match="lost"):
        await bind(BindError("lost", unknown=True))
    assert not asyncio.all_tasks() - {asyncio.current_task()}
