"""SelectorSpread: pods of the same Service or owner spread over nodes and zones. Implements PreScore, Score.

kube-scheduler had it in its default profile up to 1.19 and shipped it up to 1.22; PodTopologySpread's default constraints replaced it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    CycleState,
    Handle,
    IntColumn,
    NoArgs,
    PreScorePlugin,
    Reads,
    Rows,
    ScorePlugin,
)
from placewright.framework.memory import NodeMemory
from placewright.framework.status import SKIP, SUCCESS, Status
from placewright.framework.topology import Domains, counts_by_row
from placewright.framework.zones import NO_ZONE, zones
from placewright.plugins.podtopologyspread.defaultselectors import DefaultSelectors

NAME: Final = "SelectorSpread"
#: The zone's part of the score, if there is one. Floats in this order of operations are what kube-scheduler computes.
ZONE_SHARE: Final = 2.0 / 3.0


@dataclass(frozen=True, slots=True)
class _Scores:
    """The score of every row; shape (size,)."""

    by_row: IntColumn


class SelectorSpread(PreScorePlugin[NoArgs], ScorePlugin):
    """Prefers nodes, and zones, that hold few of the pods that the pod's Services and owner select.

    Raw scores are normalised already: to normalise them one has to know which nodes share a zone.
    """

    name = NAME
    reads = Reads.CLUSTER

    def __init__(self, args: NoArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._selectors = DefaultSelectors()
        self._memory = NodeMemory()

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Count the pod's like on the feasible nodes; skip pods that say themselves how they want to be spread."""
        if pod.pod.spec.topology_spread_constraints:
            return SKIP
        counts = self._counts(pod, cluster, feasible)
        place = zones(self._memory, cluster)
        by_row = np.zeros(cluster.size, np.int64)
        by_row[feasible] = _spread(counts, Domains(place.codes[feasible], place.distinct))
        state.write(NAME, _Scores(by_row))
        return SUCCESS

    def _counts(self, pod: PodInfo, cluster: Cluster, rows: Rows) -> NDArray[np.int64]:
        """Pods that are not on their way out and that Services and owner select; none for a pod that nothing selects."""
        selector = self._selectors.of(pod, cluster.objects)
        if selector.empty:
            return np.zeros(len(rows), np.int64)
        selection = PodSelection(frozenset((pod.namespace,)), selector, terminating=False)
        return counts_by_row(cluster, selection)[rows].astype(np.int64)

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Score few pods on the node by one third, and few in its zone by two thirds. Without a zone, only the node counts."""
        return state.read(NAME, _Scores).by_row[rows]

    def events(self) -> Sequence[ClusterEventWithHint]:
        """None: it rejects no pod."""
        return ()


def _spread(counts: NDArray[np.int64], place: Domains) -> IntColumn:
    """Scores of nodes with these counts in these zones; shape of `counts`."""
    scores = _fewest_best(counts, int(counts.max(initial=0)))
    zoned = place.codes != NO_ZONE
    if zoned.any():
        of_zone = np.bincount(place.codes, weights=counts, minlength=place.distinct)
        of_zone[NO_ZONE] = 0
        zone_scores = _fewest_best(of_zone, int(of_zone.max()))[place.codes]
        scores = np.where(zoned, scores * (1.0 - ZONE_SHARE) + ZONE_SHARE * zone_scores, scores)
    return scores.astype(np.int64)


def _fewest_best(counts: NDArray[Any], most: int) -> NDArray[np.float64]:
    """100·(most−count)/most; 100 for all where there is nothing to count."""
    if most == 0:
        return np.full(len(counts), float(MAX_NODE_SCORE))
    return MAX_NODE_SCORE * ((most - counts) / most)
