"""A plugin without columns decides as any other, also when an installed package offers it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import numpy as np
import pytest

from framework.makers import Scene, names
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.framework import registry as registry_room
from placewright.framework.errors import CycleError
from placewright.framework.interface import FilterPlugin, MaxNormalised, Plugin, ScorePlugin
from placewright.framework.registry import installed_plugins
from placewright.framework.scalar import ScalarFilter, ScalarScore
from placewright.framework.status import SUCCESS, Status, error, unresolvable, unschedulable
from placewright.plugins.catalog import in_tree
from placewright.testing import node, pod


class AtMostTwo(ScalarFilter):
    """No node takes a third pod, and none that is called `never` takes any."""

    name = "AtMostTwo"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        if node.metadata.name == "never":
            return unresolvable("node(s) never take pods")
        return SUCCESS if len(pods) < 2 else unschedulable("node(s) had two pods")


class ByLength(ScalarScore):
    """Longer node names are better; asked once per node and pod."""

    name = "ByLength"
    asked: ClassVar[list[str]] = []

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        self.asked.append(node.metadata.name)
        return 10 * len(node.metadata.name) - len(pods)


class ByTotalLength(ScalarScore, MaxNormalised):
    """The same, scaled by the highest."""

    name = "ByTotalLength"

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        return 1000 * len(node.metadata.name)


def scene(*plugins: type[Plugin], **more: Any) -> Scene:
    scene = Scene(extra=plugins, spec={"plugins": {"multiPoint": {"enabled": [{"name": p.name} for p in plugins]}}} | more)
    return scene.with_nodes(node("short"), node("longer"))


def test_a_filter_that_looks_at_one_node_at_a_time_rejects_and_explains() -> None:
    world = scene(AtMostTwo).with_nodes(node("never"))
    world.place(pod("a"), "short").place(pod("b"), "short")
    evaluator = world.evaluator()
    evaluation = evaluator.evaluate(pod("new").build())
    assert names(world.cluster, evaluation.feasible) == {"longer"}
    said = {(s.code.name, s.plugin, s.reasons, *names(world.cluster, rows)) for s, rows in evaluator.diagnose(evaluation).rejections}
    assert said == {
        ("UNSCHEDULABLE", "AtMostTwo", ("node(s) had two pods",), "short"),
        ("UNSCHEDULABLE_AND_UNRESOLVABLE", "AtMostTwo", ("node(s) never take pods",), "never"),
    }


def test_a_node_is_looked_at_again_when_its_pods_change_and_only_then() -> None:
    world = scene(ByLength)
    evaluator = world.evaluator()
    ByLength.asked.clear()
    evaluator.score(evaluator.evaluate(pod("one").build()))
    world.place(pod("other"), "short")
    again = evaluator.evaluate(pod("two").build())
    evaluator.score(again)
    assert ByLength.asked == ["short", "longer", "short"]
    assert {n: scores["ByLength"].raw for n, scores in world.parts(evaluator, again).items()} == {"short": 49, "longer": 60}


def test_scores_of_any_size_can_be_scaled_by_the_highest() -> None:
    world = scene(ByTotalLength, weights={"ByTotalLength": 3})
    evaluator = world.evaluator()
    evaluation = evaluator.evaluate(pod("p").build())
    evaluator.score(evaluation)
    parts = world.parts(evaluator, evaluation)
    assert (parts["longer"]["ByTotalLength"].product, parts["short"]["ByTotalLength"].product) == (300, 3 * (100 * 5 // 6))


def test_pods_of_one_template_share_columns_and_pods_of_different_ones_do_not() -> None:
    plugin = ByLength(None, Scene().handle())
    web = pod("web-1", labels={"app": "web"}, volumes=[{"name": "kube-api-access-x1"}]).build()
    twin = pod("web-2", labels={"app": "web"}, volumes=[{"name": "kube-api-access-y2"}]).build()
    assert plugin.sign(web) == plugin.sign(twin)
    assert plugin.sign(web) != plugin.sign(pod("db", labels={"app": "db"}).build())
    assert plugin.sign(web) != plugin.sign(pod("web", labels={"app": "web"}, volumes=[{"name": "data"}]).build())
    assert plugin.sign(web) != plugin.sign(pod("web", labels={"app": "web"}, cpu="2").build())


def test_preemption_sees_that_the_filter_would_let_the_pod_in_once_somebody_left() -> None:
    world = scene(AtMostTwo)
    for number, name in enumerate(["short", "short", "longer", "longer"]):
        world.place(pod(f"running-{number}", priority=number), name)
    evaluator = world.evaluator()
    evaluation = evaluator.evaluate(pod("urgent", priority=10).build())
    result = evaluator.runtime.run_post_filter(evaluation.state, evaluation.pod, evaluator.diagnose(evaluation))
    assert (result.nominated_node, [victim.name for victim in result.victims]) == ("short", ["running-0"])
    assert len(list(world.cluster.pods_on(NodeName("short")))) == 2, "what was supposed is undone"


class Broken(ScalarFilter):
    """Fails to decide."""

    name = "Broken"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        return error("no idea")


class Fractional(ScalarScore):
    """Scores that are no whole numbers."""

    name = "Fractional"

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        return 0.5  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (Broken, 'running Filter plugin "Broken": no idea'),
        (Fractional, 'running Score plugin "Fractional": found 0.5 for node short; allowed a whole number'),
    ],
)
def test_what_is_no_answer_fails_the_cycle_and_names_the_plugin(plugin: type[Plugin], said: str) -> None:
    evaluator = scene(plugin).evaluator()
    with pytest.raises(CycleError) as broken:
        evaluator.score(evaluator.evaluate(pod("p").build()))
    assert str(broken.value) == said


def test_rows_that_nodes_have_left_are_not_shown_to_the_plugin() -> None:
    world = scene(ByLength, AtMostTwo)
    world.cluster.remove_node(NodeName("short"))
    ByLength.asked.clear()
    evaluator = world.evaluator()
    evaluation = evaluator.evaluate(pod("p").build())
    assert names(world.cluster, evaluation.feasible) == {"longer"}
    assert np.count_nonzero(evaluator.score(evaluation) >= 0) == 1
    assert ByLength.asked == ["longer"]


def test_the_base_classes_are_plugins_that_cannot_be_used_unwritten() -> None:
    assert issubclass(ScalarFilter, FilterPlugin)
    assert issubclass(ScalarScore, ScorePlugin)
    with pytest.raises(TypeError, match="abstract"):
        ScalarFilter(None, Scene().handle())  # type: ignore[abstract]


def test_a_plugin_of_an_installed_package_is_enabled_by_a_profile_and_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    def offered(*, group: str) -> Iterable[EntryPoint]:
        return [EntryPoint("by-length", f"{__name__}:ByLength", group)] if group == "placewright.plugins" else []

    monkeypatch.setattr(registry_room, "entry_points", offered)
    registry = in_tree().with_installed(installed_plugins())
    spec = {"plugins": {"multiPoint": {"enabled": [{"name": "ByLength", "weight": 9}]}}}
    world = Scene(spec=spec, extra=(registry["ByLength"],)).with_nodes(node("short"), node("longer"))
    evaluator = world.evaluator()
    evaluation = evaluator.evaluate(pod("p").build())
    totals = evaluator.score(evaluation)
    assert world.cluster.names[int(totals.argmax())] == "longer"
    assert world.parts(evaluator, evaluation)["longer"]["ByLength"].product == 540
