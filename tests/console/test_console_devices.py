"""Devices of ResourceSlices are resources of the map like any other, and the labels to group by are few: both held to naive counts."""

from __future__ import annotations

import random
import string
from collections import defaultdict
from typing import Any

import pytest

from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.offline.world import read_object
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright_console.pages.feed import Feed
from placewright_console.pages.grouplabels import MOST_LABELS, MOST_VALUES, LabelCounts
from placewright_console.pages.noderows import MOST_KINDS, ConsoleNodes
from randomcases import cases

from .companymakers import device_claim, devices, given
from .makers import ZONE, Object, a_node, put

GPU, NIC = "devices:gpu.example.com", "devices:nic.example.com"
MEMORY = f"{GPU}/memory"


def keep(cluster: Cluster, body: Object) -> None:
    item: Any = read_object(body, "test")
    cluster.objects.put(item)


def drop(cluster: Cluster, body: Object) -> None:
    item: Any = read_object(body, "test")
    cluster.objects.remove(item)


def told(shown: ConsoleNodes, name: str) -> dict[str, tuple[int, int]]:
    """Taken and offered of the devices at a node."""
    shown.refresh()
    pairs = zip(shown.about()["resources"], shown.loads[name][0], shown.nodes[name][1], strict=True)
    return {resource: (taken, offered) for resource, taken, offered in pairs if resource.startswith("devices:")}


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    for name in ("n0", "n1"):
        put(made, a_node(name))
    return made


def test_devices_at_a_node_are_counted_by_driver_and_taken_when_a_claim_has_them(cluster: Cluster) -> None:
    shown = ConsoleNodes(cluster, [])
    keep(cluster, devices("n0", "g0", "g1"))
    keep(cluster, devices("n0", "x0", driver="nic.example.com"))
    assert told(shown, "n0") == {GPU: (0, 2), NIC: (0, 1)}
    assert told(shown, "n1") == {GPU: (0, 0), NIC: (0, 0)}
    held = device_claim("c", has=(given("g0", "n0"),))
    keep(cluster, held)
    assert told(shown, "n0") == {GPU: (1, 2), NIC: (0, 1)}
    drop(cluster, held)
    assert told(shown, "n0")[GPU] == (0, 2)


def test_access_for_administrators_and_devices_of_many_nodes_take_nothing(cluster: Cluster) -> None:
    shown = ConsoleNodes(cluster, [])
    keep(cluster, devices("n0", "g0"))
    network = devices("net", "x0", driver="nic.example.com")
    network["spec"] |= {"nodeName": None, "allNodes": True}
    keep(cluster, network)
    keep(cluster, device_claim("c", has=(given("g0", "n0", adminAccess=True), given("x0", "net", "nic.example.com"))))
    assert told(shown, "n0") == {GPU: (0, 1)}


def test_only_the_latest_generation_of_a_pool_counts(cluster: Cluster) -> None:
    shown = ConsoleNodes(cluster, [])
    keep(cluster, devices("n0", "g0", "g1", "g2"))
    keep(cluster, devices("n0", "g0", generation=2))
    assert told(shown, "n0") == {GPU: (0, 1)}
    drop(cluster, devices("n0", "g0", generation=2))
    assert told(shown, "n0") == {GPU: (0, 3)}


def test_a_device_of_which_each_names_its_node_is_at_that_node(cluster: Cluster) -> None:
    shown = ConsoleNodes(cluster, [])
    spread = devices("rack", {"name": "a", "nodeName": "n0"}, {"name": "b", "nodeName": "n1"}, {"name": "c", "allNodes": True})
    spread["spec"] |= {"nodeName": None, "perDeviceNodeSelection": True}
    keep(cluster, spread)
    keep(cluster, device_claim("c", has=(given("b", "rack"),)))
    assert (told(shown, "n0"), told(shown, "n1")) == ({GPU: (0, 1)}, {GPU: (1, 1)})


def test_a_shared_device_is_taken_when_a_capacity_is_used_up_and_its_shares_are_a_resource(cluster: Cluster) -> None:
    shown = ConsoleNodes(cluster, [])
    keep(cluster, devices("n0", {"name": "big", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}))
    for number, part in enumerate(("20Gi", "60Gi")):
        keep(cluster, device_claim(f"c{number}", has=(given("big", "n0", shareID=str(number), consumedCapacity={"memory": part}),)))
        taken = 20 * 2**30 if number == 0 else 80 * 2**30
        assert told(shown, "n0") == {GPU: (number, 1), MEMORY: (taken, 80 * 2**30)}


def partitions() -> Object:
    """A device with eight slices of memory: as a whole, in two halves, or in four quarters."""
    parts = {"whole": 8, "half-0": 4, "half-1": 4, **{f"quarter-{i}": 2 for i in range(4)}}
    takes = {name: [{"counterSet": "gpu", "counters": {"memory": {"value": str(size)}}}] for name, size in parts.items()}
    made = [{"name": name, "consumesCounters": each} for name, each in takes.items()]
    counters = [{"name": "gpu", "counters": {"memory": {"value": "8"}}}]
    shared = devices("n0", sharedCounters=counters)
    body = devices("n0", *made, generation=1)
    for each, name in ((shared, "counters"), (body, "partitions")):
        each["metadata"] = {"name": name, "uid": name}
        each["spec"]["pool"]["resourceSliceCount"] = 2
    return {"shared": shared, "parts": body}


