"""Preemptors that look alike share what came of trials, and are told what a scheduler that kept nothing would tell them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.decode import convert
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.workloads import PodDisruptionBudget
from placewright.cluster.cluster import Cluster
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.rowchecks import AnswerByRow, RowwiseCheck
from placewright.plugins.catalog import in_tree
from placewright.plugins.defaultpreemption.plugin import DefaultPreemption
from placewright.queue.nominator import Nominator
from placewright.testing import profile
from plugins.preempting import a_pod
from randomcases import cases

NAMES = [NodeName(f"n{index}") for index in range(4)]
AWAY = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
}


class Full:
    """Four nodes with three pods each, and one evaluator that sees all that becomes of them."""

    def __init__(self, rules: dict[str, Any] | None = None) -> None:
        self.rules = rules
        self.cluster = Cluster()
        self.nominator = Nominator()
        self.versions = 0
        for name in NAMES:
            self.node(name, "3")
            for index in range(3):
                self.running(f"{name}-{index}", name, index)
        self.long_lived = self.evaluator()

    def evaluator(self) -> Evaluator:
        made = profile().spec(preemption=self.rules).resolved()
        return ProfileHandle(self.cluster, nominations=self.nominator).evaluator(made, in_tree())

    def node(self, name: NodeName, cpu: str) -> None:
        document = {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}},
        }
        self.cluster.set_node(convert(document, Node))

    def running(self, name: str, node: NodeName, priority: int, **rest: Any) -> None:
        self.versions += 1
        self.cluster.set_pod(a_pod(name, priority, node=node, **rest))

    def budget(self, app: str, allowed: int) -> None:
        self.versions += 1
        document = {
            "metadata": {"name": "b", "namespace": "default", "uid": "b", "resourceVersion": str(self.versions)},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed},
        }
        self.cluster.objects.put(convert(document, PodDisruptionBudget))

    def told(self, evaluator: Evaluator, preemptor: PodInfo) -> tuple[Any, ...]:
        """Where it fits, why it does not, and what came of a trial on each node."""
        evaluation = evaluator.evaluate(preemptor)
        diagnosis = evaluator.diagnose(evaluation)
        (plugin,) = (each for each in evaluator.runtime.post_filter if isinstance(each, DefaultPreemption))
        run = plugin.dry_run(evaluation.state, preemptor)
        rows = [(row, name) for row in self.cluster.rows().tolist() if (name := self.cluster.names[row]) is not None]
        reasons = sorted((repr(status), sorted(where.tolist())) for status, where in diagnosis.rejections)
        return evaluation.feasible.tolist(), reasons, list(run.on(rows))


def waiting(name: str, priority: int = 10, cpu: str = "2", **rest: Any) -> PodInfo:
    return a_pod(name, priority, cpu, labels={"app": "web"}, **rest)


STEPS = st.tuples(
    st.sampled_from(
        ["leaves", "comes", "starts", "labelled", "terminates", "nominated", "nominated away", "withdrawn", "grows", "goes", "budget"]
    ),
    st.integers(0, 3),
    st.integers(0, 2),
)


PROTECT = {"protect": {"matchLabels": {"app": "db"}}}
RULES = (None, PROTECT, {"maxVictims": 1, **PROTECT})


@settings(max_examples=cases(60))
@given(st.lists(STEPS, max_size=12), st.sampled_from(RULES))
def test_what_is_kept_is_what_would_be_found(steps: list[tuple[str, int, int]], rules: dict[str, Any] | None) -> None:
    full = Full(rules)
    for number, (what, index, other) in enumerate(steps):
        change(full, what, NAMES[index], other)
        alike = (waiting(f"r{number}", 9), waiting("nominated-1", 9), waiting(f"s{number}", 9))  # for one of them its own room may be kept
        for preemptor in (waiting(f"p{number}"), waiting("again"), waiting(f"q{number}", 5, "3"), *alike):
            assert full.told(full.long_lived, preemptor) == full.told(full.evaluator(), preemptor)


def change(full: Full, what: str, node: NodeName, other: int) -> None:
    name = f"{node}-{other}"
    nominated = f"nominated-{other}"
    changes: dict[str, Callable[[], object]] = {
        "leaves": lambda: full.cluster.remove_pod(name),
        "comes": lambda: full.running(f"{name}-more", node, other),
        "starts": lambda: full.running(name, node, other, start=f"0{other + 1}"),
        "labelled": lambda: full.running(name, node, other, labels={"app": "db"}),
        "terminates": lambda: full.running(name, node, other, leaving="PreemptionByScheduler"),
        "nominated": lambda: full.nominator.add(waiting(nominated, 10 - other), node),
        "nominated away": lambda: full.nominator.add(waiting(nominated, 10 - other, spec=AWAY), node),
        "withdrawn": lambda: full.nominator.delete(nominated),
        "grows": lambda: full.node(node, str(3 + other)),
        "goes": lambda: full.cluster.remove_node(node),
        "budget": lambda: full.budget("db", other),
    }
    changes[what]()


# --- work --------------------------------------------------------------------------------------------------------------------------------


def rows_checked(monkeypatch: pytest.MonkeyPatch, full: Full, *preemptors: PodInfo) -> list[int]:
    """How many rows are checked for each."""
    counts = []
    check = RowwiseCheck._check

    def counted(self: RowwiseCheck, rows: Any) -> Any:
        counts[-1] += len(rows)
        return check(self, rows)

    with monkeypatch.context() as patch:
        patch.setattr(RowwiseCheck, "_check", counted)
        for preemptor in preemptors:
            counts.append(0)
            full.told(full.long_lived, preemptor)
    return counts


def test_the_second_of_two_alike_has_no_row_tried_and_after_a_change_the_changed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Full()
    first, second = rows_checked(monkeypatch, full, waiting("a"), waiting("b"))
    assert first >= len(NAMES)
    assert second == 0
    full.running("n1-0", NAMES[1], 0, start="05")
    (third,) = rows_checked(monkeypatch, full, waiting("c"))
    assert 0 < third <= first // len(NAMES), "one row's share"


def test_nominated_pods_elsewhere_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Full()
    for index, name in enumerate(NAMES):
        full.nominator.add(waiting(f"nominated-{index}"), name)
    first, second = rows_checked(monkeypatch, full, waiting("a"), waiting("b"))
    assert first > 0
    assert second == 0


def test_nothing_is_kept_for_a_pod_about_which_a_filter_looks_at_other_nodes() -> None:
    full = Full()
    evaluator = full.long_lived
    spread = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]
    for preemptor, kept in ((waiting("a"), True), (waiting("b", spec={"topologySpreadConstraints": spread}), False)):
        evaluation = evaluator.evaluate(preemptor)
        assert (evaluator.checker.kept.of("x", evaluation.state, preemptor, AnswerByRow) is not None) is kept


def test_kinds_of_preemptors_beyond_the_bound_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright.framework.runtime.rowchecks.MAX_ANSWERS", 3 * len(NAMES))
    full = Full()
    for priority in range(10, 30):
        full.told(full.long_lived, waiting("a", priority))
    assert len(full.long_lived.checker.kept._kept) == 3
