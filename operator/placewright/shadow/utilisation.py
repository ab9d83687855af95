"""How nodes are used: by resource, the mean and spread of what is requested of each, and how many nodes are empty."""

from __future__ import annotations

from collections.abc import Iterator

from placewright.api.pods import PodInfo
from placewright.api.profile import Allocation, EmptyNodes, ShadowUse
from placewright.api.requests import CPU, MEMORY, is_extended_resource
from placewright.cluster.cluster import Cluster


def uses(shadow: Cluster, live: Cluster) -> list[ShadowUse]:
    """CPU, memory, and every extended resource that a live node offers, by name."""
    rows = live.rows()
    extended = (name for name in live.resources.names() if is_extended_resource(name))
    offered = sorted(name for name in extended if live.resources.column(name).allocatable[rows].any())
    return [ShadowUse(name=name, shadow=allocation(shadow, name), live=allocation(live, name)) for name in (CPU, MEMORY, *offered)]


def allocation(cluster: Cluster, resource: str) -> Allocation:
    """Over the nodes that offer the resource; the standard deviation is that of these nodes, not of a sample."""
    rows, column = cluster.rows(), cluster.resources.column(resource)
    have = rows[column.allocatable[rows] > 0]
    if not len(have):
        return Allocation()
    shares = 100 * column.requested[have] / column.allocatable[have]
    return Allocation(mean_percent=round(float(shares.mean()), 2), deviation_percent=round(float(shares.std()), 2))


def empty(shadow: Cluster, live: Cluster) -> EmptyNodes:
    """Nodes that nothing would be lost with."""
    return EmptyNodes(shadow=sum(_empty_nodes(shadow)), live=sum(_empty_nodes(live)))


def _empty_nodes(cluster: Cluster) -> Iterator[bool]:
    return (all(map(_is_daemon, cluster.pods_on(name))) for name in cluster.names if name is not None)


def _is_daemon(pod: PodInfo) -> bool:
    return any(owner.controller and owner.kind == "DaemonSet" for owner in pod.pod.metadata.owner_references or ())
