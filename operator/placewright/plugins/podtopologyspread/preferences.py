"""Scores of soft constraints: matching pods in the domain, weighed by the number of domains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.framework.topology import MISSING, NO_PODS, tally_of
from placewright.plugins.podtopologyspread.args import HOSTNAME
from placewright.plugins.podtopologyspread.constraints import Constraint
from placewright.plugins.podtopologyspread.layout import Field
from placewright.plugins.shared.lookups import at

#: Raw score of nodes that lack a required label; normalised to 0.
IGNORED: Final = -1

_Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class DomainPreference:
    """One constraint's part of the score, by domain: `by_code`."""

    field: Field
    by_code: _Floats

    def of(self, rows: Rows) -> _Floats:
        """Return the part of these rows; shape (len(rows),)."""
        return self.by_code[self.field.codes[rows]]


@dataclass(frozen=True, slots=True)
class HostPreference:
    """One constraint's part of the score by host: `usual`, or `points` on the few `rows`; 0 without the label."""

    field: Field
    usual: float
    rows: Rows
    points: _Floats

    def of(self, rows: Rows) -> _Floats:
        """Return the part of these rows; shape (len(rows),)."""
        by_row = np.full(len(self.field.codes), self.usual)
        by_row[self.rows] = self.points
        if not self.field.complete:
            by_row[self.field.codes == MISSING] = 0.0
        return by_row[rows]


Preference = DomainPreference | HostPreference


def preference(constraint: Constraint, field: Field, scored: Rows, cluster: Cluster) -> Preference:
    """Compute one soft constraint's part of the score, by domain; for `kubernetes.io/hostname` by row.

    `scored` has the feasible rows that are not ignored. Their domains decide the weight, ln(domains + 2).
    """
    slack = float(constraint.max_skew - 1)
    tally = None if constraint.counted is None else tally_of(cluster, constraint.counted)
    if constraint.key == HOSTNAME:
        rows, counts = NO_PODS if tally is None else tally.taken()  # inclusion policies do not apply to a host's own pods
        points: _Floats = counts * math.log(len(scored) + 2) + slack
        return HostPreference(field, slack, rows, points)
    if tally is None:
        by_code = np.full(field.count, slack)
    else:
        by_code = field.counting.pods(tally)[: field.count] * math.log(field.distinct_among(scored) + 2) + slack
    if field.same_as_missing is not None:
        by_code[field.same_as_missing] = by_code[MISSING]
    by_code[MISSING] = 0.0
    return DomainPreference(field, by_code)


class Preferences:
    """All soft constraints of a pod.

    Attributes:
        complete: rows that are not ignored, shape (size,); None if no row is ignored.
    """

    def __init__(self, parts: Sequence[Preference], complete: BoolColumn | None) -> None:
        self._parts = parts
        self.complete = complete

    def of(self, rows: Rows) -> IntColumn:
        """Return the raw score of these rows, which ascend; shape (len(rows),)."""
        raw = self._raw(rows)
        if self.complete is not None:
            raw[~self.complete[rows]] = IGNORED
        return raw

    def _raw(self, rows: Rows) -> IntColumn:
        match self._parts:
            case [DomainPreference() as domain]:
                return _rounded(domain.by_code)[at(domain.field.codes, rows)]
            case [DomainPreference() as domain, HostPreference() as host] | [HostPreference() as host, DomainPreference() as domain] if (
                host.field.complete
            ):
                return _together(domain, host, rows)
        total = self._parts[0].of(rows)
        for part in self._parts[1:]:
            total = total + part.of(rows)
        return _rounded(total)


def _together(domain: DomainPreference, host: HostPreference, rows: Rows) -> IntColumn:
    """Sum up by domain, then by row for the few rows that hold pods; the floats add up to the same in either order."""
    codes = domain.field.codes
    raw = _rounded(domain.by_code + host.usual)[codes]
    raw[host.rows] = _rounded(domain.by_code[codes[host.rows]] + host.points)
    return at(raw, rows)


def _rounded(score: _Floats) -> IntColumn:
    """Round as Go does: halves up, where numpy rounds to even."""
    rounded: IntColumn = np.floor(score + 0.5).astype(np.int64)
    return rounded
