"""Whether a plugin wrote into what it was shown: where, what it was, and what it is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import force_setattr as insist

from placewright.api.decode import convert
from placewright.api.objects import Node, NodeName
from placewright.api.storage import PersistentVolumeClaim, StorageClass
from placewright.api.workloads import Namespace, Service
from placewright.cluster.cluster import Cluster
from placewright.framework.runtime.snapshot import Snapshot
from placewright.testing import node, pod

SPEC: dict[str, Any] = {"containers": [{"name": "a"}, {"name": "b", "image": "x"}], "nodeSelector": {"disk": "ssd"}}

READ_ONLY = "allowed is only to read columns"
BACKWARDS = pod("backwards", containers=SPEC["containers"][::-1]).build().pod.spec.containers


class Shown:
    """Two nodes with a pod each, a plain one, some objects, and a pod that is asked about."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        for name in "ab":
            self.cluster.set_node(node(name, labels={"zone": name}, spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}).build())
            self.cluster.assume(pod(f"on-{name}", labels={"app": "x"}).build(), NodeName(name))
        self.plain = convert({"metadata": {"name": "plain"}, "spec": {"unschedulable": True}}, Node)
        self.cluster.set_node(self.plain)
        self.service = convert({"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "x"}}}, Service)
        self.namespace = convert({"metadata": {"name": "default", "labels": {"team": "t"}}}, Namespace)
        self.claim = convert({"metadata": {"name": "c", "namespace": "default", "annotations": {}}}, PersistentVolumeClaim)
        self.storage_class = convert({"metadata": {"name": "fast", "labels": {}}}, StorageClass)
        for each in (self.service, self.namespace, self.claim, self.storage_class):
            self.cluster.objects.put(each)
        self.asked = pod("asked", labels={"app": "web"}, **SPEC).build()
        self.snapshot = Snapshot(self.cluster, (object(), self.asked, self.cluster))

    def node(self, row: int) -> Any:
        return self.cluster.node(row)

    def standing(self, name: str) -> Any:
        (found,) = self.cluster.pods_on(NodeName(name))
        return found.pod

    @property
    def written(self) -> str:
        return self.snapshot.written()


def test_a_column_that_was_written_is_named_with_its_row() -> None:
    cluster = Shown().cluster
    snapshot = Snapshot(cluster, (), columns=True)
    assert snapshot.written() == ""
    cluster.resources.column("cpu").free[1] += 7
    found = snapshot.written()
    assert found == "it wrote into the column cluster.resources.column('cpu').free: row 1 (node b) was 4000 and is 4007; " + READ_ONLY


def test_who_only_reads_has_written_nothing() -> None:
    shown = Shown()
    _ = shown.asked.pod.spec.containers, shown.node(0).metadata.labels
    assert shown.written == ""


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda s: s.asked.pod.metadata.labels.update(new="1"), 'pod default/asked: metadata.labels.new was absent and is "1"'),
        (lambda s: s.asked.pod.metadata.labels.update(app="db"), 'pod default/asked: metadata.labels.app was "web" and is "db"'),
        (lambda s: s.asked.pod.metadata.labels.pop("app"), 'pod default/asked: metadata.labels.app was "web" and is absent'),
        (lambda s: s.asked.pod.spec.node_selector.clear(), 'pod default/asked: spec.nodeSelector.disk was "ssd" and is absent'),
        (lambda s: insist(s.asked.pod.spec, "containers", ()), "pod default/asked: spec.containers was ["),
        (lambda s: insist(s.asked.pod.spec, "containers", BACKWARDS), 'pod default/asked: spec.containers[0].name was "a" and is "b"'),
        (lambda s: s.node(1).metadata.labels.update(zone="z"), 'node b: metadata.labels.zone was "b" and is "z"'),
        (lambda s: insist(s.node(0).spec, "taints", None), "node a: spec.taints was [{"),
        (lambda s: insist(s.plain.spec, "taints", s.node(0).spec.taints), "node plain: spec.taints was absent and is [{"),
        (lambda s: insist(s.plain.metadata, "annotations", {"n": "1"}), 'node plain: metadata.annotations was absent and is {"n":"1"}'),
        (lambda s: insist(s.node(0).spec, "taints", ()), "node a: spec.taints was [{"),
        (lambda s: s.standing("b").metadata.labels.update(app="y"), 'pod default/on-b: metadata.labels.app was "x" and is "y"'),
        (lambda s: s.service.spec.selector.update(app="y"), 'Service default/s: spec.selector.app was "x" and is "y"'),
        (lambda s: s.namespace.metadata.labels.clear(), 'Namespace default: metadata.labels.team was "t" and is absent'),
        (lambda s: s.claim.metadata.annotations.update(n="1"), "PersistentVolumeClaim default/c: metadata.annotations"),
        (lambda s: s.storage_class.metadata.labels.update(n="1"), "StorageClass fast: metadata.labels"),
    ],
)
def test_the_first_thing_that_is_not_as_it_was_is_told(write: Any, said: str) -> None:
    shown = Shown()
    write(shown)
    assert shown.written.startswith(f"it wrote into {said}")
    assert shown.written.endswith("; allowed is only to read objects")


def test_a_list_that_became_longer_is_told_as_a_whole_and_cut_short() -> None:
    shown = Shown()
    insist(shown.asked.pod.spec, "containers", 3 * shown.asked.pod.spec.containers)
    was, _, now = shown.written.partition("spec.containers was ")[2].partition("; ")[0].partition(" and is ")
    assert was == '[{"name":"a"},{"name":"b","image":"x"}]'
    assert now == (3 * f",{was[1:-1]}").replace(",", "[", 1)[:80]


def test_objects_that_come_or_go_meanwhile_are_no_writes() -> None:
    shown = Shown()
    shown.cluster.set_node(node("c").build())
    shown.cluster.remove_node(NodeName("a"))
    shown.cluster.remove_pod("on-b")
    assert shown.written == ""


def test_a_pod_that_is_asked_about_and_is_on_a_node_is_looked_at_once() -> None:
    shown = Shown()
    (standing,) = shown.cluster.pods_on(NodeName("a"))
    snapshot = Snapshot(shown.cluster, (standing,))
    standing.pod.metadata.labels["app"] = "y"  # type: ignore[index]
    assert snapshot.written().count("metadata.labels.app") == 1
