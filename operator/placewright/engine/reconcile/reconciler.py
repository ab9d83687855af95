"""The reconciler: what the API server lists against what the queue and the cluster's columns believe.

Kopf says nothing about objects that vanished while its stream was broken, a bind whose answer got lost is in nobody's queue, and a watch
that skipped one event is never told so. Full lists tell; the differences go through the intake as if they had been news, and are counted.
Three collections are compared: nodes, pods on nodes, and pods without one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager

from placewright.api.objects import Node, NodeName, ObjectMeta, Pod
from placewright.api.pods import FINISHED_PHASES, PodInfo
from placewright.api.quantity import QuantityError
from placewright.api.requests import canonical
from placewright.cluster.cluster import Cluster
from placewright.engine.reconcile.comparison import Comparison
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.binding import BindingCycle
from placewright.scheduler.eventhandlers import ClusterEventHandlers


class Reconciler:
    """Makes comparisons, to be run inside `watching`.

    After one, whoever runs it asks for each of `doubtful`, and a while later for each of `unconfirmed`, and says `looked`.
    """


    def __init__(self, cluster: Cluster, queue: SchedulingQueue, binding: BindingCycle, intake: ClusterEventHandlers) -> None:
        self.repairs = intake.repairs
        self._cluster = cluster
        self._queue = queue
        self._binding = binding
        self._intake = intake
        self._unconfirmed: frozenset[str] = frozenset()
        self._doubtful: frozenset[str] = frozenset()

    def watching(self) -> AbstractContextManager[None]:
        """Note what leaves meanwhile: what a list shows of it is old."""
        return self._intake.noting_departures()

    def nodes(self) -> Comparison[Node]:
        """Compare nodes; before the list is asked for."""
        return Comparison(NodeBelief(self._cluster, self._intake))

    def assigned(self) -> Comparison[Pod]:
        """Compare pods on nodes; before the list is asked for."""
        return Comparison(AssignedBelief(self._cluster, self._intake))

    def unscheduled(self) -> UnscheduledComparison:
        """Compare pods without a node; before the list is asked for."""
        belief = QueueBelief(self._cluster, self._queue, self._intake)
        return UnscheduledComparison(belief, self, self._binding, frozenset(self._binding.unresolved), self._bound_unseen())

    def departed(self, uid: str) -> bool:
        """Whether a pod left while the comparison ran."""
        return self._intake.has_departed(uid)

    def doubt(self, unresolved: frozenset[str], unconfirmed: frozenset[str], seen: set[str]) -> None:
        """Bindings without an answer are asked for at once; those that succeeded only if no watch confirms them for a while."""
        self._doubtful, self._unconfirmed = unresolved - seen, unconfirmed - seen

    def doubtful(self) -> list[PodInfo]:
        """Pods that hold room on a node, are not listed without one, and that no watch has shown there: only reading each one tells."""
        return self._assumed(self._doubtful)

    def unconfirmed(self) -> list[PodInfo]:
        """The same of pods whose Binding succeeded before the list was asked for, and that no watch has shown on their node by now.

        Such a pod may have been bound and deleted while the watch was broken: then no watch ever tells.
        """
        return self._assumed(self._unconfirmed)

    def looked(self, pod: PodInfo, found: PodInfo | None) -> None:
        """A doubtful pod was read; None when there is none of that name."""
        if found is None or found.uid != pod.uid:
            self._intake.pod_gone(pod.uid)
            self.repairs.forgotten += 1
        elif found.node_name:
            self._intake.assigned_pod(found)

    def _assumed(self, uids: Iterable[str]) -> list[PodInfo]:
        placements = (self._cluster.placement(uid) for uid in uids)
        return [placement.pod for placement in placements if placement is not None and placement.assumed]

    def _bound_unseen(self) -> frozenset[str]:
        if not self._cluster.assumed_count:
            return frozenset()
        uids = (placement.pod.uid for placement in self._cluster.placements() if placement.assumed)
        return frozenset(uid for uid in uids if self._queue.get(uid) is None)


class UnscheduledComparison(Comparison[Pod]):
    """Pods without a node: the list also tells of Bindings whose answer got lost."""

    def __init__(
        self,
        belief: QueueBelief,
        reconciler: Reconciler,
        binding: BindingCycle,
        unresolved: frozenset[str],
        unconfirmed: frozenset[str],
    ) -> None:
        """`unresolved`, `unconfirmed`: what was believed when the list was asked for; what came later cannot be judged by it."""
        super().__init__(belief)
        self._reconciler = reconciler
        self._binding = binding
        self._unresolved = unresolved
        self._unconfirmed = unconfirmed
        #: Those of the two that the list shows.
        self._seen: set[str] = set()

    def shown(self, item: Pod) -> None:
        """A pod that the API server has without a node. A Binding of it that was asked for before the list was does not exist."""
        uid = item.metadata.uid
        if uid in self._unresolved and uid in self._binding.unresolved and not self._reconciler.departed(uid):
            self._binding.resolve(uid, None)
            self._reconciler.repairs.unbound += 1
        self._saw(uid)
        super().shown(item)

    def unreadable(self, metadata: ObjectMeta) -> None:
        """It exists, which is all that can be told."""
        self._saw(metadata.uid)
        super().unreadable(metadata)

    def listed(self) -> None:
        """What holds room without being shown either way is to be asked for."""
        super().listed()
        self._reconciler.doubt(self._unresolved, self._unconfirmed, self._seen)

    def _saw(self, uid: str) -> None:
        if uid in self._unresolved or uid in self._unconfirmed:
            self._seen.add(uid)


class _Belief:
    """What the three have in common: where they look, where the differences go, and where those are counted."""

    def __init__(self, cluster: Cluster, intake: ClusterEventHandlers) -> None:
        self._cluster = cluster
        self._intake = intake
        self._repairs = intake.repairs

    def _left(self, key: str) -> bool:
        """Whether the object left while the comparison ran: what a list shows of it is old."""
        return self._intake.has_departed(key)


class NodeBelief(_Belief):
    """The columns' nodes, by name."""

    def keys(self) -> Iterable[str]:
        """Names."""
        return (name for name in self._cluster.names if name is not None)

    def key(self, metadata: ObjectMeta) -> str:
        """The name."""
        return metadata.name

    def now(self, key: str) -> Node | None:
        """The node object last taken in."""
        row = self._cluster.row(NodeName(key))
        return None if row is None else self._cluster.node(row)

    def place(self, key: str) -> tuple[str, str]:
        """Nodes have no namespace."""
        return "", key

    def excused(self, key: str) -> bool:
        """It left while the comparison ran."""
        return self._left(key)

    def belongs(self, item: Node) -> bool:
        """All nodes do."""
        return True

    def agrees(self, key: str, item: Node) -> bool:
        """Every field that is read, the version included. A node that cannot be read keeps its last good state."""
        return self.now(key) == item or not _readable(item)

    def gone(self, key: str) -> None:
        """The node was deleted."""
        self._intake.node_gone(NodeName(key))
        self._repairs.nodes_vanished += 1

    def news(self, key: str, item: Node) -> None:
        """The node appeared, changed, or was replaced by another of its name."""
        known = self.now(key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            self._intake.node_gone(NodeName(key))
        self._intake.node(item)
        if known is None:
            self._repairs.nodes_missed += 1
        else:
            self._repairs.nodes_stale += 1


class AssignedBelief(_Belief):
    """The pods that the API server is believed to have on nodes, by uid. Assumptions are our own, and their bindings tell."""

    def keys(self) -> Iterable[str]:
        """Uids, those of assumed pods included: they are excused."""
        return self._cluster.uids()

    def key(self, metadata: ObjectMeta) -> str:
        """The uid."""
        return metadata.uid

    def now(self, key: str) -> PodInfo | None:
        """The pod last taken in."""
        placement = self._cluster.placement(key)
        return None if placement is None else placement.pod

    def place(self, key: str) -> tuple[str, str]:
        """Namespace and name."""
        return _place(self.now(key))

    def excused(self, key: str) -> bool:
        """It is assumed only, or left while the comparison ran."""
        placement = self._cluster.placement(key)
        return self._left(key) or (placement is not None and placement.assumed)

    def belongs(self, item: Pod) -> bool:
        """It is on a node and not finished."""
        return bool(item.spec.node_name) and item.status.phase not in FINISHED_PHASES

    def agrees(self, key: str, item: Pod) -> bool:
        """Every field that is read, the node and the version included; and pods that cannot be read are ignored."""
        placement = self._cluster.placement(key)
        if placement is not None and placement.pod.pod == item and placement.node == item.spec.node_name:
            return True
        return _info(item) is None

    def gone(self, key: str) -> None:
        """The pod was deleted or finished."""
        self._intake.assigned_pod_gone(key)
        self._repairs.pods_vanished += 1

    def news(self, key: str, item: Pod) -> None:
        """The pod appeared on its node, or changed."""
        info = _info(item)
        if info is None:
            return
        if self.now(key) is None:
            self._repairs.pods_missed += 1
        else:
            self._repairs.pods_stale += 1
        self._intake.assigned_pod(info)


class QueueBelief(_Belief):
    """The pods that wait for a node, by uid. One that has a place in the columns has left the list for a good reason."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, intake: ClusterEventHandlers) -> None:
        super().__init__(cluster, intake)
        self._queue = queue

    def keys(self) -> Iterable[str]:
        """Uids."""
        return self._queue.uids()

    def key(self, metadata: ObjectMeta) -> str:
        """The uid."""
        return metadata.uid

    def now(self, key: str) -> PodInfo | None:
        """The pod's newest version."""
        return self._queue.latest(key)

    def place(self, key: str) -> tuple[str, str]:
        """Namespace and name."""
        return _place(self.now(key))

    def excused(self, key: str) -> bool:
        """It is on its way to a node, or left while the comparison ran."""
        return self._cluster.placement(key) is not None or self._left(key)

    def belongs(self, item: Pod) -> bool:
        """It has no node and is not finished."""
        return not item.spec.node_name and item.status.phase not in FINISHED_PHASES

    def agrees(self, key: str, item: Pod) -> bool:
        """The same version; and pods that cannot be read are ignored."""
        known = self.now(key)
        if known is not None:
            return known.pod.metadata.resource_version == item.metadata.resource_version
        return _info(item) is None

    def gone(self, key: str) -> None:
        """The pod was deleted, bound, or finished."""
        known = self.now(key)
        if known is not None:
            self._intake.unscheduled_pod_gone(known)
            self._repairs.vanished += 1

    def news(self, key: str, item: Pod) -> None:
        """The pod appeared, or changed."""
        info = _info(item)
        if info is None:
            return
        if self.now(key) is None:
            self._repairs.missed += 1
        else:
            self._repairs.outdated += 1
        self._intake.unscheduled_pod(info)


def _place(pod: PodInfo | None) -> tuple[str, str]:
    return ("", "") if pod is None else (pod.namespace, pod.name)


def _readable(node: Node) -> bool:
    try:
        canonical(node.status.allocatable or {})
    except QuantityError:
        return False
    return True


def _info(pod: Pod) -> PodInfo | None:
    """The pod with what follows from its spec. The watch that showed it first has said what cannot be read in it."""
    try:
        return PodInfo(pod)
    except QuantityError:
        return None
