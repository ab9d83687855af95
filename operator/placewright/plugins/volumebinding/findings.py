"""A pod's claims on all nodes: faults of each node, volumes that would be taken, and the use of storage.

Source of the rules and their order: kube-scheduler `volumebinding/binder.go`, `FindPodVolumes`, and `volumebinding/scorer.go`.
On each node a claim gets a volume that is pre-bound to it. If there is none, it gets the smallest that fits. Source: component-helpers
`storage/volume/pv_helpers.go`, `FindMatchingVolume`. Of volumes of equal size the first by name is taken. Upstream takes the first of a
map.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import NodeName
from placewright.api.quantity import ceil_units
from placewright.api.storage import (
    NO_PROVISIONER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.plugins.noderesources.args import ShapePoint
from placewright.plugins.noderesources.strategies import broken_linear
from placewright.plugins.volumebinding.claims import PodVolumeClaims, VolumeDemand
from placewright.plugins.volumebinding.reach import Candidates, StorageReach, capacity_of

# --- volumes by row --------------------------------------------------------------------------------------------------------------

#: Marks a row without a volume in a column of choices.
NONE: Final = -1
#: Index of a volume by row, or NONE; shape (size,).
Choice = NDArray[np.int32]


class Matches(NamedTuple):
    """The volumes that could serve the demands.

    Attributes:
        volumes: all volumes that some row chose.
        choices: a column for each demand, in their order.
    """

    volumes: Sequence[PersistentVolume]
    choices: Sequence[Choice]


def match_volumes(demands: Sequence[VolumeDemand], cluster: Cluster, reach: StorageReach) -> Matches:
    """Choose a volume for every demand, by rising size, on every row where one is left."""
    matching = _Matching(cluster, reach)
    for earlier, demand in enumerate(demands):
        matching.serve(reach.free.of(demand.storage_class, cluster.objects.storage).candidates(demand, earlier))
    return Matches(matching.volumes, matching.choices)


class _Matching:
    """The choices so far. A volume that one demand took on a row is not there for the next.

    Each row that a volume reaches has a place in `_taken`: whether an earlier demand took the volume there. So a demand reads its own
    candidate volumes only, and not the choices of earlier demands.
    """

    def __init__(self, cluster: Cluster, reach: StorageReach) -> None:
        self.volumes: list[PersistentVolume] = []
        self.choices: list[Choice] = []
        self._cluster = cluster
        self._reach = reach
        self._indices: dict[str, int] = {}
        self._rows: list[Rows] = []
        self._places: list[Rows] = []
        self._taken: BoolColumn = np.zeros(0, np.bool_)
        self._used = 0

    def serve(self, candidates: Candidates) -> None:
        """Add the choice of the next demand."""
        choice = np.full(self._cluster.size, NONE, np.int32)
        unsettled = np.ones(self._cluster.size, np.bool_)
        for volume in candidates.prebound:
            index = self._index(volume)
            rows, places = self._rows[index], self._places[index]
            settled = unsettled.copy()
            settled[rows[self._taken[places]]] = False
            here = settled[rows]
            choice[rows[here]] = index
            self._taken[places[here]] = True
            unsettled &= ~settled  # if a pre-bound volume is out of reach, no other will do
        if candidates.free and unsettled.any():
            self._take_smallest(candidates.free, unsettled, choice)
        self.choices.append(choice)

    def _take_smallest(self, free: Sequence[PersistentVolume], unsettled: BoolColumn, choice: Choice) -> None:
        """Write into unsettled rows of `choice` the first volume that reaches the row and was not taken there."""
        indices = [self._index(volume) for volume in free]
        rows = np.concatenate([self._rows[index] for index in indices])
        places = np.concatenate([self._places[index] for index in indices])
        left = np.flatnonzero(unsettled[rows] & ~self._taken[places])
        first = np.full(self._cluster.size, NONE, np.intp)
        first[rows[left][::-1]] = left[::-1]  # backwards: of several writes to a row the last one stays
        won = first[first != NONE]
        choice[rows[won]] = np.repeat(np.array(indices, np.int32), [len(self._rows[index]) for index in indices])[won]
        self._taken[places[won]] = True

    def _index(self, volume: PersistentVolume) -> int:
        index = self._indices.setdefault(volume.metadata.name, len(self.volumes))
        if index == len(self.volumes):
            self.volumes.append(volume)
            rows = self._reach.volume(self._cluster, volume)
            self._rows.append(rows)
            self._places.append(np.arange(self._used, self._used + len(rows)))
            self._used += len(rows)
            if self._used > len(self._taken):
                self._taken = np.concatenate([self._taken, np.zeros(self._used, np.bool_)])
        return index


# --- filtering -------------------------------------------------------------------------------------------------------------------


class VolumeFault(IntFlag):
    """The faults of a node, as flags in kube-scheduler's order of reasons."""

    AFFINITY = 1
    NO_VOLUME = 2
    NO_SPACE = 4
    VOLUME_GONE = 8


