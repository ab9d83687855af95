"""How much room drivers say they have for volumes of a class, and on which rows: read once for every change, not for every pod.

A driver with local disks has a CSIStorageCapacity a node. So what is in one is parsed when it changes, its rows are looked up when labels
change, and a claim is then held against all of a class at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from placewright.api.quantity import QuantityError, ceil_units, nano
from placewright.api.selectors import Selector, SelectorError, compile_label_selector
from placewright.api.storage import CSIStorageCapacity
from placewright.cluster.storage import Table, key_of
from placewright.framework.interface import IntColumn, Rows

_NO_ROWS: Final[Rows] = np.zeros(0, np.intp)
#: So many entries may be kept of objects that are gone.
_SPARE: Final = 1000

#: The rows whose labels a selector matches.
Select = Callable[[Selector], Rows]


class Room(NamedTuple):
    """All that is said of a class: an entry for each object and row that it speaks of, objects in the order of the cluster's table.

    Attributes:
        rows: shape (entries,).
        limits: bytes of the largest volume that can be made; shape (entries,).
        free: bytes that are left; shape (entries,).
    """

    rows: Rows
    limits: IntColumn
    free: IntColumn


@dataclass(slots=True)
class _Read:
    """One capacity object, read; `limit` is -1 where it allows no volume, `rows` hold while `epoch` does."""

    source: CSIStorageCapacity
    selector: Selector | None
    limit: int
    free: int
    rows: Rows
    epoch: int = -1


class Capacities:
    """The capacity objects of one cluster, by class."""

    def __init__(self) -> None:
        self._read: dict[str, _Read] = {}
        self._rooms: dict[str, Room] = {}
        self._seen: tuple[int, int] | None = None

    def of(self, storage_class: str, table: Table[CSIStorageCapacity], select: Select, epoch: int) -> Room:
        """The room for volumes of a class. While `epoch` stays, `select` answers the same."""
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
    """The largest volume that can be made there, in bytes; None when it does not say, or nobody can read it."""
    return _bytes(capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size)


def _joined(entries: Iterable[_Read]) -> Room:
    useful = [entry for entry in entries if entry.limit >= 0]
    lengths = [len(entry.rows) for entry in useful]
    rows = np.concatenate([_NO_ROWS, *(entry.rows for entry in useful)])
    limits, free = (np.array(values, np.int64) for values in ([e.limit for e in useful], [e.free for e in useful]))
    return Room(rows, np.repeat(limits, lengths), np.repeat(free, lengths))


def _read(capacity: CSIStorageCapacity) -> _Read:
    limit = volume_limit(capacity)
    return _Read(capacity, _selector(capacity), -1 if limit is None else limit, _bytes(capacity.capacity) or 0, _NO_ROWS)


def _selector(capacity: CSIStorageCapacity) -> Selector | None:
    """The nodes that it speaks of; None for none at all, and where nobody can read which."""
    try:
        return None if capacity.node_topology is None else compile_label_selector(capacity.node_topology)
    except SelectorError:
        return None


def _bytes(quantity: str | float | None) -> int | None:
    try:
        return None if quantity is None else ceil_units(nano(quantity))
    except QuantityError:
        return None
