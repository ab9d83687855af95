"""The existing volume that would serve a claim on each node.

For each node: a volume that is pre-bound to the claim or, if there is none, the smallest that fits. Source of the rules: component-helpers
`storage/volume/pv_helpers.go`, `FindMatchingVolume`. Of volumes of equal size the first by name is taken; upstream takes the first of a
map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.storage import PersistentVolume
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, Rows
from placewright.plugins.volumebinding.claims import VolumeDemand
from placewright.plugins.volumebinding.freevolumes import Candidates
from placewright.plugins.volumebinding.reach import StorageReach

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
