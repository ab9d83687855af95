"""The reconciler: compares the objects of the API server with the queue and the cluster's columns, and repairs the differences.

Three failures leave a difference behind: Kopf says nothing about objects that vanished while its stream was broken, a Binding whose answer
got lost leaves its pod in no queue, and a watch does not learn that it skipped an event. Full lists show all three. A repair goes through
the event handlers like an event of a watch, and is counted. Three collections are compared: nodes, pods on nodes, and pods without a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    """Makes comparisons. They must be run inside `watching`.

    After a comparison the caller reads each pod of `doubtful`, and a while later each of `unconfirmed`, and passes it to `looked`.

    Attributes:
        repairs: number of repairs of each kind.
        lead_changes: number of times that this replica began or ceased to lead. Kopf shows no pods to a replica that stands by, and lists
            them anew to one that leads. So a comparison of the queue finds no difference after such a change.
    """

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, binding: BindingCycle, event_handlers: ClusterEventHandlers) -> None:
        self.repairs = event_handlers.repairs
        self.lead_changes = 0
        self._cluster = cluster
        self._queue = queue
        self._binding = binding
        self._event_handlers = event_handlers
        self._unconfirmed: frozenset[str] = frozenset()
        self._doubtful: frozenset[str] = frozenset()

    def watching(self) -> AbstractContextManager[None]:
        """Note the objects that leave inside the block: a list that was requested earlier shows them still."""
        return self._event_handlers.noting_departures()

    def nodes(self) -> Comparison[Node]:
        """Make a comparison of nodes, before their list is requested."""
        return Comparison(NodeBelief(self._cluster, self._event_handlers))

    def assigned(self) -> Comparison[Pod]:
        """Make a comparison of pods on nodes, before their list is requested."""
        return Comparison(AssignedBelief(self._cluster, self._event_handlers))

    def unscheduled(self) -> UnscheduledComparison:
        """Make a comparison of pods without a node, before their list is requested."""
        began = self.lead_changes
        belief = QueueBelief(self._cluster, self._queue, self._event_handlers, lambda: self.lead_changes == began)
        return UnscheduledComparison(belief, self, self._binding, frozenset(self._binding.unresolved), self._bound_unseen())

    def departed(self, uid: str) -> bool:
        """Whether a pod left while the comparison ran."""
        return self._event_handlers.has_departed(uid)

    def doubt(self, unresolved: frozenset[str], unconfirmed: frozenset[str], seen: set[str]) -> None:
        """Note the assumed pods that a list without a node did not show.

        Args:
            unresolved: uids of pods whose Binding had no answer; they are read at once.
            unconfirmed: uids of pods whose Binding succeeded; they are read if no watch confirms them for a while.
            seen: uids that the list showed.
        """
        self._doubtful, self._unconfirmed = unresolved - seen, unconfirmed - seen

    def doubtful(self) -> list[PodInfo]:
        """Pods of lost Bindings that the list does not show without a node, nor a watch on one: only reading each of them tells."""
        return self._assumed(self._doubtful)

    def unconfirmed(self) -> list[PodInfo]:
        """Pods whose Binding succeeded before the list was requested, and that no watch has shown on their node by now.

        Such a pod may have been bound and deleted while the watch was broken. Then no watch ever shows it.
        """
        return self._assumed(self._unconfirmed)

    def looked(self, pod: PodInfo, found: PodInfo | None) -> None:
        """Judge a doubtful or unconfirmed pod.

        Args:
            pod: as it is assumed.
            found: as the API server shows it now; None where it has no pod of that name.
        """
        if found is None or found.uid != pod.uid:
            self._event_handlers.pod_gone(pod.uid)
            self.repairs.forgotten += 1
        elif found.node_name:
            self._event_handlers.assigned_pod(found)

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
        """Take the belief as it is before the list is requested: the list cannot judge Bindings that come later.

        Args:
            belief: the queue's.
            reconciler: takes the doubtful pods at the end of the list.
            binding: has the Bindings without an answer.
            unresolved: uids of pods whose Binding had no answer.
            unconfirmed: uids of pods whose Binding succeeded and was not shown by a watch.
        """
        super().__init__(belief)
        self._reconciler = reconciler
        self._binding = binding
        self._unresolved = unresolved
        self._unconfirmed = unconfirmed
        #: The uids of the two sets that the list shows.
        self._seen: set[str] = set()

    def shown(self, item: Pod) -> None:
        """Compare a pod without a node. A Binding of it that was sent before the list was requested does not exist."""
        uid = item.metadata.uid
        if uid in self._unresolved and uid in self._binding.unresolved and not self._reconciler.departed(uid):
            self._binding.resolve(uid, None)
            self._reconciler.repairs.unbound += 1
        self._saw(uid)
        super().shown(item)

    def unreadable(self, metadata: ObjectMeta) -> None:
        """Note a pod that cannot be decoded: all that is known is that it exists without a node."""
        self._saw(metadata.uid)
        super().unreadable(metadata)

    def listed(self) -> None:
        """End the list, and have the pods read that hold room and were not shown."""
        super().listed()
        self._reconciler.doubt(self._unresolved, self._unconfirmed, self._seen)

    def _saw(self, uid: str) -> None:
        if uid in self._unresolved or uid in self._unconfirmed:
            self._seen.add(uid)


class _Belief:
    """The base of the three beliefs: cache, event handlers for repairs, and their counts."""

    def __init__(self, cluster: Cluster, event_handlers: ClusterEventHandlers) -> None:
        self._cluster = cluster
        self._event_handlers = event_handlers
        self._repairs = event_handlers.repairs

    def _left(self, key: str) -> bool:
        """Whether the object left while the comparison ran, so that the list may show it still."""
        return self._event_handlers.has_departed(key)


class NodeBelief(_Belief):
    """The nodes of the columns, by name."""

    def keys(self) -> Iterable[str]:
        """Return the names of all nodes."""
        return (name for name in self._cluster.names if name is not None)

    def key(self, metadata: ObjectMeta) -> str:
        """Return the node's name."""
        return metadata.name

    def now(self, key: str) -> Node | None:
        """Return the node object of the last event."""
        row = self._cluster.row(NodeName(key))
        return None if row is None else self._cluster.node(row)

    def place(self, key: str) -> tuple[str, str]:
        """Return the empty namespace, and the node's name."""
        return "", key

    def excused(self, key: str) -> bool:
        """Whether the node left while the comparison ran."""
        return self._left(key)

    def belongs(self, item: Node) -> bool:
        """Return True: the collection has every node."""
        return True

    def agrees(self, key: str, item: Node) -> bool:
        """Compare every decoded field, the version included. A node whose quantities cannot be read keeps its last good state.

        Args:
            key: the node's name.
            item: the node in the API server.

        Returns:
            Whether the two are equal, or the node cannot be read.
        """
        return self.now(key) == item or not _readable(item)

    def gone(self, key: str) -> None:
        """Repair: the node was deleted."""
        self._event_handlers.node_gone(NodeName(key))
        self._repairs.nodes_vanished += 1

    def news(self, key: str, item: Node) -> None:
        """Repair: the node appeared, changed, or was replaced by another of its name.

        Args:
            key: the node's name.
            item: the node in the API server.
        """
        known = self.now(key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            self._event_handlers.node_gone(NodeName(key))
        self._event_handlers.node(item)
        if known is None:
            self._repairs.nodes_missed += 1
        else:
            self._repairs.nodes_stale += 1


class AssignedBelief(_Belief):
    """The pods on nodes, by uid. Assumed pods are not compared, because their bindings are under way."""

    def keys(self) -> Iterable[str]:
        """Return the uids of all pods on nodes, also of assumed ones, which are excused."""
        return self._cluster.uids()

    def key(self, metadata: ObjectMeta) -> str:
        """Return the pod's uid."""
        return metadata.uid

    def now(self, key: str) -> PodInfo | None:
        """Return the pod of the last event."""
        placement = self._cluster.placement(key)
        return None if placement is None else placement.pod

    def place(self, key: str) -> tuple[str, str]:
        """Return the pod's namespace and name."""
        return _place(self.now(key))

    def excused(self, key: str) -> bool:
        """Whether the pod is assumed, or left while the comparison ran."""
        placement = self._cluster.placement(key)
        return self._left(key) or (placement is not None and placement.assumed)

    def belongs(self, item: Pod) -> bool:
        """Whether the pod is on a node and not finished."""
        return bool(item.spec.node_name) and item.status.phase not in FINISHED_PHASES

    def agrees(self, key: str, item: Pod) -> bool:
        """Compare every decoded field, node and version included.

        Args:
            key: the pod's uid.
            item: the pod in the API server.

        Returns:
            Whether the two are equal, or the pod's quantities cannot be read.
        """
        placement = self._cluster.placement(key)
        if placement is not None and placement.pod.pod == item and placement.node == item.spec.node_name:
            return True
        return _info(item) is None

    def gone(self, key: str) -> None:
        """Repair: the pod was deleted or has finished."""
        self._event_handlers.assigned_pod_gone(key)
        self._repairs.pods_vanished += 1

    def news(self, key: str, item: Pod) -> None:
        """Repair: the pod appeared on its node, or changed.

        Args:
            key: the pod's uid.
            item: the pod in the API server.
        """
        info = _info(item)
        if info is None:
            return
        if self.now(key) is None:
            self._repairs.pods_missed += 1
        else:
            self._repairs.pods_stale += 1
        self._event_handlers.assigned_pod(info)


class QueueBelief(_Belief):
    """The pods that wait for a node, by uid. A pod with a place in the columns was placed and is not compared."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, event_handlers: ClusterEventHandlers, shown: Callable[[], bool]) -> None:
        """`shown`: whether Kopf has shown pods without a break since the comparison began."""
        super().__init__(cluster, event_handlers)
        self._queue = queue
        self._shown = shown

    def keys(self) -> Iterable[str]:
        """Return the uids of all pods that wait."""
        return self._queue.uids()

    def key(self, metadata: ObjectMeta) -> str:
        """Return the pod's uid."""
        return metadata.uid

    def now(self, key: str) -> PodInfo | None:
        """Return the newest version of the pod."""
        return self._queue.latest(key)

    def place(self, key: str) -> tuple[str, str]:
        """Return the pod's namespace and name."""
        return _place(self.now(key))

    def excused(self, key: str) -> bool:
        """Whether the pod is on its way to a node, or left while the comparison ran, or may not have been shown."""
        return self._cluster.placement(key) is not None or self._left(key) or not self._shown()

    def belongs(self, item: Pod) -> bool:
        """Whether the pod has no node and is not finished."""
        return not item.spec.node_name and item.status.phase not in FINISHED_PHASES

    def agrees(self, key: str, item: Pod) -> bool:
        """Compare the versions.

        Args:
            key: the pod's uid.
            item: the pod in the API server.

        Returns:
            Whether they are equal, or the pod's quantities cannot be read.
        """
        known = self.now(key)
        if known is not None:
            return known.pod.metadata.resource_version == item.metadata.resource_version
        return _info(item) is None

    def gone(self, key: str) -> None:
        """Repair: the pod was deleted or bound, or has finished."""
        known = self.now(key)
        if known is not None:
            self._event_handlers.unscheduled_pod_gone(known)
            self._repairs.vanished += 1

    def news(self, key: str, item: Pod) -> None:
        """Repair: the pod appeared, or changed.

        Args:
            key: the pod's uid.
            item: the pod in the API server.
        """
        info = _info(item)
        if info is None:
            return
        if self.now(key) is None:
            self._repairs.missed += 1
        else:
            self._repairs.outdated += 1
        self._event_handlers.unscheduled_pod(info)


def _place(pod: PodInfo | None) -> tuple[str, str]:
    return ("", "") if pod is None else (pod.namespace, pod.name)


def _readable(node: Node) -> bool:
    try:
        canonical(node.status.allocatable or {})
    except QuantityError:
        return False
    return True


def _info(pod: Pod) -> PodInfo | None:
    """Return the `PodInfo` of a pod; None where a quantity cannot be read, which the watch that showed it first has logged."""
    try:
        return PodInfo(pod)
    except QuantityError:
        return None
