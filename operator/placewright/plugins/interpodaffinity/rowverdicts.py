"""Required terms with one row changed: which domains are then wanted and which are barred."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework.filters import RowwiseCounts
from placewright.framework.interface import BoolColumn, Rows
from placewright.framework.status import Status
from placewright.framework.topology import MISSING, Codes, Domains


class _Occupancy:
    """Number of a selection's pods near each row; 0 for rows without the label."""

    def __init__(self, cluster: Cluster, pods: PodSelection | None, place: Domains) -> None:
        self.codes: Codes = place.codes
        self._counts = RowwiseCounts(cluster, pods, place.codes, place.distinct)
        self._total = int(self._counts.before.sum() - self._counts.before[MISSING])

    def labelled(self, rows: Rows) -> BoolColumn:
        """Return which rows have the label."""
        has_label: BoolColumn = self.codes[rows] != MISSING
        return has_label

    def occupied(self, rows: Rows) -> BoolColumn:
        """Return which rows have such a pod in their domain."""
        return self.labelled(rows) & (self._counts.around(rows) > 0)

    def anywhere(self, rows: Rows) -> BoolColumn:
        """Return for which rows such a pod is in any domain."""
        total: NDArray[np.int64] = self._total + np.where(self.labelled(rows), self._counts.change(rows), 0)
        return total > 0


class RowwiseNearness:
    """One required affinity term as a `topology.Rule`."""

    def __init__(self, wanted: _Occupancy, all_wanted: Sequence[_Occupancy], wants_itself: bool, verdict: Status) -> None:
        """Combine a term with those of all terms. A pod that selects itself may be the first only if none is met anywhere."""
        self.codes = wanted.codes
        self.denied = self.missing = verdict
        self._wanted = wanted
        self._all_wanted = all_wanted
        self._wants_itself = wants_itself

    def allows(self, rows: Rows) -> BoolColumn:
        """Allow rows near a wanted pod, or rows where the pod may be the first."""
        near = self._wanted.occupied(rows)
        if not self._wants_itself:
            return near
        first = self._wanted.labelled(rows)
        for other in self._all_wanted:
            first &= ~other.anywhere(rows)
        return near | first


class RowwiseDistance:
    """Pods that keep the incoming one out of their domain, as a `topology.Rule`."""

    def __init__(self, cluster: Cluster, pods: PodSelection, place: Domains, verdict: Status) -> None:
        self._unwanted = _Occupancy(cluster, pods, place)
        self.codes = place.codes
        self.denied = self.missing = verdict

    def allows(self, rows: Rows) -> BoolColumn:
        """Allow rows without such a pod near."""
        return ~self._unwanted.occupied(rows)


def nearness(
    cluster: Cluster, pods: PodSelection | None, places: Sequence[Domains], wants_itself: bool, verdict: Status
) -> list[RowwiseNearness]:
    """Make a rule for each required affinity term from the domains of its label."""
    wanted = [_Occupancy(cluster, pods, place) for place in places]
    return [RowwiseNearness(each, wanted, wants_itself, verdict) for each in wanted]
