"""Columns of the volumes of each driver on each row, and of their limits, which follow pods and storage objects.

A row is counted again when its pods with volumes change, or an object that its last count read. So a decision costs as much as changed, and
rows without limits are never counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from placewright.api.counts import take_out
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Log
from placewright.cluster.resources import grown
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.framework.memory import Memory
from placewright.plugins.nodevolumelimits.attachable import ATTACHMENT, KINDS, Attachable, Lookup, Resolver, unnoted

#: Most pods whose volumes are kept; a pod has one volume or two.
_MAX_PODS: Final = 65_536
_NO_LIMIT: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Node:
    """The volumes of one row.

    Attributes:
        pods: counted pods; only pods with volumes.
        used: volumes of its pods, each once.
        attached: volumes that are attached, whether a pod uses them or not.
        counts: volumes by driver, used or attached.
        limits: limit of each driver; absent for no limit.
    """

    pods: frozenset[PodInfo] = frozenset()
    used: frozenset[Attachable] = frozenset()
    attached: frozenset[Attachable] = frozenset()
    counts: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)


_EMPTY: Final = _Node()


class _Columns(NamedTuple):
    """One driver's volumes and limit, by row."""

    counts: IntColumn
    limits: IntColumn


#: Makes a resolver of the volumes that count. The resolver calls its argument for every object that it looks up.
MakeResolver = Callable[[Callable[[Lookup], None]], Resolver]


