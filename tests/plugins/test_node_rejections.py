"""NodeRejections on a whole scheduler in virtual time, and against a plain rule."""

from __future__ import annotations

import random
from typing import Any

import pytest

from placewright.api.objects import NodeName
from placewright.api.turnedaway import Owner
from placewright.plugins.noderejections import NodeRejections, record_of
from placewright.profiles.problem import ProfileError
from placewright.queue.queued import SubQueue
from placewright.testing import PluginCase, World, assert_bound, assert_waiting, node, pod, profile
from placewright.testing.pods import PodMaker

READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}


class Kubelets(World):
    """A world in which a kubelet turns pods away when a test says so."""

    def __init__(self, *names: str, **args: Any) -> None:
        super().__init__(NodeRejections, nodes=[node(name) for name in names], profile=profile().args(NodeRejections, **args))
        self.cluster.pod_followers.add(record_of(self.cluster))

    def turns_away(self, name: str, by: str, *, job: str = "job-x", reason: str = "TopologyAffinityError") -> None:
        """The pod has failed on its node, and its owner is known."""
        self.remove(name)
        record_of(self.cluster).note(Owner("default", "Job", job), NodeName(by), reason, self.claims.now())


def of_job(name: str, job: str = "job-x") -> PodMaker:
    return pod(name).owned_by("Job", job)


def test_the_next_pod_of_the_owner_waits_for_the_node_that_turned_the_last_one_away_and_is_tried_in_time() -> None:
    it = Kubelets("node-7", initialSeconds=40)
    it.add(of_job("p1"))
    it.turns_away("p1", "node-7")
    it.add(of_job("p2"))
    reason = "0/1 nodes are available: 1 node-7 turned away 1 pod of job-x (TopologyAffinityError); tried again in 40 s."
    assert_waiting(it, "p2", because=reason, plugin="NodeRejections")
    it.advance(39)
    assert it.place("p2") is SubQueue.UNSCHEDULABLE
    it.advance(3)
    assert_bound(it, "p2", on="node-7")


def test_it_goes_to_another_node_at_once_and_pods_of_other_owners_go_where_they_like() -> None:
    it = Kubelets("node-7", "node-8")
    record_of(it.cluster).note(Owner("default", "Job", "job-x"), NodeName("node-7"), "OutOfcpu", it.claims.now())
    it.add(*(of_job(f"p{number}") for number in range(6)))
    assert {it.node_of(f"p{number}") for number in range(6)} == {"node-8"}
    it.add(*(of_job(f"q{number}", "job-y") for number in range(12)))
    assert {it.node_of(f"q{number}") for number in range(12)} == {"node-7", "node-8"}


def test_each_further_round_doubles_the_time_up_to_the_bound() -> None:
    it = Kubelets("node-7", initialSeconds=20, maxSeconds=100)
    waited = []
    for number in range(5):
        it.add(of_job(f"p{number}"))
        began = it.now
        while it.node_of(f"p{number}") is None:
            it.advance(1)
        waited.append(it.now - began)
        it.turns_away(f"p{number}", "node-7")
    assert waited == pytest.approx([0, 20, 40, 80, 100], abs=1.1)  # pods are woken at whole seconds after


def test_pods_that_were_bound_together_and_turned_away_together_count_as_one_round() -> None:
    it = Kubelets("node-7", initialSeconds=30)
    it.add(of_job("p1"), of_job("p2"), of_job("p3"))
    for name in ("p1", "p2", "p3"):
        it.turns_away(name, "node-7")
    it.add(of_job("p4"))
    said = it.rejections("p4")["node-7"]
    assert said == "NodeRejections: node-7 turned away 3 pods of job-x (TopologyAffinityError); tried again in 30 s"


def test_a_pod_of_the_owner_that_becomes_ready_there_wakes_the_waiting_ones() -> None:
    it = Kubelets("node-7", initialSeconds=600)
    it.add(of_job("good"), of_job("p1"))
    it.turns_away("p1", "node-7")
    it.add(of_job("p2"))
    assert it.place("p2") is SubQueue.UNSCHEDULABLE
    it.add(of_job("other", "job-y").on("node-7").status(**READY)).advance(5)
    assert it.place("p2") is SubQueue.UNSCHEDULABLE
    it.add(of_job("good").on("node-7").status(**READY)).advance(2)
    assert_bound(it, "p2", on="node-7")


