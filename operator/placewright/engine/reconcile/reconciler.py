"""The reconciler: compares the objects of the API server with the queue and the cluster's columns, and repairs the differences.

Three failures leave a difference behind, and full lists show all three. Kopf says nothing about objects that vanished while its stream was
broken. A Binding whose answer got lost leaves its pod in no queue. A watch does not learn that it skipped an event. A repair goes through
the event handlers like an event of a watch, and is counted. Three collections are compared: nodes, pods on nodes, and pods without a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager

from placewright.api.objects import Node, NodeName, ObjectMeta, Pod
from placewright.api.pods import FINISHED_PHASES, PodInfo
from placewright.api.quantity import QuantityError
from placewright.api.requests import canonical
from placewright.cluster.cluster import Cluster
from placewright.engine.discovery import ASSIGNED_PODS, NODES_PATH, PODS_PATH, UNSCHEDULED_PODS
from placewright.engine.reconcile.comparison import Comparison
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.binding import BindingCycle
from placewright.scheduler.eventhandlers import ClusterEventHandlers


class Reconciler:
    """Makes comparisons. They must be run inside `watching`.

    After a comparison the caller reads each pod of `doubtful`, and later each of `unconfirmed`. It passes them to `looked`.

    Attributes:
        cluster: nodes, and pods on them.
        queue: the waiting pods.
        binding: has the Bindings without an answer.
        event_handlers: take the repairs.
        repairs: number of repairs of each kind.
        lead_changes: number of times that this replica began or ceased to lead. Kopf shows no pods to a replica that stands by, and lists
            them anew to one that leads. So a comparison of the queue finds no difference after such a change.
        lost: uids of pods whose Binding had no answer, and that the last list does not show without a node.
        unseen: uids of pods whose Binding succeeded, and that neither a watch nor the last list has shown.
    """

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, binding: BindingCycle, event_handlers: ClusterEventHandlers) -> None:
        self.cluster, self.queue, self.binding, self.event_handlers = cluster, queue, binding, event_handlers
        self.repairs = event_handlers.repairs
        self.lead_changes = 0
        self.lost: set[str] = set()
        self.unseen: set[str] = set()

    def watching(self) -> AbstractContextManager[None]:
        """Note the objects that leave inside the block: a list that was requested earlier shows them still."""
        return self.event_handlers.noting_departures()

    def nodes(self) -> Comparison[Node]:
        """Make a comparison of nodes, before their list is requested."""
        return NodeComparison(self)

    def assigned(self) -> Comparison[Pod]:
        """Make a comparison of pods on nodes, before their list is requested."""
        return AssignedComparison(self)

    def unscheduled(self) -> UnscheduledComparison:
        """Make a comparison of pods without a node, before their list is requested: the list cannot judge Bindings that come later."""
        self.lost = set(self.binding.unresolved)
        placements = self.cluster.placements() if self.cluster.assumed_count else ()
        self.unseen = {each.pod.uid for each in placements if each.assumed and self.queue.get(each.pod.uid) is None}
        return UnscheduledComparison(self)

    def doubtful(self) -> list[PodInfo]:
        """Return the pods of lost Bindings that the list does not show without a node, nor a watch on one: only reading each tells."""
        return self._assumed(self.lost)

    def unconfirmed(self) -> list[PodInfo]:
        """Return pods whose Binding succeeded before the list was requested, and that no watch has shown on their node.

        Such a pod may have been bound and deleted while the watch was broken. Then no watch ever shows it.
        """
        return self._assumed(self.unseen)

    def looked(self, pod: PodInfo, found: PodInfo | None) -> None:
        """Judge a doubtful or unconfirmed pod.

        Args:
            pod: the pod as it is assumed.
            found: the pod as the API server shows it now; None if it is gone.
        """
        if found is None or found.uid != pod.uid:
            self.event_handlers.pod_gone(pod.uid)
            self.repairs.forgotten += 1
        elif found.node_name:
            self.event_handlers.assigned_pod(found)

    def _assumed(self, uids: Iterable[str]) -> list[PodInfo]:
        placements = (self.cluster.placement(uid) for uid in uids)
        return [placement.pod for placement in placements if placement is not None and placement.assumed]


class NodeComparison(Comparison[Node]):
    """Compares the nodes of the columns, by name."""

    path, kind = NODES_PATH, Node

    def __init__(self, reconciler: Reconciler) -> None:
        self._cluster = reconciler.cluster
        super().__init__(reconciler.event_handlers, (name for name in self._cluster.names if name is not None))

    def key(self, metadata: ObjectMeta) -> str:
        """Return the node's name."""
        return metadata.name

    def now(self, key: str) -> Node | None:
        """Return the node of the last event."""
        row = self._cluster.row(NodeName(key))
        return None if row is None else self._cluster.node(row)

    def belongs(self, item: Node) -> bool:
        """Return True: the collection has every node."""
        return True

    def readable(self, item: Node) -> bool:
        """Tell whether the node's allocatable amounts can be read."""
        try:
            canonical(item.status.allocatable or {})
        except QuantityError:
            return False
        return True

    def gone(self, key: str) -> None:
        """Take the node for deleted."""
        self._event_handlers.node_gone(NodeName(key))
        self._repairs.nodes_vanished += 1

    def news(self, key: str, item: Node) -> None:
        """Take a node that appeared, changed, or was replaced by another of its name."""
        known = self.now(key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            self._event_handlers.node_gone(NodeName(key))
        self._event_handlers.node(item)
        self._repairs.nodes_missed += known is None
        self._repairs.nodes_stale += known is not None


class _PodComparison(Comparison[Pod]):
    path, kind = PODS_PATH, Pod
    #: Whether the collection has the pods on nodes, or the pods without a node.
    placed: bool

    def belongs(self, item: Pod) -> bool:
        """Tell whether the pod is not finished, and on a node or on none as the collection has it."""
        return bool(item.spec.node_name) is self.placed and item.status.phase not in FINISHED_PHASES

    def readable(self, item: Pod) -> bool:
        """Tell whether the pod's requests can be read."""
        try:
            PodInfo(item)
        except QuantityError:
            return False
        return True


class AssignedComparison(_PodComparison):
    """Compares the pods on nodes, by uid. Assumed pods are not compared, because their Bindings are under way."""

    selector, placed = ASSIGNED_PODS, True

    def __init__(self, reconciler: Reconciler) -> None:
        self._cluster = reconciler.cluster
        super().__init__(reconciler.event_handlers, self._cluster.uids())

    def now(self, key: str) -> Pod | None:
        """Return the pod of the last event."""
        placement = self._cluster.placement(key)
        return None if placement is None else placement.pod.pod

    def excused(self, key: str) -> bool:
        """Tell whether the pod is assumed, or left while the comparison ran."""
        placement = self._cluster.placement(key)
        return super().excused(key) or (placement is not None and placement.assumed)

    def agrees(self, key: str, item: Pod) -> bool:
        """Compare the node, too: a placement may be on another one than its pod says."""
        placement = self._cluster.placement(key)
        return (placement is None or placement.node == item.spec.node_name) and super().agrees(key, item)

    def gone(self, key: str) -> None:
        """Take the pod for deleted or finished."""
        self._event_handlers.assigned_pod_gone(key)
        self._repairs.pods_vanished += 1

    def news(self, key: str, item: Pod) -> None:
        """Take a pod that appeared on its node, or changed."""
        new = self.now(key) is None
        self._repairs.pods_missed += new
        self._repairs.pods_stale += not new
        self._event_handlers.assigned_pod(PodInfo(item))


class UnscheduledComparison(_PodComparison):
    """Compares the pods that wait for a node, by uid. Its list also tells of Bindings whose answer got lost."""

    selector, placed = UNSCHEDULED_PODS, False

    def __init__(self, reconciler: Reconciler) -> None:
        super().__init__(reconciler.event_handlers, reconciler.queue.uids())
        self._reconciler = reconciler
        self._began = reconciler.lead_changes

    def shown(self, item: Pod) -> None:
        """Compare a pod without a node. A Binding of it that was sent before the list was requested does not exist."""
        uid, binding = item.metadata.uid, self._reconciler.binding
        if uid in self._reconciler.lost and uid in binding.unresolved and not self._event_handlers.has_departed(uid):
            binding.resolve(uid, None)
            self._repairs.unbound += 1
        self._saw(uid)
        super().shown(item)

    def unreadable(self, metadata: ObjectMeta) -> None:
        """Note a pod that cannot be decoded: all that is known is that it exists without a node."""
        self._saw(metadata.uid)
        super().unreadable(metadata)

    def _saw(self, uid: str) -> None:
        self._reconciler.lost.discard(uid)
        self._reconciler.unseen.discard(uid)

    def now(self, key: str) -> Pod | None:
        """Return the newest version of the pod."""
        known = self._reconciler.queue.latest(key)
        return None if known is None else known.pod

    def excused(self, key: str) -> bool:
        """Tell whether the pod has a place in the columns or has left, or perhaps Kopf did not show it."""
        known = self._reconciler
        return known.cluster.placement(key) is not None or super().excused(key) or known.lead_changes != self._began

    def agrees(self, key: str, item: Pod) -> bool:
        """Compare the versions. An unreadable pod keeps its last good state."""
        known = self.now(key)
        return (known is not None and known.metadata.resource_version == item.metadata.resource_version) or not self.readable(item)

    def gone(self, key: str) -> None:
        """Take the pod for deleted, bound or finished."""
        known = self._reconciler.queue.latest(key)
        if known is not None:
            self._event_handlers.unscheduled_pod_gone(known)
            self._repairs.vanished += 1

    def news(self, key: str, item: Pod) -> None:
        """Take a pod that appeared, or changed."""
        new = self.now(key) is None
        self._repairs.missed += new
        self._repairs.outdated += not new
        self._event_handlers.unscheduled_pod(PodInfo(item))
