"""The volumes of one storage class that a claim could get, indexed by label, kind and size."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import NodeSelector
from placewright.api.quantity import QuantityError, nano
from placewright.api.selectors import CompiledRequirement, Selector
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.storage import StorageObjects
from placewright.framework.interface import BoolColumn
from placewright.plugins.volumebinding.claims import STORAGE, VolumeDemand

#: Positions of volumes in the order of their class.
_Positions = NDArray[np.intp]

_FILESYSTEM: Final = "Filesystem"
_NONE: Final[_Positions] = np.zeros(0, np.intp)


class Candidates(NamedTuple):
    """The volumes that could serve a demand.

    Attributes:
        prebound: volumes that name the claim, by name.
        free: other volumes by rising capacity, then by name; of volumes that the same nodes reach, no more than can matter.
    """

    prebound: list[PersistentVolume]
    free: list[PersistentVolume]


class _Kind(NamedTuple):
    """The properties of a free volume that a claim may ask for, except size and labels."""

    volume_mode: str
    attributes_class: str
    access_modes: frozenset[str]


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether the volume names this claim. Without a uid it names any claim of that name."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or (reference.name, reference.namespace) != (meta.name, meta.namespace):
        return False
    return not reference.uid or reference.uid == meta.uid


def capacity_of(volume: PersistentVolume) -> int | None:
    """Return nano-bytes; None if the quantity does not parse. A volume without a capacity has 0."""
    try:
        return nano((volume.spec.capacity or {}).get(STORAGE, 0))
    except QuantityError:
        return None


class FreeVolumes:
    """The volumes of one storage class, sorted and indexed once for all demands."""

    def __init__(self, volumes: Iterable[PersistentVolume]) -> None:
        self._prebound: dict[tuple[str, str], list[tuple[int, PersistentVolume]]] = {}
        free: list[tuple[int, str, PersistentVolume]] = []
        for volume in volumes:
            capacity, reference = capacity_of(volume), volume.spec.claim_ref
            if capacity is None or volume.metadata.deletion_timestamp is not None:
                continue
            if reference is not None:
                self._prebound.setdefault((reference.namespace, reference.name), []).append((capacity, volume))
            elif volume.status.phase == "Available":
                free.append((capacity, volume.metadata.name, volume))
        free.sort(key=lambda each: each[:2])
        self._sizes = [size for size, *_ in free]
        self._free = [volume for *_, volume in free]
        self._kinds = _grouped({position: _kind(volume) for position, volume in enumerate(self._free)})
        self._reached = _numbered(self._free)
        self._labels: dict[str, dict[str, _Positions]] | None = None

    @property
    def empty(self) -> bool:
        """Whether the class has no volumes."""
        return not (self._free or self._prebound)

    def candidates(self, demand: VolumeDemand, earlier: int) -> Candidates:
        """Find the volumes that could serve a demand, if `earlier` demands may have taken a volume before."""
        claim = demand.claim
        named = self._prebound.get((claim.metadata.namespace, claim.metadata.name), ())
        prebound = [volume for size, volume in named if size >= demand.size and bound_to(volume, claim) and _alike(demand, _kind(volume))]
        return Candidates(sorted(prebound, key=lambda volume: volume.metadata.name), self._suitable(demand, earlier))

    def _suitable(self, demand: VolumeDemand, earlier: int) -> list[PersistentVolume]:
        suitable = np.zeros(len(self._free), np.bool_)
        for kind, positions in self._kinds.items():
            if _alike(demand, kind) and demand.modes <= kind.access_modes:
                suitable[positions] = True
        suitable[: bisect_left(self._sizes, demand.size)] = False
        if demand.selector is not None and suitable.any():
            suitable = self._selected(demand.selector, suitable)
        return [self._free[position] for position in self._enough(np.flatnonzero(suitable), earlier).tolist()]

    def _selected(self, selector: Selector, among: BoolColumn) -> BoolColumn:
        if self._labels is None:
            self._labels = _by_label(self._free)
        for requirement in dict.fromkeys(selector.expressions):
            found = _having(requirement, self._labels.get(requirement.key, {}))
            if requirement.operator in ("In", "Exists"):
                left = np.zeros(len(among), np.bool_)
                left[found] = among[found]
                among = left
            else:
                among[found] = False
        return among

    def _enough(self, positions: _Positions, earlier: int) -> _Positions:
        """Return the volumes that can matter: of volumes that the same nodes reach, one more than earlier demands may have taken."""
        groups = self._reached[positions]
        order = np.argsort(groups, kind="stable")
        begins = np.flatnonzero(np.diff(groups[order], prepend=-1))
        rank = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
        return np.sort(positions[order[rank <= earlier]])


class VolumesByClass:
    """The `FreeVolumes` of each class, kept while no volume changes."""

    def __init__(self) -> None:
        self._classes: dict[str, FreeVolumes] = {}
        self._storage: StorageObjects | None = None
        self._version = -1

    def of(self, storage_class: str, storage: StorageObjects) -> FreeVolumes:
        """Return the sorted and indexed volumes of a class."""
        if self._storage is not storage or self._version != storage.volumes.version:
            self._classes, self._storage, self._version = {}, storage, storage.volumes.version
        found = self._classes.get(storage_class)
        if found is None:
            found = FreeVolumes(storage.volumes.where(storage_class))
            # A class without volumes is not kept, because tenants choose the names that claims ask for.
            if not found.empty:
                self._classes[storage_class] = found
        return found


def _kind(volume: PersistentVolume) -> _Kind:
    spec = volume.spec
    return _Kind(spec.volume_mode or _FILESYSTEM, spec.volume_attributes_class_name or "", frozenset(spec.access_modes or ()))


def _alike(demand: VolumeDemand, kind: _Kind) -> bool:
    """Test the properties that even a volume pre-bound to the claim must have."""
    wanted = demand.claim.spec
    return (wanted.volume_mode or _FILESYSTEM) == kind.volume_mode and (wanted.volume_attributes_class_name or "") == kind.attributes_class


def _grouped(kinds: Mapping[int, _Kind]) -> dict[_Kind, _Positions]:
    grouped: dict[_Kind, list[int]] = {}
    for position, kind in kinds.items():
        grouped.setdefault(kind, []).append(position)
    return {kind: np.array(positions, np.intp) for kind, positions in grouped.items()}


def _numbered(volumes: Iterable[PersistentVolume]) -> NDArray[np.intp]:
    """Return a number for each volume, equal if the same nodes reach them."""
    numbers: dict[NodeSelector | None, int] = {}
    affinities = [volume.spec.node_affinity for volume in volumes]
    return np.array([numbers.setdefault(None if each is None else each.required, len(numbers)) for each in affinities], np.intp)


def _by_label(volumes: Iterable[PersistentVolume]) -> dict[str, dict[str, _Positions]]:
    found: dict[str, dict[str, list[int]]] = {}
    for position, volume in enumerate(volumes):
        for key, value in (volume.metadata.labels or {}).items():
            found.setdefault(key, {}).setdefault(value, []).append(position)
    return {key: {value: np.array(at, np.intp) for value, at in by_value.items()} for key, by_value in found.items()}


def _having(requirement: CompiledRequirement, by_value: Mapping[str, _Positions]) -> _Positions:
    """Return positions of volumes whose label has one of the requirement's values; any value if it names none."""
    named = requirement.operator in ("In", "NotIn")
    values = requirement.values & by_value.keys() if named else by_value.keys()
    return np.concatenate([_NONE, *(by_value[value] for value in values)])
