"""What this process believes of nodes, of pods on nodes, and of pods without one: three collections to compare with the API server's."""

from __future__ import annotations

from collections.abc import Iterable

from placewright.api.objects import Node, NodeName, ObjectMeta, Pod
from placewright.api.pods import FINISHED_PHASES, PodInfo
from placewright.api.quantity import QuantityError
from placewright.api.requests import canonical
from placewright.cluster.cluster import Cluster
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.intake import Intake


class NodeBelief:
    """The columns' nodes, by name."""

    def __init__(self, cluster: Cluster, intake: Intake) -> None:
        self._cluster = cluster
        self._intake = intake
        self._repairs = intake.repairs

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
        return key in (self._intake.departed or ())

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


class AssignedBelief:
    """The pods that the API server is believed to have on nodes, by uid. Assumptions are our own, and their bindings tell."""

    def __init__(self, cluster: Cluster, intake: Intake) -> None:
        self._cluster = cluster
        self._intake = intake
        self._repairs = intake.repairs

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
        return key in (self._intake.departed or ()) or (placement is not None and placement.assumed)

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


class QueueBelief:
    """The pods that wait for a node, by uid. One that has a place in the columns has left the list for a good reason."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, intake: Intake) -> None:
        self._cluster = cluster
        self._queue = queue
        self._intake = intake
        self._repairs = intake.repairs

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
        return self._cluster.placement(key) is not None or key in (self._intake.departed or ())

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
