"""A percentage of nodes: which rows are looked at, whose scores come of it, and where the next pod begins."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.makers import Scene
from framework.scripts import Script, bare
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import PreFilterResult, Reads, Rows
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.nodesample import Sampler, nodes_to_find
from placewright.framework.status import SUCCESS, unschedulable
from placewright.testing import node, pod
from randomcases import cases

NO = unschedulable("no")
NODES = " ".join(f"n{number}" for number in range(300))


def plainly(feasible: list[bool], start: int, wanted: int) -> tuple[list[int], int]:
    """One worker of kube-scheduler: node after node from `start`, until one more than is wanted was found; the rows, and the next start."""
    found: list[int] = []
    for step in range(len(feasible)):
        row = (start + step) % len(feasible)
        if feasible[row]:
            if len(found) == wanted:
                return sorted(found), row
            found.append(row)
    return sorted(found), start


@given(st.integers(0, 2**32), st.integers(1, 700), st.sampled_from([0.0, 0.02, 0.3, 0.9, 1.0]), st.integers(1, 90))
def test_rows_that_are_searched_and_rows_that_are_narrowed_are_those_of_a_plain_walk(
    seed: int, size: int, share: float, percentage: int
) -> None:
    dice, searched, narrowed, start = random.Random(seed), Sampler(), Sampler(), 0
    for _ in range(4):
        feasible = np.array([dice.random() < share for _ in range(size)])
        wanted = nodes_to_find(size, percentage)
        rows, start = plainly(feasible.tolist(), start, wanted)
        assert searched.search(lambda rows, fits=feasible: rows[fits[rows]], size, wanted).tolist() == rows
        assert np.flatnonzero(narrowed.narrow(feasible, size, percentage)).tolist() == rows


def test_rows_behind_the_last_window_are_not_looked_at() -> None:
    looked_at: list[int] = []

    def all_pass(rows: Rows) -> Rows:
        looked_at.extend(rows.tolist())
        return rows

    sampler = Sampler()
    assert len(sampler.search(all_pass, 100_000, 5000)) == 5000
    assert len(looked_at) < 5500
    looked_at.clear()
    assert sampler.search(all_pass, 100_000, 5000)[0] == looked_at[0] == 5000


def scene(*scripts: Script, percentage: int = 10) -> Scene:
    made = bare(*scripts, nodes=NODES)
    made.spec["percentageOfNodesToScore"] = percentage
    return made


def sized(reads: Reads = Reads.NODE_AND_ITS_PODS) -> Script:
    """Reads a pod's label `size`; takes up to two pods a node, and no node whose number ends in that size; scores by both."""

    def verdict(name: str, pods: Any) -> Any:
        return NO if len(pods) > 1 else SUCCESS

    return Script("Sized", reads=reads).filters(verdict).scores(lambda name, pods: int(name[1:]) % 7 + 10 * len(pods), scaled=True)


@pytest.mark.parametrize("reads", list(Reads))
def test_a_pod_that_is_the_first_of_its_kind_is_asked_about_on_as_many_nodes_as_are_enough(reads: Reads) -> None:
    script = sized(reads).signs(lambda pod: pod.uid)
    evaluator, sampler = scene(script).evaluator(), Sampler()
    for name in "pq":
        script.calls.clear()
        evaluation = evaluator.evaluate(pod(name).build(), None, sampler)
        evaluator.score(evaluation)
        assert (evaluation.count, evaluation.sampled) == (100, True)
        assert sum(map(len, script.asked("filter"))) < 200
        assert sum(map(len, script.asked("score"))) == 100


def test_who_reads_the_cluster_and_promises_is_asked_about_no_other_nodes_either() -> None:
    script = sized(Reads.CLUSTER).fingerprints("same").signs(lambda pod: pod.uid)
    evaluator = scene(script).evaluator()
    evaluator.score(evaluator.evaluate(pod("p").build(), None, Sampler()))
    assert [len(rows) for rows in script.asked("score")] == [100]


def test_the_second_of_a_kind_has_columns_of_all_nodes_and_those_after_it_only_what_changed() -> None:
    script = sized()
    world = scene(script)
    evaluator, sampler = world.evaluator(), Sampler()
    asked = []
    for name in "pqr":
        script.calls.clear()
        evaluation = evaluator.evaluate(pod(name).build(), None, sampler)
        asked.append((evaluation.sampled, sum(map(len, script.asked("filter")))))
        world.place(pod(f"on-{name}"), "n7")
    assert [sampled for sampled, _ in asked] == [True, False, False]
    assert [rows for _, rows in asked[1:]] == [300, 1]


def test_a_pod_that_fits_nowhere_is_told_why_for_all_nodes() -> None:
    script = Script("A").filters(lambda *_: NO)
    evaluator = scene(script).evaluator()
    evaluation = evaluator.evaluate(pod("p").build(), None, Sampler())
    assert (evaluation.count, evaluation.sampled) == (0, False)
    assert sum(len(rows) for _, rows in evaluator.diagnose(evaluation).rejections) == 300


def test_nodes_that_prefilter_left_out_are_not_looked_at() -> None:
    left = frozenset(NodeName(f"n{number}") for number in range(50, 250))
    script = Script("A").pre_filters(PreFilterResult(nodes=left)).filters().signs(lambda pod: pod.uid)
    evaluator, sampler = scene(script).evaluator(), Sampler()
    rows = [np.flatnonzero(evaluator.evaluate(pod(name).build(), None, sampler).feasible) for name in "pqr"]
    assert [(len(each), each[0], each[-1]) for each in rows] == [(100, 50, 149), (100, 150, 249), (100, 50, 149)]


def answers(evaluator: Evaluator, asked: PodInfo, sampler: Sampler, percentage: int, *, whole: bool) -> tuple[Any, Any, Any]:
    """Rows, totals and parts; `whole`: of all nodes, narrowed afterwards."""
    evaluation = evaluator.evaluate(asked, None, None if whole else sampler)
    if not evaluation.sampled:
        evaluation.feasible = sampler.narrow(evaluation.feasible, 300, percentage)
    totals = evaluator.score(evaluation)
    rows = np.flatnonzero(evaluation.feasible)
    return rows.tolist(), totals.tolist(), evaluator.breakdown(evaluation, rows[::7])


@settings(max_examples=cases(20), deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_found_in_windows_is_what_is_found_among_all_nodes(seed: int) -> None:
    dice = random.Random(seed)
    percentage = dice.choice((1, 40, 60))
    script = sized().signs(lambda pod: pod.labels["size"])
    wide = (
        Script("Wide", reads=Reads.CLUSTER)
        .scores(lambda name, _: int(name[1:]) % 5)
        .filters(lambda name, _: NO if name.endswith("3") else SUCCESS)
    )
    world = scene(script, wide, percentage=percentage)
    world.cluster.remove_node(NodeName("n11"))
    evaluator, sampler, plain = world.evaluator(), Sampler(), Sampler()
    world.cluster.set_node(node("n11").build())
    for turn in range(15):
        asked = pod(f"p{turn}", labels={"size": dice.choice("123")}).build()
        found = answers(evaluator, asked, sampler, percentage, whole=False)
        assert found == answers(world.evaluator(), asked, plain, percentage, whole=True)
        for number in range(dice.choice((1, 2, 90))):
            world.place(pod(f"on-{turn}-{number}"), f"n{dice.randrange(300)}")
