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
    assert plain.pairwise_key == info({"priority": 7, "nodeName": "x"}, labels={"b": "2", "a": "1"}).pairwise_key
    assert plain.pairwise_key != info(labels={"a": "1"}).pairwise_key
    assert plain.pairwise_key != info(labels={"a": "1", "b": "2"}, namespace="other").pairwise_key
    assert plain.pairwise_key != info(labels={"a": "1", "b": "2"}, deletionTimestamp="2026-01-01T00:00:00Z").pairwise_key
    assert plain.pairwise_key != info(affinity, labels={"a": "1", "b": "2"}).pairwise_key
    assert info(affinity).pairwise_key == info(affinity).pairwise_key
    assert [info(**meta).pairwise_key.terminating for meta in ({}, {"deletionTimestamp": "2026-01-01T00:00:00Z"})] == [False, True]
    assert info({"affinity": {"nodeAffinity": {}}}).pairwise_key == info().pairwise_key


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


# --- who a pod is ------------------------------------------------------------------------------------------------------------------


def test_a_pod_knows_what_it_was_told() -> None:
    told = {"priority": -5, "nodeName": "here", "schedulerName": "batch"}
    found = info(told, {"nominatedNodeName": "there"}, labels={"a": "b"}, creationTimestamp="2026-01-01T00:00:00Z", deletionTimestamp="t")
    assert (found.name, found.namespace, found.uid, found.node_name) == ("p", "n", "u", "here")
    assert (found.priority, found.scheduler_name, found.nominated_node) == (-5, "batch", "there")
    assert (found.labels, found.created, found.terminating) == ({"a": "b"}, "2026-01-01T00:00:00Z", True)
    assert repr(found) == "PodInfo(n/p, uid=u)"
    assert (info().created, info().nominated_node, info().pod_group) == ("", "", None)


