"""The figures by which outcomes of profiles are compared. Pure functions.

Shares are from 0 to 1, times are virtual seconds, and amounts are in column units (milli-CPU, bytes, whole devices). The use of nodes,
empty nodes, zones and fragmentation describe the cluster at one moment, with all its pods. This is the end, or the moment with the most
pods of the workload (`fullest_moment`), if pods leave again.

The free capacity of a device that a workload can still use, over all nodes of a cluster.

The measure is that of DeviceFragmentation (`placewright.plugins.devicefragmentation.measure`, after Weng et al.), with two differences:

- Kubernetes counts a node's devices in one number. So all free devices of a node count as one device, and any share of it is usable. If
  pods share devices (`openb/gpu-milli`), F is therefore a lower bound.
- Pods without a device belong to the mix, because the comparison is about the share of all free devices: rate = F / sum over n of R_n.

A class of pods fits if resources, the number of pods, the node's labels and `unschedulable` allow it. Taints and pods' relations to each
other do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import PodInfo
from placewright.api.requests import CPU, MEMORY, is_extended_resource
from placewright.cluster.cluster import Cluster
from placewright.plugins.devicefragmentation.measure import FragmentationMeasure, Nodes
from placewright.plugins.devicefragmentation.mix import ANY_NODE, Shape, demand_of, selection_of
from placewright_lab.figures.groups import ClaimFigures, GroupFigures, claim_figures, group_figures, group_lacks
from placewright_lab.simulation.outcome import Fate, Outcome

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


FloatColumn = NDArray[np.float64]

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
NOT_TRIED: Final = "not tried yet"
_FIT_ERROR: Final = re.compile(r"\d+/\d+ nodes are available: (?P<reasons>.+?)\.(?: |$)")
_BETWEEN_REASONS: Final = re.compile(r", (?=\d+ )")
_COUNT: Final = re.compile(r"^\d+ ")


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """Requested share of one resource, over the nodes that offer it.

    Attributes:
        shares: share of each node, in row order; shape (nodes,).
        allocatable, requested: sums over all these nodes.
        deviation: standard deviation over the nodes, not of a sample.
    """

    resource: str
    shares: FloatColumn
    allocatable: int
    requested: int
    min: float
    mean: float
    max: float
    deviation: float

    @property
    def empty(self) -> int:
        """Number of these nodes on which nothing is requested."""
        return int((self.shares == 0).sum())


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why pods wait, the number of its pods, and one of their messages in full."""

    what: str
    pods: int
    example: str


@dataclass(frozen=True, slots=True)
class WaitingTimes:
    """Seconds from a pod's creation to its binding."""

    mean: float
    p50: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """Steps over time. Each value holds from its time to the next one. Shapes (steps,).

    Attributes:
        waiting: number of pods that have come and still wait.
        placed: number of pods that have had a node.
    """

    at: FloatColumn
    waiting: NDArray[np.int64]
    placed: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placed:
    """The requests of the workload's pods that got a node, for one resource.

    Attributes:
        before_rejection: requests of pods that came before the first pod, of any kind, whose attempt failed.
        in_all: requests of all pods, even if they have left since.
    """

    before_rejection: int
    in_all: int


