"""Measures the utilisation of nodes: mean and deviation of the requested share by resource, and the number of empty nodes."""

from __future__ import annotations

from collections.abc import Iterator

from placewright.api.pods import PodInfo
from placewright.api.profile import Allocation, EmptyNodes, ShadowUse
from placewright.api.requests import CPU, MEMORY, is_extended_resource
from placewright.cluster.cluster import Cluster


def uses(shadow: Cluster, live: Cluster) -> list[ShadowUse]:
    """Compare the utilisation of two clusters.

    Args:
        shadow: the shadow's cluster.
        live: the live cluster, which says which resources are offered.

    Returns:
        CPU, memory, and every extended resource that a live node offers, by name.
    """
    rows = live.rows()
    extended = (name for name in live.resources.names() if is_extended_resource(name))
    offered = sorted(name for name in extended if live.resources.column(name).allocatable[rows].any())
    return [ShadowUse(name=name, shadow=allocation(shadow, name), live=allocation(live, name)) for name in (CPU, MEMORY, *offered)]


def allocation(cluster: Cluster, resource: str) -> Allocation | None:
    """Measure the requested share of a resource over the nodes that offer it.

    Args:
        cluster: cluster with the nodes.
        resource: name of the resource.

    Returns:
        Mean and population standard deviation, in percent; None if no node offers the resource.
    """
    rows, column = cluster.rows(), cluster.resources.column(resource)
    have = rows[column.allocatable[rows] > 0]
    if not len(have):
        return None
    shares = 100 * column.requested[have] / column.allocatable[have]
    return Allocation(mean_percent=round(float(shares.mean()), 2), deviation_percent=round(float(shares.std()), 2))


def empty(shadow: Cluster, live: Cluster) -> EmptyNodes:
    """Count the nodes of each cluster that could be removed, because all their pods belong to DaemonSets."""
    return EmptyNodes(shadow=sum(_empty_nodes(shadow)), live=sum(_empty_nodes(live)))


def _empty_nodes(cluster: Cluster) -> Iterator[bool]:
    return (all(map(_is_daemon, cluster.pods_on(name))) for name in cluster.names if name is not None)


def _is_daemon(pod: PodInfo) -> bool:
    return any(owner.controller and owner.kind == "DaemonSet" for owner in pod.pod.metadata.owner_references or ())
