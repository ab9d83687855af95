"""What is filled in before an object is stored."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubesandbox.kinds.defaults import default, qos_class
from kubesandbox.kinds.podrules import admit_priority
from kubesandbox.status import ApiError
from lab.sandbox.makers import Core


def container(**resources: dict[str, str]) -> dict[str, Any]:
    return {"name": "main", "image": "app:1", "resources": resources}


def defaulted(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    made = {"metadata": {"name": "p"}, "spec": {"containers": list(containers) or [container()], **spec}}
    default("Pod", made)
    return made


def test_what_is_set_stays_as_it_is() -> None:
    spec = defaulted(schedulerName="mine", restartPolicy="Never", terminationGracePeriodSeconds=0)["spec"]
    assert (spec["schedulerName"], spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("mine", "Never", 0)


@pytest.mark.parametrize("kind", ["Pod", "Node", "Deployment", "StatefulSet", "DaemonSet", "Job"])
def test_defaulting_twice_is_defaulting_once(kind: str) -> None:
    once: dict[str, Any] = {"metadata": {"name": "x"}}
    default(kind, once)
    twice = copy.deepcopy(once)
    default(kind, twice)
    assert twice == once


def test_requests_that_are_left_out_come_from_limits() -> None:
    made = defaulted(container(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1"}))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("host:5000/app", "Always"),
        ("host:5000/app:1", "IfNotPresent"),
        ("app@sha256:abc", "IfNotPresent"),
    ],
)
def test_an_image_without_a_fixed_tag_is_always_pulled(image: str, policy: str) -> None:
    assert defaulted({"name": "main", "image": image})["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_a_toleration_of_ones_own_is_not_doubled() -> None:
    mine = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    tolerations = defaulted(tolerations=[mine])["spec"]["tolerations"]
    assert [each["key"].rpartition("/")[2] for each in tolerations] == ["not-ready", "unreachable"]
    assert tolerations[0]["tolerationSeconds"] == 5
    assert defaulted(tolerations=[{"operator": "Exists"}])["spec"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([container()], "BestEffort"),
        ([container(requests={"cpu": "0"})], "BestEffort"),
        ([container(requests={"example.com/gpu": "1"})], "BestEffort"),
        ([container(requests={"cpu": "1"})], "Burstable"),
        ([container(limits={"cpu": "1"}, requests={"cpu": "1"})], "Burstable"),
        ([container(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1000m", "memory": "1024Mi"})], "Guaranteed"),
        ([container(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1", "memory": "1Mi"})], "Burstable"),
        ([container(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1", "memory": "1Gi"}), container()], "Burstable"),
    ],
)
def test_the_quality_of_service_follows_from_requests_and_limits(containers: list[Any], expected: str) -> None:
    assert qos_class({"containers": containers}) == expected


def test_a_cordoned_node_is_tainted_once_and_an_uncordoned_one_no_more() -> None:
    node: dict[str, Any] = {"spec": {"unschedulable": True, "taints": [{"key": "mine", "effect": "NoSchedule"}]}}
    default("Node", node)
    default("Node", node)
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["mine", "node.kubernetes.io/unschedulable"]
    del node["spec"]["unschedulable"]
    default("Node", node)
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["mine"]


def test_a_node_may_allocate_what_it_has_unless_it_says_otherwise() -> None:
    node: dict[str, Any] = {"status": {"capacity": {"cpu": "4"}}}
    default("Node", node)
    assert node["status"]["allocatable"] == {"cpu": "4"}
    node["status"]["allocatable"] = {"cpu": "3"}
    default("Node", node)
    assert node["status"]["allocatable"] == {"cpu": "3"}


def test_templates_get_the_defaults_of_pods_without_admission() -> None:
    deployment = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a:1", "ports": [{"containerPort": 1}]}]}}}}
    default("Deployment", deployment)
    spec: Any = deployment["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": "25%", "maxSurge": "25%"}
    assert spec["template"]["spec"]["containers"][0]["ports"][0]["protocol"] == "TCP"
    assert "tolerations" not in spec["template"]["spec"]


CLASSES = {
    "high": {"value": 100},
    "quiet": {"value": 50, "preemptionPolicy": "Never"},
    "usual": {"value": 7, "globalDefault": True},
    "lower": {"value": 5, "globalDefault": True},
}


def admitted(pod: Any, classes: dict[str, Any]) -> None:
    core = Core()
    for name, each in classes.items():
        core.create("priorityclasses", {"metadata": {"name": name}, **each})
    admit_priority(core.type("pods"), pod, core.store)


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        ({}, {}, (None, 0, "PreemptLowerPriority")),
        ({}, CLASSES, ("lower", 5, "PreemptLowerPriority")),
        ({"priorityClassName": "high"}, CLASSES, ("high", 100, "PreemptLowerPriority")),
        ({"priorityClassName": "high", "priority": 100}, CLASSES, ("high", 100, "PreemptLowerPriority")),
        ({"priorityClassName": "quiet"}, CLASSES, ("quiet", 50, "Never")),
    ],
)
def test_a_class_becomes_a_priority(spec: dict[str, Any], classes: Any, expected: tuple[Any, ...]) -> None:
    made = {"metadata": {"name": "p"}, "spec": dict(spec)}
    admitted(made, classes)
    found: Any = made["spec"]
    assert (found.get("priorityClassName"), found["priority"], found["preemptionPolicy"]) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        ({"priority": 5}, r"the integer value of priority \(5\) must not be provided in pod spec"),
        ({"priorityClassName": "high", "preemptionPolicy": "Never"}, "the string value of PreemptionPolicy"),
    ],
)
def test_a_priority_that_contradicts_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError, match=message):
        admitted({"metadata": {"name": "p"}, "spec": spec}, {"high": {"value": 100}})
