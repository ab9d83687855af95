"""A shadow's choice of a node for a pod, in its own world.

A shadow's world is the cluster as it would be if the shadow had placed the pods that it decided.

All other pods are on their real nodes, and every pod leaves when it leaves the live cluster.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.podstart import is_ready
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject
from placewright.framework.interface import PodGroupSettings
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.queue.nominator import Nominator
from placewright.scheduler.cycle import FitError, SchedulingCycle, choose
from placewright.shadow.tape import LiveChoice


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


class Found(NamedTuple):
    """The shadow's choice.

    Attributes:
        node: the chosen node.
        feasible: True if the live profile's node could have held the pod, too; False if the live profile chose none.
        totals: totals of the shadow's node and of the live profile's node; None if the latter is not feasible, or if there was one
            feasible node, which is not scored.
        score: total of the shadow's node; 0 if no node was scored.
    """

    node: NodeName
    feasible: bool
    totals: tuple[int, int] | None
    score: int


class Chooser:
    """Filters and scores the nodes of one world by one profile."""

    def __init__(self, world: ShadowCluster, evaluator: Evaluator, rng: random.Random) -> None:
        """Choose nothing yet.

        Args:
            world: world of the shadow.
            evaluator: evaluator around that world's cluster.
            rng: random numbers that choose among nodes of equal totals.
        """
        self._world = world
        self._evaluator = evaluator
        self._rng = rng
        self._cycle = SchedulingCycle(world.cluster, Nominator(), rng)

    @property
    def groups(self) -> PodGroupSettings | None:
        """The profile's settings for groups; None if no plugin of it decides groups."""
        plugin = self._evaluator.runtime.pod_groups
        return None if plugin is None else plugin.settings

    @property
    def runtime(self) -> ProfileRuntime:
        """The profile's plugins."""
        return self._evaluator.runtime

    def find(
        self, pod: PodInfo, live: LiveChoice | None = None, within: frozenset[NodeName] | None = None, *, compared: bool = False
    ) -> Found | None:
        """Find the best node. Among nodes of equal totals it is the live profile's, so that chance alone makes no difference.

        Args:
            pod: pod to be placed.
            live: choice of the live profile; None if it chose no node.
            within: names of the nodes that are candidates; None for all nodes.
            compared: whether the node is scored even if it is the only feasible one, because domains are compared by scores.

        Returns:
            The choice; None if no node can hold the pod.
        """
        try:
            evaluation = self._cycle.evaluate(self._evaluator, pod, None, within)
        except FitError as failure:
            if failure.internal:
                raise
            return None
        return self._best(evaluation, live, compared) if evaluation.count > 0 else None

    def draw(self) -> float:
        """Draw a number from 0 to below 1, to choose between equally good domains."""
        return self._rng.random()

    def _best(self, evaluation: Evaluation, live: LiveChoice | None, compared: bool) -> Found:
        other = None if live is None else self._world.cluster.row(live.node)
        if evaluation.count > 1:
            self._cycle.sample(self._evaluator.runtime, evaluation)
        feasible = other is not None and bool(evaluation.feasible[other])
        if evaluation.count == 1 and not compared:
            return Found(self._name(int(np.flatnonzero(evaluation.feasible)[0])), feasible, None, 0)
        totals = self._evaluator.score(evaluation)
        row = other if other is not None and totals[other] == totals.max() else choose(totals, self._rng).row
        score = int(totals[row])
        return Found(self._name(row), feasible, (score, int(totals[other])) if feasible else None, score)

    def _name(self, row: int) -> NodeName:
        name = self._world.cluster.names[row]
        assert name is not None
        return name
