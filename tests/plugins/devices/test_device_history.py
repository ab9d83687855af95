"""What is kept up to date with each change says what a fresh reading says, after any history."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from device_worlds import (
    KINDS,
    Dice,
    a_claim,
    a_node,
    cluster_of,
    devices_of,
    exactly,
    read,
    read_claim,
    slice_of,
    table,
    world,
)
from device_worlds import device as made

from placewright.api.devices import ResourceClaim, ResourceClaimStatus
from placewright.api.objects import Node, NodeName
from placewright.cluster.cluster import Cluster
from placewright.plugins.dynamicresources.devices import Allocated, ClusterDevices
from seeds import seeds

Body = dict[str, Any]
STEPS = 25


def probes(dice: Dice) -> list[list[ResourceClaim]]:
    return [[read_claim(a_claim(exactly("r", count=n)))] for n in (1, 2)] + [[read_claim(dice.claim(f"probe-{i}"))] for i in range(3)]


def answers(devices: ClusterDevices, row: int, asked: list[list[ResourceClaim]]) -> list[str]:
    """Without share ids, which are new each time."""
    found = []
    for claims in asked:
        answer = devices.allocate(row, claims)
        text = repr(answer)
        if isinstance(answer, Allocated):
            results = [each for one in answer.allocations for each in one.devices.results or ()]
            text = repr([msgspec.structs.replace(each, share_id=None) for each in results])
        found.append(text)
    return found


def columns(devices: ClusterDevices, asked: list[list[ResourceClaim]]) -> list[list[bool] | None]:
    found = [devices.candidates(claims) for claims in asked]
    return [None if column is None else column.tolist() for column in found]


class History:
    """Changes a cluster as drivers, administrators, nodes and the scheduler itself do."""

    def __init__(self, dice: Dice, world: Body, cluster: Cluster) -> None:
        self.dice, self.world, self.cluster = dice, world, cluster

    def happen(self) -> None:
        self.dice.random.choice([self.put, self.put, self.remove, self.move_node, self.assume, self.restore])()

    def put(self) -> None:
        """A slice is published or replaced, a rule or a class is written, a claim is seen; versions grow."""
        kind = self.dice.random.choice(["slices", "slices", "rules", "classes", "claims"])
        other = self.dice.world()
        if not other[kind]:
            return
        item = self.dice.random.choice(other[kind])
        if self.dice.chance(50) and self.world[kind]:
            item = {**item, "metadata": self.dice.random.choice(self.world[kind])["metadata"]}
        item["metadata"] = {**item["metadata"], "resourceVersion": str(next(self.dice.names))}
        self.world[kind].append(item)
        table(self.cluster, kind).put(read(kind, item))

    def remove(self) -> None:
        kind = self.dice.random.choice(sorted(KINDS))
        known = list(table(self.cluster, kind).values())
        if known and not (kind == "classes" and len(known) < 3):
            table(self.cluster, kind).remove(self.dice.random.choice(known))

    def move_node(self) -> None:
        name = f"n{self.dice.random.randrange(3)}"
        if self.cluster.row(NodeName(name)) is not None and self.cluster.node_count > 1 and self.dice.chance(40):
            self.cluster.remove_node(NodeName(name))
        else:
            self.cluster.set_node(msgspec.convert(a_node(name, zone=self.dice.random.choice("ab")), Node))

    def assume(self) -> None:
        """A claim gets devices, as far as we are concerned."""
        new = a_claim(exactly("r", count=self.dice.random.choice([1, 2])), name=f"mine-{next(self.dice.names)}")
        asked = read_claim(new)
        table(self.cluster, "claims").put(asked)
        devices = devices_of(self.cluster)
        answer = devices.allocate(int(self.dice.random.choice(list(self.cluster.rows()))), [asked])
        if isinstance(answer, Allocated):
            status = ResourceClaimStatus(answer.allocations[0])
            table(self.cluster, "claims").assume(msgspec.structs.replace(asked, status=status))

    def restore(self) -> None:
        claims = list(table(self.cluster, "claims").values())
        if claims:
            table(self.cluster, "claims").restore(self.dice.random.choice(claims))


@seeds(range(40), at_once=5)
def test_after_any_history_each_row_gets_what_a_fresh_reading_gives_and_a_kept_version_means_the_same_answer(seed: int) -> None:
    dice = Dice(seed)
    made = dice.world()
    cluster = cluster_of(made)
    kept, asked, history = devices_of(cluster), probes(dice), History(dice, made, cluster)
    before: dict[int, tuple[int, list[str]]] = {}
    for _ in range(STEPS):
        history.happen()
        kept.refresh()
        fresh = devices_of(cluster)
        assert columns(kept, asked) == columns(fresh, asked)
        for row in map(int, cluster.rows()):
            now = answers(kept, row, asked)
            assert now == answers(fresh, row, asked)
            version, then = before.get(row, (-1, now))
            assert version <= kept.inventory.version(row)
            assert version < kept.inventory.version(row) or now == then
            before[row] = (kept.inventory.version(row), now)


def test_an_allocation_on_one_node_leaves_the_versions_of_other_nodes_alone() -> None:
    cluster = cluster_of(world(slice_of(made("a")), slice_of(made("a"), pool="n1"), nodes=[a_node("n0"), a_node("n1")]))
    devices = devices_of(cluster)
    before = [devices.inventory.version(row) for row in range(2)]
    asked = read_claim(a_claim(exactly("r")))
    answer = devices.allocate(1, [asked])
    assert isinstance(answer, Allocated)
    table(cluster, "claims").put(asked)
    table(cluster, "claims").assume(msgspec.structs.replace(asked, status=ResourceClaimStatus(answer.allocations[0])))
    devices.refresh()
    assert devices.inventory.version(0) == before[0]
    assert devices.inventory.version(1) > before[1]


def test_a_reader_too_far_behind_starts_anew() -> None:
    cluster = cluster_of(world(slice_of(made("a"))))
    devices = devices_of(cluster)
    rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {}, "taint": {"key": "k", "effect": "NoSchedule"}}}
    for _ in range(140_000):
        cluster.objects.devices.taint_rules.changes.append("r")
    table(cluster, "rules").put(read("rules", rule))
    devices.refresh()
    asked = [read_claim(a_claim(exactly("r")))]
    assert not isinstance(devices.allocate(0, asked), Allocated)
    column = devices.candidates(asked)
    assert column is not None and not column.any()


@pytest.mark.parametrize("counted", [False, True])
def test_devices_of_a_pool_for_many_nodes_touch_other_rows_only_when_they_draw_on_the_same_counters(counted: bool) -> None:
    draws = {"consumesCounters": [{"counterSet": "chip", "counters": {"slots": {"value": "1"}}}]} if counted else {}
    slices = [slice_of(made(name, **draws), pool="p", nodeName=name, name=name, count=3) for name in ("n0", "n1")]
    counters = slice_of(pool="p", nodeName="n0", count=3, sharedCounters=[{"name": "chip", "counters": {"slots": {"value": "1"}}}])
    cluster = cluster_of(world(*slices, counters, nodes=[a_node("n0"), a_node("n1")]))
    devices, asked = devices_of(cluster), read_claim(a_claim(exactly("r")))
    before = devices.inventory.version(1)
    answer = devices.allocate(0, [asked])
    assert isinstance(answer, Allocated)
    table(cluster, "claims").put(asked)
    table(cluster, "claims").assume(msgspec.structs.replace(asked, status=ResourceClaimStatus(answer.allocations[0])))
    devices.refresh()
    assert (devices.inventory.version(1) > before) == counted
    assert isinstance(devices.allocate(1, [read_claim(a_claim(exactly("r")))]), Allocated) != counted
