"""The cluster's nodes as rows of the console's state.

The section `nodes` has, by name, what a node is: `[values of labels, offered amounts, cordoned]`. The section `loads` has, by name, what is
on it: `[requested amounts, pods by profile]`. Amounts are in the units of the columns (milli-CPU, bytes, counts). The section `about`
says to which labels, resources and profiles the places of these lists belong. Devices of ResourceSlices are resources, too
(`console.devicetallies`). Two sections, because loads change all the time and nodes seldom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.requests import CPU, MEMORY, PODS, is_extended_resource
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct
from placewright.console.devicetallies import MOST_KINDS, PREFIX, DeviceTallies
from placewright.console.grouplabels import LabelCounts

#: Extended resources in a row. Nodes of one cluster offer few kinds of devices; the rest is left out and `about` says how many.
MOST_DEVICES: Final = 8
#: The place of pods whose profile is not in `about`.
NO_PROFILE: Final = -1


class ConsoleNodes:
    """Keeps the rows of all nodes, and makes anew only the rows that the cluster's journals name.

    Attributes:
        nodes: the section `nodes`.
        loads: the section `loads`.
    """

    def __init__(self, cluster: Cluster, profiles: Sequence[str]) -> None:
        """Make no rows yet.

        Args:
            cluster: only read.
            profiles: the schedulerNames of known profiles. Pods of other names are counted together, because a name in a pod is
                its owner's own text.
        """
        self.nodes: dict[str, Any] = {}
        self.loads: dict[str, Any] = {}
        self._cluster = cluster
        self._profiles = tuple(profiles)
        self._place = {name: place for place, name in enumerate(profiles)}
        self._counts = LabelCounts()
        self._devices = DeviceTallies(cluster)
        self._labels: tuple[str, ...] = ()
        self._resources: tuple[str, ...] = ()
        self._left_out = 0
        self._names: dict[int, NodeName] = {}
        self._read: tuple[int, int] | None = None

    def about(self) -> dict[str, Any]:
        """Return the rows of the section `about` that name the places in the lists."""
        return {
            "labels": self._labels,
            "resources": self._resources,
            "resourcesLeftOut": self._left_out,
            "profiles": self._profiles,
        }

    def refresh(self) -> None:
        """Bring the rows up to date. O(changed rows); all rows where labels or resources came or went."""
        cluster = self._cluster
        position = cluster.node_journal.position, cluster.pod_journal.position
        devices = self._devices.refresh()
        if position == self._read and devices is not None and not devices:
            return
        changed = self._changed_rows(devices)
        resources, labels = self._resources_now(), self._labels
        if changed is None or self._read is None or self._read[0] != position[0]:
            for row in range(cluster.size) if changed is None else changed:
                self._counts.set_row(row, None if cluster.names[row] is None else cluster.node(row).metadata.labels or {})
            labels = self._counts.chosen()
        if changed is None or (resources, labels) != (self._resources, self._labels):
            self._resources, self._labels = resources, labels
            self._forget_all()
            changed = range(cluster.size)
        for row in changed:
            self._write(row)
        self._read = position

    def _changed_rows(self, devices: Collection[str] | None) -> Collection[int] | None:
        """The rows that changed since the last call, and those of nodes whose devices did; None where that is not known."""
        if self._read is None or devices is None:
            return None
        nodes, pods = self._cluster.node_journal.since(self._read[0]), self._cluster.pod_journal.since(self._read[1])
        if nodes is None or pods is None:
            return None
        with_devices = (self._cluster.row(NodeName(name)) for name in devices)
        rows: list[int] = distinct(nodes, pods, [row for row in with_devices if row is not None]).tolist()
        return rows

    def _resources_now(self) -> tuple[str, ...]:
        devices = sorted(name for name in self._cluster.resources.names() if is_extended_resource(name))
        published = self._devices.kinds
        self._left_out = max(len(devices) - MOST_DEVICES, 0) + max(len(published) - MOST_KINDS, 0)
        return (CPU, MEMORY, PODS, *devices[:MOST_DEVICES], *published[:MOST_KINDS])

    def _forget_all(self) -> None:
        self.nodes.clear()
        self.loads.clear()
        self._names.clear()

    def _write(self, row: int) -> None:
        """Make the row anew. A row may hold another node than before."""
        before, name = self._names.pop(row, None), self._cluster.names[row]
        if before is not None and before != name and self._cluster.row(before) is None:
            self.nodes.pop(before, None)
            self.loads.pop(before, None)
        if name is not None:
            self._names[row] = name
            self.nodes[name] = self._node(row, name)
            self.loads[name] = self._load(row, name)

    def _node(self, row: int, name: NodeName) -> list[Any]:
        labels = self._cluster.node(row).metadata.labels or {}
        return [[labels.get(key) for key in self._labels], self._amounts(row, name, offered=True), bool(self._cluster.unschedulable[row])]

    def _load(self, row: int, name: NodeName) -> list[Any]:
        pods = Counter(self._place.get(pod.scheduler_name, NO_PROFILE) for pod in self._cluster.pods_on(name))
        return [self._amounts(row, name, offered=False), sorted(pods.items())]

    def _amounts(self, row: int, node: NodeName, *, offered: bool) -> list[int]:
        cluster, devices = self._cluster, self._devices.at(node)
        published = devices.offered if offered else devices.taken
        amounts = []
        for name in self._resources:
            if name == PODS:
                column = cluster.pod_limit if offered else cluster.pod_count
            elif name.startswith(PREFIX):
                amounts.append(published.get(name, 0))
                continue
            else:
                resource = cluster.resources.column(name)
                column = resource.allocatable if offered else resource.requested
            amounts.append(int(column[row]))
        return amounts
