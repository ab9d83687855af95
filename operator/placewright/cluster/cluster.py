"""The cluster as columns: one row for each node, with the pods on it counted into the columns.

`Cluster` owns this state, and only its methods write it; plugins read columns. A confirmed pod is on a row because the API server
shows it there. An assumed pod is on a row because this scheduler decided so. Pods on a node that no watch has shown yet are
kept, and counted when the node appears.

Facts: kube-scheduler's `backend/cache/cache.go`, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np

from placewright.api.counts import add_count, take_out
from placewright.api.objects import Node, NodeAllocatableClaimStatus, NodeName, PodKey
from placewright.api.pods import PodInfo
from placewright.api.podstart import is_ready
from placewright.api.requests import canonical
from placewright.cluster.clusterlistener import ClusterListener
from placewright.cluster.dryrun import DryRunCluster, net_of
from placewright.cluster.hostports import HostPorts
from placewright.cluster.journal import Journal
from placewright.cluster.noderows import NodeRows
from placewright.cluster.objects import ClusterObjects, PodGroups
from placewright.cluster.pairwisecounts import PairwiseCounts
from placewright.cluster.podfollowers import PodFollower, PodFollowers
from placewright.cluster.volumes import VolumeUse

T = TypeVar("T")

#: Pods from which counting column by column is faster than pod by pod.
_WORTH_A_COLUMN: Final = 16
_NO_ROWS: Final[frozenset[int]] = frozenset()


class AssumeError(Exception):
    """A pod cannot be assumed or forgotten: it is on a node already, or not assumed on that node."""


class PodOnNode(NamedTuple):
    """A pod's place in the cache.

    Attributes:
        pod: the newest version known.
        node: the name of its node, which may have no row.
        assumed: True until the API server shows the pod on this node.
    """

    pod: PodInfo
    node: NodeName
    assumed: bool


class Cluster(NodeRows):
    """Nodes, the pods on them, and the journals of changed rows.

    Example:
        cluster.set_node(node)
        cluster.assume(pod, NodeName("a"))   # counted from now on, before the Binding is sent
        cluster.set_pod(pod_as_shown)        # the watch shows it on "a": confirmed, and the row is counted once

    Attributes:
        ports: host ports in use, by row.
        pairwise_counts: pods counted by what spread and affinity see of them, by row.
        volumes: volumes in use, by row.
        objects: every object that is neither node nor pod.
        pod_groups: the declared groups, and their members on nodes.
        deferred_resizes: uids of pods on nodes with `PodInfo.resize_deferred`.
        pod_followers: told of each pod that comes, changes or goes; mostly none.
        extensions: see `extension`. A shadow's cluster has those of the cluster that it follows.
        node_journal: rows whose node object changed, in order.
        pod_journal: rows whose pods changed in a way that columns count, in order.
        version_journal: rows with a pod that changed and counts as before, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ports = HostPorts()
        self.pairwise_counts = PairwiseCounts()
        self.volumes = VolumeUse()
        self.objects = ClusterObjects()
        self.pod_groups = PodGroups(self.objects.pod_groups)
        self.deferred_resizes: set[str] = set()
        self.pod_followers = PodFollowers()
        self.extensions: dict[Hashable, Any] = {}
        self.node_journal, self.pod_journal, self.version_journal = Journal(), Journal(), Journal()
        self._placements: dict[str, PodOnNode] = {}
        self._pods_on: dict[NodeName, dict[str, PodInfo]] = {}
        self._assumed_count = 0
        #: Uids of assumed pods by name, in the order of their assumption; several only after a pod was deleted and created anew.
        self._assumed_as: dict[PodKey, dict[str, None]] = {}
        #: Number of pods on nodes by priority. Preemption asks for the lowest one before it searches. A minimum over
        #: all pods would take longer than many searches that it saves.
        self._priorities: dict[int, int] = {}
        #: Uids of pods that preemption told to leave, until the API server shows them as being deleted.
        self._told_to_leave: set[str] = set()
        self._dry_runs: list[DryRunCluster] = []
        self._listener: ClusterListener | None = None

    # --- reading ---------------------------------------------------------------------------------------------------------

    @property
    def pod_count_total(self) -> int:
        """Number of pods on nodes, assumed ones included."""
        return len(self._placements)

    @property
    def assumed_count(self) -> int:
        """Number of pods that this scheduler placed and the API server has not confirmed."""
        return self._assumed_count

    @property
    def lowest_priority(self) -> int | None:
        """The lowest priority of any pod on a node; None while there are no pods."""
        return min(self._priorities, default=None)

    def pods_on(self, node: NodeName) -> Iterable[PodInfo]:
        """Return the pods on a node, with the changes of dry runs.

        Args:
            node: need not have a row: pods may be known before their node.

        Returns:
            Assumed and confirmed pods; a view if no dry run is open.
        """
        pods = self._pods_on.get(node, {})
        if not self._dry_runs:
            # Filters read this for every evaluated node, and dry runs are rare: no copy without one.
            return pods.values()
        in_dry_runs = net_of(self._dry_runs, self._row_of.get(node))
        return [
            *(pod for uid, pod in pods.items() if not in_dry_runs.get(uid, (pod, 0))[1]),
            *(pod for pod, net in in_dry_runs.values() if net > 0),
        ]

    def placement(self, uid: str) -> PodOnNode | None:
        """Return a pod's place as it is in truth, without the changes of dry runs.

        Args:
            uid: uid of the pod.

        Returns:
            The place; None for a pod that is on no node.
        """
        return self._placements.get(uid)

    def stands(self, uid: str) -> PodOnNode | None:
        """Return a pod's place, with the changes of dry runs.

        Args:
            uid: uid of the pod.

        Returns:
            The place; None for a pod that is on no node, or that a dry run has removed.
        """
        known = self._placements.get(uid)
        if known is None or not self._dry_runs:
            return known
        _, more = net_of(self._dry_runs, self._row_of.get(known.node)).get(uid, (known.pod, 0))
        return None if more < 0 else known

    def leaves(self, pod: PodInfo) -> bool:
        """Return True for a pod on a node that is being deleted, or that preemption has told to leave."""
        return pod.terminating or pod.uid in self._told_to_leave

    def assumed_predecessors(self, pod: PodInfo) -> list[PodOnNode]:
        """Find assumed pods with this pod's name and an older uid. The API server shows the newer pod, so these have been deleted.

        Args:
            pod: the pod that a watch shows.

        Returns:
            Their places, oldest first; nearly always none.
        """
        assumed = list(self._assumed_as.get(pod.key, ()))
        if pod.uid in assumed:
            assumed = assumed[: assumed.index(pod.uid)]  # namesakes are assumed in the order of their creation
        older = (self._placements[uid] for uid in assumed)
        return [placement for placement in older if placement.pod.created <= pod.created]

    def uids(self) -> AbstractSet[str]:
        """Return the uids of all pods on nodes, assumed ones included; a view."""
        return self._placements.keys()

    def placements(self) -> Iterable[PodOnNode]:
        """Return the places of all pods on nodes."""
        return self._placements.values()

    def extension(self, key: Hashable, factory: Callable[[], T]) -> T:
        """Return what plugins remember about the cluster for longer than one generation of a profile.

        All profiles, their later generations and their shadows get the same object, and it stays as long as the process. So it
        holds facts of the real cluster, in bounded memory, and each reader applies its own arguments to them. Counts of pods on nodes
        belong into a `PodFollower` that the plugin holds. A shadow's pods are on other nodes.

        Args:
            key: the plugin's name, or a class of its own.
            factory: makes the object at the first call with this key; later ones do not call it.

        Returns:
            What the first factory made.

        Example:
            self.repairs = handle.cluster.extension(self.name, RepairRecord)
        """
        if key not in self.extensions:
            self.extensions[key] = factory()
        return cast("T", self.extensions[key])

    def report_to(self, listener: ClusterListener | None) -> None:
        """Call `listener` after each change from now on, and no other; None calls none."""
        self._listener = listener

    # --- nodes -----------------------------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> Node | None:
        """Add or update a node, and count the pods that were waiting for its row.

        Returns:
            The node as it was before; None for a new node.

        Raises:
            QuantityError: an allocatable amount cannot be read; nothing has changed.
        """
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
            self.pod_followers.tell(PodFollower.row_appears, row, self.pods_on(name))
        self.node_journal.append(row)
        if self._listener is not None:
            self._listener.node_set(node)
        return old

    def remove_node(self, name: NodeName) -> Node | None:
        """Remove a node. Its pods are kept until the watch of pods reports that they are gone.

        Args:
            name: name of the node.

        Returns:
            The node; None when it was unknown.
        """
        row = self._row_of.pop(name, None)
        if self._listener is not None:
            self._listener.node_removed(name)
        if row is None:
            return None
        for pod in self.pods_on(name):
            self._count(pod, row, -1)
        self.pod_followers.tell(PodFollower.row_ends, row, name)
        node = self._free_row(row)
        self.node_journal.append(row)
        return node

    # --- pods ------------------------------------------------------------------------------------------------------------

    def assume(self, pod: PodInfo, node: NodeName) -> None:
        """Count `pod` on `node` before the API server has confirmed the binding.

        The pod stays assumed until `set_pod` (a watch showed it bound) or `forget` (the binding failed). It does not expire: a
        binding whose outcome is unknown keeps its room, because the API server may still carry it out.

        Args:
            pod: not on any node in this cache.
            node: its row is counted at once, or when the node appears.

        Raises:
            AssumeError: the pod is on a node already.
        """
        known = self._placements.get(pod.uid)
        if known is not None:
            raise AssumeError(f"pod {pod.key} is already on node {known.node}")
        self._enter(PodOnNode(pod, node, assumed=True))

    def forget(self, pod: PodInfo, node: NodeName) -> None:
        """Take an assumption back, because the binding failed; harmless for a pod that is on no node.

        Args:
            pod: the pod that was assumed.
            node: the node that it was assumed on.

        Raises:
            AssumeError: the pod is confirmed, or assumed on another node.
        """
        known = self._placements.get(pod.uid)
        if known is None:
            return
        if not known.assumed or known.node != node:
            raise AssumeError(f"pod {pod.key} is {'assumed' if known.assumed else 'confirmed'} on node {known.node}, not assumed on {node}")
        self._leave(known)

    def annotate(self, uid: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of an assumed pod, which its Binding will carry; harmless for pods that are not assumed.

        The next decision reads a plugin's choice from the pod, as it will after a restart (decision 20).

        Args:
            uid: uid of the assumed pod.
            annotations: value by key; None removes the key.
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

    def take_with_claims(self, uid: str, statuses: Sequence[NodeAllocatableClaimStatus]) -> None:
        """Count what an assumed pod takes of its node with its claims to devices; harmless for pods that are not assumed.

        Args:
            uid: uid of the assumed pod.
            statuses: resources by claim, as the pod's status will show them.
        """
        known = self._placements.get(uid)
        if not statuses or known is None or not known.assumed:
            return
        taking = known.pod.taking(statuses)
        self._placements[uid] = known._replace(pod=taking)
        self._pods_on[known.node][uid] = taking
        self._recount(known, taking)

    def told_to_leave(self, uid: str) -> None:
        """Note that preemption evicts this pod. It counts on its node until it is gone; harmless for a pod that is on no node."""
        if uid in self._placements:
            self._told_to_leave.add(uid)

    def stays_after_all(self, uid: str) -> None:
        """Note that the eviction of this pod failed."""
        self._told_to_leave.discard(uid)

    def set_pod(self, pod: PodInfo) -> PodOnNode | None:
        """Add, update or confirm a pod that the API server shows on `pod.node_name`.

        A pod that changes on its node does not leave it in between. So readers of the journals meet one change. Since Kubernetes
        1.35 nearly every Binding changes the pod's labels: the API server adds the node's zone and region.

        Returns:
            The pod's place before; None for a new pod.
        """
        known = self._placements.get(pod.uid)
        if known is not None and known.node == pod.node_name:
            self._replace(known, pod)
            row = self._row_of.get(known.node)
            if not _counts_alike(known.pod, pod) or (self.pod_followers.follow_readiness and is_ready(known.pod) != is_ready(pod)):
                self._recount(known, pod)
            elif row is not None:
                self.version_journal.append(row)
            if self.pod_followers.known and known.assumed:
                self.pod_followers.tell(PodFollower.pod_confirmed, pod, row)
            return known
        if known is not None:
            self._leave(known)
        self._enter(PodOnNode(pod, pod.node_name, assumed=False))
        return known

    def remove_pod(self, uid: str) -> PodOnNode | None:
        """Remove a pod that is deleted or finished.

        Args:
            uid: uid of the pod.

        Returns:
            Its place before; None when it was unknown.
        """
        known = self._placements.get(uid)
        if known is not None:
            self._leave(known)
        return known

    def dry_run_rows(self) -> AbstractSet[int]:
        """Return the rows that dry runs have changed. Their columns differ from the truth, and no journal says so."""
        return set().union(*(dry_run.rows for dry_run in self._dry_runs)) if self._dry_runs else _NO_ROWS

    @contextmanager
    def dry_run_on_row(self, *, add: Iterable[PodInfo] = (), remove: Iterable[PodInfo] = (), row: int) -> Iterator[None]:
        """Add pods to one row and remove pods from it inside the `with` block; columns and `pods_on` show it, and journals do not.

        Args:
            add: pods that are on no node.
            remove: pods on this row.
            row: holds a node.

        Yields:
            None.
        """
        with self.dry_run() as dry_run:
            dry_run.add([(row, pod) for pod in add])
            dry_run.remove([(row, pod) for pod in remove])
            yield

    @contextmanager
    def dry_run(self, *, journalled: bool = False) -> Iterator[DryRunCluster]:
        """Start a dry run over any rows inside the `with` block; all changes are undone at its end.

        Example:
            with cluster.dry_run() as dry_run:
                dry_run.remove([(row, victim)])
                fits = evaluator.checker.check_row(pod, row).ok

        Args:
            journalled: write the changes and their undoing to `pod_journal`, so that kept columns follow.

        Yields:
            The dry run, to add and remove pods step by step.
        """
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
        # By the node's name and not by row: the watch of pods may be ahead of the watch of nodes.
        self._pods_on.setdefault(node, {})[pod.uid] = pod
        if assumed:
            self._assumed_count += 1
            self._assumed_as.setdefault(pod.key, {})[pod.uid] = None
        add_count(self._priorities, pod.priority, 1)
        if pod.resize_deferred:
            self.deferred_resizes.add(pod.uid)
        row = self._row_of.get(node)
        if row is not None:
            self._count(pod, row, 1)
            self.pod_journal.append(row)
        if self.pod_followers.known:
            self.pod_followers.tell(PodFollower.pod_enters, pod, row)
        if self._listener is not None:
            self._listener.pod_stands(pod, node)

    def _leave(self, placement: PodOnNode) -> None:
        pod, node, assumed = placement
        del self._placements[pod.uid]
        self._told_to_leave.discard(pod.uid)
        self.deferred_resizes.discard(pod.uid)
        self.pod_groups.leave(pod)
        # A name without pods is dropped: nodes' names are new ones wherever nodes are replaced, and an empty entry for each
        # would stay forever.
        take_out(self._pods_on, node, pod.uid)
        if assumed:
            self._no_longer_assumed(pod)
        add_count(self._priorities, pod.priority, -1)
        row = self._row_of.get(node)
        if row is not None:
            self._count(pod, row, -1)
            self.pod_journal.append(row)
        if self.pod_followers.known:
            self.pod_followers.tell(PodFollower.pod_leaves, pod, row)
        if self._listener is not None:
            self._listener.pod_left(pod.uid)

    def _recount(self, known: PodOnNode, pod: PodInfo) -> None:
        """Replace the counts of a pod on its row by those of its new version."""
        row = self._row_of.get(known.node)
        if row is not None:
            self._count(known.pod, row, -1)
            self._count(pod, row, 1)
            self.pod_journal.append(row)
        self.pod_followers.tell(PodFollower.pod_changes, known.pod, pod, row)
        if self._listener is not None:
            self._listener.pod_stands(pod, known.node)

    def _replace(self, known: PodOnNode, pod: PodInfo) -> None:
        """Keep a pod's new version; columns are not touched."""
        self._placements[pod.uid] = PodOnNode(pod, known.node, assumed=False)
        if pod.terminating:
            self._told_to_leave.discard(pod.uid)
        (self.deferred_resizes.add if pod.resize_deferred else self.deferred_resizes.discard)(pod.uid)
        self.pod_groups.replace(known.pod, pod)
        add_count(self._priorities, known.pod.priority, -1)
        add_count(self._priorities, pod.priority, 1)
        self._pods_on[known.node][pod.uid] = pod
        if known.assumed:
            self._no_longer_assumed(pod)

    def _no_longer_assumed(self, pod: PodInfo) -> None:
        self._assumed_count -= 1
        take_out(self._assumed_as, pod.key, pod.uid)

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        self.resources.add_requests(row, pod.requests, sign)
        self._scoring_cpu[row] += sign * pod.scoring_cpu
        self._scoring_memory[row] += sign * pod.scoring_memory
        self._pod_count[row] += sign
        self._index(pod, row, sign)

    def _count_all(self, pods: Sequence[tuple[int, PodInfo]], sign: int) -> None:
        """Count pods of a dry run on many rows: numpy adds a column at a time faster than an element."""
        if self.pod_followers.known:
            self.pod_followers.tell(PodFollower.dry_run_counts, pods, sign)
        if len(pods) < _WORTH_A_COLUMN:
            for row, pod in pods:
                self._count(pod, row, sign)
            return
        rows = np.array([row for row, _ in pods], np.intp)
        self.resources.add_all(rows, [pod.requests for _, pod in pods], sign)
        # Not `column[rows] += …`, which counts a row once that occurs twice.
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
    """Return True when replacing one pod by the other changes no column."""
    return (
        one.requests == other.requests
        and one.scoring_cpu == other.scoring_cpu
        and one.scoring_memory == other.scoring_memory
        and one.host_ports == other.host_ports
        and one.volumes == other.volumes
        and one.pairwise_key == other.pairwise_key
        and one.pod_group == other.pod_group
    )
