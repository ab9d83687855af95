"""Random small worlds and what happens to them, kept twice: as plain dictionaries for a scalar check, and as the cluster's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from hypothesis import strategies as st

from placewright.api.objects import Namespace, Node, Pod, ReplicaSet, Service
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster

Body = dict[str, Any]
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NODES = ("n0", "n1", "n2", "n3")
NAMESPACES = ("home", "away")
KEYS = (ZONE, HOST, "rack")

label_sets = st.fixed_dictionaries({}, optional={"app": st.sampled_from("ab"), "tier": st.sampled_from("xy")})
selectors = st.one_of(
    st.none(),
    st.just({}),
    st.sampled_from("ab").map(lambda v: {"matchLabels": {"app": v}}),
    st.sampled_from(["Exists", "DoesNotExist"]).map(lambda op: {"matchExpressions": [{"key": "tier", "operator": op}]}),
    st.sampled_from(["In", "NotIn"]).map(lambda op: {"matchExpressions": [{"key": "app", "operator": op, "values": ["a"]}]}),
)
node_labels = st.fixed_dictionaries(
    {},
    optional={
        ZONE: st.sampled_from(["z1", "z2", ""]),
        "rack": st.sampled_from(["r1", "r2"]),
        "disk": st.just("ssd"),
        HOST: st.just("self"),
    },
)


def _node(name: str, labels: Body, tainted: bool) -> Body:
    own = {key: name if value == "self" else value for key, value in labels.items()}
    taints = [{"key": "gpu", "effect": "NoSchedule"}] if tainted else []
    return {"metadata": {"name": name, "labels": own}, "spec": {"taints": taints}}


nodes = st.builds(_node, st.sampled_from(NODES), node_labels, st.booleans())


def pods(spec: st.SearchStrategy[Body], **metadata: st.SearchStrategy[Any]) -> st.SearchStrategy[Body]:
    """Pods with such a spec; the uid makes the same pod come back changed."""
    meta = {
        "uid": st.sampled_from("123456789"),
        "namespace": st.sampled_from(NAMESPACES),
        "labels": label_sets,
        "deletionTimestamp": st.sampled_from([None, None, None, "2026-01-01T00:00:00Z"]),
    }
    return st.fixed_dictionaries({"metadata": st.fixed_dictionaries(meta | metadata), "spec": spec})


class World:
    """The same cluster twice."""

    def __init__(self) -> None:
        self.nodes: dict[str, Body] = {}
        self.placed: dict[str, tuple[str, Body]] = {}
        self.namespaces: dict[str, Body] = {}
        self.services: dict[str, Body] = {}
        self.replica_sets: dict[str, Body] = {}
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

    def set_namespace(self, name: str, labels: Body) -> None:
        """Label a namespace."""
        self.namespaces[name] = labels
        self.cluster.objects.put(msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace))

    def set_service(self, namespace: str, name: str, selector: Body | None) -> None:
        """Add or change a Service."""
        body = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
        self.services[f"{namespace}/{name}"] = body
        self.cluster.objects.put(msgspec.convert(body, Service))

    def set_replica_set(self, namespace: str, name: str, selector: Body | None) -> None:
        """Add or change a ReplicaSet."""
        body = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
        self.replica_sets[f"{namespace}/{name}"] = body
        self.cluster.objects.put(msgspec.convert(body, ReplicaSet))

    def pods_by_node(self) -> dict[str, list[Body]]:
        """Pods of every node that is there."""
        return {name: [pod for on, pod in self.placed.values() if on == name] for name in self.nodes}

    @contextmanager
    def without_pods_of(self, node: str) -> Iterator[None]:
        """As preemption tries it: the node's pods taken away, in the columns only hypothetically."""
        row = self.cluster.row(node)
        kept = dict(self.placed)
        with self.cluster.hypothetically(remove=list(self.cluster.pods_on(node)), row=row):
            self.placed = {uid: where for uid, where in kept.items() if where[0] != node}
            yield
        self.placed = kept


Change = Callable[[World], None]


def changes(pod: st.SearchStrategy[Body]) -> st.SearchStrategy[Change]:
    """What may happen to a world."""
    place = st.builds(lambda p, n: lambda world: world.place(p, n), pod, st.sampled_from(NODES))
    delete = st.sampled_from("123456789").map(lambda uid: lambda world: world.remove_pod(uid))
    update = nodes.map(lambda node: lambda world: world.set_node(node))
    drop = st.sampled_from(NODES).map(lambda name: lambda world: world.remove_node(name))
    label = st.builds(
        lambda name, env: lambda world: world.set_namespace(name, env),
        st.sampled_from(NAMESPACES),
        st.sampled_from([{}, {"env": "prod"}, {"env": "dev"}]),
    )
    serve = st.builds(
        lambda ns, name, selector: lambda world: world.set_service(ns, name, selector),
        st.sampled_from(NAMESPACES),
        st.sampled_from(["s", "t"]),
        st.one_of(st.none(), label_sets),
    )
    own = st.builds(
        lambda ns, selector: lambda world: world.set_replica_set(ns, "rs", selector), st.sampled_from(NAMESPACES), selectors
    )
    return st.one_of(place, place, place, delete, update, update, drop, label, serve, own)


def info(pod: Body) -> PodInfo:
    """The pod as the scheduler carries it."""
    return PodInfo(msgspec.convert(pod, Pod))


def matches(selector: Body | None, labels: Body) -> bool:
    """A label selector on labels, the long way; None matches nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    return all(_expression(e, labels) for e in selector.get("matchExpressions", []))


def _expression(expression: Body, labels: Body) -> bool:
    key = expression["key"]
    if expression["operator"] == "Exists":
        return key in labels
    if expression["operator"] == "DoesNotExist":
        return key not in labels
    inside = key in labels and labels[key] in expression["values"]
    return inside if expression["operator"] == "In" else not inside


def empty(selector: Body) -> bool:
    """True for a selector that says nothing."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")
