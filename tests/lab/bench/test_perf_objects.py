"""The objects of scheduler_perf's workloads: numbered, prepared, bound to each other, and the same each time they are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from placewright_lab.bench.schedulerperf import perfobjects
from placewright_lab.bench.schedulerperf.operations import (
    AllocatableStrategy,
    CreateNodes,
    CreatePods,
    LabelStrategy,
    NotKnown,
    Template,
    UniqueLabelStrategy,
)


def template(text: str) -> Template:
    return Template(Path("template.yaml"), text)


NODE = template("{apiVersion: v1, kind: Node, metadata: {generateName: perf-}, status: {capacity: {cpu: 8, pods: '110'}}}")
POD = template("{apiVersion: v1, kind: Pod, metadata: {generateName: web-, labels: {app: 'a{{Mod .Index 2}}'}}, spec: {priority: 10}}")
VOLUME = template("{apiVersion: v1, kind: PersistentVolume, spec: {csi: {driver: d}, capacity: {storage: 1Gi}}}")
IN_TREE = template("{apiVersion: v1, kind: PersistentVolume, spec: {awsElasticBlockStore: {volumeID: x}}}")
CLAIM = template(
    "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {done: 'yes'}}, spec: {accessModes: [ReadOnlyMany]}}"
)


def test_nodes_without_a_template_are_upstreams() -> None:
    (node, csi_node), (second, _) = perfobjects.nodes(CreateNodes(2), 0, hostnames=True)
    assert node["status"]["capacity"] == {"pods": "110", "cpu": "4", "memory": "32Gi"}
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": node["metadata"]["name"]}
    assert node["metadata"]["name"] != second["metadata"]["name"]
    assert csi_node is None


def test_nodes_are_the_same_each_time_and_others_for_another_operation() -> None:
    operation = CreateNodes(3, NODE, unique=UniqueLabelStrategy("host"))
    made = list(perfobjects.nodes(operation, 2, hostnames=False))
    assert made == list(perfobjects.nodes(operation, 2, hostnames=False))
    names = {node["metadata"]["name"] for node, _ in made}
    assert all(name.startswith("perf-") for name in names)
    assert names.isdisjoint(node["metadata"]["name"] for node, _ in perfobjects.nodes(operation, 3, hostnames=False))
    assert len({node["metadata"]["labels"]["host"] for node, _ in made}) == 3


def test_labels_of_a_strategy_go_round() -> None:
    operation = CreateNodes(4, NODE, labelled=LabelStrategy("zone", ("a", "b", "c")))
    made = perfobjects.nodes(operation, 0, hostnames=False)
    assert [node["metadata"]["labels"] for node, _ in made] == [{"zone": zone} for zone in ("a", "b", "c", "a")]


def test_allocatable_room_is_beside_the_capacity_and_a_csi_node_beside_the_node() -> None:
    strategy = AllocatableStrategy({"volumes": "39"}, {"driver": {"count": 39}}, ("one", "two"))
    ((node, csi_node),) = perfobjects.nodes(CreateNodes(1, NODE, allocatable=strategy), 0, hostnames=False)
    assert node["status"]["allocatable"] == {"cpu": 8, "pods": "110", "volumes": "39"}
    assert csi_node is not None
    assert csi_node["metadata"]["name"] == node["metadata"]["name"]
    assert csi_node["metadata"]["annotations"] == {"storage.alpha.kubernetes.io/migrated-plugins": "one,two"}
    assert csi_node["spec"]["drivers"] == [{"name": "driver", "nodeID": node["metadata"]["name"], "allocatable": {"count": 39}}]


def test_pods_follow_their_template_by_number() -> None:
    made = [pod for pod, before in perfobjects.pods(CreatePods(3, POD), None, 1, "there") if not before]
    assert [pod["metadata"]["labels"]["app"] for pod in made] == ["a0", "a1", "a0"]
    assert [pod["metadata"]["name"] for pod in made] == ["web-1-00000", "web-1-00001", "web-1-00002"]
    assert all("generateName" not in pod["metadata"] for pod in made)
    assert made[0]["spec"] == {"priority": 10}


def test_the_default_template_is_for_operations_without_one_and_upstreams_pod_for_all_else() -> None:
    ((pod, _),) = perfobjects.pods(CreatePods(1), POD, 0, "there")
    assert pod["spec"] == {"priority": 10}
    ((pod, _),) = perfobjects.pods(CreatePods(1), None, 0, "there")
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "500Mi"}


@pytest.mark.parametrize(
    ("volume", "source"),
    [
        (VOLUME, {"csi": {"driver": "d", "volumeHandle": "ns-vol-1"}}),
        (IN_TREE, {"awsElasticBlockStore": {"volumeID": "vol-1"}}),
    ],
)
def test_each_pod_has_a_claim_and_a_volume_that_name_each_other(volume: Template, source: dict[str, object]) -> None:
    _, (pod, (claim, made)) = perfobjects.pods(CreatePods(2, POD, volume=volume, claim=CLAIM), None, 0, "ns")
    assert pod["spec"]["volumes"] == [{"name": "vol", "persistentVolumeClaim": {"claimName": "pvc-1"}}]
    assert claim["metadata"] == {"name": "pvc-1", "annotations": {"done": "yes"}}
    assert claim["spec"] == {"accessModes": ["ReadOnlyMany"], "volumeName": made["metadata"]["name"]}
    assert made["spec"]["claimRef"]["namespace"] == "ns"
    assert made["spec"]["claimRef"]["name"] == "pvc-1"
    assert source.items() <= made["spec"].items()
    assert claim["status"] == made["status"] == {"phase": "Bound"}


def test_an_object_of_any_kind_keeps_its_own_name() -> None:
    named = template("{apiVersion: v1, kind: Service, metadata: {name: 'web-{{.Index}}'}}")
    assert perfobjects.numbered(named, 4, 9, 2)["metadata"] == {"name": "web-4"}
    (first, second) = perfobjects.namespaces(template("{apiVersion: v1, kind: Namespace, metadata: {labels: {a: b}}}"), "ns", 2)
    assert first["metadata"] == {"name": "ns-0", "labels": {"a": "b"}}
    assert second["metadata"]["name"] == "ns-1"


@pytest.mark.parametrize(("text", "said"), [("[1]", "holds no object"), ("a: [", "template.yaml"), ("kind: {{ .Nope }}", ".Nope")])
def test_a_template_that_is_no_object_is_named(text: str, said: str) -> None:
    with pytest.raises(NotKnown, match=said):
        perfobjects.rendered(template(text), 0, 1)
