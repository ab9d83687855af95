"""The callers that the contract names at a point, in the first sentence of "By", are those that call it."""

from __future__ import annotations

import asyncio
import inspect
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from placewright.api.decode import convert
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cluster.cluster import Cluster
from placewright.explain.explanation import evaluated
from placewright.framework.interface import (
    SUCCESS,
    BindPlugin,
    CycleState,
    FilterPlugin,
    PermitPlugin,
    PermitResult,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    Rejection,
    ReservePlugin,
    ScorePlugin,
    Status,
)
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.framework.status import unschedulable
from placewright.offline.world import offline_evaluator
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.scheduler.selfcheck import SelfCheck
from placewright.shadow.chooser import Chooser, ShadowCluster
from placewright_lab.simulation.evaluation import evaluate_pod
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import simulate

from .makers import World, node, pod

#: How the contract calls each caller.
WORDS = {
    "live": "live",
    "shadow": "shadows",
    "explain": "`explain`",
    "evaluate": "`evaluate`",
    "simulate": "`simulate`",
    "self-check": "self-check",
}
NOTED: list[str] = []


def noted(point: str) -> None:
    NOTED.append(point)


class Everywhere(
    PreEnqueuePlugin, QueueSortPlugin, PreFilterPlugin, FilterPlugin, PostFilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin,
    PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin,
):  # fmt: skip
    """Has every point, and notes which of them is called; no node can hold a pod that is labelled large."""

    name = "Everywhere"

    def sign(self, pod: PodInfo) -> bool:
        return "large" in pod.labels

    def pre_enqueue(self, pod: PodInfo) -> Status:
        noted("preEnqueue")
        return SUCCESS

    def sort_key(self, pod: PodInfo, timestamp: float) -> tuple[Any, ...]:
        noted("queueSort")
        return (timestamp,)

    def pre_filter(self, *_: Any) -> PreFilterResult:
        noted("preFilter")
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Any) -> Any:
        noted("filter")
        return np.full(len(rows), "large" not in pod.labels)

    def explain(self, *about: Any) -> list[Rejection]:
        return [Rejection(unschedulable("large"), about[-1])]

    def post_filter(self, *_: Any) -> PostFilterResult:
        noted("postFilter")
        return PostFilterResult(unschedulable("none"))

    def pre_score(self, *_: Any) -> Status:
        noted("preScore")
        return SUCCESS

    def score(self, *about: Any) -> Any:
        noted("score")
        return np.zeros(len(about[-1]), np.int64)

    def reserve(self, *_: Any) -> Status:
        noted("reserve")
        return SUCCESS

    def unreserve(self, *_: Any) -> None:
        """Nothing was taken."""

    def permit(self, *_: Any) -> PermitResult:
        noted("permit")
        return PermitResult(SUCCESS)

    async def pre_bind(self, *_: Any) -> Status:
        noted("preBind")
        return SUCCESS

    async def bind(self, state: CycleState, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> Status:
        noted("bind")
        await self.handle.binder.bind(pod, node, annotations)
        return SUCCESS

    def post_bind(self, *_: Any) -> None:
        noted("postBind")


ALONE = {"enabled": [{"name": "Everywhere"}], "disabled": [{"name": "*"}]}
POINTS = {"queueSort": ALONE, "bind": ALONE, "postFilter": ALONE}
REGISTRY = in_tree().extended([Everywhere])
PODS = (pod("web"), pod("big").labels(large="yes"))


def everywhere() -> Any:
    spec = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": [{"name": "Everywhere"}]}, **POINTS}}
    return resolve(convert({"metadata": {"name": "p", "generation": 1}, "spec": spec}, SchedulingProfile), REGISTRY)


def world() -> World:
    return World(Everywhere, plugins=POINTS).nodes(node("a"), node("b"))


def fresh(cluster: Cluster) -> Evaluator:
    for name in "ab":
        cluster.set_node(node(name).build())
    return offline_evaluator(everywhere(), REGISTRY, cluster)


def live() -> None:
    there = world().pods(*PODS)
    asyncio.run(there.attempt())  # type: ignore[arg-type]
    asyncio.run(there.attempt())  # type: ignore[arg-type]


def shadow() -> None:
    there = ShadowCluster()
    chooser = Chooser(there, fresh(there.cluster), random.Random(7))
    for each in PODS:
        chooser.find(each.build())


def explain() -> None:
    cluster = Cluster()
    evaluator = fresh(cluster)
    for each in PODS:
        evaluated(evaluator, cluster, each.build())


def evaluate() -> None:
    cluster = Cluster()
    evaluator = fresh(cluster)
    for each in PODS:
        evaluate_pod(evaluator, cluster, each.build())


def simulated() -> None:
    nodes = [{"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}} for name in "ab"]
    pods = [
        {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "main"}]}}
        for name, labels in (("web", {}), ("big", {"large": "yes"}))
    ]
    simulate(Scenario("test", [*nodes, *pods]), everywhere(), REGISTRY)


def self_check() -> None:
    there = world().pods(PODS[1])
    queued = there.pop()
    there.schedule(queued)
    (queue,) = there.queue.profile_queues()
    NOTED.clear()
    SelfCheck(there.cluster, there.queue, there.profiles.get, there.time).look(queue, queued)


CALLERS: dict[str, Callable[[], None]] = {
    "live": live, "shadow": shadow, "explain": explain, "evaluate": evaluate, "simulate": simulated, "self-check": self_check
}  # fmt: skip


def named_callers(kind: type[Plugin]) -> set[str]:
    """The callers in the first sentence of "By"."""
    by = re.search(r"^By: ([^.]*)\.", inspect.cleandoc(kind.__doc__ or ""), re.MULTILINE)  # 3.13 takes the indentation away
    assert by is not None
    return {caller for caller, word in WORDS.items() if word in by[1]}


@pytest.mark.parametrize("caller", CALLERS)
def test_the_points_at_which_the_contract_names_a_caller_are_those_that_it_calls(caller: str) -> None:
    NOTED.clear()
    CALLERS[caller]()
    assert set(NOTED) == {point.value for point in ExtensionPoint if caller in named_callers(point.base)}
