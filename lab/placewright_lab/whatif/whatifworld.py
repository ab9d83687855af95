"""A cluster to try profiles on: a copy of the one that the console shows, in which waiting pods are placed and taken back.

The pods, nodes and objects themselves are shared, so a copy costs columns and dictionaries. It is brought up to date by looking which
objects are others than before. While a question is answered it stands still, however the cluster that is shown goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cluster.cluster import Cluster, PodOnNode
from placewright.cluster.objects import ClusterObject
from placewright.cluster.storage import key_of
from placewright.framework.runtime.evaluation import Evaluator
from placewright.offline.grouptrial import Members
from placewright.scheduler.cycle import FitError
from placewright.shadow.chooser import Chooser, Found
from placewright.shadow.tape import LiveChoice
from placewright.shadow.world import ShadowCluster
from placewright_console.pages.decisionrows import SeenDecision

#: Objects that are compared between two looks at the clock.
_PIECE: Final = 200


class TriedWorld(Protocol):
    """The cluster that the console shows, as far as it is copied. `SeenWorld` is one."""

    @property
    def cluster(self) -> Cluster:
        """Nodes, the pods on them, and all other objects. Only read."""

    @property
    def pending(self) -> Mapping[str, PodInfo]:
        """Pods without a node, by uid."""

    @property
    def profiles(self) -> Sequence[SchedulingProfile]:
        """The profiles that place pods."""

    @property
    def placements(self) -> Iterable[SeenDecision]:
        """The last placements that were seen, the latest first; pods that were bound before are found by their conditions."""

    @property
    def now(self) -> float:
        """The moment that is shown, seconds since 1970."""

    @property
    def changes(self) -> int:
        """Grows with every change of any of these, but of `now`."""


class TrialCluster(ShadowCluster):
    """The copy. Placements of a trial are `chosen`, and are taken back with all that their plugins reserved.

    Attributes:
        pending: pods without a node when the copy was brought up to date, in the order of the queue: by priority, then by age.
        members: the same pods, by group.
        now: the moment of the copy, seconds since 1970.
    """

    def __init__(self, world: TriedWorld) -> None:
        """Copy nothing yet.

        Args:
            world: that is shown.
        """
        super().__init__(world.cluster)
        self.pending: list[PodInfo] = []
        self.members = Members()
        self.now = world.now
        self._world = world
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, PodInfo] = {}
        self._objects: dict[tuple[type[Any], str], ClusterObject] = {}
        self._undo: dict[str, Callable[[], None]] = {}

    def follow(self) -> Iterator[None]:
        """Make this cluster equal to the one that is shown now. No pod may be chosen meanwhile.

        Yields:
            After each piece of work. The cluster that is shown may change in between: what it was at the beginning counts.
        """
        seen = self._world
        nodes, placements, objects = list(seen.cluster.nodes()), list(seen.cluster.placements()), list(seen.cluster.objects.shown())
        self.pending = sorted(seen.pending.values(), key=lambda pod: (-pod.priority, pod.created, pod.key))
        self.now = seen.now
        self.members = Members()
        for pod in self.pending:
            self.members.add(pod)
        yield
        # Objects first, as when a scheduler starts: pods are counted with the claims and volumes that they name.
        yield from self._follow_objects(objects)
        yield from self._follow_nodes(nodes)
        yield from self._follow_pods(placements)

    def _follow_objects(self, objects: Collection[ClusterObject]) -> Iterator[None]:
        known, self._objects = self._objects, {(type(item), key_of(item.metadata)): item for item in objects}
        for key, item in known.items():
            if key not in self._objects:
                self.object_removed(item)
        for place, (key, item) in enumerate(self._objects.items()):
            if known.get(key) is not item:
                self.object_put(item)
            if place % _PIECE == 0:
                yield

    def _follow_nodes(self, nodes: Collection[Node]) -> Iterator[None]:
        known, self._nodes = self._nodes, {node.metadata.name: node for node in nodes}
        for name in known.keys() - self._nodes.keys():
            self.cluster.remove_node(NodeName(name))
        for place, (name, node) in enumerate(self._nodes.items()):
            if known.get(name) is not node:
                self.cluster.set_node(node)
            if place % _PIECE == 0:
                yield

    def _follow_pods(self, placements: Collection[PodOnNode]) -> Iterator[None]:
        known, self._pods = self._pods, {each.pod.uid: each.pod for each in placements}
        for uid in known.keys() - self._pods.keys():
            self.cluster.remove_pod(uid)
        for place, each in enumerate(placements):
            if known.get(each.pod.uid) is not each.pod:
                self.cluster.set_pod(each.pod if each.pod.node_name == each.node else each.pod.on(each.node))
            if place % _PIECE == 0:
                yield

    # --- placing ---------------------------------------------------------------------------------------------------------------

    def reserve(self, pod: PodInfo, node: NodeName, undo: Callable[[], None]) -> None:
        """Note how to give back what plugins reserved for a pod that is assumed on a node."""
        self._undo[pod.uid] = undo

    def choose(self, pod: PodInfo, node: NodeName) -> None:
        """Keep a placement that `TrialChooser.find` made."""
        self.chosen[pod.uid] = node

    def take_back(self, pod: PodInfo) -> None:
        """Undo `choose`, and what plugins reserved."""
        node = self.chosen.pop(pod.uid)
        self._undo.pop(pod.uid)()
        self.cluster.forget(pod, node)

    def take_all_back(self, pods: Sequence[PodInfo]) -> None:
        """Undo the placements of a trial, the last one first.

        Args:
            pods: in the order in which they were tried; those without a placement are passed over.
        """
        for pod in reversed(pods):
            if pod.uid in self.chosen:
                self.take_back(pod)


class TrialChooser(Chooser):
    """Finds nodes for pods in a `TrialCluster`, and reserves there what the pod needs: two pods do not get one device."""

    def __init__(self, world: TrialCluster, evaluator: Evaluator, seed: int = 0) -> None:
        """Choose nothing yet.

        Args:
            world: with the pods.
            evaluator: made around the world's cluster.
            seed: of the choices among nodes of equal totals.
        """
        super().__init__(world, evaluator, random.Random(seed))
        self._trial = world

    def find(
        self, pod: PodInfo, live: LiveChoice | None = None, within: frozenset[NodeName] | None = None, *, compared: bool = False
    ) -> Found | None:
        """Find the best node, and assume the pod there with all that its plugins reserve.

        Args:
            pod: to be placed.
            live: the choice that is taken among nodes of equal totals; None for chance.
            within: the candidates; None for all nodes.
            compared: score the node even if it is the only feasible one.

        Returns:
            None where no node can hold the pod, or what it needs cannot be reserved.
        """
        try:
            evaluation = self._cycle.evaluate(self._evaluator, pod, None, within)
        except FitError as failure:
            if failure.internal:
                raise
            return None
        if evaluation.count == 0:
            return None
        found, runtime = self._best(evaluation, live, compared), self._evaluator.runtime
        self._trial.cluster.assume(pod, found.node)
        if not runtime.run_reserve(evaluation.state, pod, found.node).ok:
            self._trial.cluster.forget(pod, found.node)
            return None
        self._trial.reserve(pod, found.node, partial(runtime.run_unreserve, evaluation.state, pod, found.node))
        return found
