"""What drivers say of their room is read when it changes, and what it means for nodes follows their labels."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.objects import LabelSelector
from placewright.api.selectors import Selector, compile_label_selector
from placewright.plugins.volumebinding import reach
from placewright.plugins.volumebinding.plugin import VolumeBinding
from placewright.testing import csi_driver, node, persistent_volume_claim, storage_capacity, storage_class
from placewright.testing.volumes import StorageCapacityMaker
from plugins.pairwise import build
from plugins.test_volume_binding import Shown, answers, opened, web
from plugins.volume_worlds import HOST, NO_SPACE


def capacity(name: str, host: str, amount: str) -> StorageCapacityMaker:
    return storage_capacity(name, "counted", amount).nodes({HOST: host}).namespace("kube-system")


CLASS, DRIVER = storage_class("counted").provisioner("counter"), csi_driver("counter").tells_capacity()
NODES = [node(f"n{i}") for i in range(3)]
ROOM = [capacity(f"room{i}", f"n{i}", f"{i + 1}Gi") for i in range(3)]
DEMAND = persistent_volume_claim("data", "2Gi").storage_class("counted")


def small(rooms: int = 3) -> list[Shown]:
    return [*NODES, CLASS, DRIVER, *ROOM[:rooms], DEMAND, web("data")]


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
    cluster.set_node(NODES[0].zone("a").build())
    assert answers(plugin, cluster, pod) == {"n0": [NO_SPACE], "n1": [], "n2": []}
    assert len(compiled) == 3
    cluster.objects.put(capacity("room0", "n0", "5Gi").build())
    assert answers(plugin, cluster, pod) == {"n0": [], "n1": [], "n2": []}
    assert len(compiled) == 4


def test_room_moves_with_the_labels_that_it_speaks_of() -> None:
    cluster, pod = opened(small())
    plugin = build(VolumeBinding, cluster)
    assert answers(plugin, cluster, pod) == {"n0": [NO_SPACE], "n1": [], "n2": []}
    cluster.set_node(NODES[0].labels({HOST: "n2"}).build())
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
def test_room_that_nobody_can_read_serves_nobody_and_harms_nobody(broken: dict[str, Any]) -> None:
    cluster, pod = opened([*small(2), capacity("room2", "n2", "9Gi").manifest | broken])
    assert answers(build(VolumeBinding, cluster), cluster, pod) == {"n0": [NO_SPACE], "n1": [], "n2": [NO_SPACE]}


def test_what_was_read_of_objects_that_are_gone_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "_SPARE", 5)
    cluster, pod = opened(small())
    plugin = build(VolumeBinding, cluster)
    for number in range(30):
        passing = capacity(f"passing{number}", "n0", "1Gi").build()
        cluster.objects.put(passing)
        answers(plugin, cluster, pod)
        cluster.objects.remove(passing)
    assert len(plugin._reach._capacities._read) <= 3 + 5 + 1


def test_fractions_of_a_byte_are_rounded_up_on_both_sides() -> None:
    demand = persistent_volume_claim("data", "1000m").storage_class("counted")
    cluster, pod = opened([NODES[0], CLASS, DRIVER, capacity("room", "n0", "100m"), demand, web("data")])
    assert answers(build(VolumeBinding, cluster), cluster, pod) == {"n0": []}
