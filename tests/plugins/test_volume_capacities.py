"""What drivers say of their room is read when it changes, and what it means for nodes follows their labels."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.objects import LabelSelector
from placewright.api.selectors import Selector, compile_label_selector
from placewright.api.storage import CSIStorageCapacity
from placewright.cluster.cluster import Cluster
from placewright.offline.world import world_from
from placewright.plugins.volumebinding import VolumeBinding, reach
from plugins.pairwise import build
from plugins.test_volume_binding import WAITS, answers, claim, node, opened, web
from plugins.volume_worlds import HOST, NO_SPACE

Body = dict[str, Any]


def capacity(name: str, host: str, amount: str, **more: Any) -> Body:
    body = {"storageClassName": "counted", "capacity": amount, "nodeTopology": {"matchLabels": {HOST: host}}} | more
    return {"kind": "CSIStorageCapacity", "metadata": {"name": name, "namespace": "kube-system"}, **body}


CLASS = {"kind": "StorageClass", "metadata": {"name": "counted"}, "provisioner": "counter", "volumeBindingMode": WAITS}
DRIVER = {"kind": "CSIDriver", "metadata": {"name": "counter"}, "spec": {"storageCapacity": True}}
NODES = [node(f"n{i}") for i in range(3)]
ROOM = [capacity(f"room{i}", f"n{i}", f"{i + 1}Gi") for i in range(3)]


def small() -> list[Body]:
    demand = claim("data", storage_class="counted", spec={"resources": {"requests": {"storage": "2Gi"}}})
    return [*NODES, CLASS, DRIVER, *ROOM, demand, web("data")]


def put(cluster: Cluster, body: Body) -> None:
    (shown,) = world_from([body], "test").cluster.objects.storage.tables[CSIStorageCapacity].values()
    cluster.objects.put(shown)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[LabelSelector]:
    """The selectors that were compiled."""
    seen: list[LabelSelector] = []

    def noted(selector: LabelSelector) -> Selector:
        seen.append(selector)
        return compile_label_selector(selector)

    monkeypatch.setattr(reach, "compile_label_selector", noted)
    return seen


def test_a_selector_is_compiled_once_and_again_when_its_object_changed(compiled: list[LabelSelector]) -> None:
    cluster, pod = opened(small())
    plugin = build(VolumeBinding, cluster)
    assert answers(plugin, cluster, pod) == {"n0": [NO_SPACE], "n1": [], "n2": []}
    assert len(compiled) == 3
    cluster.set_node(world_from([node("n0", zone="a")], "test").cluster.node(0))
    assert answers(plugin, cluster, pod) == {"n0": [NO_SPACE], "n1": [], "n2": []}
    assert len(compiled) == 3
    put(cluster, capacity("room0", "n0", "5Gi"))
    assert answers(plugin, cluster, pod) == {"n0": [], "n1": [], "n2": []}
    assert len(compiled) == 4


def test_room_moves_with_the_labels_that_it_speaks_of() -> None:
    cluster, pod = opened(small())
    plugin = build(VolumeBinding, cluster)
    assert answers(plugin, cluster, pod) == {"n0": [NO_SPACE], "n1": [], "n2": []}
    renamed = node("n0") | {"metadata": {"name": "n0", "labels": {HOST: "n2"}}}
    cluster.set_node(world_from([renamed], "test").cluster.node(0))
    assert answers(plugin, cluster, pod) == {"n0": [], "n1": [], "n2": []}


def test_room_that_is_gone_counts_no_more() -> None:
    cluster, pod = opened(small())
    plugin = build(VolumeBinding, cluster)
    answers(plugin, cluster, pod)
    table = cluster.objects.storage.capacities
    for each in list(table.values()):
        cluster.objects.remove(each)
    assert answers(plugin, cluster, pod) == {"n0": [NO_SPACE], "n1": [NO_SPACE], "n2": [NO_SPACE]}


@pytest.mark.parametrize(
    "broken",
    [
        {"capacity": "much"},
        {"capacity": None},
        {"maximumVolumeSize": "much"},
        {"nodeTopology": None},
        {"nodeTopology": {"matchExpressions": [{"key": HOST, "operator": "Near", "values": ["n2"]}]}},
    ],
    ids=str,
)
def test_room_that_nobody_can_read_serves_nobody_and_harms_nobody(broken: Body) -> None:
    objects = [each for each in small() if each["metadata"]["name"] != "room2"]
    cluster, pod = opened([*objects, capacity("room2", "n2", "9Gi", **broken)])
    assert answers(build(VolumeBinding, cluster), cluster, pod) == {"n0": [NO_SPACE], "n1": [], "n2": [NO_SPACE]}


def test_what_was_read_of_objects_that_are_gone_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "_SPARE", 5)
    cluster, pod = opened(small())
    plugin = build(VolumeBinding, cluster)
    for number in range(30):
        put(cluster, capacity(f"passing{number}", "n0", "1Gi"))
        answers(plugin, cluster, pod)
        (passing,) = [each for each in cluster.objects.storage.capacities.values() if each.metadata.name == f"passing{number}"]
        cluster.objects.remove(passing)
    assert len(plugin._reach._capacities._read) <= 3 + 5 + 1


def test_fractions_of_a_byte_are_rounded_up_on_both_sides() -> None:
    demand = claim("data", storage_class="counted", spec={"resources": {"requests": {"storage": "1000m"}}})
    cluster, pod = opened([NODES[0], CLASS, DRIVER, capacity("room", "n0", "100m"), demand, web("data")])
    assert answers(build(VolumeBinding, cluster), cluster, pod) == {"n0": []}
