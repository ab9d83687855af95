"""`placewright.testing`, as somebody who writes a plugin uses it; and what the checked mode catches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
import pytest

from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.cluster.podfollowers import PodFollower
from placewright.framework.errors import CycleError, PluginError
from placewright.framework.interface import Handle, MaxNormalised, PreFilterPlugin, PreFilterResult, ReservePlugin
from placewright.framework.scalar import ScalarFilter, ScalarScore
from placewright.framework.status import SUCCESS, Status, unschedulable
from placewright.profiles.arguments import argument_schema
from placewright.profiles.problem import ProfileError
from placewright.testing import PluginCase, node, pod


class QuietNodes(ScalarFilter, ScalarScore):
    """Prefers nodes with few pods, and takes none with too many."""

    name = "QuietNodes"

    @dataclass(frozen=True)
    class Args:
        most: Annotated[int, msgspec.Meta(ge=1, description="Pods on a node from which on it takes no more.")] = 2

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        return SUCCESS if len(pods) < self.args.most else unschedulable(f"node(s) had {self.args.most} pods")

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        return 100 - len(pods)


STAGE: dict[str, Any] = {"nodes": [node("a"), node("b"), node("c")], "pods": [pod("p1", on="a"), pod("p2", on="a"), pod("p3", on="b")]}


def test_scores_and_rejections_are_those_of_this_plugin_alone() -> None:
    case = PluginCase(QuietNodes, **STAGE)
    assert case.scores(pod("web", cpu="64")) == {"a": 98, "b": 99, "c": 100}
    assert case.rejections(pod("web", cpu="64")) == {"a": "node(s) had 2 pods"}


class Worn(ScalarScore, PodFollower):
    """Prefers nodes from which few pods have gone. All profiles share the record."""

    name = "Worn"

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.gone: Counter[str] = handle.cluster.extension(self.name, Counter)
        handle.cluster.pod_followers.add(self)

    def pod_leaves(self, pod: PodInfo, row: int | None) -> None:
        self.gone[pod.node_name] += 1

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        return 100 - self.gone[node.metadata.name]


def test_a_plugin_follows_pods_and_its_record_outlives_it() -> None:
    case = PluginCase(Worn, **STAGE)
    case.cluster.remove_pod("uid-p1")
    assert case.scores(pod("web")) == {"a": 99, "b": 100, "c": 100}
    assert case.cluster.extension("Worn", dict) == {"a": 1}


def test_arguments_are_read_as_a_profile_s_are() -> None:
    case = PluginCase(QuietNodes, args={"most": 1}, **STAGE)
    assert case.rejections(pod("web")) == dict.fromkeys("ab", "node(s) had 1 pods")
    with pytest.raises(ProfileError, match="most"):
        PluginCase(QuietNodes, args={"most": 0})


def test_scores_are_normalised_and_must_be_in_range() -> None:
    class Many(ScalarScore, MaxNormalised):
        name = "Many"

        def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
            return 500 * len(pods)

    assert PluginCase(Many, **STAGE).scores(pod("web")) == {"a": 100, "b": 50, "c": 0}

    class TooMany(ScalarScore):
        name = "TooMany"

        def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
            return 500 * len(pods)

    with pytest.raises(CycleError, match='plugin "TooMany" returns an invalid score 1000'):
        PluginCase(TooMany, **STAGE).scores(pod("web"))


def test_what_prefilter_says_counts() -> None:
    class OnlyA(PreFilterPlugin):
        name = "OnlyA"

        def pre_filter(self, state: Any, pod: PodInfo, cluster: Any) -> PreFilterResult:
            return PreFilterResult(nodes=frozenset({"a"})) if pod.labels else PreFilterResult(unschedulable("no labels"))  # type: ignore[arg-type]

    case = PluginCase(OnlyA, **STAGE)
    assert case.rejections(pod("web")) == dict.fromkeys("abc", "no labels")
    assert sorted(case.rejections(pod("web", labels={"x": "y"}))) == ["b", "c"]


def test_other_points_are_called_on_the_plugin_and_checked() -> None:
    class Careless(ReservePlugin):
        name = "Careless"

        def reserve(self, state: Any, pod: PodInfo, node: Any) -> Status:
            return None  # type: ignore[return-value]

        def unreserve(self, state: Any, pod: PodInfo, node: Any) -> None:
            pod.pod.metadata.annotations["mine"] = "1"  # type: ignore[index]

    case = PluginCase(Careless, **STAGE)
    with pytest.raises(PluginError, match='running Reserve plugin "Careless": found None; allowed a Status'):
        case.plugin.reserve(None, pod("web"), "a")
    with pytest.raises(PluginError, match='running Unreserve plugin "Careless": it wrote into pod default/web: '):
        case.plugin.unreserve(None, pod("web", annotations={"theirs": "1"}), "a")


class Scribbler(ScalarScore):
    """Writes where the test says."""

    name = "Scribbler"
    where = "node"

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        if self.where == "node":
            node.metadata.labels["seen"] = "yes"  # type: ignore[index]
        elif self.where == "pod":
            pod.pod.spec.containers[0].resources.requests["cpu"] = "2"  # type: ignore[index]
        else:
            for each in pods:
                each.pod.metadata.labels["seen"] = "yes"  # type: ignore[index]
        return 1


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("node", 'node a: metadata.labels.seen was absent and is "yes"; allowed is only to read objects'),
        ("pod", 'pod default/web: spec.containers[0].resources.requests.cpu was "1" and is "2"; allowed is only to read objects'),
        ("others", 'pod default/p1: metadata.labels.seen was absent and is "yes"; allowed is only to read objects'),
    ],
)
def test_a_plugin_that_writes_into_what_it_is_shown_is_caught(where: str, said: str) -> None:
    Scribbler.where = where
    case = PluginCase(Scribbler, nodes=[node("a")], pods=[pod("p1", on="a", labels={"app": "x"})])
    with pytest.raises(PluginError) as caught:
        case.scores(pod("web", cpu="1"))
    assert str(caught.value) == f'running Score plugin "Scribbler": it wrote into {said}'


def test_the_schema_of_arguments_reads_as_english() -> None:
    schema = argument_schema(QuietNodes)
    assert schema["description"] == "Arguments of the plugin QuietNodes."
    assert schema["properties"]["most"]["description"] == "Pods on a node from which on it takes no more."
    assert "Annotated" not in str(schema)


def test_arrays_of_the_framework_are_not_the_plugins() -> None:
    """What a column is kept in is mended row by row, so it must be nobody else's."""
    case = PluginCase(QuietNodes, **STAGE)
    rows = np.arange(3)
    first = case.plugin.score(None, pod("web"), case.cluster, rows)
    first[:] = 0
    assert case.scores(pod("web"))["c"] == 100
