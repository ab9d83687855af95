"""A copy of the cluster that the console shows, to try profiles on. Waiting pods are placed in it and taken back.

The copy shares pods, nodes and objects, so it costs columns and dictionaries only. An update takes over the objects that have changed. The
copy stands still while a question is answered, also if the cluster that is shown changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.objects import ClusterObject
from placewright.cluster.storage import key_of
from placewright.framework.runtime.evaluation import Evaluator
from placewright.offline.world import Members
from placewright.scheduler.cycle import FitError
from placewright.shadow.chooser import Chooser, Found, ShadowCluster
from placewright.shadow.tape import LiveChoice
from placewright_console.local.seenworld import SeenWorld

#: Number of objects that are compared between two looks at the clock.
K = TypeVar("K")
T = TypeVar("T")
_PIECE: Final = 200


class TrialCluster(ShadowCluster):
    """The copy. `chosen` has the placements of a trial, which are taken back with everything that plugins reserved.

    Attributes:
        pending: pods without a node at the last update, in the order of the queue: by priority, then by age.
        members: the same pods, by group.
        now: moment of the copy, seconds since 1970.
    """

    def __init__(self, world: SeenWorld) -> None:
        """Copy nothing of the world yet."""
        super().__init__(world.cluster)
        self.pending: list[PodInfo] = []
        self.members = Members()
        self.now = world.now
        self._world = world
        self._known: tuple[dict[tuple[type[Any], str], ClusterObject], dict[str, Node], dict[str, PodInfo]] = ({}, {}, {})
        self._undo: dict[str, Callable[[], None]] = {}

    def follow(self) -> Iterator[None]:
        """Make this cluster equal to the one that is shown now, piece by piece. No pod may be chosen meanwhile.

        The cluster that is shown may change between two pieces. Its state at the beginning counts.
        """
        seen = self._world
        objects = {(type(item), key_of(item.metadata)): item for item in seen.cluster.objects.shown()}
        nodes = {node.metadata.name: node for node in seen.cluster.nodes()}
        pods = {each.pod.uid: each.pod for each in seen.cluster.placements()}
        before, self._known = self._known, (objects, nodes, pods)
        self.pending = sorted(seen.pending.values(), key=lambda pod: (-pod.priority, pod.created, pod.key))
        self.now = seen.now
        self.members = Members()
        for pod in self.pending:
            self.members.add(pod)
        yield
        # Objects come first, like at a scheduler's start, because pods are counted with their claims and volumes.
        yield from _followed(before[0], objects, self.object_removed, self.object_put)
        yield from _followed(before[1], nodes, lambda node: self.cluster.remove_node(NodeName(node.metadata.name)), self.cluster.set_node)
        yield from _followed(before[2], pods, lambda pod: self.cluster.remove_pod(pod.uid), self.cluster.set_pod)

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
        """Undo the placements of a trial, the last one first. `pods` are in the order in which they were tried."""
        for pod in reversed(pods):
            if pod.uid in self.chosen:
                self.take_back(pod)


def _followed(known: dict[K, T], now: dict[K, T], remove: Callable[[T], object], put: Callable[[T], object]) -> Iterator[None]:
    for key in known.keys() - now.keys():
        remove(known[key])
    for place, (key, item) in enumerate(now.items()):
        if known.get(key) is not item:
            put(item)
        if place % _PIECE == 0:
            yield


class TrialChooser(Chooser):
    """Finds nodes for pods in a `TrialCluster`. It reserves there what the pod needs, so that two pods do not get one device."""

    def __init__(self, world: TrialCluster, evaluator: Evaluator, seed: int = 0) -> None:
        """Choose nothing yet. `evaluator` belongs to the world's cluster, and `seed` decides among nodes of equal totals."""
        super().__init__(world, evaluator, random.Random(seed))
        self._trial = world

    def find(
        self, pod: PodInfo, live: LiveChoice | None = None, within: frozenset[NodeName] | None = None, *, compared: bool = False
    ) -> Found | None:
        """Find the best node, and assume the pod there with everything that its plugins reserve.

        `live` decides among nodes of equal totals, and `within` has the candidates. `compared` asks for scores even of a single feasible
        node. Return None if no node can hold the pod, or if a plugin cannot reserve what the pod needs.
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
        self._trial.cluster.take_with_claims(pod.uid, evaluation.state.taken_with_claims)
        self._trial.reserve(pod, found.node, partial(runtime.run_unreserve, evaluation.state, pod, found.node))
        return found
