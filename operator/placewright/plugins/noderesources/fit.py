"""NodeResourcesFit: checks that the node has what the pod requests, and scores how full the node would be.

Implements PreFilter, Filter, PreScore, Score. The Pre points exist because profiles may name them; the columns need neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from placewright.api.devices import IMPLICIT_RESOURCE, DeviceClass
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.api.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    canonical,
    is_extended_resource,
    is_scalar_resource,
    scoring_requests_of_containers,
)
from placewright.cluster.cluster import Cluster
from placewright.cluster.clusterlimits import amount as in_words
from placewright.cluster.clusterlimits import too_large
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    Handle,
    IntColumn,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    Rejection,
    Rows,
    ScorePlugin,
)
from placewright.framework.memory import Memory
from placewright.framework.remedies import Remedy, RemedyKind, RemedyPlugin
from placewright.framework.status import SUCCESS, Status, unresolvable, unschedulable
from placewright.plugins.noderesources.args import NodeResourcesFitArgs, ResourceSpec, ScoringStrategy
from placewright.plugins.noderesources.served import DEVICES, DeviceBackedResources, WholeNumbers
from placewright.plugins.noderesources.strategies import FEW_ROWS, LoadTable, load_of, score_of_row, strategy_score
from placewright.plugins.shared.hints import was_in_the_way
from placewright.plugins.shared.lookups import combinations

TOO_MANY_PODS: Final = "Too many pods"
_SHORT: Final = "Insufficient "
_BEFORE_AND_AFTER: Final = 2
#: Ratio of the time to divide a column to the time to compare it.
_COMPARED_FAST: Final = 4
_FIRST: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
#: The strategy by which placements are scored, whichever scores nodes.
_FULLEST: Final = ScoringStrategy("MostAllocated")


class NodeResourcesFit(PreFilterPlugin[NodeResourcesFitArgs], RemedyPlugin, PreScorePlugin, ScorePlugin):
    """Rejects nodes without room; prefers emptier or fuller ones, as the profile says."""

    name = "NodeResourcesFit"
    reads = Reads.NODE_AND_ITS_PODS

    @classmethod
    def counted_resources(cls, args: NodeResourcesFitArgs) -> tuple[str, ...]:
        """Name the resources that are scored."""
        return tuple(each.name for each in args.scoring_strategy.resources)

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._offers = Memory(_BEFORE_AND_AFTER)
        self._served = DeviceBackedResources(handle, self.counted_resources(args))
        self._loads = {spec.name: LoadTable(spec.name) for spec in args.scoring_strategy.resources}

    def sign(self, pod: PodInfo) -> Hashable | None:
        """Sign the pod by its requests, and by the ones that devices may serve; None if these are scored."""
        if self._served.of(pod):
            return None
        signature: Hashable = frozenset(pod.requests.items()), pod.scoring_cpu, pod.scoring_memory
        if served := self._served_by_devices(pod):
            signature = (signature, served)
        return signature if pod.pod.spec.resources is None else (signature, frozenset(_bid(pod).items()))

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Pass: the columns need no preparation."""
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows with room for the number of pods and for every requested resource."""
        if len(rows) <= FEW_ROWS // _COMPARED_FAST:
            return np.array([self._holds(pod, cluster, row) for row in rows.tolist()], np.bool_)
        index = slice(0, len(rows)) if rows is cluster.all_rows else rows  # all of a column is read in place
        fits = cluster.pod_count[index] < cluster.pod_limit[index]
        served = self._served_by_devices(pod)
        for name, amount in self._demanded(pod):
            if name not in cluster.resources:
                if name not in served:
                    return np.zeros(len(rows), np.bool_)  # a pod may name thousands that no node offers
                continue
            column = cluster.resources.column(name)
            enough = column.free[index] >= amount
            fits &= enough | (column.allocatable[index] == 0) if name in served else enough
        return fits

    def _holds(self, pod: PodInfo, cluster: Cluster, row: int) -> bool:
        """Return whether the pod count and every requested resource fit on one row."""
        if cluster.pod_count[row] >= cluster.pod_limit[row]:
            return False
        resources, served = cluster.resources, self._served_by_devices(pod)
        for name, amount in self._demanded(pod):
            if name not in resources:
                if name not in served:
                    return False
                continue
            column = resources.column(name)
            if column.free.item(row) < amount and not (name in served and not column.allocatable.item(row)):
                return False
        return True

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Name every resource that is short, in kube-scheduler's order.

        A row is unresolvable if the request alone exceeds the node.
        """
        reasons = [TOO_MANY_PODS]
        everywhere = np.ones(len(rows), np.bool_)
        short = [cluster.pod_count[rows] >= cluster.pod_limit[rows]]
        hopeless = np.zeros(len(rows), np.bool_)
        served = self._served_by_devices(pod)
        for name, amount in self._demanded(pod):
            offered = name in cluster.resources
            if name in served and not offered:
                continue
            reasons.append(f"{_SHORT}{name}")
            if not offered:
                short.append(everywhere)
                hopeless = everywhere
                continue
            column = cluster.resources.column(name)
            allocatable = column.allocatable[rows]
            counts = allocatable > 0 if name in served else everywhere
            short.append((column.requested[rows] > allocatable - amount) & counts)
            hopeless = hopeless | (amount > allocatable) & counts
        return _grouped(rows, reasons, [*short, hopeless], everywhere)

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose to remove as many pods as are too many, and more of each resource that is short.

        The text says if no node offers an amount.
        """
        lacks = self._lacking(pod, cluster, row)
        fewer = lacks.pop(PODS, 0)
        found = []
        if fewer:
            held, limit = int(cluster.pod_count[row]), int(cluster.pod_limit[row])
            text = f"{fewer} pod{'s' if fewer > 1 else ''} less: it holds {held} and may hold {limit}"
            found.append(Remedy(self.name, RemedyKind.FEWER_PODS, text, {PODS: fewer}))
        if lacks:
            text = " and ".join(f"{in_words(name, missing)} more {name}" for name, missing in lacks.items())
            beyond = " and ".join(filter(None, (too_large(cluster, name, pod.requests[name]) for name in lacks)))
            found.append(Remedy(self.name, RemedyKind.MORE_RESOURCES, text, lacks, beyond=beyond))
        return found

    def _lacking(self, pod: PodInfo, cluster: Cluster, row: int) -> dict[str, int]:
        """Return the missing amounts of a rejected row by resource, which may be `pods`."""
        lacks = {name: int(missing[0]) for name, missing in self.shortfalls(pod, cluster, np.array([row], np.intp)).items() if missing[0]}
        over = int(cluster.pod_count[row]) + 1 - int(cluster.pod_limit[row])
        return {PODS: over, **lacks} if over > 0 else lacks

    def nearest_first(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Rows:
        """Sort rows by the missing share of the pod's requests, summed over all resources."""
        lacks = np.zeros(len(rows))
        for name, missing in self.shortfalls(pod, cluster, rows).items():
            lacks += missing / pod.requests[name]
        return rows[np.argsort(lacks, kind="stable")]

    def shortfalls(self, pod: PodInfo, cluster: Cluster, rows: Rows) -> dict[str, IntColumn]:
        """Return by resource what rows lack of the pod's requests, shape (rows,); 0 where devices serve the resource."""
        found, served = {}, self._served_by_devices(pod)
        for name, asked in self._demanded(pod):
            column = cluster.resources.column(name)
            missing = np.maximum(column.requested[rows] + asked - column.allocatable[rows], 0)
            found[name] = np.where(column.allocatable[rows] == 0, 0, missing) if name in served else missing
        return found

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Pass: the columns need no preparation."""
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Score rows from 0 to 100 by the profile's scoring strategy."""
        strategy = self.args.scoring_strategy
        bid, served = _bid(pod), self._served.of(pod)
        amounts = {name: self._served.amounts(each, cluster, self._loads[name].whole(cluster)) for name, each in served.items()}
        if len(rows) <= FEW_ROWS and strategy.type != "RequestedToCapacityRatio":
            return self._scores_of_few(strategy, bid, cluster, rows, amounts)
        loads = [
            load_of(amounts[spec.name], rows, own, spec.weight or 1)
            if spec.name in amounts
            else self._loads[spec.name].load(cluster, rows, own, spec.weight or 1)
            for spec, own in self._counting(bid)
        ]
        return strategy_score(strategy, loads, len(rows))

    def score_placements(self, cluster: Cluster, placements: Sequence[Rows], pods: Sequence[PodInfo]) -> list[int]:
        """Score how full each set of rows would be with these pods, from 0 to 100."""
        asked = Counter[str]()
        for pod in pods:
            asked.update(_bid(pod))
        if not placements:
            return []
        rows, placement_of = np.concatenate(placements), np.repeat(np.arange(len(placements)), [*map(len, placements)])
        loads: list[list[tuple[int, int, int]]] = [[] for _ in placements]
        for spec, own in self._counting(asked):
            taken, there = self._loads[spec.name].whole(cluster)
            offered = there[rows]
            used, capacity = np.zeros((2, len(placements)), np.int64)
            np.add.at(used, placement_of, np.where(offered > 0, taken[rows], 0))
            np.add.at(capacity, placement_of, offered)
            for load, amount, most in zip(loads, used.tolist(), capacity.tolist(), strict=True):
                load.append((amount + own, most, spec.weight or 1))
        return [score_of_row(_FULLEST, load) for load in loads]

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare pods that leave or shrink, and nodes that come or grow."""
        return (
            event_with_hint(EventResource.POD, Action.DELETE, was_in_the_way(PodInfo, _had_a_node)),
            event_with_hint(EventResource.POD, Action.UPDATE_POD_SCALE_DOWN, self._freed_something),
            event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._node_grew),
            event_with_hint(EventResource.DEVICE_CLASS, Action.ADD | Action.UPDATE, self._class_serves),
        )

    def _demanded(self, pod: PodInfo) -> Iterator[tuple[str, int]]:
        """Yield the resources to check: CPU, memory, ephemeral storage, then the others by name, without ignored ones and zeros."""
        for name in _FIRST:
            if amount := pod.requests.get(name, 0):
                yield name, amount
        for name in sorted(pod.requests):
            if name not in _FIRST and pod.requests[name] and not self._ignored(name):
                yield name, pod.requests[name]

    def _served_by_devices(self, pod: PodInfo) -> frozenset[str]:
        """Return the resources that DynamicResources serves on nodes that do not offer them (see its `claims`)."""
        served = self.handle.cluster.objects.devices.served(pod)
        return frozenset(served) if served and self.handle.runs(DEVICES) else frozenset()

    def _ignored(self, name: str) -> bool:
        if not is_extended_resource(name):
            return False
        return name in self.args.ignored_resources or name.partition("/")[0] in self.args.ignored_resource_groups

    def _freed_something(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        if not isinstance(new, PodInfo) or not isinstance(old, PodInfo) or new.uid == pod.uid:
            return QueueingHint.QUEUE
        freed = (old.requests.get(name, 0) > new.requests.get(name, 0) for name, _ in self._demanded(pod))
        return QueueingHint.when(bool(new.node_name) and any(freed))

    def _class_serves(self, pod: PodInfo, _old: DeviceClass | None, new: DeviceClass | None) -> QueueingHint:
        """Queue for a class of a resource that the pod requests."""
        names = (new.spec.extended_resource_name, f"{IMPLICIT_RESOURCE}{new.metadata.name}") if isinstance(new, DeviceClass) else ()
        return QueueingHint.when(any(name in names for name, _ in self._demanded(pod)))

    def _node_grew(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        offer = self._offer(new)
        served = self._served_by_devices(pod)
        demands = {name: amount for name, amount in self._demanded(pod) if name not in served or offer.get(name, 0)}
        if offer.get(PODS, 0) < 1 or any(offer.get(name, 0) < amount for name, amount in demands.items()):
            return QueueingHint.SKIP
        return QueueingHint.when(old is None or _grew(self._offer(old), offer, demands))

    def _scores_of_few(
        self, strategy: ScoringStrategy, bid: Mapping[str, int], cluster: Cluster, rows: Rows, amounts: Mapping[str, WholeNumbers]
    ) -> IntColumn:
        counting = self._counting(bid)
        parts = [(*(amounts.get(spec.name) or self._loads[spec.name].whole(cluster)), own, spec.weight or 1) for spec, own in counting]
        found = [
            score_of_row(strategy, [(taken.item(row) + own, there.item(row), weight) for taken, there, own, weight in parts])
            for row in rows.tolist()
        ]
        return np.array(found, np.int64)

    def _counting(self, bid: Mapping[str, int]) -> Iterator[tuple[ResourceSpec, int]]:
        """Yield the scored resources that count for a pod with this bid, each with its amount."""
        for spec in self.args.scoring_strategy.resources:
            own = bid.get(spec.name, 0)
            if own or not is_scalar_resource(spec.name):
                yield spec, own

    def _offer(self, node: Node) -> Mapping[str, int]:
        """Return the node's offer, kept because each waiting pod asks about the same node. The node is kept so that its id stays unique."""
        return self._offers.recall(id(node), lambda: (node, canonical(node.status.allocatable or {})))[1]


