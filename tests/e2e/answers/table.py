"""The plugins of 1.20 that score, and what became of each: a line a plugin.

A plugin that is added later joins by one line. Without a change kube-scheduler's score has to be ours; with one, kube-scheduler's has to
follow the rule before and ours the rule after, so where both rules say the same, the scores are held equal as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from e2e.answers import rules
from e2e.answers.legacy import AVOID_WEIGHT
from e2e.answers.scene import ByNode, Scene
from e2e.answers.spreading import IN_1_20, IN_1_36, soft_scores

Rule = Callable[[Scene], ByNode]


class Change(NamedTuple):
    """Why a score may differ."""

    name: str
    before: Rule
    after: Rule


class Line(NamedTuple):
    """One plugin: its name in 1.20's log, its weight there, our plugin's name, and what changed.

    Either name is "" where there is no such plugin; then the change says so.
    """

    logged: str
    weight: int
    ours: str
    change: Change | None = None

    def __str__(self) -> str:
        return self.logged or self.ours

    def expected(self, scene: Scene) -> ByNode:
        """What 1.20 has to say."""
        return self.change.before(scene) if self.change else scene.scores(self.ours)


BALANCE: Final = Change(
    "1.22 took the standard deviation of used fractions for their difference; 1.36 scores real requests, by what the pod changes",
    rules.balanced_by_difference,
    rules.balanced_by_what_it_changes,
)
IMAGES: Final = Change("later versions count the images of init containers", rules.images_of_containers, rules.images_of_all_containers)
LOWEST: Final = Change(
    "later versions normalise between lowest and highest sum, also where all are positive or all negative",
    rules.affinity_from_zero,
    rules.affinity_from_lowest,
)
SPREAD: Final = Change(
    "later versions leave the score out for pods without constraints, round where 1.20 cuts off, and score nodes without a zone by default",
    partial(soft_scores, version=IN_1_20),
    partial(soft_scores, version=IN_1_36),
)

TABLE: Final = (
    Line("NodeResourcesLeastAllocated", 1, "NodeResourcesFit"),
    Line("NodeResourcesBalancedAllocation", 1, "NodeResourcesBalancedAllocation", BALANCE),
    Line("ImageLocality", 1, "ImageLocality", IMAGES),
    Line("InterPodAffinity", 1, "InterPodAffinity", LOWEST),
    Line("NodeAffinity", 1, "NodeAffinity"),
    Line("NodePreferAvoidPods", AVOID_WEIGHT, "NodePreferAvoidPods"),
    Line("PodTopologySpread", 2, "PodTopologySpread", SPREAD),
    Line("TaintToleration", 1, "TaintToleration"),
    Line("SelectorSpread", 1, "SelectorSpread"),
    Line("NodeLabel", 1, "NodeLabel"),
    Line("ServiceAffinity", 1, "ServiceAffinity"),
)