REASONS: Final = {
    VolumeFault.AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    VolumeFault.NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    VolumeFault.NO_SPACE: "node(s) did not have enough free storage",
    VolumeFault.VOLUME_GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


@dataclass(frozen=True, slots=True)
class VolumeFindings:
    """The findings for all rows.

    Attributes:
        wrong: flags of `VolumeFault` for each row; shape (size,) int64. 0: the row reaches, or can get, all volumes.
        chosen: claims that wait for their consumer and take part in matching, by rising size.
        matches: volume that each demand of `chosen` would take.
        provisioned: claims that are provisioned in any case, because their node is selected already.
    """

    wrong: NDArray[np.int64]
    chosen: tuple[VolumeDemand, ...]
    matches: Matches
    provisioned: tuple[VolumeDemand, ...]

    def bindings(self, row: int) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """Return claims and the existing volumes that they would take on a row."""
        picks = zip(self.chosen, self.matches.choices, strict=True)
        return [(demand.claim, self.matches.volumes[choice[row]]) for demand, choice in picks if choice[row] != NONE]

    def to_provision(self, row: int) -> list[PersistentVolumeClaim]:
        """Return claims for which a volume would be provisioned on a row."""
        picks = zip(self.chosen, self.matches.choices, strict=True)
        return [demand.claim for demand in (*self.provisioned, *(d for d, choice in picks if choice[row] == NONE))]


def find_volumes(claims: PodVolumeClaims, cluster: Cluster, reach: StorageReach) -> VolumeFindings:
    """Find volumes on every row."""
    reach.look(cluster)
    wrong = _bound_elsewhere(claims, cluster, reach)
    selected = tuple(demand for demand in claims.to_bind if _selected_node(demand) is not None)
    chosen = tuple(sorted((d for d in claims.to_bind if _selected_node(d) is None), key=lambda demand: demand.size))
    elsewhere = np.zeros(cluster.size, np.bool_)
    for demand in selected:
        row = cluster.row(NodeName(_selected_node(demand) or ""))
        elsewhere |= np.arange(cluster.size) != (-1 if row is None else row)
    matches = match_volumes(chosen, cluster, reach)
    wrong[elsewhere] |= VolumeFault.NO_VOLUME
    _provision(selected, chosen, matches, ~elsewhere, wrong, cluster, reach)
    return VolumeFindings(wrong, chosen, matches, selected)


def _selected_node(demand: VolumeDemand) -> str | None:
    return (demand.claim.metadata.annotations or {}).get(SELECTED_NODE)


def _bound_elsewhere(claims: PodVolumeClaims, cluster: Cluster, reach: StorageReach) -> NDArray[np.int64]:
    """Return the faults of bound claims: on each row that of the first claim with one."""
    wrong = np.zeros(cluster.size, np.int64)
    for claim in claims.bound:
        volume = cluster.objects.storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            wrong[wrong == 0] = VolumeFault.VOLUME_GONE
            break
        unreached = np.ones(cluster.size, np.bool_)
        unreached[reach.claimed_volume(cluster, volume)] = False
        wrong[unreached & (wrong == 0)] = VolumeFault.AFFINITY
    return wrong


def _provision(
    selected: tuple[VolumeDemand, ...],
    chosen: tuple[VolumeDemand, ...],
    matches: Matches,
    looked_at: BoolColumn,
    wrong: NDArray[np.int64],
    cluster: Cluster,
    reach: StorageReach,
) -> None:
    """Flag rows where a missing volume cannot be provisioned, by the first claim with a problem there."""
    open_ = looked_at.copy()
    needed = [(demand, looked_at) for demand in selected]
    needed += [(demand, choice == NONE) for demand, choice in zip(chosen, matches.choices, strict=True)]
    for demand, where in needed:
        asked = open_ & where
        if not asked.any():
            continue
        impossible = asked & ~_provisionable(demand, cluster, reach)
        wrong[impossible] |= VolumeFault.NO_VOLUME
        full = asked & ~impossible & ~_roomy(demand, cluster, reach)
        wrong[full] |= VolumeFault.NO_SPACE
        open_ &= ~(impossible | full)


def _provisionable(demand: VolumeDemand, cluster: Cluster, reach: StorageReach) -> BoolColumn:
    """Return the rows for which the class provisions volumes."""
    storage_class = cluster.objects.storage.classes.get(demand.storage_class)
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return np.zeros(cluster.size, np.bool_)
    return reach.topologies(cluster, storage_class.allowed_topologies)


def _roomy(demand: VolumeDemand, cluster: Cluster, reach: StorageReach) -> BoolColumn:
    """Return the rows where the driver has room for the volume, or reports no capacity."""
    if not demand.sized or not counting_driver(demand, cluster):
        return np.ones(cluster.size, np.bool_)
    roomy = np.zeros(cluster.size, np.bool_)
    room = reach.room(cluster, demand.storage_class)
    roomy[room.rows[room.limits >= ceil_units(demand.size)]] = True
    return roomy


def counting_driver(demand: VolumeDemand, cluster: Cluster) -> bool:
    """Return whether a driver that reports its capacity provisions volumes of the claim's class."""
    storage = cluster.objects.storage
    storage_class = storage.classes.get(demand.storage_class)
    driver = storage.csi_drivers.get(storage_class.provisioner) if storage_class is not None else None
    return driver is not None and bool(driver.spec.storage_capacity)


# --- scoring ---------------------------------------------------------------------------------------------------------------------


_FULL: Final = 100
_NOT_COUNTED: Final = -1


class _Share(NamedTuple):
    """The use of one claim by row: requested bytes and existing bytes, where `counted`."""

    storage_class: str
    requested: int
    capacity: IntColumn
    counted: BoolColumn


def fullness_scores(findings: VolumeFindings, shape: Sequence[ShapePoint], cluster: Cluster, reach: StorageReach) -> IntColumn:
    """Score every row from 0 to 100; 0 if there is nothing to count. Shape (size,)."""
    static = list(_static(findings))
    any_static = np.zeros(cluster.size, np.bool_)
    for share in static:
        any_static |= share.counted
    made = [share._replace(counted=share.counted & ~any_static) for share in _made(findings, cluster, reach)]
    total, classes = np.zeros(cluster.size, np.int64), np.zeros(cluster.size, np.int64)
    for name in {share.storage_class for share in (*static, *made)}:
        of_class = [share for share in static if share.storage_class == name]
        requested, capacity, counted = _sum(of_class, cluster.size)
        for share in made:
            if share.storage_class == name:
                requested += np.where(share.counted, share.requested, 0)
                capacity = np.where(share.counted, share.capacity, capacity)  # claims of a class draw on the same room
                counted |= share.counted
        over = (capacity == 0) | (requested > capacity)
        percent = np.where(over, _FULL, requested * _FULL // np.maximum(capacity, 1))
        total += np.where(counted, broken_linear(shape, percent), 0)
        classes += counted
    return np.floor(total / np.maximum(classes, 1) + 0.5).astype(np.int64)


def _sum(shares: Sequence[_Share], size: int) -> tuple[IntColumn, IntColumn, BoolColumn]:
    requested, capacity, counted = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_)
    for share in shares:
        requested += np.where(share.counted, share.requested, 0)
        capacity += np.where(share.counted, share.capacity, 0)
        counted |= share.counted
    return requested, capacity, counted


def _static(findings: VolumeFindings) -> Iterator[_Share]:
    sizes = np.array([ceil_units(capacity_of(volume) or 0) for volume in findings.matches.volumes] or [0], np.int64)
    for demand, choice in zip(findings.chosen, findings.matches.choices, strict=True):
        yield _Share(demand.storage_class, ceil_units(demand.size), sizes[choice], choice != NONE)


def _made(findings: VolumeFindings, cluster: Cluster, reach: StorageReach) -> Iterator[_Share]:
    everywhere = np.ones(cluster.size, np.bool_)
    wanted = [(demand, everywhere) for demand in findings.provisioned]
    wanted += [(demand, choice == NONE) for demand, choice in zip(findings.chosen, findings.matches.choices, strict=True)]
    for demand, where in wanted:
        room = _room(demand, cluster, reach)
        yield _Share(demand.storage_class, ceil_units(demand.size), room, where & (room != _NOT_COUNTED))


def _room(demand: VolumeDemand, cluster: Cluster, reach: StorageReach) -> IntColumn:
    """Return the bytes of the first capacity object that could serve the claim; shape (size,)."""
    column = np.full(cluster.size, _NOT_COUNTED, np.int64)
    if demand.sized and counting_driver(demand, cluster):
        room = reach.room(cluster, demand.storage_class)
        enough = room.limits >= ceil_units(demand.size)
        column[room.rows[enough][::-1]] = room.free[enough][::-1]  # backwards: of several writes to a row the last one stays
    return column
