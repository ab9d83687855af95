"""The effect of pods in a node's domain on an incoming pod: required, forbidden, or points."""

from __future__ import annotations

import numpy as np

from placewright.cluster.tally import Tally
from placewright.framework.interface import IntColumn, Rows
from placewright.framework.status import Status
from placewright.framework.topology import MISSING, NO_PODS, DefaultVerdict, DomainRule, Domains, FixedRule, RowRule
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