def _grew(before: Mapping[str, int], after: Mapping[str, int], demands: Mapping[str, int]) -> bool:
    return any(after.get(name, 0) > before.get(name, 0) for name in (PODS, *demands))


def _had_a_node(_pod: PodInfo, old: PodInfo) -> bool:
    return bool(old.node_name or old.nominated_node)


def _bid(pod: PodInfo) -> Mapping[str, int]:
    """Return the requests that the score counts. kube-scheduler 1.36 leaves out pod-level resources here; filters do not."""
    if pod.pod.spec.resources is not None:
        return scoring_requests_of_containers(pod.pod.spec)
    return {**pod.requests, CPU: pod.scoring_cpu, MEMORY: pod.scoring_memory}


def _grouped(rows: Rows, reasons: Sequence[str], flags: Sequence[BoolColumn], everywhere: BoolColumn | None = None) -> list[Rejection]:
    """Group rows by their combination of failures; the last flag says that no preemption can help.

    `everywhere` is a column that is True in all rows. Flags that are this very object distinguish no rows and cost nothing.
    """
    if len(rows) == 1:  # preemption asks row by row, and `unique` is slow
        return [Rejection(_status(reasons, [bool(flag[0]) for flag in flags]), rows)]
    alike = combinations([flag for flag in flags if flag is not everywhere], len(rows))
    kinds, firsts = np.unique(alike, return_index=True)
    return [
        Rejection(_status(reasons, [bool(flag[first]) for flag in flags]), rows[alike == kind])
        for kind, first in zip(kinds.tolist(), firsts.tolist(), strict=True)
    ]


def _status(reasons: Sequence[str], flags: Sequence[bool]) -> Status:
    texts = (reason for reason, failed in zip(reasons, flags[:-1], strict=True) if failed)
    return (unresolvable if flags[-1] else unschedulable)(*texts)
