"""Topology domains: the nodes that share a label's value, and rules about which of them may hold a pod.

Spread and affinity both count pods per domain and then judge nodes by their domain. Here a domain is a label's code in the cluster's
column, so that counting is one `bincount` and judging is one gather. Code 0 stands for nodes without the label.

Zones are domains, too, as kube-scheduler up to 1.22 knew them: a region and a zone together, by the labels of today or by those before
1.17. Where a node has a label of before 1.17 it counts, whatever today's label says, as in `GetZoneKey` of component-helpers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework.interface import BoolColumn, Rejection, Rows
from placewright.framework.status import Status
from placewright.plugins.shared.memory import NodeMemory

# --- domains ---------------------------------------------------------------------------------------------------------------------


#: Codes by row, shape (size,); intp, because numpy indexes fastest with it.
Codes = NDArray[np.intp]
#: Code of rows that lack the label.
MISSING: Final = 0


class Domains(NamedTuple):
    """A label's code by row, and how many codes there are."""

    codes: Codes
    distinct: int


def domains(memory: NodeMemory, cluster: Cluster, key: str) -> Domains:
    """The domains of a label."""
    return memory.recall(cluster, key, lambda: _domains(cluster, key))


def _domains(cluster: Cluster, key: str) -> Domains:
    column = cluster.label(key)
    return Domains(column.codes(np.arange(cluster.size)).astype(np.intp), len(column.values))


def counts_by_row(cluster: Cluster, selection: PodSelection) -> NDArray[np.int32]:
    """Pods that the selection picks, by row; shape (size,)."""
    return cluster.pairwise_counts.tally(selection, cluster.size).by_row(cluster.size)


def counts_by_domain(cluster: Cluster, selection: PodSelection, place: Domains) -> NDArray[np.float64]:
    """Pods that the selection picks, by code; whole numbers in shape (distinct,). Those on nodes without the label are under `MISSING`."""
    rows, counts = cluster.pairwise_counts.tally(selection, cluster.size).taken()
    return np.bincount(place.codes[rows], weights=counts, minlength=place.distinct).astype(np.float64, copy=False)


class TopologyRule(Protocol):
    """Where one term or constraint lets a pod go."""

    @property
    def codes(self) -> Codes:
        """The label's code by row, shape (size,)."""

    @property
    def denied(self) -> Status:
        """The verdict on nodes whose domain is not allowed."""

    @property
    def missing(self) -> Status:
        """The verdict on nodes without the label, where that is not allowed."""

    def allows(self, rows: Rows) -> BoolColumn:
        """True where the pod may go; shape (len(rows),)."""


@dataclass(frozen=True, slots=True)
class DomainRule:
    """A rule that follows from the domain alone; `allowed` is by code."""

    codes: Codes
    allowed: BoolColumn
    denied: Status
    missing: Status

    def allows(self, rows: Rows) -> BoolColumn:
        """`TopologyRule.allows`."""
        return self.allowed[self.codes[rows]]


def obey(rules: Sequence[TopologyRule], rows: Rows) -> BoolColumn:
    """True for each row that all rules allow; shape (len(rows),)."""
    passes = np.ones(len(rows), np.bool_)
    for rule in rules:
        passes &= rule.allows(rows)
    return passes


def first_broken(rules: Sequence[TopologyRule], rows: Rows) -> list[Rejection]:
    """Rows grouped by the verdict of the first rule that each breaks."""
    groups: dict[Status, list[Rows]] = {}
    for rule in rules:
        broken = ~rule.allows(rows)
        missing = broken & (rule.codes[rows] == MISSING)
        for verdict, where in ((rule.missing, missing), (rule.denied, broken & ~missing)):
            if where.any():
                groups.setdefault(verdict, []).append(rows[where])
        rows = rows[~broken]
    return [Rejection(verdict, np.concatenate(parts)) for verdict, parts in groups.items()]


def fingerprint(rules: Sequence[DomainRule], keys: Sequence[str], cluster: Cluster) -> Hashable:
    """Equal for rules that allow the same rows. `keys` are the rules' labels."""
    return (cluster.node_journal.position, tuple(keys), tuple([rule.allowed.tobytes() for rule in rules]))


# --- zones -----------------------------------------------------------------------------------------------------------------------


#: Code of rows without a zone.
NO_ZONE: Final = 0
_ZONE: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")

_Name = tuple[str, str]


def zones(memory: NodeMemory, cluster: Cluster) -> Domains:
    """The zone of each row; worked out anew when a node changes."""
    return memory.recall(cluster, ("zones",), lambda: _zones(cluster))


def zone_walk(memory: NodeMemory, cluster: Cluster) -> NDArray[np.intp]:
    """Each row's place when nodes are taken from one zone after the other in turn, as kube-scheduler lists them; shape (size,).

    Zones come in the order of their first node, and nodes without a zone are a zone too. Free rows have places as well.
    """
    return memory.recall(cluster, ("walk",), lambda: _zone_walk(zones(memory, cluster).codes, cluster.present))


def _zone_walk(codes: NDArray[np.intp], present: NDArray[np.bool_]) -> NDArray[np.intp]:
    # Free rows last: they hold no node, so no zone begins with one.
    rows = np.concatenate([np.flatnonzero(present), np.flatnonzero(~present)])
    _, first, zone = np.unique(codes[rows], return_index=True, return_inverse=True)
    by_zone = np.argsort(zone, kind="stable")
    sizes = np.bincount(zone)
    nth = np.empty(len(rows), np.intp)
    nth[by_zone] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.empty(len(rows), np.intp)
    place[rows[np.lexsort((first[zone], nth))]] = np.arange(len(rows))
    return place


def _zones(cluster: Cluster) -> Domains:
    zone_codes, zone_names = _either(cluster, *_ZONE)
    region_codes, region_names = _either(cluster, *_REGION)
    pairs, rows = np.unique(region_codes * len(zone_names) + zone_codes, return_inverse=True)
    codes_of: dict[_Name, int] = {("", ""): NO_ZONE}
    named = ((region_names[pair // len(zone_names)], zone_names[pair % len(zone_names)]) for pair in pairs.tolist())
    codes = np.array([codes_of.setdefault(name, len(codes_of)) for name in named], np.intp)
    return Domains(codes[rows], len(codes_of)) if len(rows) else Domains(np.zeros(0, np.intp), 1)


def _either(cluster: Cluster, old: str, new: str) -> tuple[NDArray[np.int64], list[str]]:
    """Codes by row into the values of the old label, where a node has it, or of the new one; a missing label is the value ""."""
    rows = np.arange(cluster.size)
    before, now = cluster.label(old), cluster.label(new)
    had = before.codes(rows)
    codes = np.where(had != 0, had.astype(np.int64) + len(now.values), now.codes(rows))
    return codes, [value or "" for value in (*now.values, *before.values)]
