"""The cluster's nodes as rows of the console's state.

The section `nodes` has, by name, what a node is: `[values of labels, offered amounts, cordoned]`. The section `loads` has, by name, what is
on it: `[requested amounts, pods by profile]`. Amounts are in the units of the columns (milli-CPU, bytes, counts). The section `about`
says to which labels, resources and profiles the places of these lists belong. Devices of ResourceSlices are resources, too
(`console.devicetallies`). Two sections, because loads change all the time and nodes seldom.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.requests import CPU, MEMORY, PODS, is_extended_resource
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct
from placewright_console.pages.devicetallies import MOST_KINDS, PREFIX, DeviceTallies
from placewright_console.pages.grouplabels import LabelCounts

#: Extended resources in a row. Nodes of one cluster offer few kinds of devices; the rest is left out and `about` says how many.
MOST_DEVICES: Final = 8
#: The place of pods whose profile is not in `about`.
NO_PROFILE: Final = -1


class _Table:
    """The rows of nodes for one choice of labels, resources and profiles.

    Attributes:
        nodes: the section `nodes`.
        loads: the section `loads`.
        places: the rows of `about` that name the places in the lists.
    """

    def __init__(
        self, cluster: Cluster, devices: DeviceTallies, labels: tuple[str, ...], resources: tuple[str, ...], left_out: int,
        profiles: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.nodes: dict[str, Any] = {}
        self.loads: dict[str, Any] = {}
        self.places = {"labels": labels, "resources": resources, "resourcesLeftOut": left_out, "profiles": profiles}
        self._cluster = cluster
        self._devices = devices
        self._labels = labels
        self._resources = resources
        self._place = {name: place for place, name in enumerate(profiles)}
        self._names: dict[int, NodeName] = {}

    def write(self, row: int) -> None:
        """Make a row anew. A row may hold another node than before."""
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
        pods = Counter([self._place.get(pod.scheduler_name, NO_PROFILE) for pod in self._cluster.pods_on(name)])
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


class ConsoleNodes:
    """Keeps the rows of all nodes, and makes anew only the rows that the cluster's journals name.

    If labels, resources or profiles come or go, all rows are made anew, aside. Readers have the former rows until that is done. So places
    in rows and their names in `about` always belong together.

    Example:
        while nodes.refresh(100):
            ...                     # others have their turn
    """

    def __init__(self, cluster: Cluster, profiles: Sequence[str]) -> None:
        """Make no rows yet.

        Args:
            cluster: only read.
            profiles: the schedulerNames of known profiles. Pods of other names are counted together, because a name in a pod is
                its owner's own text.
        """
        self.profiles = tuple(profiles)
        self._cluster = cluster
        self._counts = LabelCounts()
        self._devices = DeviceTallies(cluster)
        self._shown = self._table((), (), 0)
        #: Becomes `_shown` when all rows are made.
        self._aside: _Table | None = None
        #: Rows whose labels are to be counted, and rows to be made.
        self._to_count: list[int] = []
        self._to_make: list[int] = []
        self._read: tuple[int, int] | None = None
        #: The journals did not have all changes: rows may be gone.
        self._lost = True

    @property
    def nodes(self) -> dict[str, Any]:
        """The section `nodes`."""
        return self._shown.nodes

    @property
    def loads(self) -> dict[str, Any]:
        """The section `loads`."""
        return self._shown.loads

    @property
    def left(self) -> int:
        """Number of rows that are known to be out of date."""
        return len(self._to_make) + len(self._to_count) + self._devices.left

    def about(self) -> dict[str, Any]:
        """Return the rows of the section `about` that name the places in the lists."""
        return dict(self._shown.places)

    def refresh(self, most: int | None = None) -> bool:
        """Bring the rows up to date. O(changed rows); all rows where labels, resources or profiles came or went.

        Args:
            most: steps at most, each of a row, or of a pool of devices; None for all that is needed.

        Returns:
            Whether there is more to do.
        """
        left = sys.maxsize if most is None else most
        while left > 0:
            if self._devices.left:
                self._devices.step()
            elif self._to_count:
                row = self._to_count.pop()
                name = self._cluster.names[row]
                self._counts.set_row(row, None if name is None else self._cluster.node(row).metadata.labels or {})
                if not self._to_count:
                    self._choose()
            elif self._to_make:
                (self._aside or self._shown).write(self._to_make.pop())
            elif self._aside is not None:
                self._shown, self._aside = self._aside, None
            elif not self._look():
                return False
            left -= 1
        return bool(self.left or self._aside)

    def _look(self) -> bool:
        """Read the journals. Returns whether there is anything to do."""
        cluster = self._cluster
        position = cluster.node_journal.position, cluster.pod_journal.position
        self._devices.look()
        if self._devices.left:
            return True
        devices = self._devices.take()
        if position == self._read and self.profiles == self._shown.places["profiles"] and devices is not None and not devices:
            return False
        nodes = pods = None
        if self._read is not None:
            nodes, pods = cluster.node_journal.since(self._read[0]), cluster.pod_journal.since(self._read[1])
        self._read = position
        if nodes is None or pods is None or devices is None:
            self._counts, self._lost = LabelCounts(), True
            self._to_count, self._to_make = list(range(cluster.size)), list(range(cluster.size))
        else:
            self._to_count = distinct(nodes).tolist()
            self._to_make = distinct(nodes, pods, self._rows_of(devices)).tolist()
        if not self._to_count:
            self._choose()
        return True

    def _rows_of(self, names: Collection[str]) -> list[int]:
        rows = (self._cluster.row(NodeName(name)) for name in names)
        return [row for row in rows if row is not None]

    def _choose(self) -> None:
        """Have all rows made anew where they would have other places than now."""
        devices = sorted(name for name in self._cluster.resources.names() if is_extended_resource(name))
        published = self._devices.kinds
        resources = (CPU, MEMORY, PODS, *devices[:MOST_DEVICES], *published[:MOST_KINDS])
        left_out = max(len(devices) - MOST_DEVICES, 0) + max(len(published) - MOST_KINDS, 0)
        table = self._table(self._counts.chosen(), resources, left_out)
        if self._lost or table.places != self._shown.places:
            self._aside, self._lost = table, False
            self._to_make = list(range(self._cluster.size))

    def _table(self, labels: tuple[str, ...], resources: tuple[str, ...], left_out: int) -> _Table:
        return _Table(self._cluster, self._devices, labels, resources, left_out, self.profiles)
