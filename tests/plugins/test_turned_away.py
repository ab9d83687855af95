from __future__ import annotations

import random
from collections import Counter

import pytest

from placewright.api.decode import convert
from placewright.api.objects import NodeName
from placewright.api.turnedaway import REASONS, FailedPod, Owner, owner_of
from placewright.cluster.cluster import Cluster
from placewright.plugins.noderejections import MOST_ENTRIES, MOST_OF_A_NAMESPACE, QUIET_SECONDS, TurnedAwayPods, record_of
from placewright.testing import node, pod

JOB = Owner("default", "Job", "job-x")
NODE = NodeName("a")


def of(record: TurnedAwayPods, owner: Owner = JOB, name: NodeName = NODE) -> tuple[int, int] | None:
    """(pods, rounds)."""
    found = record.owners.get(owner)
    entry = None if found is None else found.nodes.get(name)
    return None if entry is None else (entry.pods, entry.rounds)


def failed(reason: str, *, phase: str = "Failed", on: str = "a") -> FailedPod:
    manifest = {"metadata": {"name": "p"}, "spec": {"nodeName": on}, "status": {"phase": phase, "reason": reason}}
    return convert(manifest, FailedPod)


def test_pods_that_are_turned_away_within_ten_seconds_are_one_round() -> None:
    record = TurnedAwayPods()
    for now in (100.0, 101.0, 109.0):
        record.note(JOB, NODE, "OutOfcpu", now)
    assert of(record) == (3, 1)
    record.note(JOB, NODE, "OutOfcpu", 111.0)
    assert of(record) == (4, 2)


def test_an_hour_without_another_cleans_the_record() -> None:
    record = TurnedAwayPods()
    record.note(JOB, NODE, "OutOfcpu", 100.0)
    record.forget_old(100.0 + QUIET_SECONDS - 1.0)
    assert of(record) == (1, 1)
    record.note(JOB, NODE, "OutOfcpu", 100.0 + QUIET_SECONDS)
    assert of(record) == (1, 1), "the first one was forgotten before the second was counted"


def test_a_node_that_goes_takes_its_entries_along() -> None:
    record = TurnedAwayPods()
    record.note(JOB, NODE, "OutOfcpu", 0.0)
    record.note(JOB, NodeName("b"), "OutOfcpu", 0.0)
    record.row_ends(0, NODE)
    assert (of(record), of(record, name=NodeName("b"))) == (None, (1, 1))
    record.row_ends(1, NodeName("b"))
    assert not record
    assert record.owners.get(JOB) is None


def test_a_pod_of_the_owner_that_becomes_ready_cleans_the_record_of_its_node_and_a_pod_of_another_owner_does_not() -> None:
    cluster = Cluster()
    cluster.set_node(node("a").build())
    cluster.pod_followers.add(record_of(cluster))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for name, owner in (("mine", "job-x"), ("other", "job-y")):
        cluster.set_pod(pod(name).owned_by("Job", owner).on("a").build())
    record_of(cluster).note(JOB, NODE, "OutOfcpu", 0.0)
    cluster.set_pod(pod("other").owned_by("Job", "job-y").on("a").status(**ready).build())
    assert of(record_of(cluster)) == (1, 1)
    cluster.set_pod(pod("mine").owned_by("Job", "job-x").on("a").status(**ready).build())
    assert not record_of(cluster)


def test_the_owner_of_a_pod_is_its_controller_and_of_a_pod_without_one_the_pod_by_its_name() -> None:
    assert owner_of(pod("p").owned_by("Job", "job-x").build().pod.metadata) == JOB
    assert owner_of(pod("p").build().pod.metadata) == Owner("default", "Pod", "p")


@pytest.mark.parametrize("reason", [*REASONS, "OutOfnvidia.com/gpu", "OutOfhugepages-2Mi"])
def test_kubelets_turn_pods_away_with_these_reasons(reason: str) -> None:
    assert failed(reason).turned_away


@pytest.mark.parametrize("reason", ["", "Error", "DeadlineExceeded", "Evicted", "Terminated", "Preempting", "OutOf" + "x" * 400])
def test_pods_that_failed_otherwise_were_not_turned_away(reason: str) -> None:
    assert not failed(reason).turned_away


def test_a_pod_that_has_not_failed_or_has_no_node_was_not_turned_away() -> None:
    assert not failed("OutOfcpu", phase="Running").turned_away
    assert not failed("OutOfcpu", on="").turned_away


def test_a_flood_of_failing_pods_pushes_out_the_oldest_of_its_own_namespace_and_no_entry_of_another() -> None:
    record = TurnedAwayPods()
    record.note(JOB, NODE, "OutOfcpu", 0.0)
    for number in range(20_000):
        record.note(Owner("hostile", "Job", f"job-{number}"), NodeName(f"node-{number % 5000}"), "OutOfcpu", 1.0)
    assert len(record) == MOST_OF_A_NAMESPACE + 1
    assert of(record) == (1, 1)
    assert record.owners.get(Owner("hostile", "Job", "job-19999")) is not None
    assert record.owners.get(Owner("hostile", "Job", "job-0")) is None


def test_many_namespaces_together_keep_within_the_bound_and_the_oldest_entries_go() -> None:
    record = TurnedAwayPods()
    for number in range(3 * MOST_ENTRIES):
        record.note(Owner(f"ns-{number % 1000}", "Job", f"job-{number}"), NODE, "OutOfcpu", 1.0)
    assert len(record) == MOST_ENTRIES


def test_the_record_agrees_with_a_plain_table_on_random_histories() -> None:
    dice = random.Random(5)
    for _ in range(20):
        record, plain, now = TurnedAwayPods(), dict[tuple[Owner, NodeName], list[float]](), 0.0
        for _ in range(300):
            now += dice.choice((0.5, 5.0, 60.0, 2000.0))
            owner, name = Owner(dice.choice("ab"), "Job", dice.choice("xyz")), NodeName(dice.choice("nmo"))
            what = dice.random()
            if what < 0.75:
                plain = {key: times for key, times in plain.items() if times[-1] + QUIET_SECONDS > now}
                plain.setdefault((owner, name), []).append(now)
                record.note(owner, name, "OutOfcpu", now)
            elif what < 0.85:
                assert record.forget(owner, name) is (plain.pop((owner, name), None) is not None)
            else:
                record.row_ends(0, name)
                plain = {key: times for key, times in plain.items() if key[1] != name}
            found = {(owner, name): of(record, owner, name) for owner, name in plain}
            assert found == {key: (len(times), _rounds(times)) for key, times in plain.items()}
            assert len(record) == len(plain)


def _rounds(times: list[float]) -> int:
    """Ten seconds from the first of a round on belong to it."""
    rounds: Counter[float] = Counter()
    began = -100.0
    for moment in times:
        began = moment if moment - began >= 10.0 else began
        rounds[began] += 1
    return len(rounds)
