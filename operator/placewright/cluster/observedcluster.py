"""A cluster that tells of what changes its columns, in order: what a second one beside it is kept by.

That a pod is confirmed where it is assumed, or looks otherwise but counts alike, changes none.
"""

from __future__ import annotations

from typing import Protocol

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster, PodOnNode


class ClusterListener(Protocol):
    """Hears of changes after they were made. Called in the midst of deciding: it notes, and never raises."""

    def node_set(self, node: Node) -> None:
        """A node appeared or changed."""

    def node_removed(self, name: NodeName) -> None:
        """A node is gone."""

    def pod_stands(self, pod: PodInfo, node: NodeName) -> None:
        """A pod stands on a node: it came there, or it stood there already and counts otherwise now (labels, requests, deletion)."""

    def pod_left(self, uid: str) -> None:
        """A pod left its node. Where it is found on another node, `pod_stands` follows at once."""


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

    def _enter(self, placement: PodOnNode) -> None:
        super()._enter(placement)
        if self.listener is not None:
            self.listener.pod_stands(placement.pod, placement.node)

    def _recount(self, known: PodOnNode, pod: PodInfo) -> None:
        super()._recount(known, pod)
        if self.listener is not None:
            self.listener.pod_stands(pod, known.node)

    def _leave(self, placement: PodOnNode) -> None:
        super()._leave(placement)
        if self.listener is not None:
            self.listener.pod_left(placement.pod.uid)