def test_a_node_that_goes_and_comes_again_has_a_clean_record() -> None:
    it = Kubelets("node-7", initialSeconds=600)
    it.add(of_job("p1"))
    it.turns_away("p1", "node-7")
    it.add(of_job("p2"))
    it.remove(node("node-7")).add(node("node-7")).advance(2)
    assert_bound(it, "p2", on="node-7")


def test_a_new_node_takes_a_pod_that_all_others_turned_away() -> None:
    it = Kubelets("node-7", initialSeconds=600)
    it.add(of_job("p1"))
    it.turns_away("p1", "node-7")
    it.add(of_job("p2"), node("node-8")).advance(2)
    assert_bound(it, "p2", on="node-8")


def test_a_pod_without_a_controller_is_its_own_owner_by_its_name() -> None:
    it = Kubelets("node-7")
    record_of(it.cluster).note(Owner("default", "Pod", "lonely"), NodeName("node-7"), "AppArmor", it.claims.now())
    it.add(pod("lonely"), pod("other"))
    assert it.rejections("lonely") == {"node-7": "NodeRejections: node-7 turned away 1 pod of lonely (AppArmor); tried again in 30 s"}
    assert_bound(it, "other", on="node-7")


def test_the_record_outlives_a_change_of_the_profile_which_decides_anew_how_long() -> None:
    it = Kubelets("node-7", initialSeconds=600)
    it.add(of_job("p1"))
    it.turns_away("p1", "node-7")
    it.add(of_job("p2")).advance(30)
    it.use(profile().enable(NodeRejections).args(NodeRejections, initialSeconds=60).generation(2))
    it.advance(2)
    assert "tried again in" in it.rejections("p2")["node-7"]
    it.advance(32)
    assert_bound(it, "p2", on="node-7")


def test_evicting_pods_is_no_remedy() -> None:
    it = Kubelets("node-7")
    it.add(pod("low"))
    record_of(it.cluster).note(Owner("default", "Job", "job-x"), NodeName("node-7"), "OutOfcpu", it.claims.now())
    it.add(of_job("high").priority(1000))
    assert it.evictor.evicted == []


def test_more_nodes_than_eight_share_one_reason() -> None:
    names = [f"n{number:02d}" for number in range(12)]
    case = PluginCase(NodeRejections, nodes=[node(name) for name in names])
    for name in names:
        record_of(case.cluster).note(Owner("default", "Job", "job-x"), NodeName(name), "OutOfcpu", 0.0)
    said = case.rejections(of_job("web"))
    assert set(said) == set(names)
    assert list(said.values()).count("node(s) turned away pods of job-x") == 4


def test_a_bound_below_the_first_wait_is_refused() -> None:
    with pytest.raises(ProfileError, match="maxSeconds"):
        PluginCase(NodeRejections, args={"initialSeconds": 60, "maxSeconds": 30})


def test_the_nodes_that_are_left_out_agree_with_a_plain_rule_on_random_histories() -> None:
    for seed in range(10):
        dice = random.Random(seed)
        it = Kubelets("n0", "n1", "n2", initialSeconds=20, maxSeconds=100)
        record, plugin = record_of(it.cluster), it.plugin(NodeRejections)
        for step in range(150):
            it.now += dice.choice((1.0, 7.0, 15.0, 50.0))
            name, job = NodeName(f"n{dice.randrange(3)}"), dice.choice(("job-x", "job-y"))
            if dice.random() < 0.5:
                record.note(Owner("default", "Job", job), name, "OutOfcpu", it.claims.now())
            evaluation = it.profiles["default-scheduler"].evaluate(of_job("web", job).build())
            found = record.owners.get(Owner("default", "Job", job))
            entries = {} if found is None else found.nodes
            out = {
                node_name for node_name, entry in entries.items()
                if it.claims.now() < entry.began + min(20 * 2 ** (entry.rounds - 1), 100)
            }  # fmt: skip
            fits = {str(it.cluster.names[row]) for row in evaluation.feasible.nonzero()[0]}
            assert fits == {"n0", "n1", "n2"} - out, (seed, step)
            assert plugin.sign(of_job("web", job).build()) in (out, ())
