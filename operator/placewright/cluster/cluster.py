"""The cluster as columns: one row a node, with the pods that stand on it counted into the columns.

One object owns this state, `Cluster`; only its methods write. Plugins read columns. A pod is on a row either because the API server
says so (assigned) or because we decided so and wait to hear it back (assumed). Pods on a node that nobody has shown yet are remembered
and counted when the node comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import Node, NodeName, PodKey, Taint
from placewright.api.pods import PodInfo
from placewright.api.requests import PODS, canonical, is_native_or_scalar
from placewright.cluster.dryrun import DryRunCluster, net_of
from placewright.cluster.encoding import AllRows, EncodedColumn
from placewright.cluster.hostports import HostPorts
from placewright.cluster.images import Images
from placewright.cluster.journal import Journal
from placewright.cluster.labels import LabelColumn, LabelColumns
from placewright.cluster.noteddevices import noted_devices, with_noted_devices, without_brought_devices
from placewright.cluster.objects import ClusterObjects
from placewright.cluster.pairwisecounts import PairwiseCounts
from placewright.cluster.podgroups import PodGroups
from placewright.cluster.resources import Resources, grown
from placewright.cluster.volumes import VolumeUse

_FIRST_CAPACITY: Final = 64
#: From so many pods on they are counted column by column.
_WORTH_A_COLUMN: Final = 16
_NO_ROWS: Final[frozenset[int]] = frozenset()


class AssumeError(Exception):
    """A pod cannot be assumed or forgotten: it is already on a node, or not assumed there."""


class PodOnNode(NamedTuple):
    """Where a pod stands, and whether that is only our own assumption so far."""

    pod: PodInfo
    node: NodeName
    assumed: bool


class Cluster:
    """Nodes, the pods on them, and what changed since when.

    Attributes:
        names: node name by row; None for a free row.
        resources: allocatable and requested, by resource.
        taints, unschedulable: what repels pods, by row.
        declared_features: what the kubelet of a row says it can do.
        images, ports, groups, volumes: indexes from image, host port, pod group and volume to rows.
        objects: everything that is neither node nor pod.
        gangs: groups that are placed all or none, and their members on nodes.
        node_journal, pod_journal: rows whose node object, or whose pods, changed; version_journal: with a pod that counts as before.
    """

    def __init__(self) -> None:
        self.names: list[NodeName | None] = []
        self.resources = Resources(_FIRST_CAPACITY)
        self.taints: EncodedColumn[tuple[Taint, ...]] = EncodedColumn(_FIRST_CAPACITY, ())
        self.unschedulable = np.zeros(_FIRST_CAPACITY, np.bool_)
        self.declared_features: EncodedColumn[frozenset[str]] = EncodedColumn(_FIRST_CAPACITY, frozenset())
        self.images = Images()
        self.ports = HostPorts()
        self.pairwise_counts = PairwiseCounts()
        self.volumes = VolumeUse()
        self.objects = ClusterObjects()
        self.pod_groups = PodGroups(self.objects.pod_groups)
        self.node_journal, self.pod_journal, self.version_journal = Journal(), Journal(), Journal()
        self._capacity = _FIRST_CAPACITY
        self._present = np.zeros(_FIRST_CAPACITY, np.bool_)
        self._pod_count = np.zeros(_FIRST_CAPACITY, np.int64)
        self._pod_limit = np.zeros(_FIRST_CAPACITY, np.int64)
        self._scoring_cpu = np.zeros(_FIRST_CAPACITY, np.int64)
        self._scoring_memory = np.zeros(_FIRST_CAPACITY, np.int64)
        self._labels = LabelColumns(_FIRST_CAPACITY)
        self._nodes: list[Node | None] = []
        self._row_of: dict[NodeName, int] = {}
        self._free_rows: list[int] = []
        self._placements: dict[str, PodOnNode] = {}
        self._pods_on: dict[NodeName, dict[str, PodInfo]] = {}
        self._assumed_count = 0
        #: Uids of assumed pods by name, in the order of their assumption; hardly ever more than one.
        self._assumed_as: dict[PodKey, list[str]] = {}
        self._priorities: dict[int, int] = {}
        #: Uids of pods on nodes that have been told to leave, as long as the API server does not show them as being deleted.
        self._told_to_leave: set[str] = set()
        self._dry_runs: list[DryRunCluster] = []
        self._all_rows = AllRows()

    # --- reading ---------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of rows, free ones included; every column is at least this long."""
        return len(self.names)

    @property
    def all_rows(self) -> NDArray[np.intp]:
        """Every row, ascending, free ones included; the same array until there are more, not to be written."""
        return self._all_rows.of(len(self.names))

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self._row_of)

    @property
    def pod_count_total(self) -> int:
        """Number of pods on nodes, assumed ones included."""
        return len(self._placements)

    @property
    def assumed_count(self) -> int:
        """Number of pods that we placed and the API server has not confirmed yet."""
        return self._assumed_count

    @property
    def lowest_priority(self) -> int | None:
        """The lowest priority of any pod on a node; None while there are no pods."""
        return min(self._priorities, default=None)

    @property
    def present(self) -> NDArray[np.bool_]:
        """True for rows that hold a node; shape (size,)."""
        return self._present[: len(self.names)]

    @property
    def pod_count(self) -> NDArray[np.int64]:
        """Pods per row; shape (size,)."""
        return self._pod_count[: len(self.names)]

    @property
    def pod_limit(self) -> NDArray[np.int64]:
        """Allocatable pods per row; shape (size,)."""
        return self._pod_limit[: len(self.names)]

    @property
    def scoring_cpu(self) -> NDArray[np.int64]:
        """Requested milli-CPU per row, empty containers counted with a default; shape (size,)."""
        return self._scoring_cpu[: len(self.names)]

    @property
    def scoring_memory(self) -> NDArray[np.int64]:
        """Requested bytes of memory per row, empty containers counted with a default; shape (size,)."""
        return self._scoring_memory[: len(self.names)]

    def rows(self) -> NDArray[np.intp]:
        """Rows that hold a node, ascending."""
        return np.flatnonzero(self.present)

    def row(self, node: NodeName) -> int | None:
        """The row of a node, or None."""
        return self._row_of.get(node)

    def node(self, row: int) -> Node:
        """The node object of a row; `KeyError` for a free row."""
        node = self._nodes[row]
        if node is None:
            raise KeyError(row)
        return node

    def nodes(self) -> Iterator[Node]:
        """All nodes, in row order."""
        return (node for node in self._nodes if node is not None)

    def label(self, key: str) -> LabelColumn:
        """The column of a label: each node's value, None where it has no such label."""
        return self._labels.column(key)

    @property
    def label_keys(self) -> KeysView[str]:
        """The keys of labels that some node has."""
        return self._labels.keys

    def pods_on(self, node: NodeName) -> Iterable[PodInfo]:
        """Pods on a node, assumed ones included; also for nodes that are not there (yet, or any more)."""
        pods = self._pods_on.get(node, {})
        if not self._dry_runs:
            return pods.values()
        in_dry_runs = net_of(self._dry_runs, self._row_of.get(node))
        return [
            *(pod for uid, pod in pods.items() if not in_dry_runs.get(uid, (pod, 0))[1]),
            *(pod for pod, net in in_dry_runs.values() if net > 0),
        ]

    def placement(self, uid: str) -> PodOnNode | None:
        """Where a pod stands, or None."""
        return self._placements.get(uid)

    def stands(self, uid: str) -> PodOnNode | None:
        """Where a pod stands, as far as nobody supposes it away; or None."""
        known = self._placements.get(uid)
        if known is None or not self._dry_runs:
            return known
        _, more = net_of(self._dry_runs, self._row_of.get(known.node)).get(uid, (known.pod, 0))
        return None if more < 0 else known

    def leaves(self, pod: PodInfo) -> bool:
        """True for a pod on a node that is being deleted, or that has been told to leave."""
        return pod.terminating or pod.uid in self._told_to_leave

    def assumed_predecessors(self, pod: PodInfo) -> list[PodOnNode]:
        """Assumed pods of the same name as this one that are older: where this one exists, they do not."""
        assumed = self._assumed_as.get(pod.key, [])
        if pod.uid in assumed:
            assumed = assumed[: assumed.index(pod.uid)]  # the queue takes namesakes in as they come to be
        older = (self._placements[uid] for uid in assumed)
        return [placement for placement in older if placement.pod.created <= pod.created]

    def uids(self) -> AbstractSet[str]:
        """All pods on nodes by uid, assumed ones included; a view."""
        return self._placements.keys()

    def placements(self) -> Iterable[PodOnNode]:
        """All pods on nodes."""
        return self._placements.values()

    # --- nodes -----------------------------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> Node | None:
        """Add or update a node; returns what was known before. Raises `QuantityError` on a bad allocatable, changing nothing."""
        amounts = canonical(node.status.allocatable or {})
        name = NodeName(node.metadata.name)
        row = self._row_of.get(name)
        if row is None:
            row = self._new_row(name)
        old, self._nodes[row] = self._nodes[row], node
        self._write_node(row, node, amounts)
        if old is None:
            for pod in self.pods_on(name):
                self._count(pod, row, 1)
        self.node_journal.append(row)
        return old

    def remove_node(self, name: NodeName) -> Node | None:
        """Take a node away; its pods are remembered until they are deleted. Returns the node, or None when it was unknown."""
        row = self._row_of.pop(name, None)
        if row is None:
            return None
        for pod in self.pods_on(name):
            self._count(pod, row, -1)
        node = self.node(row)
        self._present[row] = False
        self.names[row] = None
        self._nodes[row] = None
        self._write_node(row, Node(), {})
        self._free_rows.append(row)
        self.node_journal.append(row)
        return node

    def _new_row(self, name: NodeName) -> int:
        if self._free_rows:
            row = self._free_rows.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            if row == self._capacity:
                self._grow(2 * self._capacity)
            self.names.append(name)
            self._nodes.append(None)
        self._row_of[name] = row
        self._present[row] = True
        return row

    def _write_node(self, row: int, node: Node, amounts: Mapping[str, int]) -> None:
        self.resources.set_allocatable(row, {n: a for n, a in amounts.items() if is_native_or_scalar(n)})
        self._pod_limit[row] = amounts.get(PODS, 0)
        self.unschedulable[row] = node.spec.unschedulable
        self.taints.set(row, tuple(node.spec.taints or ()))
        self.declared_features.set(row, frozenset(node.status.declared_features or ()))
        self.images.set_row(row, node.status.images or ())
        self._labels.set_row(row, node.metadata.labels or {})

    def _grow(self, capacity: int) -> None:
        self._capacity = capacity
        self.resources.grow(capacity)
        self.taints.grow(capacity)
        self.declared_features.grow(capacity)
        self._labels.grow(capacity)
        self.unschedulable = grown(self.unschedulable, capacity)
        self._present = grown(self._present, capacity)
        self._pod_count = grown(self._pod_count, capacity)
        self._pod_limit = grown(self._pod_limit, capacity)
        self._scoring_cpu = grown(self._scoring_cpu, capacity)
        self._scoring_memory = grown(self._scoring_memory, capacity)

    # --- pods ------------------------------------------------------------------------------------------------------------

    def assume(self, pod: PodInfo, node: NodeName) -> None:
        """Count a pod onto a node before the API server knows; raise `AssumeError` when it already stands somewhere."""
        known = self._placements.get(pod.uid)
        if known is not None:
            raise AssumeError(f"pod {pod.key} is already on node {known.node}")
        self._enter(PodOnNode(without_brought_devices(pod), node, assumed=True))

    def forget(self, pod: PodInfo, node: NodeName) -> None:
        """Take an assumption back; unknown pods are no error. Raise `AssumeError` when the pod is confirmed or on another node."""
        known = self._placements.get(pod.uid)
        if known is None:
            return
        if not known.assumed or known.node != node:
            raise AssumeError(f"pod {pod.key} is {'assumed' if known.assumed else 'confirmed'} on node {known.node}, not assumed on {node}")
        self._leave(known)

    def annotate(self, uid: str, annotations: Mapping[str, str | None]) -> None:
        """An assumed pod will have these annotations (None: will not) once it is bound; pods that are not assumed are no error.

        Whoever looks at the pod's node sees them from now on: what a plugin chose for it there is in one place, before and after a restart.
        """
        known = self._placements.get(uid)
        if known is None or not known.assumed:
            return
        noted = known.pod.annotated(annotations)
        self._placements[uid] = known._replace(pod=noted)
        self._pods_on[known.node][uid] = noted
        row = self._row_of.get(known.node)
        if row is not None:
            self.pod_journal.append(row)

    def told_to_leave(self, uid: str) -> None:
        """Preemption decided that this pod leaves its node; it counts there until it is gone. Pods that are on no node are no error."""
        if uid in self._placements:
            self._told_to_leave.add(uid)

    def stays_after_all(self, uid: str) -> None:
        """The pod could not be evicted."""
        self._told_to_leave.discard(uid)

    def set_pod(self, pod: PodInfo) -> PodOnNode | None:
        """The API server says that this pod is on `pod.node_name`: add, update or confirm. Returns what was known before.

        A pod that changes on its node never leaves it in between: since Kubernetes 1.35 nearly every Binding changes the pod's labels
        (the API server adds the node's zone and region).
        """
        known = self._placements.get(pod.uid)
        if known is not None and known.node == pod.node_name:
            pod = with_noted_devices(pod, known.pod, assumed=known.assumed)
            self._replace(known, pod)
            if not _counts_alike(known.pod, pod):
                self._recount(known, pod)
            elif (row := self._row_of.get(known.node)) is not None:
                self.version_journal.append(row)
            return known
        if known is not None:
            self._leave(known)
        self._enter(PodOnNode(pod, pod.node_name, assumed=False))
        return known

    def remove_pod(self, uid: str) -> PodOnNode | None:
        """The pod is gone or finished. Returns where it stood, or None when it was unknown."""
        known = self._placements.get(uid)
        if known is not None:
            self._leave(known)
        return known

    def dry_run_rows(self) -> AbstractSet[int]:
        """Rows that do not stand as they do in truth just now: journals say nothing of that."""
        return set().union(*(dry_run.rows for dry_run in self._dry_runs)) if self._dry_runs else _NO_ROWS

    @contextmanager
    def dry_run_on_row(self, *, add: Iterable[PodInfo] = (), remove: Iterable[PodInfo] = (), row: int) -> Iterator[None]:
        """See columns and `pods_on` as if these pods were added to a row, and those removed from it; undone at the end, not journalled."""
        with self.dry_run() as dry_run:
            dry_run.add([(row, pod) for pod in add])
            dry_run.remove([(row, pod) for pod in remove])
            yield

    @contextmanager
    def dry_run(self, *, journalled: bool = False) -> Iterator[DryRunCluster]:
        """The same for many rows, and step by step; `journalled`, so that columns that are kept follow, too, there and back."""
        dry_run = DryRunCluster(self._count_journalled if journalled else self._count_all)
        self._dry_runs.append(dry_run)
        try:
            yield dry_run
        finally:
            dry_run.undo()
            self._dry_runs.remove(dry_run)

    def _enter(self, placement: PodOnNode) -> None:
        pod, node, assumed = placement
        self._placements[pod.uid] = placement
        self.pod_groups.enter(pod)
        self._pods_on.setdefault(node, {})[pod.uid] = pod
        if assumed:
            self._assumed_count += 1
            self._assumed_as.setdefault(pod.key, []).append(pod.uid)
        self._priorities[pod.priority] = self._priorities.get(pod.priority, 0) + 1
        row = self._row_of.get(node)
        if row is not None:
            self._count(pod, row, 1)
            self.pod_journal.append(row)

    def _leave(self, placement: PodOnNode) -> None:
        pod, node, assumed = placement
        del self._placements[pod.uid]
        self._told_to_leave.discard(pod.uid)
        self.pod_groups.leave(pod)
        pods = self._pods_on[node]
        del pods[pod.uid]
        if not pods:
            del self._pods_on[node]
        if assumed:
            self._no_longer_assumed(pod)
        self._drop_priority(pod.priority)
        row = self._row_of.get(node)
        if row is not None:
            self._count(pod, row, -1)
            self.pod_journal.append(row)

    def _recount(self, known: PodOnNode, pod: PodInfo) -> None:
        """Count a pod as it is now instead of as it was, on the row where it stands."""
        row = self._row_of.get(known.node)
        if row is not None:
            self._count(known.pod, row, -1)
            self._count(pod, row, 1)
            self.pod_journal.append(row)

    def _replace(self, known: PodOnNode, pod: PodInfo) -> None:
        """Keep a pod as it is now; what columns count of it is not touched."""
        self._placements[pod.uid] = PodOnNode(pod, known.node, assumed=False)
        if pod.terminating:
            self._told_to_leave.discard(pod.uid)
        self.pod_groups.replace(known.pod, pod)
        self._drop_priority(known.pod.priority)
        self._priorities[pod.priority] = self._priorities.get(pod.priority, 0) + 1
        self._pods_on[known.node][pod.uid] = pod
        if known.assumed:
            self._no_longer_assumed(pod)

    def _no_longer_assumed(self, pod: PodInfo) -> None:
        self._assumed_count -= 1
        (uids := self._assumed_as[pod.key]).remove(pod.uid)
        if not uids:
            del self._assumed_as[pod.key]

    def _drop_priority(self, priority: int) -> None:
        self._priorities[priority] -= 1
        if not self._priorities[priority]:
            del self._priorities[priority]

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        self.resources.add_requests(row, pod.requests, sign)
        self._scoring_cpu[row] += sign * pod.scoring_cpu
        self._scoring_memory[row] += sign * pod.scoring_memory
        self._pod_count[row] += sign
        self._index(pod, row, sign)

    def _count_all(self, pods: Sequence[tuple[int, PodInfo]], sign: int) -> None:
        """`_count` for pods on many rows: numpy takes a column at a time faster than an element."""
        if len(pods) < _WORTH_A_COLUMN:
            for row, pod in pods:
                self._count(pod, row, sign)
            return
        rows = np.array([row for row, _ in pods], np.intp)
        self.resources.add_all(rows, [pod.requests for _, pod in pods], sign)
        np.add.at(self._scoring_cpu, rows, np.array([sign * pod.scoring_cpu for _, pod in pods], np.int64))
        np.add.at(self._scoring_memory, rows, np.array([sign * pod.scoring_memory for _, pod in pods], np.int64))
        np.add.at(self._pod_count, rows, sign)
        for row, pod in pods:
            self._index(pod, row, sign)

    def _count_journalled(self, pods: Sequence[tuple[int, PodInfo]], sign: int) -> None:
        self._count_all(pods, sign)
        for row, _ in pods:
            self.pod_journal.append(row)

    def _index(self, pod: PodInfo, row: int, sign: int) -> None:
        if pod.host_ports:
            self.ports.add(pod.host_ports, row, sign)
        if pod.volumes:
            self.volumes.add(pod, row, sign)
        self.pairwise_counts.add(pod, row, sign)


def _counts_alike(one: PodInfo, other: PodInfo) -> bool:
    """True when replacing one pod by the other changes no column."""
    return (
        one.requests == other.requests
        and one.scoring_cpu == other.scoring_cpu
        and one.scoring_memory == other.scoring_memory
        and one.host_ports == other.host_ports
        and one.volumes == other.volumes
        and one.pairwise_key == other.pairwise_key
        and one.pod_group == other.pod_group
        and noted_devices(one) == noted_devices(other)
    )
