"""The free capacity of a device that a workload can still use, over all nodes of a cluster.

The measure is that of DeviceFragmentation (`placewright.plugins.devicefragmentation.measure`, after Weng et al.), with two differences:

- Kubernetes counts a node's devices in one number. So all free devices of a node count as one device, and any share of it is usable. If
  pods share devices (`openb/gpu-milli`), F is therefore a lower bound.
- Pods without a device belong to the mix, because the comparison is about the share of all free devices: rate = F / sum over n of R_n.

A class of pods fits if resources, the number of pods, the node's labels and `unschedulable` allow it. Taints and pods' relations to each
other do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import PodInfo
from placewright.api.requests import is_extended_resource
from placewright.cluster.cluster import Cluster
from placewright.plugins.devicefragmentation.measure import FragmentationMeasure, Nodes
from placewright.plugins.devicefragmentation.mix import ANY_NODE, Shape, demand_of, selection_of

BoolTable = NDArray[np.bool_]
IntColumn = NDArray[np.int64]

#: Units of one device if all of a node's count as one, more than any node has.
_ALL_IN_ONE: Final = int(np.iinfo(np.int64).max)
#: Number of a table's entries in one piece of work.
_BLOCK: Final = 300_000


class PodClass(NamedTuple):
    """Pods of a workload with equal requests.

    Attributes:
        requests: requests of each of them.
        selection: node selector and required node affinity, in the form of `selection_of`.
        pods: number of pods.
    """

    requests: Mapping[str, int]
    selection: bytes
    pods: int


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """One device over all nodes, in the resource's own unit.

    Attributes:
        free: amount that no pod has requested.
        stranded: amount on nodes that no shape of the workload with this device fits any more.
        expected: F, the expected useless amount for a pod drawn from the workload's mix, which includes pods without the device.
    """

    resource: str
    free: int
    stranded: int
    expected: float

    @property
    def rate(self) -> float:
        """F as a share of the free capacity; 0 if nothing is free."""
        return self.expected / self.free if self.free else 0.0


def classes_of(pods: Iterable[PodInfo]) -> tuple[PodClass, ...]:
    """Return the mix of a workload, the most popular class first."""
    counts = Counter((tuple(sorted(pod.requests.items())), selection_of(pod)) for pod in pods)
    return tuple(PodClass(dict(requests), selection, count) for (requests, selection), count in counts.most_common())


def devices_of(cluster: Cluster) -> tuple[str, ...]:
    """Return the extended resources that some node offers, sorted."""
    rows = cluster.rows()
    names = (name for name in cluster.resources.names() if is_extended_resource(name))
    return tuple(sorted(name for name in names if cluster.resources.column(name).allocatable[rows].any()))


def fragmentation(cluster: Cluster, mix: Iterable[PodClass]) -> tuple[Fragmentation, ...]:
    """Return the measure for every device of the cluster in its present state."""
    rows, devices, classes = cluster.rows(), devices_of(cluster), tuple(mix)
    if not devices or not len(rows):
        return ()
    fits = _fitting(cluster, rows, classes)
    return tuple(_measured(name, _free(cluster, name, rows), classes, fits) for name in devices)


def _measured(name: str, free: IntColumn, classes: Sequence[PodClass], fits: BoolTable) -> Fragmentation:
    """Return the measure of one device. `fits` has shape (rows, classes)."""
    asking = tuple((Shape(amount, 0, 0, b"%d" % i), each.pods) for i, each in enumerate(classes) if (amount := each.requests.get(name)))
    measure = FragmentationMeasure(asking, _ALL_IN_ONE)
    columns = [int(selection) for selection in measure.selections]
    useless, stranded = 0, 0
    step = max(_BLOCK // (len(columns) + 1), 1)
    for start in range(0, len(free), step):
        some = free[start : start + step]
        serving = fits[start : start + step, columns]
        nothing = np.zeros(len(some), np.int64)
        useless += int(measure.fragmentation(Nodes(nothing, nothing, some[:, None], serving)).sum())
        stranded += int(some[~serving.any(axis=1)].sum())
    total = sum(each.pods for each in classes)
    everything = int(free.sum())
    expected = (useless + (total - measure.total) * everything) / total if total else 0.0
    return Fragmentation(name, everything, stranded, expected)


def _fitting(cluster: Cluster, rows: NDArray[np.intp], classes: Sequence[PodClass]) -> BoolTable:
    """Return the nodes that could take a pod of each class, in shape (len(rows), classes)."""
    fits = np.empty((len(rows), len(classes)), np.bool_, order="F")
    open_ = ~cluster.unschedulable[rows] & (cluster.pod_count[rows] < cluster.pod_limit[rows])
    free: dict[str, IntColumn] = {}
    for i, each in enumerate(classes):
        fits[:, i] = open_
        for name, amount in each.requests.items():
            if amount:
                if name not in free:
                    free[name] = _free(cluster, name, rows)
                fits[:, i] &= free[name] >= amount
        if each.selection != ANY_NODE:
            fits[:, i] &= demand_of(each.selection).column(cluster, rows)
    return fits


def _free(cluster: Cluster, name: str, rows: NDArray[np.intp]) -> IntColumn:
    """Return the free amounts, at least 0, because a node may have lost devices that its pods still use."""
    column = cluster.resources.column(name)
    left: IntColumn = np.maximum(column.allocatable[rows] - column.requested[rows], 0)
    return left
