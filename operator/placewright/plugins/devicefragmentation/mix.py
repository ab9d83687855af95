"""The mix of pods: the classes of the last pods that requested devices, from a record of bounded size.

A class is the part of a pod that decides where the pod could go. A pod counts once, however often it is tried, until `window` others have
come after it. At a start the record begins with the pods on nodes, in order of creation. Waiting pods are added as the queue takes them in.
So a restart changes the mix little, as long as arriving pods resemble the running ones.

Kept columns depend on the mix, so it is computed again only when a quarter of the record has changed.

Columns of the measure: where pods of a mix may go, and what amount they can use. A change updates single rows.

They do not depend on the pod to be placed, so they are computed once for each change.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.counts import add_count
from placewright.api.objects import NodeSelector
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.requests import CPU, MEMORY, canonical
from placewright.api.selectors import compile_node_selector, selector_from_pairs
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import IntColumn, Reads, Rows
from placewright.plugins.devicefragmentation.args import DeviceFragmentationArgs, TypicalPod, may_be_asked
from placewright.plugins.nodeaffinity import RequiredNodeAffinity, affinity_of
from placewright.plugins.shared.rowtable import RowTable

#: The selection of pods that may run on any node.
ANY_NODE: Final = b""
#: Most bytes of a selection, which bounds memory. A pod with a longer one is almost surely a class of its own, and does not count.
LONGEST_SELECTION: Final = 2048


class Shape(NamedTuple):
    """One class of pods.

    Attributes:
        units: requested amount of the devices' resource.
        cpu, memory: requested milli-CPU and bytes.
        selection: node selector and required node affinity as canonical JSON; empty for most.
    """

    units: int
    cpu: int
    memory: int
    selection: bytes


def shape_of(pod: PodInfo, resource: str) -> Shape:
    """Return the class of a pod that requests this resource."""
    requests = pod.requests
    return Shape(requests.get(resource, 0), requests.get(CPU, 0), requests.get(MEMORY, 0), selection_of(pod))


def selection_of(pod: PodInfo) -> bytes:
    """Encode node selector and required node affinity as canonical JSON; empty if there is neither."""
    return selection_from(pod.pod.spec.node_selector, affinity_of(pod).required_during_scheduling_ignored_during_execution)


def selection_from(selector: Mapping[str, str] | None, required: NodeSelector | None = None) -> bytes:
    """Encode a selector and a required affinity as `selection_of` does."""
    return msgspec.json.encode((selector, required), order="deterministic") if selector or required else ANY_NODE


def demand_of(selection: bytes) -> RequiredNodeAffinity:
    """Compile a selection of `selection_of` to a demand on nodes."""
    if selection == ANY_NODE:
        return RequiredNodeAffinity()
    selector, required = msgspec.json.decode(selection, type=tuple[dict[str, str] | None, NodeSelector | None])
    terms = None if required is None else compile_node_selector(required)
    return RequiredNodeAffinity(selector_from_pairs(selector or NO_LABELS), terms)


#: The mix is computed again when the record has grown, or changed, by one part in so many.
_PART: Final = 4

#: Booleans by row and class, or by row and selection; shape (rows, classes).
BoolTable = NDArray[np.bool_]
#: Classes of pods with their counts, the most frequent first.
Typical = tuple[tuple[Shape, int], ...]


class Mix:
    """The classes of the pods that the plugin has seen.

    Attributes:
        version: number that grows when `typical` changes.
    """

    def __init__(self, args: DeviceFragmentationArgs) -> None:
        self.version = 0
        self._args = args
        self._typical = _fixed(args)
        self._fixed = bool(self._typical)
        self._seen: OrderedDict[str, Shape] = OrderedDict()
        self._counts: Counter[Shape] = Counter()
        self._since = 0
        self._begun = False

    def see(self, pod: PodInfo) -> None:
        """Count a pod to be placed. Ignore pods that request no device, or an amount that no pod may request."""
        asked = pod.requests.get(self._args.resource, 0)
        if not self._fixed and pod.uid not in self._seen and may_be_asked(asked, self._args.units_per_device):
            shape = shape_of(pod, self._args.resource)
            if len(shape.selection) <= LONGEST_SELECTION:
                self._add(pod.uid, shape)

    def typical(self, cluster: Cluster) -> Typical:
        """Return the classes of pods, at most as many as the profile wants."""
        if self._fixed:
            return self._typical
        if not self._begun:
            self._begin(cluster)
        if self._since and self._since * _PART >= len(self._seen):
            self._since = 0
            taken = _most_frequent(self._counts, self._args.shapes)
            if taken != self._typical:
                self._typical = taken
                self.version += 1
        return self._typical

    def _begin(self, cluster: Cluster) -> None:
        """Count the pods on nodes as older than the pods seen so far."""
        self._begun = True
        seen, self._seen, self._counts = self._seen, OrderedDict(), Counter()
        for pod in sorted((placement.pod for placement in cluster.placements()), key=lambda pod: (pod.created, pod.uid)):
            self.see(pod)
        for uid, shape in seen.items():
            if uid not in self._seen:
                self._add(uid, shape)

    def _add(self, uid: str, shape: Shape) -> None:
        self._seen[uid] = shape
        self._counts[shape] += 1
        self._since += 1
        if len(self._seen) > self._args.window:
            _, oldest = self._seen.popitem(last=False)
            add_count(self._counts, oldest, -1)


def _most_frequent(counts: Counter[Shape], most: int) -> Typical:
    """Return the most frequent classes. Equal counts are ordered by demand, so that the order of arrival does not matter."""
    return tuple(sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))[:most])


def _fixed(args: DeviceFragmentationArgs) -> Typical:
    counts: Counter[Shape] = Counter()
    for typical in args.typical_pods:
        counts[_shape(typical, args.resource)] += typical.popularity
    return _most_frequent(counts, args.shapes)


def _shape(typical: TypicalPod, resource: str) -> Shape:
    requests = canonical(typical.requests)
    return Shape(requests.get(resource, 0), requests.get(CPU, 0), requests.get(MEMORY, 0), selection_from(typical.node_selector))


class UsefulColumn(RowTable):
    """The usable amount of each row."""

    def __init__(self, work_out: Callable[[Cluster, Rows], IntColumn]) -> None:
        super().__init__()
        self._work_out = work_out

    def compute(self, cluster: Cluster, index: Rows | slice) -> Sequence[IntColumn]:
        """Compute the amounts of these rows."""
        return (self._work_out(cluster, cluster.all_rows[index]),)


class SelectionTable(RowTable):
    """A table by row and distinct selection, True where the node matches."""

    reads = Reads.NODE

    def __init__(self, selections: Sequence[bytes]) -> None:
        super().__init__()
        self._selections = selections

    @cached_property
    def _demands(self) -> list[RequiredNodeAffinity | None]:
        return [None if selection == ANY_NODE else demand_of(selection) for selection in self._selections]

    def compute(self, cluster: Cluster, index: Rows | slice) -> Sequence[BoolTable]:
        """Match these rows; shape (rows, selections)."""
        rows = cluster.all_rows[index]
        selected = np.ones((len(rows), len(self._demands)), np.bool_)
        for column, demand in enumerate(self._demands):
            if demand is not None:
                selected[:, column] = demand.column(cluster, rows)
        return (selected,)
