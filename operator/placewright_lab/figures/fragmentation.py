"""How much of a device that lies free can still be of use: the fragmentation measure of Weng et al., on columns.

Source: Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023,
section 3. A workload M is a mix of shapes m, each with its popularity p_m, its share of the pods. R_n is what node n has free of the
device. For one shape

    F_n(m) = R_n   when a pod of the shape does not fit on the node, or does not ask for the device,
    F_n(m) = 0     when it fits,

and the fragmentation of a node is what the next pod, drawn from the mix, is expected to find useless there:

    F_n(M) = sum over m of p_m F_n(m),   F = sum over n of F_n(M),   rate = F / sum over n of R_n.

The paper's second case subtracts single GPUs whose remaining share is too small for the pod. Kubernetes counts a node's devices in one
number: of whole GPUs none has a remaining share, so the case is empty; of shared ones (`openb/gpu-milli`) which GPU a share is on is not
known, so that F is a lower bound there. A shape fits where resources, the number of pods, the node's labels and its being schedulable
allow it; taints and pods' relations to each other are not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import NodeSelector
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.requests import is_extended_resource
from placewright.api.selectors import compile_node_selector, selector_from_pairs
from placewright.cluster.cluster import Cluster
from placewright.plugins.nodeaffinity import RequiredNodeAffinity

BoolColumn = NDArray[np.bool_]
IntColumn = NDArray[np.int64]

_NOTHING: Final[IntColumn] = np.zeros(0, np.int64)


class Shape(NamedTuple):
    """Pods that ask for the same: resources and nodes.

    Attributes:
        popularity: its share of the pods; all shapes' together are 1.
    """

    requests: Mapping[str, int]
    demand: RequiredNodeAffinity
    popularity: float


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """One device over all nodes, in the resource's own unit.

    Attributes:
        free: not asked for by any pod.
        stranded: free on nodes where no shape of the workload that asks for the device fits any more.
        expected: F, what a pod drawn from the workload's mix is expected to find useless; counts pods without the device too.
    """

    resource: str
    free: int
    stranded: int
    expected: float

    @property
    def rate(self) -> float:
        """F as a share of what is free; 0 where nothing is."""
        return self.expected / self.free if self.free else 0.0


def shapes_of(pods: Iterable[PodInfo]) -> tuple[Shape, ...]:
    """The mix of a workload, the most popular shape first."""
    examples: dict[object, PodInfo] = {}
    counts: Counter[object] = Counter()
    for pod in pods:
        alike = (tuple(sorted(pod.requests.items())), _selection(pod))
        examples.setdefault(alike, pod)
        counts[alike] += 1
    total = counts.total()
    return tuple(Shape(examples[alike].requests, _demand(examples[alike]), count / total) for alike, count in counts.most_common())


def devices_of(cluster: Cluster) -> tuple[str, ...]:
    """Extended resources that some node offers, sorted."""
    rows = cluster.rows()
    names = (name for name in cluster.resources.names() if is_extended_resource(name))
    return tuple(sorted(name for name in names if cluster.resources.column(name).allocatable[rows].any()))


def fragmentation(cluster: Cluster, shapes: Iterable[Shape]) -> tuple[Fragmentation, ...]:
    """The measure for every device of the cluster, as it stands."""
    rows = cluster.rows()
    devices = devices_of(cluster)
    free = {name: _free(cluster, name, rows) for name in devices}
    if not devices or not len(rows):
        return ()
    useless = {name: np.zeros(len(rows)) for name in devices}
    useful = {name: np.zeros(len(rows), np.bool_) for name in devices}
    for shape, fits in _fitting(cluster, rows, shapes):
        for name in devices:
            serves = fits if shape.requests.get(name) else np.zeros(len(rows), np.bool_)
            useless[name] += shape.popularity * ~serves
            useful[name] |= serves
    return tuple(
        Fragmentation(name, int(free[name].sum()), int(free[name][~useful[name]].sum()), float(free[name] @ useless[name]))
        for name in devices
    )


def _fitting(cluster: Cluster, rows: NDArray[np.intp], shapes: Iterable[Shape]) -> Iterator[tuple[Shape, BoolColumn]]:
    """Every shape with the nodes that could take a pod of it; shape (len(rows),)."""
    open_ = ~cluster.unschedulable[rows] & (cluster.pod_count[rows] < cluster.pod_limit[rows])
    free: dict[str, IntColumn] = {}
    for shape in shapes:
        fits = open_.copy()
        for name, amount in shape.requests.items():
            if amount and len(free.setdefault(name, _NOTHING)) == 0:
                free[name] = _free(cluster, name, rows)
            fits &= free[name] >= amount if amount else True
        if not shape.demand.empty:
            fits &= shape.demand.column(cluster, rows)
        yield shape, fits


def _free(cluster: Cluster, name: str, rows: NDArray[np.intp]) -> IntColumn:
    """Never below 0: a node may have lost devices that its pods still count on."""
    column = cluster.resources.column(name)
    left: IntColumn = np.maximum(column.allocatable[rows] - column.requested[rows], 0)
    return left


def _selection(pod: PodInfo) -> bytes:
    selector, required = pod.pod.spec.node_selector, _required(pod)
    return msgspec.json.encode((selector, required), order="deterministic") if selector or required else b""


def _demand(pod: PodInfo) -> RequiredNodeAffinity:
    required = _required(pod)
    terms = None if required is None else compile_node_selector(required)
    return RequiredNodeAffinity(selector_from_pairs(pod.pod.spec.node_selector or NO_LABELS), terms)


def _required(pod: PodInfo) -> NodeSelector | None:
    affinity = pod.pod.spec.affinity.node_affinity if pod.pod.spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None