def test_partitions_that_no_longer_fit_beside_others_are_taken(cluster: Cluster) -> None:
    shown = ConsoleNodes(cluster, [])
    for each in partitions().values():
        keep(cluster, each)
    assert told(shown, "n0") == {GPU: (0, 7)}
    keep(cluster, device_claim("c", has=(given("quarter-0", "n0"),)))
    assert told(shown, "n0") == {GPU: (2, 7)}, "the quarter itself, and the whole"
    keep(cluster, device_claim("d", has=(given("half-0", "n0"),)))
    assert told(shown, "n0") == {GPU: (4, 7)}, "both, the whole, and the other half; three quarters are 2 each of 2 left"
    keep(cluster, device_claim("e", has=(given("quarter-1", "n0"),)))
    assert told(shown, "n0") == {GPU: (7, 7)}


def test_kinds_of_devices_have_a_bound_and_the_rest_is_told(cluster: Cluster) -> None:
    for i in range(MOST_KINDS + 3):
        keep(cluster, devices("n0", "d", driver=f"driver-{i:02d}.example.com"))
    shown = ConsoleNodes(cluster, [])
    assert len(told(shown, "n0")) == MOST_KINDS
    assert shown.about()["resourcesLeftOut"] == 3


class Devices:
    """A random history of slices and claims, and what of it a naive count makes."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.cluster = Cluster()
        self.slices: dict[str, Object] = {}
        self.claims: dict[str, Object] = {}
        for i in range(4):
            put(self.cluster, a_node(f"n{i}"))

    def step(self) -> None:
        draw, on = self.draw, f"n{self.draw.randrange(5)}"
        driver = draw.choice(["gpu.example.com", "nic.example.com"])
        match draw.choice(["slice", "no slice", "claim", "claim", "no claim", "node", "no node"]):
            case "slice":
                capacity = {"memory": {"value": f"{draw.randint(1, 8)}Gi"}}
                made = [{"name": f"d{i}", "capacity": capacity, "allowMultipleAllocations": i % 2 == 0} for i in range(draw.randint(1, 4))]
                self._keep(self.slices, devices(on, *made, driver=driver, generation=draw.randint(1, 2)))
            case "no slice" if self.slices:
                drop(self.cluster, self.slices.pop(draw.choice(sorted(self.slices))))
            case "claim":
                share = {"shareID": draw.choice(string.ascii_lowercase), "consumedCapacity": {"memory": f"{draw.randint(1, 4)}Gi"}}
                given_ = tuple(
                    given(name, on, driver, **(share if name in ("d0", "d2") else {})) for name in draw.sample(["d0", "d1", "d2", "d3"], 2)
                )
                self._keep(self.claims, device_claim(f"c{draw.randrange(6)}", has=draw.choice([given_, ()])))
            case "no claim" if self.claims:
                drop(self.cluster, self.claims.pop(draw.choice(sorted(self.claims))))
            case "node":
                put(self.cluster, a_node(on))
            case "no node" if self.cluster.row(NodeName(on)) is not None and self.cluster.node_count > 1:
                self.cluster.remove_node(NodeName(on))

    def _keep(self, into: dict[str, Object], body: Object) -> None:
        into[body["metadata"]["name"]] = body
        keep(self.cluster, body)

    def counted(self) -> dict[str, dict[str, tuple[int, int]]]:
        owned, used = set(), defaultdict[Any, int](int)
        for each in self.claims.values():
            for result in each["status"].get("allocation", {"devices": {"results": []}})["devices"]["results"]:
                key = result["driver"], result["pool"], result["device"]
                if "shareID" in result:
                    used[key] += int(result["consumedCapacity"]["memory"].removesuffix("Gi"))
                else:
                    owned.add(key)
        found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
        pools = {(each["spec"]["driver"], each["spec"]["nodeName"]) for each in self.slices.values()}
        for driver, on in pools:
            mine = [each["spec"] for each in self.slices.values() if (each["spec"]["driver"], each["spec"]["nodeName"]) == (driver, on)]
            for each in max(mine, key=lambda spec: spec["pool"]["generation"])["devices"]:
                key, whole = (driver, on, each["name"]), int(each["capacity"]["memory"]["value"].removesuffix("Gi"))
                shared, kind = each["allowMultipleAllocations"], found[on][f"devices:{driver}"]
                kind[1] += 1
                kind[0] += key in owned or (shared and used[key] >= whole)
                if shared:
                    share = found[on][f"devices:{driver}/memory"]
                    share[0] += used[key] * 2**30
                    share[1] += whole * 2**30
        return {on: {name: (taken, offered) for name, (taken, offered) in kinds.items()} for on, kinds in found.items()}


@pytest.mark.parametrize("seed", range(cases(30)))
def test_of_random_histories_the_devices_are_those_of_a_naive_count(seed: int) -> None:
    history = Devices(random.Random(seed))
    shown = ConsoleNodes(history.cluster, [])
    for _ in range(60):
        history.step()
        if history.draw.random() < 0.5:
            shown.refresh()
            naive = history.counted()
            for name in shown.nodes:
                mine = naive.get(name, {})
                assert {kind: pair for kind, pair in told(shown, name).items() if pair != (0, 0)} == {
                    kind: pair for kind, pair in mine.items() if pair != (0, 0)
                }


def test_a_claim_changes_the_rows_of_its_nodes_alone(cluster: Cluster) -> None:
    keep(cluster, devices("n0", "g0"))
    shown = ConsoleNodes(cluster, [])
    shown.refresh()
    before = dict(shown.loads)
    keep(cluster, device_claim("c", has=(given("g0", "n0"),)))
    shown.refresh()
    assert [name for name, row in shown.loads.items() if row is not before[name]] == ["n0"]


async def test_a_state_of_5000_nodes_with_devices_and_the_delta_of_a_claim_are_small() -> None:
    cluster = Cluster()
    for i in range(5000):
        name = f"ip-10-0-{i // 256}-{i % 256}.eu-west-1.compute.internal"
        put(cluster, a_node(name, zone="abc"[i % 3], pool=f"pool-{i % 5}"))
        shared = [{"name": f"gpu-{j}", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}} for j in range(2)]
        keep(cluster, devices(name, *shared))
    nodes = ConsoleNodes(cluster, ["default-scheduler"])

    class Source:
        def sections(self, rights: Rights) -> Any:
            nodes.refresh()
            return {"about": nodes.about(), "nodes": nodes.nodes, "loads": nodes.loads}

        def release(self) -> None:
            """Keep all."""

    feed = Feed(Source())
    lines = feed.join(ALL_NAMESPACES).lines(1.0)
    assert len(await anext(lines)) < 1_300_000
    on = "ip-10-0-0-1.eu-west-1.compute.internal"
    keep(cluster, device_claim("c", has=(given("gpu-0", on, shareID="0", consumedCapacity={"memory": "20Gi"}),)))
    feed.publish()
    assert len(await anext(lines)) < 220


# --- labels -------------------------------------------------------------------------------------------------------------------------


def counted(nodes: list[dict[str, str] | None]) -> LabelCounts:
    counts = LabelCounts()
    for row, labels in enumerate(nodes):
        counts.set_row(row, labels)
    return counts


def test_of_thousands_of_labels_the_well_known_and_the_most_frequent_are_chosen() -> None:
    odd = [{f"example.com/key-{i * 10 + j}": str(i % 2) for j in range(10)} for i in range(500)]
    common = {"topology.example.com/rack": "r", "kubernetes.io/arch": "a", ZONE: "z", "pool": "p"}
    nodes: list[dict[str, str] | None] = [
        {**labels, **{key: f"{value}{i % 3}" for key, value in common.items()}, "kubernetes.io/hostname": f"n{i}"}
        for i, labels in enumerate(odd)
    ]
    chosen = counted(nodes).chosen()
    assert chosen[:4] == (ZONE, "kubernetes.io/arch", "topology.example.com/rack", "pool")
    assert len(chosen) == MOST_LABELS
    assert "kubernetes.io/hostname" not in chosen


@pytest.mark.parametrize("seed", range(cases(30)))
def test_of_random_histories_the_chosen_labels_are_those_of_a_count_from_the_beginning(seed: int) -> None:
    draw = random.Random(seed)
    rows: list[dict[str, str] | None] = [None] * 12
    counts = LabelCounts()
    for _ in range(200):
        row = draw.randrange(len(rows))
        keys = draw.sample([ZONE, "arch", "disk", "pool", "name"], draw.randint(0, 5))
        labels = {key: str(draw.randint(0, 9 if key == "name" else 2)) for key in keys}
        rows[row] = draw.choice([None, labels, labels])
        counts.set_row(row, rows[row])
        assert counts.chosen() == counted(rows).chosen()
        present = [each for each in rows if each is not None]
        for key in (ZONE, "arch", "disk", "pool", "name"):
            values = {each.get(key) for each in present}
            divides = len(values) > 1 and len(values) <= max(len(present) // 2, 2)
            assert (key in counts.chosen()) == divides, (key, rows)


def test_a_label_of_too_many_values_is_not_kept_value_by_value() -> None:
    counts = counted([{"name": f"n{i}", "pool": str(i % 2)} for i in range(MOST_VALUES + 50)])
    assert counts.chosen() == ("pool",)
    assert counts._nodes["name"] is None
    for row in range(MOST_VALUES + 50):
        counts.set_row(row, {"pool": str(row % 2)})
    assert "name" not in counts._nodes