class AttachedVolumes:
    """The volumes on the nodes of one cluster.

    Attributes:
        version: number that grows when a row is counted again; equal versions promise equal answers.
    """

    def __init__(self, cluster: Cluster, resolver: MakeResolver) -> None:
        self.version = 0
        self._cluster = cluster
        self._resolver = resolver
        self._nodes: dict[int, _Node] = {}
        self._rows_with: dict[Attachable, dict[int, None]] = {}
        #: Rows that a lookup concerns. Too many are harmless: such a row is counted once more and then removed here.
        self._concerned: dict[Lookup, set[int]] = {}
        self._columns: dict[str, _Columns] = {}
        self._positions: list[int] | None = None
        #: Volumes of pods, kept while the objects that they follow from stay the same.
        self._of_pods = Memory(_MAX_PODS)

    def room(self, wanted: Collection[Attachable], rows: Rows, *, free_riders: bool) -> BoolColumn:
        """Allow rows where the wanted volumes that are not attached yet exceed no driver's limit. Call `catch_up` first.

        With `free_riders`, a node over its limit takes pods whose volumes are all attached.
        """
        passes = np.ones(len(rows), np.bool_)
        for driver, most in Counter(volume.driver for volume in wanted).items():
            counts, limits = self._of(driver)
            if (limits == _NO_LIMIT).all():
                continue
            added = np.full(len(limits), most)
            for volume in wanted:
                if volume.driver == driver and volume in self._rows_with:
                    added[list(self._rows_with[volume])] -= 1
            fits = counts + added <= limits
            passes &= ((added == 0) | fits if free_riders else fits)[rows]
        return passes

    def has_room(self, wanted: AbstractSet[Attachable], row: int, *, free_riders: bool) -> bool:
        """Return whether a row has room, counting its pods at this moment, and everything else as counted last."""
        node = self._nodes.get(row)
        if node is None:
            return True
        used = frozenset[Attachable]().union(*[self._volumes_of(pod) for pod in self._cluster.volumes.pods(row)])
        there, missing = used | node.attached, wanted - used
        for driver in {volume.driver for volume in wanted}.intersection(node.limits):
            added = sum([volume.driver == driver for volume in missing])
            if (added or not free_riders) and sum([volume.driver == driver for volume in there]) + added > node.limits[driver]:
                return False
        return True

    def _volumes_of(self, pod: PodInfo) -> frozenset[Attachable]:
        key = (pod.key, pod.volumes)  # not the pod itself, which may be large, and would be kept after it is gone
        return self._of_pods.recall(key, lambda: frozenset(self._resolver(unnoted).of_placed_pod(pod)))

    def catch_up(self) -> None:
        """Count the rows again that changed since the last call."""
        for row in self._changed():
            self._recount(row)

    # --- what changed --------------------------------------------------------------------------------------------------------

    def _changed(self) -> Collection[int]:
        logs = self._logs()
        positions = [log.position for log in logs]
        if positions == self._positions:
            return ()
        news = None if self._positions is None else [log.since(at) for log, at in zip(logs, self._positions, strict=True)]
        self._positions = positions
        if news is None or any(entries is None for entries in news):
            self._of_pods.forget()
            return range(self._cluster.size)
        of_nodes, of_pods, csi_nodes, *objects = [entries or () for entries in news]
        rows = {*of_nodes, *filter(self._has_other_pods, set(of_pods)), *self._rows_named(csi_nodes)}
        if any(objects):
            self._of_pods.forget()
        for kind, keys in zip(KINDS, objects, strict=True):
            for key in keys:
                rows |= self._rows_concerned(kind, key)
        return rows

    def _has_other_pods(self, row: int) -> bool:
        """Return whether the row's pods differ from the counted ones: they may have changed only in a dry run, or briefly."""
        return self._nodes.get(row, _EMPTY).pods != frozenset(self._cluster.volumes.pods(row))

    def _logs(self) -> list[Log[Any]]:
        """List the logs in the order in which `_changed` reads them: two of rows, one of node names, and one for each of `_KINDS`."""
        cluster, storage = self._cluster, self._cluster.objects.storage
        by_key = (storage.claims, storage.volumes, storage.classes, storage.attachments)
        return [cluster.node_journal, cluster.volumes.journal, storage.csi_nodes.changes, *(table.changes for table in by_key)]

    def _rows_concerned(self, kind: str, key: str) -> set[int]:
        rows = self._concerned.pop(Lookup(kind, key), set())
        attachment = self._cluster.objects.storage.attachments.get(key) if kind == ATTACHMENT else None
        return rows.union(self._rows_named([attachment.spec.node_name])) if attachment is not None else rows

    def _rows_named(self, names: Iterable[str]) -> Iterator[int]:
        return (row for name in names if (row := self._cluster.row(NodeName(name))) is not None)

    # --- counting ------------------------------------------------------------------------------------------------------------

    def _recount(self, row: int) -> None:
        self.version += 1
        old, new = self._nodes.pop(row, _EMPTY), self._count(row)
        if new is not _EMPTY:
            self._nodes[row] = new
        for volume in old.used - new.used:
            take_out(self._rows_with, volume, row)
        for volume in new.used - old.used:
            self._rows_with.setdefault(volume, {})[row] = None
        for driver in self._columns:
            counts, limits = self._of(driver)
            counts[row], limits[row] = new.counts.get(driver, 0), new.limits.get(driver, _NO_LIMIT)

    def _count(self, row: int) -> _Node:
        name = self._cluster.names[row]
        resolver = self._resolver(lambda lookup: self._concerned.setdefault(lookup, set()).add(row))
        limits = resolver.limits(row) if name is not None else {}
        if name is None or not limits:
            return _EMPTY
        pods = frozenset(self._cluster.volumes.pods(row))
        used = frozenset([volume for pod in pods for volume in resolver.of_placed_pod(pod)])
        attached = frozenset(resolver.attached(name))
        return _Node(pods, used, attached, Counter(volume.driver for volume in used | attached), limits)

    def _of(self, driver: str) -> _Columns:
        size = self._cluster.size
        columns = self._columns.get(driver)
        if columns is None:
            columns = _Columns(np.zeros(size, np.int64), np.full(size, _NO_LIMIT))
            for row, node in self._nodes.items():
                columns.counts[row], columns.limits[row] = node.counts.get(driver, 0), node.limits.get(driver, _NO_LIMIT)
        elif len(columns.counts) < size:
            limits = np.full(size, _NO_LIMIT)
            limits[: len(columns.limits)] = columns.limits
            columns = _Columns(grown(columns.counts, size), limits)
        self._columns[driver] = columns
        return columns
