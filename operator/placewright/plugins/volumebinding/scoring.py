"""How full storage gets: nodes scored by what the pod's claims ask for, in percent of what they would take it from.

By storage class, then the mean over classes. Where existing volumes are taken, only these count; else the room that drivers say they
have. Source: kube-scheduler `volumebinding/scorer.go`, `Score` (gate StorageCapacityScoring).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from placewright.api.quantity import ceil_units
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, IntColumn
from placewright.plugins.noderesources.args import ShapePoint
from placewright.plugins.noderesources.strategies import broken_linear
from placewright.plugins.volumebinding.claims import Demand
from placewright.plugins.volumebinding.finding import Findings, counting_driver
from placewright.plugins.volumebinding.matching import NONE, capacity_of
from placewright.plugins.volumebinding.reach import Reach

_FULL: Final = 100
_NOT_COUNTED: Final = -1


class _Share(NamedTuple):
    """What one claim takes, by row: bytes asked for and bytes there, where `counted`."""

    storage_class: str
    requested: int
    capacity: IntColumn
    counted: BoolColumn


def fullness_scores(findings: Findings, shape: Sequence[ShapePoint], cluster: Cluster, reach: Reach) -> IntColumn:
    """The score of every row, 0..100; 0 where nothing can be said. Shape (size,)."""
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


def _static(findings: Findings) -> Iterator[_Share]:
    sizes = np.array([ceil_units(capacity_of(volume) or 0) for volume in findings.matches.volumes] or [0], np.int64)
    for demand, choice in zip(findings.chosen, findings.matches.choices, strict=True):
        yield _Share(demand.storage_class, ceil_units(demand.size), sizes[choice], choice != NONE)


def _made(findings: Findings, cluster: Cluster, reach: Reach) -> Iterator[_Share]:
    everywhere = np.ones(cluster.size, np.bool_)
    wanted = [(demand, everywhere) for demand in findings.provisioned]
    wanted += [(demand, choice == NONE) for demand, choice in zip(findings.chosen, findings.matches.choices, strict=True)]
    for demand, where in wanted:
        room = _room(demand, cluster, reach)
        yield _Share(demand.storage_class, ceil_units(demand.size), room, where & (room != _NOT_COUNTED))


def _room(demand: Demand, cluster: Cluster, reach: Reach) -> IntColumn:
    """Bytes in the first capacity object that could serve the claim; shape (size,)."""
    column = np.full(cluster.size, _NOT_COUNTED, np.int64)
    if demand.sized and counting_driver(demand, cluster):
        room = reach.room(cluster, demand.storage_class)
        enough = room.limits >= ceil_units(demand.size)
        column[room.rows[enough][::-1]] = room.free[enough][::-1]  # backwards: of several writes to a row the last one stays
    return column
