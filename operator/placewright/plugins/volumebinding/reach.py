"""The rows that reach storage, and how much of it CSI drivers can still provision there.

Node selectors and topologies are evaluated once while the labels stay the same. A driver with local disks has a CSIStorageCapacity for each
node. An object is parsed when it changes, and its rows are looked up when labels change. A claim is then compared with all objects of a
class at once.

The volumes of one storage class that a claim could get, indexed by label, kind and size.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.boundedcache import BoundedCache
from placewright.api.bytecount import bytes_of
from placewright.api.objects import NodeName, NodeSelector
from placewright.api.quantity import QuantityError, ceil_units, nano
from placewright.api.selectors import (
    CompiledRequirement,
    Selector,
    SelectorError,
    compile_label_selector,
    compile_node_selector,
)
from placewright.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm
from placewright.cluster.cluster import Cluster
from placewright.cluster.storage import StorageObjects, Table, key_of
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.plugins.shared.csimigration import driver_affinity, in_tree_plugin, migrated_plugins
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


# --- capacities of CSI drivers ---------------------------------------------------------------------------------------------------


_NO_ROWS: Final[Rows] = np.zeros(0, np.intp)
#: Most entries that are kept of deleted objects.
_SPARE: Final = 1000

#: Returns the rows whose labels a selector matches.
Select = Callable[[Selector], Rows]


class StorageRoom(NamedTuple):
    """The capacity of a class: an entry for each object and each of its rows, in the order of the cluster's table.

    Attributes:
        rows: row of each entry; shape (entries,).
        limits: bytes of the largest volume that can be provisioned; shape (entries,).
        free: remaining bytes; shape (entries,).
    """

    rows: Rows
    limits: IntColumn
    free: IntColumn


@dataclass(slots=True)
class _Read:
    """One parsed capacity object; `limit` is -1 if it allows no volume, and `rows` are those of `epoch`."""

    source: CSIStorageCapacity
    selector: Selector | None
    limit: int
    free: int
    rows: Rows
    epoch: int = -1


class StorageCapacities:
    """The capacity objects of one cluster, by class."""

    def __init__(self) -> None:
        self._read: dict[str, _Read] = {}
        self._rooms: dict[str, StorageRoom] = {}
        self._seen: tuple[int, int] | None = None

    def of(self, storage_class: str, table: Table[CSIStorageCapacity], select: Select, epoch: int) -> StorageRoom:
        """Return the room for volumes of a class. Answers of `select` are kept while `epoch` stays the same."""
        if self._seen != (table.version, epoch):
            self._seen = (table.version, epoch)
            self._rooms.clear()
            if len(self._read) > len(table) + _SPARE:
                self._read = {key: read for key, read in self._read.items() if table.get(key) is read.source}
        room = self._rooms.get(storage_class)
        if room is None:
            room = self._rooms[storage_class] = _joined([self._entry(each, select, epoch) for each in table.where(storage_class)])
        return room

    def _entry(self, capacity: CSIStorageCapacity, select: Select, epoch: int) -> _Read:
        key = key_of(capacity.metadata)
        read = self._read.get(key)
        if read is None or read.source is not capacity:
            read = self._read[key] = _read(capacity)
        if read.epoch != epoch:
            read.rows, read.epoch = _NO_ROWS if read.selector is None else select(read.selector), epoch
        return read


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the bytes of the largest volume that can be provisioned; None if unknown, or the quantity does not parse."""
    return _bytes(capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size)


def _joined(entries: Iterable[_Read]) -> StorageRoom:
    useful = [entry for entry in entries if entry.limit >= 0]
    lengths = [len(entry.rows) for entry in useful]
    rows = np.concatenate([_NO_ROWS, *(entry.rows for entry in useful)])
    limits, free = (np.array(values, np.int64) for values in ([e.limit for e in useful], [e.free for e in useful]))
    return StorageRoom(rows, np.repeat(limits, lengths), np.repeat(free, lengths))


def _read(capacity: CSIStorageCapacity) -> _Read:
    limit = volume_limit(capacity)
    return _Read(capacity, _selector(capacity), -1 if limit is None else limit, _bytes(capacity.capacity) or 0, _NO_ROWS)


def _selector(capacity: CSIStorageCapacity) -> Selector | None:
    """Return the selector of the capacity's nodes; None for no node, and if it does not parse."""
    try:
        return None if capacity.node_topology is None else compile_label_selector(capacity.node_topology)
    except SelectorError:
        return None


def _bytes(quantity: str | float | None) -> int | None:
    try:
        return None if quantity is None else ceil_units(nano(quantity))
    except QuantityError:
        return None


# --- rows ------------------------------------------------------------------------------------------------------------------------


#: Most selectors whose rows are kept, and most bytes of them; a cluster with local disks has one a node.
_MAX_KEPT: Final = 100_000
_MAX_KEPT_BYTES: Final = 128 * 2**20


