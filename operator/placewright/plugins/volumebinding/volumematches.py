"""Which existing volume would serve a claim on which node.

For each node: a volume that is pre-bound to the claim or, where there is none, the smallest that fits. Source of the rules:
component-helpers `storage/volume/pv_helpers.go`, `FindMatchingVolume`. Volumes of equal size: the first by name, where upstream takes
the first of a map.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import NodeSelector
from placewright.api.quantity import QuantityError, nano
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, Rows
from placewright.plugins.volumebinding.claims import STORAGE, VolumeDemand
from placewright.plugins.volumebinding.reach import StorageReach

#: Stands for no volume in a column of choices.
NONE: Final = -1
#: By row, the index of a volume, or NONE; shape (size,).
Choice = NDArray[np.int32]
_FILESYSTEM: Final = "Filesystem"
_AVAILABLE: Final = "Available"


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
    classes: dict[str, _Class] = {}
    for demand in demands:
        known = classes.get(demand.storage_class)
        if known is None:
            known = classes[demand.storage_class] = _Class(cluster.objects.storage.volumes.where(demand.storage_class))
        matching.serve(known.candidates(demand))
    return Matches(matching.volumes, matching.choices)


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """True when the volume names this claim; without a uid it names any claim of that name."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or (reference.name, reference.namespace) != (meta.name, meta.namespace):
        return False
    return not reference.uid or reference.uid == meta.uid


def capacity_of(volume: PersistentVolume) -> int | None:
    """Nano-bytes; None when the amount cannot be read. A volume that states none has none."""
    try:
        return nano((volume.spec.capacity or {}).get(STORAGE, 0))
    except QuantityError:
        return None


class _Class:
    """The volumes of one storage class that any claim could get, looked through once however many demands there are."""

    def __init__(self, volumes: Iterable[PersistentVolume]) -> None:
        self._prebound: dict[tuple[str, str], list[tuple[int, PersistentVolume]]] = {}
        free: list[tuple[int, str, PersistentVolume]] = []
        for volume in volumes:
            capacity, reference = capacity_of(volume), volume.spec.claim_ref
            if capacity is None:
                continue
            if reference is not None:
                self._prebound.setdefault((reference.namespace, reference.name), []).append((capacity, volume))
            elif volume.status.phase == _AVAILABLE:
                free.append((capacity, volume.metadata.name, volume))
        self._free = sorted(free, key=lambda each: each[:2])

    def candidates(self, demand: VolumeDemand) -> _Candidates:
        """The volumes that would do for a demand; the free ones by rising capacity, then by name."""
        claim = demand.claim
        named = self._prebound.get((claim.metadata.namespace, claim.metadata.name), ())
        prebound = [volume for size, volume in named if size >= demand.size and bound_to(volume, claim) and _alike(claim, volume)]
        large = islice(self._free, bisect_left(self._free, demand.size, key=lambda each: each[0]), None)
        free = [volume for *_, volume in large if _alike(claim, volume) and _free_for(demand, volume)]
        return _Candidates(sorted(prebound, key=lambda volume: volume.metadata.name), free)


def _alike(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """The tests that even a volume that is pre-bound to the claim must pass."""
    wanted, has = claim.spec, volume.spec
    return (
        (wanted.volume_mode or _FILESYSTEM) == (has.volume_mode or _FILESYSTEM)
        and (wanted.volume_attributes_class_name or "") == (has.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _free_for(demand: VolumeDemand, volume: PersistentVolume) -> bool:
    if demand.selector is not None and not demand.selector.matches(volume.metadata.labels or {}):
        return False
    return set(demand.claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())


def _enough(free: Sequence[PersistentVolume], earlier: int) -> list[PersistentVolume]:
    """The volumes that can matter: of volumes that the same nodes reach, one more than earlier demands can have taken."""
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
    """The choices so far: what one demand took on a row, the next cannot have there.

    Each row that a volume reaches has a place in `_taken`, which says whether an earlier demand took the volume there. So a demand looks at
    the volumes that it may have, and not at what each earlier one chose.
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

    def serve(self, candidates: _Candidates) -> None:
        """Add the next demand's choice."""
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
            unsettled &= ~settled  # where a pre-bound volume cannot be reached, no other will do
        if candidates.free and unsettled.any():
            self._take_smallest(_enough(candidates.free, len(self.choices)), unsettled, choice)
        self.choices.append(choice)

    def _take_smallest(self, free: Sequence[PersistentVolume], unsettled: BoolColumn, choice: Choice) -> None:
        """Write into unsettled rows of `choice` the first volume that reaches the row and that no earlier demand took there."""
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
