"""Makers for the tests of this room: pods, nodes, claims to devices and what was allocated to them, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec.structs import replace

from placewright import testing as kit
from placewright.api.decode import convert
from placewright.api.devices import AllocationResult, DeviceClass, ResourceClaim
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster, PodOnNode
from placewright.testing.nodes import OFFERS, NodeMaker
from placewright.testing.pods import PodMaker

Body = dict[str, Any]
NODES = tuple(NodeName(name) for name in ("a", "b", "c"))


def a_pod(name: str) -> PodMaker:
    """A pod whose uid is its name."""
    return kit.pod(name).uid(name)


def a_node(name: str, labels: Mapping[str, str] | None = None, **offers: str) -> Node:
    """A node with 4 CPUs and room for 10 pods unless it says otherwise, and no labels but these."""
    return NodeMaker(name).labels(labels).offers({**OFFERS, "pods": "10", **offers}).build()


def plain_node(name: str, spec: Body, status: Body) -> Node:
    """A node that says this and nothing else."""
    return convert({"metadata": {"name": name}, "spec": spec, "status": status}, Node)


def cluster(*names: str) -> Cluster:
    """A cluster of these nodes; of `a` and `b` where none is named."""
    return filled(Cluster(), *names or ("a", "b"))


C = TypeVar("C", bound=Cluster)


def filled(found: C, *names: str) -> C:
    """The same cluster, with these nodes."""
    for name in names:
        found.set_node(a_node(name))
    return found


# --- claims ------------------------------------------------------------------------------------------------------------------------


def a_claim(
    version: str = "1", *, uid: str = "u", name: str = "c", allocated: AllocationResult | None = None, **metadata: Any
) -> ResourceClaim:
    """A ResourceClaim `ns/c` at a resourceVersion, allocated or not."""
    meta = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version, **metadata}
    found = convert({"metadata": meta}, ResourceClaim)
    return found if allocated is None else with_allocation(found, allocated)


def with_allocation(found: ResourceClaim, allocation: AllocationResult | None) -> ResourceClaim:
    return replace(found, status=replace(found.status, allocation=allocation))


def gets(*devices: str) -> AllocationResult:
    """An allocation of these devices of one pool to one request."""
    results = [{"request": "r", "driver": "d", "pool": "p", "device": device} for device in devices]
    return convert({"devices": {"results": results}}, AllocationResult)


def device_class(name: str, *, serves: str | None = None, created: str = "") -> DeviceClass:
    meta = {"name": name, **({"creationTimestamp": created} if created else {})}
    return convert({"metadata": meta, "spec": {"extendedResourceName": serves}}, DeviceClass)


# --- whoever listens ---------------------------------------------------------------------------------------------------------------


@dataclass
class Mirror:
    """A listener that keeps a second cluster by what it hears alone."""

    of: Cluster
    kept: Cluster = field(default_factory=Cluster)
    heard: list[tuple[str, str]] = field(default_factory=list)

    def node_set(self, node: Node) -> None:
        self.heard.append(("node set", node.metadata.name))
        self.kept.set_node(node)

    def node_removed(self, name: NodeName) -> None:
        self.heard.append(("node removed", name))
        self.kept.remove_node(name)

    def pod_stands(self, pod: PodInfo, node: NodeName) -> None:
        self.heard.append(("stands", pod.uid))
        self.kept.set_pod(pod.on(node))

    def pod_left(self, uid: str) -> None:
        self.heard.append(("left", uid))
        self.kept.remove_pod(uid)

    def take_heard(self) -> list[tuple[str, str]]:
        """What was heard since this was last asked."""
        taken, self.heard = self.heard, []
        return taken


def placed(found: Cluster) -> dict[str, PodOnNode]:
    """Where every pod stands, by uid."""
    return {each.pod.uid: each for each in found.placements()}
