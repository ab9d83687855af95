"""Clusters with devices, as JSON: made at random or by hand, and read into a `Cluster`."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import msgspec
from device_selectors import some_test

from placewright.api.compatibility import Rule
from placewright.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from placewright.api.objects import Node, NodeName
from placewright.cluster.cluster import Cluster
from placewright.cluster.storage import Table
from placewright.plugins.dynamicresources.devices import ClusterDevices
from placewright.testing import resource_slice

Body = dict[str, Any]
DRIVERS = ["gpu.example.com", "nic.example.com"]
#: Values of an attribute that is a list on some devices.
LINKS = [{"strings": ["a", "b"]}, {"strings": ["b", "c", "b"]}, {"string": "a"}, {"ints": [1, 2]}, {"int": 1}]
KINDS: dict[str, Any] = {"slices": ResourceSlice, "classes": DeviceClass, "rules": DeviceTaintRule, "claims": ResourceClaim}


# --- by hand -----------------------------------------------------------------------------------------------------------------


def a_node(name: str, **labels: str) -> Body:
    return {"metadata": {"name": name, "labels": labels}}


def device(name: str, **more: Any) -> Body:
    """A device as the kit makes it, plain values in the form of the API."""
    [made] = resource_slice("any").device(name, **more).manifest["spec"]["devices"]
    return dict(made)


def slice_of(
    *devices: Body, driver: str = DRIVERS[0], pool: str = "", name: str = "", count: int = 1, generation: int = 1, **more: Any
) -> Body:
    """A ResourceSlice; unless it says otherwise, its devices are of the node that the pool is named after, or n0."""
    if not more.keys() & {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"}:
        more["nodeName"] = pool or "n0"
    pool = pool or more.get("nodeName", "net")
    of = {"name": pool, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": driver, "pool": of, "devices": list(devices), **more}
    return {"metadata": {"name": name or f"{driver}-{pool}", "resourceVersion": "1"}, "spec": spec}


def selectors(*expressions: str) -> list[Body]:
    return [{"cel": {"expression": each}} for each in expressions]


def device_class(name: str, *expressions: str, **more: Any) -> Body:
    return {"metadata": {"name": name}, "spec": {"selectors": selectors(*expressions), **more}}


def exactly(name: str, class_: str = "any", *expressions: str, **more: Any) -> Body:
    return {"name": name, "exactly": wish(class_, *expressions, **more)}


def wish(class_: str = "any", *expressions: str, **more: Any) -> Body:
    return {"deviceClassName": class_, "selectors": selectors(*expressions), **more}


def a_claim(*requests: Body, name: str = "c", **more: Any) -> Body:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"devices": {"requests": list(requests), **more}},
    }


def given(claim: Body, *results: Body) -> Body:
    """The claim with an allocation."""
    return {**claim, "status": {"allocation": {"devices": {"results": list(results)}}}}


def result(device: str, driver: str = DRIVERS[0], pool: str = "n0", **more: Any) -> Body:
    return {"request": "r", "driver": driver, "pool": pool, "device": device, **more}


def world(*slices: Body, **more: Any) -> Body:
    """One node n0 and a class `any`, unless said otherwise."""
    made: Body = {"nodes": [a_node("n0")], "slices": list(slices), "classes": [], "rules": [], "claims": [], "meanings": {}, **more}
    made["classes"] = [device_class("any"), *made["classes"]]
    return made


# --- reading -----------------------------------------------------------------------------------------------------------------


def read_claim(body: Body) -> ResourceClaim:
    claim: ResourceClaim = read("claims", body)
    return claim


def read(kind: str, body: Body) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body), type=KINDS[kind])


def table(cluster: Cluster, kind: str) -> Table[Any]:
    return cluster.objects.devices.tables[KINDS[kind]]


def cluster_of(world: Body) -> Cluster:
    cluster = Cluster()
    for each in world["nodes"]:
        cluster.set_node(msgspec.convert(each, Node))
    for kind in KINDS:
        for each in world[kind]:
            table(cluster, kind).put(read(kind, each))
    return cluster


def in_1_36(rule: Rule) -> bool:
    return rule.since <= 36


def devices_of(cluster: Cluster, in_force: Callable[[Rule], bool] = in_1_36) -> ClusterDevices:
    numbers = itertools.count()
    devices = ClusterDevices(cluster, in_force, lambda: f"share-{next(numbers)}")
    devices.refresh()
    return devices


def row_of(cluster: Cluster, name: str) -> int:
    row = cluster.row(NodeName(name))
    assert row is not None
    return row


def as_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


# --- at random ---------------------------------------------------------------------------------------------------------------


class Dice:
    """Makes worlds; small ones, so that everything can be tried."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = itertools.count()
        self.meanings: Body = {}
        self.shared = self.random.choice([0, 0, 30, 60])

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def expressions(self) -> list[str]:
        if self.chance(60):
            return []
        test = some_test(self.random, DRIVERS)
        self.meanings[test.cel()] = test
        return [test.cel()]

    def world(self) -> Body:
        made: Body = {
            "nodes": [a_node(f"n{i}", zone=self.random.choice("ab")) for i in range(2)],
            "slices": [each for i in range(2) for each in self.local_pool(f"n{i}")],
            "classes": [device_class("any"), device_class("some", *self.expressions())],
            "rules": [self.rule()] if self.chance(25) else [],
            "claims": [],
            "meanings": self.meanings,
        }
        if self.chance(50):
            made["slices"] += self.shared_pool()
        made["claims"] = [each for i in range(self.random.randrange(4)) for each in self.existing_claim(made, f"old-{i}")]
        return made

    def local_pool(self, name: str) -> list[Body]:
        driver, count = self.random.choice([DRIVERS[0], DRIVERS[0], DRIVERS[1]]), self.random.choice([1, 1, 2])
        counted = count == 1 and self.chance(25)
        total = count + counted + self.chance(3)
        of: Body = {"driver": driver, "pool": name}
        made = [slice_of(*self.devices(f"{i}-", counted), name=self.name(), count=total, generation=2, **of) for i in range(count)]
        if counted:
            sets = [{"name": "chip", "counters": {"slots": {"value": str(self.random.randint(1, 4))}}}]
            made.append(slice_of(name=self.name(), count=total, generation=2, sharedCounters=sets, **of))
        if self.chance(15):
            made.append(slice_of(*self.devices("old-"), name=self.name(), generation=1, **of))
        if self.chance(5):
            made[0]["spec"]["devices"] *= 2
        return made

    def name(self) -> str:
        """Names that do not sort as they were made."""
        return f"{self.random.choice('xyz')}{next(self.names)}"

    def shared_pool(self) -> list[Body]:
        devices, driver = self.devices("net-"), self.random.choice(DRIVERS)
        reach: Body = self.random.choice([{"allNodes": True}, {"nodeSelector": zone(self.random.choice("ab"))}, {}])
        if not reach:
            reach = {"perDeviceNodeSelection": True}
            for each in devices:
                each.update(self.random.choice([{"nodeName": "n0"}, {"allNodes": True}, {"nodeSelector": zone("a")}]))
        return [slice_of(*devices, driver=driver, pool="net", **reach)]

    def devices(self, prefix: str, counted: bool = False) -> list[Body]:
        return [self.device(f"{prefix}{i}", counted) for i in range(self.random.randint(1, 4))]

    def device(self, name: str, counted: bool) -> Body:
        dice = self.random
        attributes: Body = {"model": dice.choice("ab"), "numa": dice.choice([0, 1]), "fast": self.chance(50)}
        attributes["ver"] = {"version": dice.choice(["1.2.3", "1.9.0", "1.10.0", "2.0.0"])}
        attributes["links"] = dice.choice(
            [{"strings": ["a", "b"]}, {"strings": ["b", "c", "b"]}, {"string": "a"}, {"ints": [1, 2]}, {"int": 1}]
        )
        for missing in dice.sample(sorted(attributes), dice.choice([0, 0, 0, 0, 0, 1])):
            del attributes[missing]
        if self.chance(10):
            attributes["other.example.com/model"] = dice.choice("ab")
        made = device(name, attributes=attributes, capacity={"memory": dice.choice(["10Gi", "20Gi", "40Gi"])})
        if self.chance(self.shared):
            made["allowMultipleAllocations"] = True
            made["capacity"]["memory"]["requestPolicy"] = self.policy()
        if self.chance(15):
            made["taints"] = [{"key": dice.choice("kl"), "value": "v", "effect": dice.choice(["NoSchedule", "NoExecute", "None"])}]
        if counted and self.chance(80):
            made["consumesCounters"] = [{"counterSet": "chip", "counters": {"slots": {"value": str(dice.randint(1, 2))}}}]
        if self.chance(10):
            made["bindingConditions"] = ["ready.example.com"]
        return made

    def policy(self) -> Body:
        if self.chance(50):
            return {"default": "5Gi", "validValues": ["5Gi", "10Gi"]}
        return {"default": "1Gi", "validRange": {"min": "1Gi", "max": "16Gi", **({"step": "3Gi"} if self.chance(50) else {})}}

    def rule(self) -> Body:
        about = self.random.choice([{}, {"driver": self.random.choice(DRIVERS)}, {"pool": "n0"}, {"device": "0-0"}, None])
        taint = {"key": "k", "value": "v", "effect": self.random.choice(["NoSchedule", "NoExecute", "None"])}
        spec: Body = {"taint": taint} if about is None else {"deviceSelector": about, "taint": taint}
        return {"metadata": {"name": f"rule-{next(self.names)}"}, "spec": spec}

    def existing_claim(self, world: Body, name: str) -> list[Body]:
        """A claim that has one of the devices already; nobody has checked that it should."""
        results = [each for one in world["claims"] for each in one["status"]["allocation"]["devices"]["results"]]
        held = {(each["driver"], each["pool"], each["device"]) for each in results}
        choices = [(each["spec"], one) for each in world["slices"] for one in each["spec"].get("devices", ())]
        spec, chosen = self.random.choice(choices)
        key = (spec["driver"], spec["pool"]["name"], chosen["name"])
        more: Body = {"adminAccess": True} if self.chance(15) else {}
        if chosen.get("allowMultipleAllocations") and not more:
            more = {"shareID": f"old-{next(self.names)}", "consumedCapacity": {"memory": self.random.choice(["5Gi", "10Gi"])}}
        if key in held and not more:
            return []
        return [given(a_claim(exactly("r"), name=name), result(key[2], key[0], key[1], **more))]

    def claim(self, name: str) -> Body:
        requests = [self.request(f"r{i}") for i in range(self.random.choice([1, 1, 2]))]
        more: Body = {}
        if self.chance(35):
            kind = self.random.choice(["matchAttribute", "matchAttribute", "distinctAttribute"])
            about = {"requests": self.random.sample([each["name"] for each in requests], 1)} if self.chance(40) else {}
            more["constraints"] = [
                {kind: f"{self.random.choice(DRIVERS)}/{self.random.choice(['model', 'numa', 'ver', 'links', 'links'])}", **about}
            ]
        return a_claim(*requests, name=name, **more)

    def request(self, name: str) -> Body:
        if self.chance(25):
            return {"name": name, "firstAvailable": [{"name": f"s{i}", **self.wish()} for i in range(2)]}
        made: Body = {"name": name, "exactly": self.wish()}
        if self.chance(12):
            made["exactly"]["adminAccess"] = True
        return made

    def wish(self) -> Body:
        made = wish(self.random.choice(["any", "some"]), *self.expressions())
        made |= self.random.choice([{}, {}, {"count": 2}, {"count": 3}, {"count": 1}, {"allocationMode": "All"}])
        if self.chance(15):
            made["capacity"] = {"requests": {"memory": self.random.choice(["3Gi", "5Gi", "7Gi", "11Gi", "30Gi"])}}
        if self.chance(25):
            one = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
            made["tolerations"] = [self.random.choice([{"operator": "Exists"}, {"key": "k", "value": "v"}, one])]
        return made


def zone(name: str) -> Body:
    """A node selector."""
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [name]}]}]}
