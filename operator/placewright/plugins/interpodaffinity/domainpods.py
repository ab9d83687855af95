"""The effect of pods in a node's domain on an incoming pod: required, forbidden, or points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.cluster.tally import Tally
from placewright.framework.filters import RowwiseCounts, RowwiseRule
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.framework.status import Status
from placewright.framework.topology import MISSING, NO_PODS, Codes, DefaultVerdict, DomainRule, Domains, FixedRule, RowRule
from placewright.plugins.shared.lookups import at


def near(place: Domains, wanted: Tally | None, verdict: Status) -> FixedRule:
    """Allow only domains that hold one of these pods; None: there are no such pods."""
    if place.single or wanted is None:
        return RowRule(place, DefaultVerdict.DENIED, NO_PODS.rows if wanted is None else place.rows_with(wanted).rows, verdict, verdict)
    occupied = place.pods(wanted) > 0
    occupied[MISSING] = False
    return DomainRule(place.codes, occupied, verdict, verdict)


def anywhere(place: Domains, verdict: Status) -> FixedRule:
    """Allow all domains."""
    return RowRule(place, DefaultVerdict.ALLOWED_WHERE_LABELLED, NO_PODS.rows, verdict, verdict)


def far(place: Domains, unwanted: Tally, verdict: Status) -> FixedRule:
    """Allow only nodes without the label, and domains that hold none of these pods."""
    if place.single:
        return RowRule(place, DefaultVerdict.ALLOWED, place.rows_with(unwanted).rows, verdict, verdict)
    free = place.pods(unwanted) <= 0
    free[MISSING] = True
    return DomainRule(place.codes, free, verdict, verdict)


def occupied_anywhere(place: Domains, tally: Tally) -> bool:
    """Return whether any domain holds one of these pods."""
    if place.single:
        return len(place.rows_with(tally).rows) > 0
    return bool(place.pods(tally)[MISSING + 1 :].any())


class DomainPoints:
    """The sum of the scoring terms over one label: by row where domains are single nodes, else by code."""

    def __init__(self, place: Domains) -> None:
        self._place = place
        self._points: IntColumn = np.zeros(len(place.codes) if place.single else place.distinct, np.int64)

    def add(self, weight: int, tally: Tally) -> bool:
        """Add `weight` to the domain of each of these pods. Return False if there are none in any domain."""
        if self._place.single:
            return self._place.add_by_row(self._points, weight, tally)
        counts = self._place.pods(tally)
        if not counts[MISSING + 1 :].any():
            return False
        self._points += weight * counts
        self._points[MISSING] = 0
        return True

    def of(self, rows: Rows) -> IntColumn:
        """Return the points of these rows, which ascend; shape (len(rows),), not to be written."""
        return at(self._points, rows) if self._place.single else self._points[at(self._place.codes, rows)]


# --- with one row changed --------------------------------------------------------------------------------------------------------


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


def nearness(
    cluster: Cluster, pods: PodSelection | None, places: Sequence[Domains], wants_itself: bool, verdict: Status
) -> list[RowwiseRule]:
    """Make a rule for each required affinity term from the domains of its label.

    The rule allows rows near a wanted pod. A pod that selects itself may also be the first, if no term is met anywhere.
    """
    wanted = [_Occupancy(cluster, pods, place) for place in places]

    def rule(term: _Occupancy) -> RowwiseRule:
        def allows(rows: Rows) -> BoolColumn:
            near = term.occupied(rows)
            if not wants_itself:
                return near
            first = term.labelled(rows)
            for other in wanted:
                first &= ~other.anywhere(rows)
            return near | first

        return RowwiseRule(term.codes, verdict, verdict, allows)

    return [rule(term) for term in wanted]


def distance(cluster: Cluster, pods: PodSelection, place: Domains, verdict: Status) -> RowwiseRule:
    """Make the rule that keeps the incoming pod out of the domains of these pods."""
    unwanted = _Occupancy(cluster, pods, place)
    return RowwiseRule(place.codes, verdict, verdict, lambda rows: ~unwanted.occupied(rows))
