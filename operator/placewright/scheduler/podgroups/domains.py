"""Topology domains: the nodes that share one value of a label, and whether they could hold a group at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import IntColumn, Rows
from placewright.framework.runtime.profileruntime import ProfileRuntime

#: The filter that judges on each node what the room of a domain counts over all its nodes. It hears of room that becomes free.
ROOM_FILTER: Final = "NodeResourcesFit"


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes that share one value of a label.

    Attributes:
        key: the label's.
        value: the label's.
        names: the nodes.
        room: the free resources of all its nodes, in multiples of the least that the group requests. Below 1 the group cannot
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

    Domains with room come first, the tightest first, so that large domains stay whole. Then come the others, the ones that lack
    least first.

    Args:
        cluster: only read.
        key: the label's.
        pods: the group's members.
        needed: the fewest members that have to fit.

    Returns:
        All domains.
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
    """Return the nodes of the domain that a group's members stand in; None while no member is on a node with the label.

    Members may stand in several domains when the group did not require one as they were placed. Then the domain with the most
    members counts.

    Args:
        cluster: only read.
        pod_group: with a topology key.

    Returns:
        Names of nodes.
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
    """Return the nodes that a pod which joins its group may stand on.

    Args:
        pod: any.
        cluster: only read.
        runtime: the pod's profile.

    Returns:
        The nodes of the domain where the group stands, if it requires one; None for all nodes.
    """
    pod_group = None if pod.pod_group is None or runtime.pod_groups is None else cluster.pod_groups.get(pod.pod_group)
    if pod_group is None or not pod_group.topology_key or not pod_group.topology_required:
        return None
    return joined_domain(cluster, pod_group)


def free(cluster: Cluster, resource: str) -> IntColumn:
    """Return the free amount of a resource on each row, at least 0.

    Args:
        cluster: only read.
        resource: its name.

    Returns:
        Shape (size,).
    """
    column = cluster.resources.column(resource)
    left: IntColumn = np.maximum(column.allocatable[: cluster.size] - column.requested[: cluster.size], 0)
    return left


def _least(pods: Sequence[PodInfo], needed: int) -> dict[str, int]:
    """Return the least that `needed` members request together, by resource."""
    # The smallest requests of each resource by itself: no choice of members requests less.
    names = {name for pod in pods for name in pod.requests}
    return {name: sum(sorted(pod.requests.get(name, 0) for pod in pods)[:needed]) for name in names}


def _room(rows: Rows, wanted: Sequence[tuple[IntColumn, int]]) -> float:
    """Return the free amounts of the rows together, in multiples of what is wanted; of the scarcest resource."""
    return float(min((left[rows].sum() / amount for left, amount in wanted), default=float(len(rows))))


def _names(cluster: Cluster, rows: Sequence[int]) -> frozenset[NodeName]:
    return frozenset(name for row in rows if (name := cluster.names[row]) is not None)