@dataclass(frozen=True, slots=True)
class Figures:
    """One profile's numbers.

    Attributes:
        at: time at which nodes are looked at; None for the end.
        pods: number of pods that the profile had to place; each is `placed`, `pending` or `gone`.
        placed: number of pods that got a node, even if they have left it since.
        gone: number of pods that left before they had a node.
        reasons: reasons why pods are pending, the most frequent first.
        preempted: number of pods that had to leave for others, from the beginning on.
        uses: use of CPU, memory, then of every extended resource that nodes offer.
        fragmentations: fragmentation of each of these extended resources.
        empty_nodes: number of nodes that have only pods of DaemonSets, or none.
        zones: number of pods of this workload by zone, at that time; empty if nodes have no zone.
        devices: placed requests by extended resource that nodes offer.
        score_shares: part of each plugin in the scores of the chosen nodes.
        times: waiting times; None if no pod was placed.
        groups: figures of groups; None if no pod names one.
        claims: figures of claims; None if there are none.
    """

    profile: str
    seed: int
    at: float | None
    pods: int
    placed: int
    pending: int
    gone: int
    reasons: tuple[Reason, ...]
    preempted: int
    nodes: int
    empty_nodes: int
    uses: tuple[ResourceUse, ...]
    fragmentations: tuple[Fragmentation, ...]
    zones: Mapping[str, int]
    devices: Mapping[str, Placed]
    score_shares: Mapping[str, float]
    times: WaitingTimes | None
    timeline: Timeline
    groups: GroupFigures | None = None
    claims: ClaimFigures | None = None

    @property
    def zone_skew(self) -> int | None:
        """Pods in the fullest zone less those in the emptiest one; None without zones."""
        return max(self.zones.values()) - min(self.zones.values()) if self.zones else None


def workload(outcomes: Iterable[Outcome]) -> tuple[PodClass, ...]:
    """Return the mix that measures fragmentation: the pods of all outcomes, so that all have the same measure."""
    pods: dict[str, PodInfo] = {}
    for outcome in outcomes:
        pods |= {uid: fate.pod for uid, fate in outcome.fates.items()}
        for placement in outcome.cluster.placements():
            pods.setdefault(placement.pod.uid, placement.pod)
    return classes_of(pods.values())


def fullest_moment(outcome: Outcome) -> float | None:
    """Return the first moment with the most pods of the workload; None if the end has as many."""
    steps = sorted(
        [(fate.bound, 1) for fate in outcome.placed() if fate.bound is not None]
        + [(fate.left, -1) for fate in outcome.placed() if fate.left is not None]
    )
    standing = np.cumsum([step for _, step in steps])
    return None if not len(standing) or standing[-1] == standing.max() else steps[int(standing.argmax())][0]


def figures_of(outcome: Outcome, mix: Iterable[PodClass] | None = None, at: float | None = None) -> Figures:
    """Compute the figures.

    Args:
        outcome: outcome of a simulation.
        mix: workload that measures fragmentation, by default that of this outcome.
        at: time at which nodes are looked at.
    """
    fates = outcome.fates.values()
    placed, pending = list(outcome.placed()), list(outcome.pending())
    standing = [fate for fate in placed if _stands(fate, at)]
    cluster = outcome.cluster if at is None else _cluster_at(outcome, standing)
    return Figures(
        profile=outcome.profile,
        seed=outcome.seed,
        at=at,
        pods=len(fates),
        placed=len(placed),
        pending=len(pending),
        gone=len(fates) - len(placed) - len(pending),
        reasons=reasons_of(fate.message for fate in pending),
        preempted=len(outcome.evicted) + sum(fate.preempted for fate in fates),
        nodes=cluster.node_count,
        empty_nodes=empty_nodes(cluster),
        uses=tuple(node_uses(cluster)),
        fragmentations=fragmentation(cluster, workload([outcome]) if mix is None else mix),
        zones=_zones(cluster, standing),
        devices={name: _placed_of(name, outcome.fates.values()) for name in devices_of(cluster)},
        score_shares=_score_shares(placed),
        times=_times(placed),
        timeline=_timeline(fates),
        groups=group_figures(outcome, without_counts),
        claims=claim_figures(outcome),
    )


def _stands(fate: Fate, at: float | None) -> bool:
    if at is None:
        return fate.left is None
    return fate.bound is not None and fate.bound <= at and (fate.left is None or fate.left > at)


def _cluster_at(outcome: Outcome, standing: Iterable[Fate]) -> Cluster:
    """Return the cluster at a time, with the nodes of the end. Pods outside the workload are in their state at the end."""
    cluster = Cluster()
    for node in outcome.cluster.nodes():
        cluster.set_node(node)
    for placement in outcome.cluster.placements():
        if placement.pod.uid not in outcome.fates:
            cluster.set_pod(placement.pod)
    for fate in standing:
        assert fate.node is not None
        cluster.assume(fate.pod.on(fate.node), fate.node)
    return cluster