class StorageReach:
    """Rows by selector, for one cluster.

    Local volumes have a selector each, which names one host. So values are looked up by their code. The rows of a selector are kept until a
    node changes a label that some selector reads.

    Attributes:
        free: volumes that claims can get, by class.
    """

    def __init__(self) -> None:
        self.free = VolumesByClass()
        self._rows: BoundedCache[Hashable, Rows] = BoundedCache(_MAX_KEPT_BYTES, most=_MAX_KEPT)
        self._labels: dict[str, tuple[list[str | None], NDArray[np.int32]]] = {}
        self._everywhere: Rows = np.zeros(0, np.intp)
        self._capacities = StorageCapacities()
        #: Number that grows when kept rows are dropped.
        self._epoch = 0
        #: Rows where a CSI driver has taken over, by in-tree plugin, for the versions of nodes and CSINodes.
        self._taken_over: dict[str, BoolColumn] = {}
        self._taken_over_at: tuple[int, int] | None = None

    def look(self, cluster: Cluster) -> None:
        """Drop what no longer holds. Call it before asking for rows of selectors."""
        everywhere = np.arange(cluster.size)
        if len(everywhere) == len(self._everywhere) and all(self._unchanged(cluster, key) for key in self._labels):
            return
        self._everywhere = everywhere
        self._epoch += 1
        self._rows.clear()
        self._labels.clear()

    def _unchanged(self, cluster: Cluster, key: str) -> bool:
        values, codes = self._labels[key]
        column = cluster.label(key)
        return column.values == values and np.array_equal(column.codes(self._everywhere), codes)

    def volume(self, cluster: Cluster, volume: PersistentVolume) -> Rows:
        """Return the ascending rows that a volume's node affinity allows; not to be written.

        kube-scheduler gives this check a node's labels without its name, and so ignores `matchFields`.
        """
        affinity = volume.spec.node_affinity
        return self._selected(cluster, affinity.required if affinity is not None else None)

    def claimed_volume(self, cluster: Cluster, volume: PersistentVolume) -> Rows:
        """Return the rows that reach a claim's volume, by the driver's translation where its in-tree plugin has migrated.

        Volumes without a claim are not translated, neither here nor in kube-scheduler. Raise `TranslationError`.
        """
        plugin = in_tree_plugin(volume.spec)
        taken_over = None if plugin is None else self._where_taken_over(cluster).get(plugin)
        if taken_over is None:
            return self.volume(cluster, volume)
        reached = np.zeros(len(self._everywhere), np.bool_)
        reached[self.volume(cluster, volume)] = True
        reached[taken_over] = False
        in_drivers_words = self._selected(cluster, driver_affinity(volume))
        reached[in_drivers_words[taken_over[in_drivers_words]]] = True
        return np.flatnonzero(reached)

    def room(self, cluster: Cluster, storage_class: str) -> StorageRoom:
        """Return the room that drivers report for volumes of a class."""
        table = cluster.objects.storage.capacities
        return self._capacities.of(storage_class, table, lambda selector: self._matching(cluster, selector), self._epoch)

    def _matching(self, cluster: Cluster, selector: Selector) -> Rows:
        return np.flatnonzero(self._all_match(cluster, selector.expressions))

    def _selected(self, cluster: Cluster, selector: NodeSelector | None) -> Rows:
        if selector is None:
            return self._everywhere
        rows = self._rows.get(selector)
        if rows is None:
            rows = np.flatnonzero(self._any_term(cluster, selector))
            self._rows.put(selector, rows, bytes_of((selector, rows)))
        return rows

    def _where_taken_over(self, cluster: Cluster) -> dict[str, BoolColumn]:
        csi_nodes = cluster.objects.storage.csi_nodes
        now = (csi_nodes.version, cluster.node_journal.position)
        if self._taken_over_at != now:
            self._taken_over_at, self._taken_over = now, {}
            for csi_node in csi_nodes.values():
                row = cluster.row(NodeName(csi_node.metadata.name))
                for plugin in migrated_plugins(csi_node) if row is not None else ():
                    self._taken_over.setdefault(plugin, np.zeros(cluster.size, np.bool_))[row] = True
        return self._taken_over

    def topologies(self, cluster: Cluster, terms: tuple[TopologySelectorTerm, ...] | None) -> BoolColumn:
        """Return the rows where a class allows volumes; shape (size,). No terms allow every node, an empty term none."""
        if not terms:
            return np.ones(len(self._everywhere), np.bool_)
        allowed = np.zeros(len(self._everywhere), np.bool_)
        for term in terms:
            wanted = term.match_label_expressions or ()
            if wanted and all(each.values for each in wanted):
                expressions = (CompiledRequirement(each.key, "In", frozenset(each.values or ())) for each in wanted)
                allowed |= self._all_match(cluster, expressions)
        return allowed

    def _any_term(self, cluster: Cluster, selector: NodeSelector) -> BoolColumn:
        matched = np.zeros(len(self._everywhere), np.bool_)
        for term in compile_node_selector(selector):
            matched |= self._all_match(cluster, term.labels)
        return matched

    def _all_match(self, cluster: Cluster, expressions: Iterable[CompiledRequirement]) -> BoolColumn:
        matched = np.ones(len(self._everywhere), np.bool_)
        for expression in expressions:
            matched &= self._matches(cluster, expression)
        return matched

    def _matches(self, cluster: Cluster, expression: CompiledRequirement) -> BoolColumn:
        column = cluster.label(expression.key)
        kept = self._labels.get(expression.key)
        if kept is None:
            kept = self._labels[expression.key] = (list(column.values), column.codes(self._everywhere))
        if expression.operator != "In":
            return column.where(self._everywhere, expression.matches)
        matched = np.zeros(len(self._everywhere), np.bool_)
        for value in expression.values:
            code = column.code(value)
            if code is not None:
                matched |= kept[1] == code
        return matched
