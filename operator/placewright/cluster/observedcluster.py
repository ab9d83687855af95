"""A cluster that reports each change of its columns in order, so that a shadow's cluster can follow it.

A pod is not reported if it is confirmed where it is assumed. Nor is a pod whose change leaves all counts the same.
"""

from __future__ import annotations

from typing import Protocol

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster, PodOnNode


class ClusterListener(Protocol):
    """Called after each change, in the midst of a decision: an implementation notes the change and never raises."""

    def node_set(self, node: Node) -> None:
        """Note that a node appeared or changed."""

    def node_removed(self, name: NodeName) -> None:
        """Note that a node is gone."""

    def pod_stands(self, pod: PodInfo, node: NodeName) -> None:
        """Note that a pod came onto a node, or that a pod on it counts differently now (labels, requests, deletion)."""

    def pod_left(self, uid: str) -> None:
        """Note that a pod left its node. When it moved to another node, `pod_stands` follows at once."""


class ObservedCluster(Cluster):
    """A `Cluster` with at most one listener. Without one it costs what a `Cluster` costs."""

    def __init__(self) -> None:
        super().__init__()
        self._listener: ClusterListener | None = None

    def report_to(self, listener: ClusterListener | None) -> None:
        """Call `listener` after each change from now on, and no other; None calls none."""
        self._listener = listener

    def set_node(self, node: Node) -> Node | None:
        """Add or update a node, and tell the listener."""
        old = super().set_node(node)
        if self._listener is not None:
            self._listener.node_set(node)
        return old

    def remove_node(self, name: NodeName) -> Node | None:
        """Remove a node, and tell the listener."""
        old = super().remove_node(name)
        if self._listener is not None:
            self._listener.node_removed(name)
        return old

    def _enter(self, placement: PodOnNode) -> None:
        super()._enter(placement)
        if self._listener is not None:
            self._listener.pod_stands(placement.pod, placement.node)

    def _recount(self, known: PodOnNode, pod: PodInfo) -> None:
        super()._recount(known, pod)
        if self._listener is not None:
            self._listener.pod_stands(pod, known.node)

    def _leave(self, placement: PodOnNode) -> None:
        super()._leave(placement)
        if self._listener is not None:
            self._listener.pod_left(placement.pod.uid)