def test_a_pod_put_on_a_node_keeps_everything_but_the_node() -> None:
    found = info({"containers": [{"resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}], "priority": 3})
    placed = found.on(NodeName("here"))
    assert placed.node_name == "here"
    fields = ("pod", "key", "uid", "requests", "scoring_cpu", "scoring_memory", "host_ports", "volumes")
    for field in (*fields, "pairwise_key", "priority", "pod_group"):
        assert getattr(placed, field) is getattr(found, field), field


def test_a_pod_is_annotated_anew_without_a_change_to_the_one_before() -> None:
    before = info(annotations={"keep": "1", "drop": "2", "change": "3"})
    after = before.annotated({"drop": None, "change": "4", "new": "5", "never": None})
    assert after.pod.metadata.annotations == {"keep": "1", "change": "4", "new": "5"}
    assert before.pod.metadata.annotations == {"keep": "1", "drop": "2", "change": "3"}
    assert (after.key, after.pairwise_key, after.pod.spec) == (before.key, before.pairwise_key, before.pod.spec)
    assert info().annotated({"a": "b"}).pod.metadata.annotations == {"a": "b"}
    assert info().annotated({}).pod.metadata.annotations == {}


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, True), ({"ephemeral": {}}, True), ({"gcePersistentDisk": {"pdName": "d"}}, True),
        ({"awsElasticBlockStore": {"volumeID": "v"}}, True), ({"iscsi": {"iqn": "i"}}, True), ({"rbd": {"image": "i"}}, True),
        ({"azureDisk": {"diskName": "d"}}, True), ({"azureFile": {"shareName": "s"}}, True), ({"cinder": {"volumeID": "v"}}, True),
        ({"vsphereVolume": {"volumePath": "p"}}, True), ({"portworxVolume": {"volumeID": "v"}}, True),
        ({"emptyDir": {}}, False), ({"configMap": {"name": "c"}}, False), ({"hostPath": {"path": "/"}}, False), ({"nfs": {}}, False),
        ({"csi": {"driver": "d"}}, False), ({"image": {"reference": "i"}}, False), ({"projected": {}}, False), ({}, False),
    ],
)  # fmt: skip
def test_volumes_count_that_claims_or_disks_provide(source: dict[str, Any], *, counts: bool) -> None:
    found = info({"volumes": [{"name": "plain", "secret": {}}, {"name": "v", **source}]})
    assert [volume.name for volume in found.volumes] == (["v"] if counts else [])


@pytest.mark.parametrize(
    ("port", "claims"),
    [
        ({"hostPort": 80}, [("TCP", 80, "0.0.0.0")]), ({"hostPort": 1, "protocol": "SCTP"}, [("SCTP", 1, "0.0.0.0")]),
        ({"hostPort": 80, "hostIP": "::"}, [("TCP", 80, "::")]), ({"hostPort": 80, "hostIP": ""}, [("TCP", 80, "0.0.0.0")]),
        ({"hostPort": 0}, []), ({"hostPort": -1}, []), ({}, []),
    ],
)  # fmt: skip
def test_a_host_port_is_claimed_for_its_protocol_and_address(port: dict[str, Any], claims: list[tuple[str, int, str]]) -> None:
    assert info({"containers": [{"ports": [port]}]}).host_ports == tuple(claims)
    assert info({"containers": [], "initContainers": [{"ports": [port], "restartPolicy": "Always"}]}).host_ports == tuple(claims)
    assert info({"initContainers": [{"ports": [port], "restartPolicy": "OnFailure"}]}).host_ports == ()


# --- what groups tell apart --------------------------------------------------------------------------------------------------------


def term(key: str = "zone", app: str = "web", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def affine(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


@pytest.mark.parametrize(
    "other",
    [
        {}, affine("podAntiAffinity", term()), affine("podAffinity", term("rack")), affine("podAffinity", term(app="db")),
        affine("podAffinity", term(namespaces=["n"])), affine("podAffinity", term(namespaceSelector={})),
        affine("podAffinity", term(), term()), {"affinity": {"nodeAffinity": {}}}, {"affinity": {}},
    ],
)  # fmt: skip
def test_pods_whose_affinities_mean_different_things_are_in_different_groups(other: dict[str, Any]) -> None:
    assert info(affine("podAffinity", term())).pairwise_key != info(other).pairwise_key


def test_an_affinity_is_the_same_whatever_the_order_of_its_labels() -> None:
    one, other = ({"matchLabels": labels} for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))
    groups = [info(affine("podAffinity", {"topologyKey": "zone", "labelSelector": selector})).pairwise_key for selector in (one, other)]
    assert groups[0] == groups[1]
    assert len(set(groups)) == 1
    assert groups[0].affinity


@pytest.mark.parametrize("affinity", [None, {}, {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}])
def test_a_pod_that_neither_attracts_nor_repels_pods_carries_nothing(affinity: dict[str, Any] | None) -> None:
    assert info({"affinity": affinity}).pairwise_key.affinity == b""


def test_a_resize_counts_only_where_the_pod_stands() -> None:
    status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3", "memory": "5"}}}]}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "5"}}}]
    waiting, standing = info({"containers": containers}, status), info({"containers": containers, "nodeName": "here"}, status)
    assert (waiting.requests["cpu"], waiting.scoring_cpu) == (1000, 1000)
    assert (standing.requests["cpu"], standing.scoring_cpu, standing.scoring_memory) == (3000, 3000, 5)


ASKING = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}]}
SHAPES: dict[str, Any] = {
    "waiting": (ASKING, {}),
    "bound": (ASKING | {"nodeName": "a", "priority": 7}, {"phase": "Running"}),
    "more": ({"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}, {}),
    "with a sidecar": (ASKING | {"initContainers": [{"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 1}]}]}, {}),
    "with overhead": (ASKING | {"overhead": {"cpu": "100m"}}, {}),
    "as a whole": (ASKING | {"resources": {"requests": {"cpu": "3"}}}, {}),
    "with a claim": (ASKING | {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, {}),
    "being resized": (
        ASKING | {"nodeName": "a"}, {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}
    ),
    "resized as a whole": (
        ASKING | {"nodeName": "a", "resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "5"}}}
    ),
}  # fmt: skip


@pytest.mark.parametrize("known", SHAPES)
@pytest.mark.parametrize("shown", SHAPES)
def test_what_is_taken_over_from_a_known_pod_is_what_would_be_computed(known: str, shown: str) -> None:
    before, after = info(*SHAPES[known]), info(*SHAPES[shown])
    found = PodInfo(after.pod, before)
    for name in PodInfo.__slots__:
        assert getattr(found, name) == getattr(after, name), name


def test_a_pod_that_asks_for_the_same_as_before_is_not_computed_again() -> None:
    before = info(*SHAPES["waiting"])
    assert PodInfo(info(*SHAPES["bound"]).pod, before).requests is before.requests
