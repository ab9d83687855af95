"""A shadow's world is the cluster as it would be if the shadow had placed the pods that it decided.

All other pods are on their real nodes, and every pod leaves when it leaves the live cluster.
"""

from __future__ import annotations

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.podstart import is_ready
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject


class ShadowCluster:
    """The nodes, pods and objects of one shadow.

    Attributes:
        cluster: columns of the shadow.
        chosen: nodes of the pods that the shadow placed, by uid.
        waiting: pods on nodes of the live cluster for which the shadow found none, by uid, in order of decisions.
        roomier: True if a change may have made room since this was last set to False.
    """

    def __init__(self, live: Cluster | None = None) -> None:
        """Start empty.

        Args:
            live: live cluster, whose extensions a shadow cannot find out for itself. For example, no kubelet turns away a pod that a
                shadow placed. None if nothing is known.
        """
        self.cluster = Cluster()
        if live is not None:
            self.cluster.extensions = live.extensions
        self.chosen: dict[str, NodeName] = {}
        self.waiting: dict[str, PodInfo] = {}
        self.roomier = False

    def knows(self, uid: str) -> bool:
        """Return whether a pod has been decided, or is on a node."""
        return uid in self.chosen or uid in self.waiting or self.cluster.placement(uid) is not None

    def choose(self, pod: PodInfo, node: NodeName) -> None:
        """Place a pod.

        Args:
            pod: a pod without a node.
            node: choice of the shadow.
        """
        self.cluster.assume(pod, node)
        self.chosen[pod.uid] = node
        self.waiting.pop(pod.uid, None)

    def take_back(self, pod: PodInfo) -> None:
        """Undo `choose`."""
        self.cluster.forget(pod, self.chosen.pop(pod.uid))

    def wait(self, pod: PodInfo) -> None:
        """Let a pod wait that has a node in the live cluster only."""
        self.waiting[pod.uid] = pod

    # --- events --------------------------------------------------------------------------------------------------------------

    def node_set(self, node: Node) -> None:
        """Take a node that appeared or changed."""
        self.cluster.set_node(node)
        self.roomier = True

    def node_removed(self, name: NodeName) -> None:
        """Remove a node. Its pods stay on the missing node, as in the live cluster until they are deleted."""
        self.cluster.remove_node(name)

    def pod_stands(self, pod: PodInfo, node: NodeName) -> None:
        """Take a pod that is on a node of the live cluster. A pod that the shadow placed keeps the shadow's node, with its new requests.

        A pod that waits goes on waiting as it was: its new state names its real node, and would fit no other.

        Args:
            pod: the pod as it is now.
            node: its real node.
        """
        if pod.uid in self.waiting:
            return
        before = self.cluster.placement(pod.uid)
        if before is not None and is_ready(pod) and not is_ready(before.pod):
            self.roomier = True
        where = self.chosen.get(pod.uid, node)
        if pod.node_name == where:
            self.cluster.set_pod(pod)
        elif pod.node_name:
            self.cluster.set_pod(pod.on(where))
        elif before is None:
            self.cluster.assume(pod, where)

    def pod_left(self, uid: str) -> None:
        """Remove a pod that has no node in the live cluster any more. If it is tried again, the shadow decides it again."""
        self.chosen.pop(uid, None)
        self.waiting.pop(uid, None)
        if self.cluster.remove_pod(uid) is not None:
            self.roomier = True

    def object_put(self, item: ClusterObject) -> None:
        """Take an object that appeared or changed."""
        self.cluster.objects.put(item)

    def object_removed(self, item: ClusterObject) -> None:
        """Remove an object."""
        self.cluster.objects.remove(item)
