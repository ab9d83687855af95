"""A cluster that tells of its changes, in their order: what a second one beside it is kept by."""

from __future__ import annotations

from typing import Protocol

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster, Placement


class ClusterListener(Protocol):
    """Hears of changes after they were made. Called in the midst of deciding: it notes, and never raises."""

    def node_set(self, node: Node) -> None:
        """A node appeared or changed."""

    def node_removed(self, name: NodeName) -> None:
        """A node is gone."""

    def pod_stands(self, pod: PodInfo, node: NodeName) -> None:
        """A pod stands on a node, or stands there as something else than before."""

    def pod_left(self, uid: str) -> None:
        """A pod stands nowhere any more; also for pods that never stood anywhere."""


class ObservedCluster(Cluster):
    """The same columns, and one who hears what happens to them.

    Attributes:
        listener: None for nobody, which costs nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.listener: ClusterListener | None = None

    def set_node(self, node: Node) -> Node | None:
        """`Cluster.set_node`."""
        old = super().set_node(node)
        if self.listener is not None:
            self.listener.node_set(node)
        return old

    def remove_node(self, name: NodeName) -> Node | None:
        """`Cluster.remove_node`."""
        old = super().remove_node(name)
        if self.listener is not None:
            self.listener.node_removed(name)
        return old

    def assume(self, pod: PodInfo, node: NodeName) -> None:
        """`Cluster.assume`."""
        super().assume(pod, node)
        if self.listener is not None:
            self.listener.pod_stands(pod, node)

    def forget(self, pod: PodInfo, node: NodeName) -> None:
        """`Cluster.forget`."""
        super().forget(pod, node)
        if self.listener is not None:
            self.listener.pod_left(pod.uid)

    def set_pod(self, pod: PodInfo) -> Placement | None:
        """`Cluster.set_pod`."""
        known = super().set_pod(pod)
        if self.listener is not None:
            self.listener.pod_stands(pod, pod.node_name)
        return known

    def remove_pod(self, uid: str) -> Placement | None:
        """`Cluster.remove_pod`."""
        known = super().remove_pod(uid)
        if self.listener is not None and known is not None:
            self.listener.pod_left(uid)
        return known
