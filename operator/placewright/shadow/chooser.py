"""A shadow's choice of a node for a pod, in its own world."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import PodGroupSettings
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.queue.nominator import Nominator
from placewright.scheduler.cycle import FitError, SchedulingCycle, choose
from placewright.shadow.tape import LiveChoice
from placewright.shadow.world import ShadowCluster


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
