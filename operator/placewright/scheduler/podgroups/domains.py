"""Topology domains: nodes that share one value of a label, with the room that they have for a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef, PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import IntColumn, Rows
from placewright.framework.runtime.profileruntime import ProfileRuntime

#: The filter that judges the room of each node, as `Domain.room` counts the room of all. Its events tell of room that becomes free.
ROOM_FILTER: Final = "NodeResourcesFit"


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes that share one value of a label.

    Attributes:
        key: key of the label.
        value: value of the label.
        names: names of the nodes.
        room: free resources of all nodes together, in multiples of the least that the group requests. Below 1 the group cannot
            fit unless pods leave.
    """

    key: str
    value: str
    names: frozenset[NodeName]
    room: float

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def domains(cluster: Cluster, key: str, pods: Sequence[PodInfo], needed: int) -> list[Domain]:
    """Return the domains of a label in the order in which they are tried. Nodes without the label are in none.

    Domains with room come first, the tightest first, so that large domains stay whole. Then come the other domains, in the order
    of what they lack, the least first.

    Args:
        cluster: columns, which are only read.
        key: key of the label.
        pods: members of the group.
        needed: fewest members that have to fit.
    """
    by_value: dict[str, list[int]] = {}
    column = cluster.label(key)
    for row in cluster.rows().tolist():
        value = column.get(row)
        if value is not None:
            by_value.setdefault(value, []).append(row)
    # Read once: a label such as the hostname has as many domains as there are nodes.
    wanted = [(free(cluster, name), amount) for name, amount in _least(pods, needed).items() if amount > 0]
    found = [Domain(key, value, _names(cluster, rows), _room(np.array(rows, np.intp), wanted)) for value, rows in by_value.items()]
    return sorted(found, key=lambda domain: (domain.room < 1, domain.room if domain.room >= 1 else -domain.room, domain.value))


def joined_domain(cluster: Cluster, pod_group: PodGroup) -> frozenset[NodeName] | None:
    """Return the names of the nodes in the domain of a group's members; None while no member is on a node with the label.

    If the group did not require a domain when members were placed, they may be in several. Then the domain with the most members
    counts.
    """
    column, values = cluster.label(pod_group.topology_key), Counter[str]()
    for uid in cluster.pod_groups.placed(pod_group.ref):
        placement = cluster.placement(uid)
        row = None if placement is None else cluster.row(placement.node)
        value = None if row is None else column.get(row)
        if value is not None:
            values[value] += 1
    if not values:
        return None
    most = max(sorted(values), key=lambda value: values[value])
    return _names(cluster, [row for row in cluster.rows().tolist() if column.get(row) == most])


def within_domain(pod: PodInfo, cluster: Cluster, runtime: ProfileRuntime) -> frozenset[NodeName] | None:
    """Return the names of the nodes for a pod that joins its group; None for all nodes.

    If the group requires a domain, these are the nodes of the domain that its members are in.
    """
    return None if pod.pod_group is None or runtime.pod_groups is None else joined_domains(cluster, pod.pod_group)


def joined_domains(cluster: Cluster, ref: GroupRef) -> frozenset[NodeName] | None:
    """Return the names of the nodes for further members of a group: within its domain, and the domain of each group above it.

    Returns:
        The names; None for all nodes.
    """
    asked = (group for group in cluster.pod_groups.lineage(ref) if group.topology_key and group.topology_required)
    joined = [names for group in asked if (names := joined_domain(cluster, group)) is not None]
    return frozenset.intersection(*joined) if joined else None


def free(cluster: Cluster, resource: str) -> IntColumn:
    """Return the free amount of a resource on each row, at least 0; shape (size,)."""
    column = cluster.resources.column(resource)
    left: IntColumn = np.maximum(column.allocatable[: cluster.size] - column.requested[: cluster.size], 0)
    return left


def _least(pods: Sequence[PodInfo], needed: int) -> dict[str, int]:
    """Return the least that `needed` members request together, by resource."""
    # Each resource has its smallest requests by itself, so that no choice of members requests less.
    names = {name for pod in pods for name in pod.requests}
    return {name: sum(sorted(pod.requests.get(name, 0) for pod in pods)[:needed]) for name in names}


def _room(rows: Rows, wanted: Sequence[tuple[IntColumn, int]]) -> float:
    """Return the sum of the rows' free amounts in multiples of the wanted amounts, for the scarcest resource."""
    return float(min((left[rows].sum() / amount for left, amount in wanted), default=float(len(rows))))


def _names(cluster: Cluster, rows: Sequence[int]) -> frozenset[NodeName]:
    return frozenset(name for row in rows if (name := cluster.names[row]) is not None)
