"""What a kubelet takes and what it refuses, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from placewright import testing as kit
from placewright.api.objects import Node, NodeName, Pod
from placewright.testing.nodes import NodeMaker
from placewright_lab.controlplane.admission import Admission, Refusal

Object = dict[str, Any]


def a_node(*, labels: Object | None = None, taints: list[Object] | None = None, gpus: int = 0) -> Node:
    made = NodeMaker("n").labels(labels).spec(taints=taints or []).offers(cpu="4", memory="8Gi", pods="3")
    return (made.offers({"example.com/gpu": str(gpus)}) if gpus else made).build()


def a_pod(uid: str, *, ports: list[Object] | None = None, requests: Object | None = None, **spec: Any) -> Pod:
    container = {"name": "main", "ports": ports or [], "resources": {"requests": requests or {}}}
    return kit.pod(uid, on="n", containers=[container], **spec).uid(uid).decoded()


def admission(there: Node) -> Admission:
    made = Admission()
    made.node_is(there)
    return made


@pytest.mark.parametrize(
    ("requests", "reason", "amounts"),
    [
        ({"cpu": "1500m"}, "OutOfcpu", "cpu, requested: 1500, used: 3000, capacity: 4000"),
        ({"memory": "6Gi"}, "OutOfmemory", "memory, requested: 6442450944, used: 3221225472, capacity: 8589934592"),
        ({"ephemeral-storage": "1"}, "OutOfephemeral-storage", "ephemeral-storage, requested: 1, used: 0, capacity: 0"),
        ({"example.com/gpu": "2"}, "OutOfexample.com/gpu", "example.com/gpu, requested: 2, used: 0, capacity: 1"),
        ({"memory": "6Gi", "cpu": "2"}, "OutOfcpu", "cpu, requested: 2000, used: 3000, capacity: 4000"),
    ],
)
def test_a_pod_that_asks_for_more_than_is_left_is_refused(requests: Object, reason: str, amounts: str) -> None:
    desk = admission(a_node(gpus=1))
    assert desk.admit(a_pod("first", requests={"cpu": "3", "memory": "3Gi"})) is None
    assert desk.admit(a_pod("second", requests=requests)) == Refusal(reason, f"Node didn't have enough resource: {amounts}")


def test_what_is_exactly_left_is_given_and_an_ended_pod_gives_its_own_back() -> None:
    desk = admission(a_node())
    assert desk.admit(a_pod("a", requests={"cpu": "3"})) is None
    assert desk.admit(a_pod("b", requests={"cpu": "1"})) is None
    assert desk.admit(a_pod("c", requests={"cpu": "1m"})) is not None
    desk.end(NodeName("n"), "a")
    assert desk.admit(a_pod("c", requests={"cpu": "3"})) is None


def test_more_pods_than_the_node_takes_are_refused_however_small() -> None:
    desk = admission(a_node())
    assert [desk.admit(a_pod(uid)) for uid in "abc"] == [None, None, None]
    assert desk.admit(a_pod("d")) == Refusal("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3")


def test_one_that_was_admitted_is_not_counted_twice() -> None:
    desk = admission(a_node())
    assert [desk.admit(a_pod("a", requests={"cpu": "3"})) for _ in range(3)] == [None, None, None]


def test_one_that_asks_for_nothing_fits_where_nothing_is_left_and_where_too_much_is_used() -> None:
    desk = admission(a_node())
    desk.runs_already(a_pod("a", requests={"cpu": "5"}))
    assert desk.admit(a_pod("b")) is None
    assert desk.admit(a_pod("c", requests={"cpu": "0"})) is None


def test_an_extended_resource_that_the_node_does_not_have_is_somebody_else_s() -> None:
    assert admission(a_node()).admit(a_pod("a", requests={"example.com/gpu": "2"})) is None


def test_init_containers_and_overhead_count() -> None:
    before = [{"name": "before", "resources": {"requests": {"cpu": "3900m"}}}]
    refusal = admission(a_node()).admit(a_pod("a", requests={"cpu": "1"}, initContainers=before, overhead={"cpu": "200m"}))
    assert refusal is not None
    assert refusal.message.endswith("cpu, requested: 4100, used: 0, capacity: 4000")


@pytest.mark.parametrize(
    ("spec", "taken"),
    [
        ({"nodeSelector": {"disk": "fast"}}, True),
        ({"nodeSelector": {"disk": "slow"}}, False),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["slow"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
        ]}}}}, True),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["fast"]}]},
        ]}}}}, False),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["slow"]}]}},
        ]}}}, True),
    ],
)  # fmt: skip
def test_the_node_has_to_be_one_that_the_pod_wants(spec: Object, taken: bool) -> None:
    message = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    expected = None if taken else Refusal("NodeAffinity", message)
    assert admission(a_node(labels={"disk": "fast"})).admit(a_pod("a", **spec)) == expected


@pytest.mark.parametrize(
    ("one", "other", "taken"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80, "hostIP": "127.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"hostPort": 80, "hostIP": "127.0.0.1"}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"containerPort": 80}, {"containerPort": 80}, True),
    ],
)
def test_a_host_port_is_given_once(one: Object, other: Object, taken: bool) -> None:
    desk = admission(a_node())
    assert desk.admit(a_pod("a", ports=[one])) is None
    message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    assert desk.admit(a_pod("b", ports=[other])) == (None if taken else Refusal("NodePorts", message))


@pytest.mark.parametrize(
    ("effect", "tolerations", "taken"),
    [
        ("NoExecute", [], False),
        ("NoExecute", [{"key": "k", "operator": "Exists"}], True),
        ("NoExecute", [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], False),
        ("NoSchedule", [], True),
        ("PreferNoSchedule", [], True),
    ],
)
def test_only_taints_that_drive_pods_off_are_a_kubelet_s_business(effect: str, tolerations: list[Object], taken: bool) -> None:
    there = a_node(taints=[{"key": "k", "effect": effect}])
    message = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    assert admission(there).admit(a_pod("a", tolerations=tolerations)) == (None if taken else Refusal("TaintToleration", message))


def test_a_node_that_nobody_knows_refuses_nothing() -> None:
    desk = admission(a_node())
    desk.node_is_gone(NodeName("n"))
    assert desk.admit(a_pod("a", requests={"cpu": "100"})) is None