def without_counts(message: str) -> str:
    """Return the reasons without numbers of nodes, which differ from pod to pod. Other messages stay unchanged."""
    if lacks := group_lacks(message):
        return f"its group {lacks}"
    match = _FIT_ERROR.match(message)
    if match is None:
        return message or NOT_TRIED
    return ", ".join(sorted(_COUNT.sub("", reason) for reason in _BETWEEN_REASONS.split(match["reasons"])))


def reasons_of(several: Iterable[str]) -> tuple[Reason, ...]:
    """Group messages of pods without a node by their reasons, the most frequent first."""
    messages: dict[str, list[str]] = {}
    for message in several:
        messages.setdefault(without_counts(message), []).append(message)
    found = (Reason(what, len(alike), alike[0]) for what, alike in messages.items())
    return tuple(sorted(found, key=lambda reason: (-reason.pods, reason.what)))


def empty_nodes(cluster: Cluster) -> int:
    """Count the nodes that have only pods of DaemonSets, or none."""
    return sum(all(_is_daemon(pod) for pod in cluster.pods_on(name)) for name in cluster.names if name is not None)


def _is_daemon(pod: PodInfo) -> bool:
    return any(owner.controller and owner.kind == "DaemonSet" for owner in pod.pod.metadata.owner_references or ())


def node_uses(cluster: Cluster) -> Iterable[ResourceUse]:
    """Yield the requested share of CPU, memory and every extended resource, over the nodes that offer it."""
    rows = cluster.rows()
    for name in (CPU, MEMORY, *devices_of(cluster)):
        column = cluster.resources.column(name)
        have = rows[column.allocatable[rows] > 0]
        if len(have):
            offered, asked = column.allocatable[have], column.requested[have]
            shares = asked / offered
            spread = (float(shares.min()), float(shares.mean()), float(shares.max()), float(shares.std()))
            yield ResourceUse(name, shares, int(offered.sum()), int(asked.sum()), *spread)


def _zones(cluster: Cluster, standing: Iterable[Fate]) -> dict[str, int]:
    zone_of = {node.metadata.name: zone for node in cluster.nodes() if (zone := (node.metadata.labels or {}).get(ZONE_LABEL))}
    pods = Counter(zone_of.get(fate.node or "") for fate in standing)
    return {zone: pods[zone] for zone in sorted(set(zone_of.values()))}


def _placed_of(resource: str, fates: Iterable[Fate]) -> Placed:
    before = in_all = 0
    rejected = False
    for fate in fates:
        rejected |= fate.rejected
        asked = fate.pod.requests.get(resource, 0) if fate.node is not None else 0
        in_all += asked
        before += 0 if rejected else asked
    return Placed(before, in_all)


def _score_shares(placed: Iterable[Fate]) -> dict[str, float]:
    parts: Counter[str] = Counter()
    for fate in placed:
        parts.update(fate.parts)
    total = parts.total()
    return {plugin: part / total for plugin, part in sorted(parts.items(), key=lambda item: (-item[1], item[0]))} if total else {}


def _times(placed: Iterable[Fate]) -> WaitingTimes | None:
    waits = np.array([fate.bound - fate.created for fate in placed if fate.bound is not None])
    if not len(waits):
        return None
    p50, p99 = np.percentile(waits, [50, 99])
    return WaitingTimes(float(waits.mean()), float(p50), float(p99), float(waits.max()))


def _timeline(fates: Iterable[Fate]) -> Timeline:
    steps: list[tuple[float, int, int]] = []
    for fate in fates:
        steps.append((fate.created, 1, 0))
        if fate.bound is not None:
            steps.append((fate.bound, -1, 1))
        elif fate.left is not None:
            steps.append((fate.left, -1, 0))
    when = np.array([step[0] for step in steps], float)
    at, index = np.unique(when, return_inverse=True)
    waiting, placed = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    np.add.at(waiting, index, [step[1] for step in steps])
    np.add.at(placed, index, [step[2] for step in steps])
    return Timeline(at, waiting.cumsum(), placed.cumsum())
