"""The free part of each device of each node.

Kubernetes counts a node's devices in one number. An annotation of the pod names its devices (`noteddevices`). The Binding writes it, and an
assumed pod carries it from the moment of the choice. So the free parts follow from nodes and their pods alone, for every profile, and also
after a restart.

Pods without a valid annotation are assumed to be packed, because an extender or another scheduler bound them. They count after pods with
one, in order of creation. Each share takes the fullest device that has room, whole devices take free ones, lowest number first. If there is
no such device, the pod takes what it can from the devices with most left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from placewright.api.annotations import DEVICES, read_devices
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import IntColumn, Rows
from placewright.framework.memory import Memory
from placewright.plugins.devicefragmentation.args import MOST_DEVICES
from placewright.plugins.devicefragmentation.noteddevices import noted_devices

#: Most annotations whose parsed form is kept: about as many as there are devices.
_MOST_READ: Final = 4096


class Devices:
    """Free units by row and device, kept up to date row by row."""

    def __init__(self, resource: str, units: int) -> None:
        """Start empty; one whole device has `units` of the resource."""
        self.resource = resource
        self.units = units
        self._free: IntColumn = np.zeros((0, 1), np.int64)
        self._read = Memory(_MOST_READ)
        self._stale: set[int] = set()
        self._positions = (-1, -1)

    def at(self, cluster: Cluster, rows: Rows) -> IntColumn:
        """Return the free units of each device in these rows, 0 for devices that a node lacks; shape (len(rows), devices)."""
        in_dry_runs = cluster.dry_run_rows()
        self._refresh(cluster, in_dry_runs)
        free: IntColumn = self._free[rows]
        if in_dry_runs:
            for index, row in enumerate(rows.tolist()):
                if row in in_dry_runs:
                    free[index] = 0
                    self._write(free[index], self.of_row(cluster, row))
        return free

    def of_row(self, cluster: Cluster, row: int, without: str = "") -> list[int]:
        """Compute the free units of each device of a row anew, without the pod of uid `without`."""
        name = cluster.names[row]
        count = self.count(cluster, row)
        if name is None or not count:
            return []
        free = [self.units] * count
        unknown: list[PodInfo] = []
        notes = noted_devices(cluster)
        for pod in cluster.pods_on(name):
            asked = pod.requests.get(self.resource, 0)
            if asked > 0 and pod.uid != without:
                chosen = self._noted(pod, notes.of(pod), count)
                if chosen is None:
                    unknown.append(pod)
                else:
                    _take(free, asked, chosen, self.units)
        for pod in sorted(unknown, key=lambda pod: (pod.created, pod.uid)):
            self._pack(free, pod.requests[self.resource])
        return free

    def _noted(self, pod: PodInfo, note: str | None, count: int) -> tuple[int, ...] | None:
        """Return the devices that the pod's annotation names, out of `count`; None if it names no valid choice."""
        if note is None:
            return None
        (chosen,) = self._read.recall(note, lambda: (read_devices({DEVICES: note}, self.resource),))
        if chosen is None or len(set(chosen)) != len(chosen) or not all(0 <= index < count for index in chosen):
            return None
        return chosen if len(chosen) == -(-pod.requests.get(self.resource, 0) // self.units) else None

    def count(self, cluster: Cluster, row: int) -> int:
        """Return how many devices a row has. An amount beyond whole devices belongs to none."""
        return min(int(cluster.resources.column(self.resource).allocatable[row]) // self.units, MOST_DEVICES)

    def _refresh(self, cluster: Cluster, in_dry_runs: Iterable[int]) -> None:
        """Compute changed rows anew. Rows of a dry run stay stale until it ends."""
        positions = (cluster.node_journal.position, cluster.pod_journal.position)
        if positions == self._positions and not self._stale:
            return
        self._note_changes(cluster)
        self._positions = positions
        now = self._stale.difference(in_dry_runs)
        for row in now:
            self._free[row] = 0
            self._write(self._free[row], self.of_row(cluster, row))
        self._stale -= now

    def _note_changes(self, cluster: Cluster) -> None:
        nodes, pods = cluster.node_journal.since(self._positions[0]), cluster.pod_journal.since(self._positions[1])
        if nodes is None or pods is None or self._positions[0] < 0:
            self._stale.update(range(cluster.size))
        else:
            self._stale.update(nodes, pods)
        if nodes is None or nodes or self._positions[0] < 0:
            self._grow(cluster)

    def _grow(self, cluster: Cluster) -> None:
        offered = cluster.resources.column(self.resource).allocatable[: cluster.size]
        devices = min(int(offered.max(initial=0)) // self.units, MOST_DEVICES)
        rows, width = self._free.shape
        if devices > width or cluster.size > rows:
            grown = np.zeros((max(2 * rows, cluster.size), max(devices, width)), np.int64)
            grown[:rows, :width] = self._free
            self._free = grown

    @staticmethod
    def _write(target: IntColumn, free: Sequence[int]) -> None:
        target[: len(free)] = free

    def _pack(self, free: list[int], asked: int) -> None:
        if asked <= self.units:
            fitting = [(left, index) for index, left in enumerate(free) if left >= asked]
            if fitting:
                free[min(fitting)[1]] -= asked
                return
        else:
            for index in [index for index, left in enumerate(free) if left == self.units][: asked // self.units]:
                free[index] = 0
                asked -= self.units
        for index in sorted(range(len(free)), key=lambda index: -free[index]):
            taken = min(free[index], asked)
            free[index] -= taken
            asked -= taken


def _take(free: list[int], asked: int, chosen: Iterable[int], units: int) -> None:
    """Subtract a pod's request from its devices, never below 0: annotations may promise more than there is."""
    for index in chosen:
        share = min(asked, units)
        free[index] = max(free[index] - share, 0)
        asked -= share
