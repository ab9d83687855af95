"""A shadow's world: the cluster as it would be, had the shadow placed the pods that it decided.

All other pods stand where they really stand, and every pod leaves when it really leaves.
"""

from __future__ import annotations

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject


class ShadowCluster:
    """Nodes, pods and objects of one shadow; the methods take one kind of news each.

    Attributes:
        cluster: its columns.
        chosen: where the shadow put the pods that it placed, by uid.
        waiting: pods that really stand on a node, and for which the shadow found none; by uid, in that order.
        roomier: something changed since this was last set to False that may have made room.
    """

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.chosen: dict[str, NodeName] = {}
        self.waiting: dict[str, PodInfo] = {}
        self.roomier = False

    def knows(self, uid: str) -> bool:
        """Whether a pod has been decided, or stands somewhere."""
        return uid in self.chosen or uid in self.waiting or self.cluster.placement(uid) is not None

    def choose(self, pod: PodInfo, node: NodeName) -> None:
        """The shadow puts a pod on a node."""
        self.cluster.assume(pod, node)
        self.chosen[pod.uid] = node
        self.waiting.pop(pod.uid, None)

    def take_back(self, pod: PodInfo) -> None:
        """As if the shadow had not chosen."""
        self.cluster.forget(pod, self.chosen.pop(pod.uid))

    def wait(self, pod: PodInfo) -> None:
        """The shadow has no node for a pod that gets one in truth."""
        self.waiting[pod.uid] = pod

    # --- news ----------------------------------------------------------------------------------------------------------------

    def node_set(self, node: Node) -> None:
        """Appeared or changed."""
        self.cluster.set_node(node)
        self.roomier = True

    def node_removed(self, name: NodeName) -> None:
        """Gone; pods that were put there stand on a node that is not, as real ones do until they are deleted."""
        self.cluster.remove_node(name)

    def pod_stands(self, pod: PodInfo, node: NodeName) -> None:
        """A pod really stands on a node. One that the shadow placed stays where it is, with what it asks for now.

        One that it has no node for goes on waiting as it was: as it is now, it names the node that it stands on, and would fit no other.
        """
        if pod.uid in self.waiting:
            return
        where = self.chosen.get(pod.uid, node)
        if pod.node_name == where:
            self.cluster.set_pod(pod)
        elif pod.node_name or not self.cluster.placement(pod.uid):
            self.cluster.set_pod(pod.on(where))

    def pod_left(self, uid: str) -> None:
        """A pod stands nowhere, in truth and therefore here; if it is tried again, it is decided again."""
        self.chosen.pop(uid, None)
        self.waiting.pop(uid, None)
        if self.cluster.remove_pod(uid) is not None:
            self.roomier = True

    def object_put(self, item: ClusterObject) -> None:
        """Appeared or changed."""
        self.cluster.objects.put(item)

    def object_removed(self, item: ClusterObject) -> None:
        """Gone."""
        self.cluster.objects.remove(item)
