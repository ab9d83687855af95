"""A cluster as a scalar model keeps it: dictionaries, recounted from nothing each time. What `Cluster` says in columns must be the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cluster.makers import NODES, a_node, a_pod
from framework.scalar_model import ports_clash
from placewright.api.objects import Node, NodeName
from placewright.api.pods import HostPort, PodInfo
from placewright.api.selectors import selector_from_pairs
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection

View = dict[str, Any]
RESOURCES = ("cpu", "memory", "pods", "example.com/gpu")
PORTS = (HostPort("TCP", 80, "0.0.0.0"), HostPort("TCP", 80, "10.0.0.1"), HostPort("TCP", 81, "0.0.0.0"))
SELECTIONS = (
    PodSelection(None),
    PodSelection(frozenset({"default"}), selector_from_pairs({"app": "web"}), terminating=False),
    PodSelection(frozenset({"elsewhere"})),
)


GPU = "example.com/gpu"


@cache
def any_node(name: str, variant: int) -> Node:
    """The same node as it changes."""
    return (
        a_node(name, {"zone": "x"}),
        a_node(name, {"zone": "y", "disk": "ssd"}, cpu="8", **{"example.com/gpu": "4"}),
        a_node(name, pods="0"),
    )[variant]


@cache
def any_pod(uid: str, variant: int, where: str) -> PodInfo:
    """The same pod as it changes."""
    maker = a_pod(uid)
    maker = (
        lambda: maker.requests(cpu="1"),
        lambda: maker.requests(cpu="1", memory="1Gi").labels(app="web").priority(5).deleting(),
        lambda: maker.requests({GPU: "2"}).labels(app="web").host_port(80).volume_claims("data"),
        lambda: maker.requests({GPU: "3"}).host_port(80, ip="10.0.0.1").host_port(81).volume_claims("data", "more").priority(-1),
        lambda: maker.requests(cpu="250m").labels(**{"scheduling.x-k8s.io/pod-group": "train"}).phase("Running"),
    )[variant]()
    return maker.on(where).build()


UIDS = st.sampled_from(["p", "q", "r"])
WHERE = st.sampled_from(NODES)
VARIANTS = st.integers(0, 4)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("set node"), WHERE, st.integers(0, 2)),
        st.tuples(st.just("remove node"), WHERE),
        st.tuples(st.just("assume"), UIDS, VARIANTS, WHERE),
        st.tuples(st.just("forget"), UIDS),
        st.tuples(st.just("set pod"), UIDS, VARIANTS, WHERE),
        st.tuples(st.just("confirm"), UIDS),
        st.tuples(st.just("remove pod"), UIDS),
    ),
    min_size=4,
    max_size=14,
)


class Model:
    """Nodes by name, and pods by uid with their node and whether they are assumed there."""

    def __init__(self) -> None:
        self.nodes: dict[NodeName, Node] = {}
        self.pods: dict[str, tuple[PodInfo, NodeName, bool]] = {}

    def act(self, cluster: Cluster, act: str, *what: Any) -> None:
        """The same change here and there; what cannot be done just now is left out."""
        known = self.pods.get(what[0])
        if act == "set node":
            changed = any_node(*what)
            assert cluster.set_node(changed) is self.nodes.get(what[0])
            self.nodes[what[0]] = changed
        elif act == "remove node":
            assert cluster.remove_node(what[0]) is self.nodes.pop(what[0], None)
        elif act == "assume" and known is None:
            uid, variant, where = what
            cluster.assume(any_pod(uid, variant, ""), where)
            self.pods[uid] = any_pod(uid, variant, ""), where, True
        elif act == "forget" and known is not None and known[2]:
            cluster.forget(known[0], known[1])
            del self.pods[what[0]]
        elif act == "set pod" or (act == "confirm" and known is not None):
            shown = any_pod(*what) if act == "set pod" else known[0].on(known[1])  # type: ignore[index]
            found = cluster.set_pod(shown)
            assert (found and tuple(found)) == known
            self.pods[what[0]] = shown, shown.node_name, False
        elif act == "remove pod":
            found = cluster.remove_pod(what[0])
            assert (found and tuple(found)) == known
            self.pods.pop(what[0], None)

    @contextmanager
    def dry_run(self, moves: Sequence[tuple[PodInfo, NodeName, int]]) -> Iterator[None]:
        """As if these pods stood on these nodes, too (1), or did not stand there (-1)."""
        before = dict(self.pods)
        for moved, where, sign in moves:
            if sign > 0:
                self.pods[moved.uid] = moved, where, False
            else:
                self.pods.pop(moved.uid)
        yield
        self.pods = before

    def view(self) -> View:
        """All that placement can see, by node; the rest beside it."""
        return {name: self._node_view(name, found) for name, found in self.nodes.items()}

    def _node_view(self, name: NodeName, found: Node) -> View:
        pods = [pod for pod, where, _ in self.pods.values() if where == name]
        offered = {resource: amount for resource in RESOURCES if (amount := _amount(found, resource)) and resource != "pods"}
        everywhere = {resource for each in self.nodes.values() for resource in RESOURCES if _amount(each, resource) and resource != "pods"}
        ports = [port for pod in pods for port in pod.host_ports]
        return {
            "labels": found.metadata.labels,
            "offers": offered,
            "limit": _amount(found, "pods"),
            "pods": sorted(pod.uid for pod in pods),
            "requests": {resource: total for resource in everywhere if (total := sum(pod.requests.get(resource, 0) for pod in pods))},
            "scoring": (sum(pod.scoring_cpu for pod in pods), sum(pod.scoring_memory for pod in pods)),
            "free": [not any(ports_clash(port, taken) for taken in ports) for port in PORTS],
            "tallies": [sum(each.selects(pod.pairwise_key, pod.labels) for pod in pods) for each in SELECTIONS],
            "with volumes": sorted(pod.uid for pod in pods if pod.volumes),
        }


def _amount(found: Node, resource: str) -> int:
    """Of the few spellings that `any_node` uses."""
    text = str((found.status.allocatable or {}).get(resource, "0"))
    return int(text.removesuffix("Gi")) * (2**30 if text.endswith("Gi") else 1000 if resource == "cpu" else 1)


def view_of(cluster: Cluster) -> View:
    """The same, as the columns say it."""
    view: View = {}
    for row in cluster.rows().tolist():
        name, found = cluster.names[row], cluster.node(row)
        assert name == found.metadata.name
        columns = {resource: cluster.resources.column(resource) for resource in cluster.resources.names()}
        view[str(name)] = {
            "labels": {key: value for key in ("zone", "disk") if (value := cluster.label(key).get(row)) is not None},
            "offers": {resource: int(column.allocatable[row]) for resource, column in columns.items() if column.allocatable[row]},
            "limit": int(cluster.pod_limit[row]),
            "pods": sorted(pod.uid for pod in cluster.pods_on(NodeName(str(name)))),
            "requests": {resource: int(column.requested[row]) for resource, column in columns.items() if column.requested[row]},
            "scoring": (int(cluster.scoring_cpu[row]), int(cluster.scoring_memory[row])),
            "free": [bool(cluster.ports.free([port], np.array([row]))[0]) for port in PORTS],
            "tallies": [int(cluster.pairwise_counts.tally(each, cluster.size)[row]) for each in SELECTIONS],
            "with volumes": sorted(pod.uid for pod in cluster.volumes.pods(row)),
        }
        assert int(cluster.pod_count[row]) == len(view[str(name)]["pods"])
    return view
