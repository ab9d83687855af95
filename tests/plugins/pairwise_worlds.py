"""Random small worlds and what happens to them, kept twice: as plain dictionaries for a scalar check, and as the cluster's columns."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from framework.scalar_model import expression_holds
from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.cluster import pairwisegroups, selectorindex, tallies, tally
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import KINDS
from placewright.plugins.interpodaffinity import matchers
from placewright.testing.pods import PodMaker

Body = dict[str, Any]
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NODES = ("n0", "n1", "n2", "n3")
NAMESPACES = ("home", "away")
KEYS = (ZONE, HOST, "rack")

UIDS = "123456789"
SELECTORS: tuple[Body | None, ...] = (
    None,
    {},
    {"matchLabels": {"app": "a"}},
    {"matchLabels": {"app": "a"}},
    {"matchLabels": {"app": "b"}},
    {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]},
)
_KIND = {kind.__name__: kind for kind in KINDS}
TERMINATING = "2026-01-01T00:00:00Z"


class Dice(random.Random):
    """Chance, from a seed that hypothesis chooses."""

    def maybe(self, chance: float) -> bool:
        """True this often."""
        return self.random() < chance

    def labels(self) -> Body:
        """Labels of a pod."""
        return {"app": self.choice("aab")} | ({"tier": self.choice("xy")} if self.maybe(0.5) else {})

    def selector(self) -> Body | None:
        """A label selector, or none."""
        return self.choice(SELECTORS)

    def node(self, name: str) -> Body:
        """A node; now and then without a label that others have, or with an empty value, or tainted."""
        labels = {
            ZONE: self.choice(["z1", "z1", "z2", ""]),
            "rack": self.choice(["r1", "r2"]),
            HOST: name,
            "disk": "ssd",
        }
        kept = {key: value for key, value in labels.items() if self.maybe(0.8)}
        taints = [{"key": "gpu", "effect": "NoSchedule"}] if self.maybe(0.2) else []
        return {"metadata": {"name": name, "labels": kept}, "spec": {"taints": taints}}

    def pod(self, uid: str, spec: Body) -> Body:
        """A pod, mostly of the namespace "home"; it may be terminating."""
        meta = {
            "uid": uid,
            "namespace": self.choice(("home", "home", "home", "away")),
            "labels": self.labels(),
            "deletionTimestamp": TERMINATING if self.maybe(0.1) else None,
        }
        return {"metadata": meta, "spec": spec}


Spec = Callable[[Dice], Body]


def populate(world: World, dice: Dice, spec: Spec) -> None:
    """Nodes, and pods on them and on a node that is not there."""
    for name in NODES[: dice.randint(2, 4)]:
        world.set_node(dice.node(name))
    for uid in UIDS[: dice.randint(0, 9)]:
        world.place(dice.pod(uid, spec(dice)), dice.choice(NODES))


def happen(world: World, dice: Dice, spec: Spec) -> None:
    """Change one thing."""
    match dice.randrange(10):
        case 0 | 1 | 2 | 3:
            world.place(dice.pod(dice.choice(UIDS), spec(dice)), dice.choice(NODES))
        case 4:
            world.remove_pod(dice.choice(UIDS))
        case 5 | 6:
            world.set_node(dice.node(dice.choice(NODES)))
        case 7:
            world.remove_node(dice.choice(NODES))
        case 8:
            labels = dice.choice([{}, {"env": "prod"}, {"env": "dev"}])
            world.put("Namespace", {"metadata": {"name": dice.choice(NAMESPACES), "labels": labels}})
        case 9 if dice.maybe(0.5):
            meta = {"namespace": dice.choice(NAMESPACES), "name": dice.choice("st")}
            world.put("Service", {"metadata": meta, "spec": {"selector": dice.choice([None, {"app": "a"}, dice.labels()])}})
        case _:
            meta = {"namespace": dice.choice(NAMESPACES), "name": "rs"}
            world.put("ReplicaSet", {"metadata": meta, "spec": {"selector": dice.selector()}})


class World:
    """The same cluster twice: nodes, pods, and by kind and name all other objects."""

    def __init__(self) -> None:
        self.nodes: dict[str, Body] = {}
        self.placed: dict[str, tuple[str, Body]] = {}
        self.objects: dict[str, dict[str, Body]] = {}
        self.cluster = Cluster()

    def set_node(self, node: Body) -> None:
        """Add or change a node."""
        self.nodes[node["metadata"]["name"]] = node
        self.cluster.set_node(msgspec.convert(node, Node))

    def remove_node(self, name: str) -> None:
        """Its pods stay known, as in the cluster."""
        self.nodes.pop(name, None)
        self.cluster.remove_node(name)

    def place(self, pod: Body, node: str) -> None:
        """Put a pod on a node, or move and change it."""
        self.placed[pod["metadata"]["uid"]] = (node, pod)
        bound = pod | {"spec": pod["spec"] | {"nodeName": node}}
        self.cluster.set_pod(info(bound))

    def remove_pod(self, uid: str) -> None:
        """Delete a pod."""
        self.placed.pop(uid, None)
        self.cluster.remove_pod(uid)

    def put(self, kind: str, body: Body) -> None:
        """Add or replace an object."""
        self.objects.setdefault(kind, {})[_key(body["metadata"])] = body
        self.cluster.objects.put(msgspec.convert(body, _KIND[kind]))

    def drop(self, kind: str, body: Body) -> None:
        """Remove an object, if it is there."""
        if self.objects.get(kind, {}).pop(_key(body["metadata"]), None):
            self.cluster.objects.remove(msgspec.convert(body, _KIND[kind]))

    def find(self, kind: str, name: str, namespace: str = "") -> Body | None:
        """An object by name."""
        return self.objects.get(kind, {}).get(f"{namespace}/{name}")

    def every(self, kind: str) -> list[Body]:
        """All objects of a kind."""
        return list(self.objects.get(kind, {}).values())

    def pods_by_node(self) -> dict[str, list[Body]]:
        """Pods of every node that is there."""
        return {name: [pod for on, pod in self.placed.values() if on == name] for name in self.nodes}

    @contextmanager
    def without(self, node: str, uids: Collection[str] = UIDS) -> Iterator[None]:
        """As preemption tries it: some pods of a node taken away, in the columns only hypothetically."""
        row, kept = self.cluster.row(node), dict(self.placed)
        gone = [pod for pod in self.cluster.pods_on(node) if pod.uid in uids]
        with self.cluster.dry_run_on_row(remove=gone, row=row):
            self.placed = {uid: where for uid, where in kept.items() if uid not in uids or where[0] != node}
            yield
        self.placed = kept


def _key(meta: Body) -> str:
    return f"{meta.get('namespace', '')}/{meta['name']}"


@contextmanager
def hardly_any_room(dice: Dice) -> Iterator[None]:
    """In every other world what is kept is bounded so narrowly that it comes, goes and changes its form all the time."""
    with pytest.MonkeyPatch.context() as patch:
        if dice.maybe(0.5):
            patch.setattr(pairwisegroups, "_MAX_EMPTY_GROUPS", 1)
            patch.setattr(tallies, "_MAX_TALLY_BYTES", 3500)
            patch.setattr(tally, "_FEW", 1)
            patch.setattr(tally, "_CHANGES", 1)
            patch.setattr(matchers, "_MAX_LOOKS", 2)
            patch.setattr(selectorindex, "_MOST_BUCKETS", 1)
        yield


def info(pod: Body | PodMaker) -> PodInfo:
    """The pod as the scheduler carries it."""
    return pod.build() if isinstance(pod, PodMaker) else PodInfo(msgspec.convert(pod, Pod))


def matches(selector: Body | None, labels: Body) -> bool:
    """A label selector on labels, the long way; None matches nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    return all(expression_holds(each, labels) for each in selector.get("matchExpressions", []))


def service_selectors(world: World, pod: Body) -> list[Body]:
    """Selectors of the Services of the pod, by name."""
    meta, services = pod["metadata"], sorted(world.objects.get("Service", {}).items())
    wanted = [body["spec"]["selector"] for _, body in services if body["metadata"]["namespace"] == meta["namespace"]]
    return [each for each in wanted if each and each.items() <= meta["labels"].items()]


def empty(selector: Body) -> bool:
    """True for a selector that says nothing."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")
