"""The listener of a cluster hears each change of its columns in order, so that a shadow can follow.

A pod is not reported if it is confirmed where it is assumed. Nor is a pod whose change leaves all counts the same.
"""

from __future__ import annotations

from typing import Protocol

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo


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
