"""The cluster's nodes as rows of the console's state.

The section `nodes` has, by name, what a node is: `[values of labels, offered amounts, cordoned]`. The section `loads` has, by name, what is
on it: `[requested amounts, pods by profile]`. Amounts are in the units of the columns (milli-CPU, bytes, counts). The section `about`
says to which labels, resources and profiles the places of these lists belong. Two sections, because loads change all the time and nodes
seldom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.requests import CPU, MEMORY, PODS, is_extended_resource
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct

#: Extended resources in a row. Nodes of one cluster offer few kinds of devices; the rest is left out and `about` says how many.
MOST_DEVICES: Final = 8
#: Labels by which nodes can be grouped, and values of one: a picture with more groups shows nothing.
MOST_LABELS: Final = 12
MOST_VALUES: Final = 300
#: Labels that operators group by come first.
_FIRST_LABELS: Final = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type",
)  # fmt: skip
#: The place of pods whose profile is not in `about`.
NO_PROFILE: Final = -1


def grouping_labels(cluster: Cluster) -> tuple[str, ...]:
    """Choose the labels that divide the nodes into groups: with more than one value or one that some nodes lack, and not too many.

    Args:
        cluster: with the nodes.

    Returns:
        At most `MOST_LABELS` keys; zone, region and instance type come first.
    """
    nodes, found = cluster.node_count, list[str]()
    most = min(MOST_VALUES, max(nodes // 2, 2))
    for key in sorted(cluster.label_keys):
        values = Counter((node.metadata.labels or {}).get(key) for node in cluster.nodes())
        if len(values) > 1 and len(values) <= most:
            found.append(key)
    found.sort(key=lambda key: (_FIRST_LABELS.index(key) if key in _FIRST_LABELS else len(_FIRST_LABELS), key))
    return tuple(found[:MOST_LABELS])


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
        if position == self._read:
            return
        changed = self._changed_rows()
        resources, labels = self._resources_now(), self._labels
        if changed is None or self._read is None or self._read[0] != position[0]:
            labels = grouping_labels(cluster)
        if changed is None or (resources, labels) != (self._resources, self._labels):
            self._resources, self._labels = resources, labels
            self._forget_all()
            changed = range(cluster.size)
        for row in changed:
            self._write(row)
        self._read = position

    def _changed_rows(self) -> Collection[int] | None:
        """The rows that changed since the last call; None where that is not known."""
        if self._read is None:
            return None
        nodes, pods = self._cluster.node_journal.since(self._read[0]), self._cluster.pod_journal.since(self._read[1])
        return None if nodes is None or pods is None else distinct(nodes, pods).tolist()

    def _resources_now(self) -> tuple[str, ...]:
        devices = sorted(name for name in self._cluster.resources.names() if is_extended_resource(name))
        self._left_out = max(len(devices) - MOST_DEVICES, 0)
        return (CPU, MEMORY, PODS, *devices[:MOST_DEVICES])

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
            self.nodes[name] = self._node(row)
            self.loads[name] = self._load(row, name)

    def _node(self, row: int) -> list[Any]:
        labels = self._cluster.node(row).metadata.labels or {}
        return [[labels.get(key) for key in self._labels], self._amounts(row, offered=True), bool(self._cluster.unschedulable[row])]

    def _load(self, row: int, name: NodeName) -> list[Any]:
        pods = Counter(self._place.get(pod.scheduler_name, NO_PROFILE) for pod in self._cluster.pods_on(name))
        return [self._amounts(row, offered=False), sorted(pods.items())]

    def _amounts(self, row: int, *, offered: bool) -> list[int]:
        cluster = self._cluster
        amounts = []
        for name in self._resources:
            if name == PODS:
                column = cluster.pod_limit if offered else cluster.pod_count
            else:
                resource = cluster.resources.column(name)
                column = resource.allocatable if offered else resource.requested
            amounts.append(int(column[row]))
        return amounts
