"""What is derived from a pod once, and what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.decode import DecodeError, convert, decode
from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import HostPort, PodInfo
from placewright.api.quantity import QuantityError


def info(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any) -> PodInfo:
    body = {"metadata": {"name": "p", "namespace": "n", "uid": "u", **meta}, "spec": spec or {}, "status": status or {}}
    return PodInfo(convert(body, Pod))


def test_only_host_ports_of_containers_and_sidecars_are_claimed() -> None:
    ports = [{"containerPort": 1}, {"hostPort": 80}, {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    starting = {"ports": [{"hostPort": 1}]}
    beside = {"ports": [{"hostPort": 2}], "restartPolicy": "Always"}
    found = info({"containers": [{"ports": ports}, {}], "initContainers": [starting, beside]}).host_ports
    assert found == (HostPort("TCP", 80, "0.0.0.0"), HostPort("UDP", 53, "10.0.0.1"), HostPort("TCP", 2, "0.0.0.0"))


def test_pods_that_others_cannot_tell_apart_are_in_one_group() -> None:
    affinity = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}}
    plain = info(labels={"a": "1", "b": "2"})
    assert plain.group == info({"priority": 7, "nodeName": "x"}, labels={"b": "2", "a": "1"}).group
    assert plain.group != info(labels={"a": "1"}).group
    assert plain.group != info(labels={"a": "1", "b": "2"}, namespace="other").group
    assert plain.group != info(labels={"a": "1", "b": "2"}, deletionTimestamp="2026-01-01T00:00:00Z").group
    assert plain.group != info(affinity, labels={"a": "1", "b": "2"}).group
    assert info(affinity).group == info(affinity).group
    assert info({"affinity": {"nodeAffinity": {}}}).group == info().group


def test_a_pod_knows_its_key_and_defaults() -> None:
    pod = info()
    assert (pod.key, pod.priority, pod.scheduler_name, pod.node_name, pod.labels) == ("n/p", 0, "default-scheduler", "", {})
    assert not pod.terminating
    assert not pod.finished


def test_a_pod_put_on_a_node_is_another_object() -> None:
    pod = info()
    placed = pod.on(NodeName("here"))
    assert (pod.node_name, placed.node_name, placed.uid) == ("", "here", "u")


@pytest.mark.parametrize(("phase", "finished"), [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)])
def test_a_pod_that_has_ended_holds_nothing(phase: str, finished: bool) -> None:
    assert info(status={"phase": phase}).finished is finished


def test_a_pod_with_a_bad_quantity_is_refused() -> None:
    with pytest.raises(QuantityError, match="'lots' is not a quantity"):
        info({"containers": [{"resources": {"requests": {"cpu": "lots"}}}]})


@pytest.mark.parametrize(
    ("kind", "raw", "said"),
    [
        (Pod, b'{"spec": {"priority": "high"}}', "$.spec.priority"),
        (Pod, b'{"spec": {"containers": {}}}', "$.spec.containers"),
        (Pod, b'{"spec": {"containers": [7]}}', "$.spec.containers[0]"),
        (Pod, b'{"metadata": {"labels": {"a": 1}}}', "$.metadata.labels"),
        (Node, b'{"spec": {"unschedulable": "yes"}}', "$.spec.unschedulable"),
        (Node, b'{"status": {"allocatable": {"cpu": []}}}', "$.status.allocatable"),
        (Node, b"[]", "Expected `object`, got `array`"),
        (Node, b'{"status": ', "truncated"),
        (Node, b"\xff\xfe", "malformed"),
        (Pod, b"", "truncated"),
    ],
)
def test_a_body_of_the_wrong_shape_is_refused_with_the_field(kind: type[Any], raw: bytes, said: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decode(raw, kind)
    assert str(refused.value).startswith(f"{kind.__name__}: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_parsed_mapping_of_the_wrong_shape_is_refused_too() -> None:
    with pytest.raises(DecodeError, match=r"Pod: .*\$\.spec\.nodeName"):
        convert({"spec": {"nodeName": 7}}, Pod)


def test_fields_that_placement_does_not_look_at_are_passed_over() -> None:
    pod = decode(b'{"metadata": {"name": "p", "managedFields": [1]}, "spec": {"dnsPolicy": {}}, "extra": true}', Pod)
    assert pod.metadata.name == "p"


def test_an_absurdly_deep_body_is_refused_and_does_not_end_the_process() -> None:
    with pytest.raises(DecodeError):
        decode(b'{"spec": {"tolerations": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}", Pod)
