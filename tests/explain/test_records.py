"""Decision records: what is kept of attempts, for how long, and that it is what was decided."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from explain.test_nearest_miss import a_node, a_pod
from placewright.api.profile import default_profile
from placewright.explain import records as kept_records
from placewright.explain.records import AttemptRecord, Records, recorded
from placewright.offline.world import offline_cycle, offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Attempt, Observer, Observers
from placewright.scheduler.cycle import MOST_EXAMPLES, MOST_REFUSALS, SHARE, DecisionDetail, FitError, best_rows, choose
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.scheduler import Ports, Scheduler
from placewright.testing import VirtualTime
from placewright_lab.bench.decisions import Nothing
from placewright_lab.simulation.evaluation import evaluate_pod


class Bench:
    """A scheduler on a cluster made of manifests, whose bindings always succeed, with records."""

    def __init__(self, objects: list[dict[str, Any]], *, per_pod: int = 5, overall: int = 2000, detail: bool = True) -> None:
        self.world = world_from(objects, "test")
        self.evaluator = offline_evaluator(resolve(default_profile(), in_tree()), in_tree(), self.world.cluster)
        self.now = 0.0
        ticks = itertools.count()
        cycle = self.cycle = offline_cycle(self.world.cluster)
        cycle.detail = DecisionDetail(lambda: float(next(ticks)) * 1e-9 + self.now, on=detail)
        self.records = Records(lambda: 1000.0 + self.now, per_pod=per_pod, overall=overall)
        self._listening: list[Observer] = [self.records]
        policy = ProfilePolicy(self.evaluator.runtime)
        self.queue = SchedulingQueue(lambda _name: policy, lambda: self.now)
        ports = Ports(Nothing(), Nothing(), Nothing(), Observers(self._listening))
        self.scheduler = Scheduler(self.world.cluster, self.queue, lambda _name: self.evaluator, cycle, ports, lambda: self.now)
        for pending in self.world.pending.values():
            self.queue.add(pending)

    async def attempt(self) -> AttemptRecord:
        """Try the next pod; the record of that."""
        queued = self.queue.pop()
        assert queued is not None
        ended: list[Attempt] = []
        self._listening.append(Listening(ended))
        self.scheduler.schedule_one(queued)
        self._listening.pop()
        (attempt,) = ended
        return self.records.of(attempt.uid)[-1]

    async def retry(self, name: str) -> AttemptRecord:
        self.now += 60.0
        self.queue.activate([self.world.pending[f"default/{name}"]])
        return await self.attempt()


class Listening:
    def __init__(self, ended: list[Attempt]) -> None:
        self._ended = ended

    def attempt_ended(self, attempt: Attempt) -> None:
        self._ended.append(attempt)

    def pod_entered(self, place: str, event: str) -> None:
        """Nothing."""


def test_the_best_rows_are_those_that_sorting_finds_and_the_totals_stay_as_they_were() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 3, 4, 50):
        for _ in range(200):
            totals = rng.integers(-1, 6, size)
            if totals.max() < 0:
                continue
            before, choice = totals.copy(), choose(totals, random.Random(int(rng.integers(1000))))
            rows = best_rows(totals, choice)
            assert np.array_equal(totals, before)
            assert rows[0] == choice.row
            feasible = sorted(before[before >= 0].tolist(), reverse=True)
            assert before[rows].tolist() == feasible[:3]
            assert len(set(rows.tolist())) == len(rows)


async def test_refusals_sum_to_all_nodes_and_name_some_of_them() -> None:
    objects = [a_node(f"n-{i}", cpu=1000, taints=[{"key": "gpu", "effect": "NoSchedule"}] if i % 3 == 0 else []) for i in range(20)]
    record = await Bench([*objects, a_pod("p", cpu=3000)]).attempt()
    assert (record.result, record.node, record.nodes, record.feasible) == ("unschedulable", None, 20, 0)
    assert [(each.plugin, each.reason, each.nodes) for each in record.refusals] == [
        ("NodeResourcesFit", "Insufficient cpu", 13),
        ("TaintToleration", "node(s) had untolerated taint(s)", 7),
    ]
    assert all(len(set(each.examples)) == MOST_EXAMPLES for each in record.refusals)
    assert record.message.startswith("0/20 nodes are available: 13 Insufficient cpu, 7 node(s) had untolerated taint(s).")


async def test_more_kinds_of_refusals_than_are_told_still_sum_to_all_nodes() -> None:
    resources = [f"example.test/r{i}" for i in range(10)]
    objects = [a_node(f"n-{i}") for i in range(90)]
    for number, each in enumerate(objects):
        each["status"]["allocatable"] |= {resource: "1" for bit, resource in enumerate(resources) if number >> bit & 1}
    wanting = a_pod("p")
    wanting["spec"]["containers"][0]["resources"]["requests"] |= dict.fromkeys(resources, "1")
    record = await Bench([*objects, wanting]).attempt()
    assert len(record.refusals) == MOST_REFUSALS
    assert sum(each.nodes for each in record.refusals) == 90


async def test_a_refusal_of_all_nodes_at_once_counts_all_of_them() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
    record = await Bench([a_node("n-0"), a_node("n-1"), a_pod("p", volumes=volumes)]).attempt()
    assert [(each.nodes, set(each.examples)) for each in record.refusals] == [(2, {"n-0", "n-1"})]


async def test_the_scores_of_the_best_nodes_are_those_that_evaluate_finds() -> None:
    objects = [a_node(f"n-{i}", cpu=1000 * (i + 1)) for i in range(6)]
    bench = Bench([*objects, a_pod("p", cpu=500)])
    verdict = evaluate_pod(bench.evaluator, bench.world.cluster, bench.world.pending["default/p"])
    expected = sorted(verdict.nodes, key=lambda each: -each.total)[:3]
    queued = bench.queue.pop()
    assert queued is not None
    attempt = Attempt(queued, bench.evaluator.runtime.profile, lambda: 0.0)
    attempt.chose(bench.cycle.place(bench.evaluator, queued.pod, attempt.steps))
    attempt.succeeded()
    record = recorded(attempt, 7.0)
    assert record.best == tuple(each.node for each in expected)
    for at, each in enumerate(expected):
        assert {plugin: scores[at] for plugin, scores in record.parts.items()} == each.scores
    assert (record.score, record.runner_up, record.ties, record.feasible, record.nodes) == (expected[0].total, expected[1].total, 1, 6, 6)
    assert (record.result, record.at, record.refusals, record.message) == ("scheduled", 7.0, (), "")
    assert [step.name for step in record.steps] == ["PreFilter", "Filter", "PreScore", "Score"]


@pytest.mark.parametrize("switched_on", [True, False])
async def test_nothing_is_taken_where_nobody_wants_to_know(switched_on: bool) -> None:
    record = await Bench([a_node("n-0"), a_pod("p", cpu=9000)], detail=switched_on).attempt()
    assert bool(record.refusals) is switched_on
    assert record.nodes == 1


def test_the_best_few_are_taken_within_a_share_of_the_time() -> None:
    clock = VirtualTime(0.0)
    detail = DecisionDetail(clock, on=True)
    totals = np.arange(5)
    spent = 0.0
    for _ in range(10_000):
        clock.now += 100e-6
        rows = detail.rows(totals, choose(totals, random.Random(1)))
        if len(rows) > 1:
            clock.now += 10e-6
            spent += 10e-6
        detail.taken()
    assert 0.9 * SHARE * clock.now < spent <= SHARE * clock.now


async def test_a_pod_keeps_its_last_attempts_in_order() -> None:
    bench = Bench([a_node("n-0", cpu=10), a_pod("p")], per_pod=3)
    await bench.attempt()
    for _ in range(5):
        await bench.retry("p")
    assert [record.attempt for record in bench.records.of("p")] == [4, 5, 6]
    assert bench.records.named("default", "p") == bench.records.of("p")
    assert [record.attempt for record in bench.records.last(4)] == [6, 5, 4, 3]


async def test_a_burst_of_others_does_not_push_out_why_a_pod_waits() -> None:
    records, ended = Records(lambda: 0.0, overall=10), Ending()
    records.attempt_ended(ended("waits", failed=True))
    for number in range(1000):
        records.attempt_ended(ended(f"placed-{number}", failed=False))
    assert len(records.of("waits")) == 1
    assert len(records.last(2000)) == 10
    assert sum(bool(records.of(f"placed-{number}")) for number in range(1000)) == 10


async def test_bytes_are_bounded_however_long_messages_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_records, "MOST_BYTES", 60_000)
    records, ended = Records(lambda: 0.0, overall=300), Ending()
    for number in range(500):
        records.attempt_ended(ended(f"p-{number % 300}", failed=True, message="x" * 100_000))
    assert max(len(record.message) for record in records.last(2000)) <= 1024
    assert 10 < sum(record.nbytes for record in records.last(2000)) / 2048 <= 60_000 / 2048
    for number in range(300):
        records.attempt_ended(ended(f"placed-{number}", failed=False))
    shelves = [record for number in range(300) for record in records.of(f"p-{number}")]
    assert 10_000 < sum(record.nbytes for record in shelves) <= 60_000
    assert len(records.of("p-199")) > 0


@dataclass(slots=True)
class Ending:
    """Makes attempts that are over without anything being decided."""

    bench: Bench = field(default_factory=lambda: Bench([a_node("n-0"), a_pod("p")]))

    def __call__(self, name: str, *, failed: bool, message: str = "no") -> Attempt:
        queued = QueuedPod(world_from([a_pod(name)], "test").pending[f"default/{name}"], 0.0)
        attempt = Attempt(queued, self.bench.evaluator.runtime.profile, lambda: 0.0)
        if failed:
            attempt.failed(FitError(message))
        else:
            attempt.succeeded()
        return attempt
