"""Which existing volume would serve a claim on which node.

For each node: a volume that is pre-bound to the claim or, where there is none, the smallest that fits. Source of the rules:
component-helpers `storage/volume/pv_helpers.go`, `FindMatchingVolume`. Volumes of equal size: the first by name, where upstream takes
the first of a map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import NodeSelector
from placewright.api.quantity import QuantityError, nano
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn
from placewright.plugins.volumebinding.claims import STORAGE, VolumeDemand
from placewright.plugins.volumebinding.reach import StorageReach

#: Stands for no volume in a column of choices.
NONE: Final = -1
#: By row, the index of a volume, or NONE; shape (size,).
Choice = NDArray[np.int32]
_FILESYSTEM: Final = "Filesystem"


class Matches(NamedTuple):
    """The volumes that could serve the demands.

    Attributes:
        volumes: every volume that some row chose from.
        choices: one column a demand, in the demands' order.
    """

    volumes: Sequence[PersistentVolume]
    choices: Sequence[Choice]


class _Candidates(NamedTuple):
    prebound: list[PersistentVolume]
    free: list[PersistentVolume]


def match_volumes(demands: Sequence[VolumeDemand], cluster: Cluster, reach: StorageReach) -> Matches:
    """Give every demand, by rising size, a volume on every row where one is left."""
    matching = _Matching(cluster, reach)
    for demand in demands:
        matching.serve(_candidates(demand, cluster.objects.storage.volumes.where(demand.storage_class)))
    return Matches(matching.volumes, matching.choices)


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """True when the volume names this claim; without a uid it names any claim of that name."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or (reference.name, reference.namespace) != (meta.name, meta.namespace):
        return False
    return not reference.uid or reference.uid == meta.uid


def capacity_of(volume: PersistentVolume) -> int | None:
    """Nano-bytes; None when nobody can read it. A volume that does not say has none."""
    try:
        return nano((volume.spec.capacity or {}).get(STORAGE, 0))
    except QuantityError:
        return None


def _candidates(demand: VolumeDemand, volumes: Iterable[PersistentVolume]) -> _Candidates:
    prebound: list[PersistentVolume] = []
    free: list[tuple[int, str, PersistentVolume]] = []
    for volume in volumes:
        if volume.spec.claim_ref is not None and not bound_to(volume, demand.claim):
            continue
        capacity = capacity_of(volume)
        if capacity is None or capacity < demand.size or not _alike(demand.claim, volume):
            continue
        if volume.spec.claim_ref is not None:
            prebound.append(volume)
        elif _free_for(demand, volume):
            free.append((capacity, volume.metadata.name, volume))
    free.sort(key=lambda each: each[:2])
    return _Candidates(sorted(prebound, key=lambda volume: volume.metadata.name), [volume for *_, volume in free])


def _alike(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """What even a volume that is pre-bound to the claim must satisfy."""
    wanted, has = claim.spec, volume.spec
    return (
        (wanted.volume_mode or _FILESYSTEM) == (has.volume_mode or _FILESYSTEM)
        and (wanted.volume_attributes_class_name or "") == (has.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _free_for(demand: VolumeDemand, volume: PersistentVolume) -> bool:
    if volume.status.phase != "Available":
        return False
    if demand.selector is not None and not demand.selector.matches(volume.metadata.labels or {}):
        return False
    return set(demand.claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())


def _enough(free: Sequence[PersistentVolume], earlier: int) -> list[PersistentVolume]:
    """The volumes that can matter: of those that the same nodes reach, one more than earlier demands can have taken."""
    seen: Counter[NodeSelector | None] = Counter()
    kept: list[PersistentVolume] = []
    for volume in free:
        affinity = volume.spec.node_affinity
        selector = affinity.required if affinity is not None else None
        seen[selector] += 1
        if seen[selector] <= earlier + 1:
            kept.append(volume)
    return kept


class _Matching:
    """The choices so far: what one demand took on a row, the next cannot have there."""

    def __init__(self, cluster: Cluster, reach: StorageReach) -> None:
        self.volumes: list[PersistentVolume] = []
        self.choices: list[Choice] = []
        self._cluster = cluster
        self._reach = reach
        self._indices: dict[str, int] = {}

    def serve(self, candidates: _Candidates) -> None:
        """Add the next demand's choice."""
        choice = np.full(self._cluster.size, NONE, np.int32)
        unsettled = np.ones(self._cluster.size, np.bool_)
        for volume in candidates.prebound:
            index = self._index(volume)
            settled = unsettled.copy()
            for other in self.choices:
                settled &= other != index
            reached = self._reach.volume(self._cluster, volume)
            choice[reached[settled[reached]]] = index
            unsettled &= ~settled  # where a pre-bound volume cannot be reached, no other will do
        if candidates.free and unsettled.any():
            self._take_smallest(_enough(candidates.free, len(self.choices)), unsettled, choice)
        self.choices.append(choice)

    def _take_smallest(self, free: Sequence[PersistentVolume], unsettled: BoolColumn, choice: Choice) -> None:
        """Write into unsettled rows of `choice` the first volume that reaches the row and that no earlier demand took there."""
        reached = [self._reach.volume(self._cluster, volume) for volume in free]
        rows = np.concatenate(reached)
        index = np.repeat(np.array([self._index(volume) for volume in free], np.int32), [len(each) for each in reached])
        left = unsettled[rows]
        for other in self.choices:
            left &= other[rows] != index
        choice[rows[left][::-1]] = index[left][::-1]  # backwards: of several writes to a row the last one stays

    def _index(self, volume: PersistentVolume) -> int:
        index = self._indices.setdefault(volume.metadata.name, len(self.volumes))
        if index == len(self.volumes):
            self.volumes.append(volume)
        return index
