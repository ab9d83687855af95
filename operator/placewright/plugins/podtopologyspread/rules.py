"""Rules of hard constraints: the domains that stay within the skew, for all rows at once and for one changed row."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.cluster import Cluster
from placewright.framework.filters import RowwiseCounts, RowwiseRule
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.framework.status import unresolvable, unschedulable
from placewright.framework.topology import MISSING, NO_PODS, DefaultVerdict, DomainRule, FixedRule, RowRule, tally_of
from placewright.plugins.podtopologyspread.constraints import Constraint
from placewright.plugins.podtopologyspread.layout import Field

REASON_SKEW: Final = "node(s) didn't match pod topology spread constraints"
SKEWED: Final = unschedulable(REASON_SKEW)
MISSING_LABEL: Final = unresolvable(f"{REASON_SKEW} (missing required label)")
_UNLIMITED: Final = np.iinfo(np.int64).max


def count_pods(constraint: Constraint, field: Field, cluster: Cluster) -> tuple[IntColumn, int]:
    """Return counted pods by code, shape (field.count,), and those of the emptiest domain: 0 while there are too few domains."""
    if constraint.counted is None:
        return np.zeros(field.count, np.int64), 0
    counts = field.counting.pods(tally_of(cluster, constraint.counted))[: field.count]
    return counts, int(counts[field.recorded].min()) if _enough(constraint, field) else 0


def _enough(constraint: Constraint, field: Field) -> bool:
    """Return whether there are as many domains as the constraint demands."""
    return len(field.recorded) >= max(constraint.min_domains, 1)


def fixed_rule(constraint: Constraint, field: Field, cluster: Cluster) -> FixedRule:
    """Allow domains that stay within the skew with the pod added."""
    if field.place.single:
        return _rule_by_row(constraint, field, cluster)
    counts, least = count_pods(constraint, field, cluster)
    allowed: BoolColumn = counts + constraint.counts_itself - least <= constraint.max_skew
    allowed[MISSING] = False
    return DomainRule(field.codes, allowed, SKEWED, MISSING_LABEL)


def _rule_by_row(constraint: Constraint, field: Field, cluster: Cluster) -> RowRule:
    """Make the rule if each domain is one row: nearly all of them are empty."""
    rows, counts = NO_PODS
    if constraint.counted is not None:
        rows, counts = field.counting.rows_with(tally_of(cluster, constraint.counted))
        counting = field.counting.codes[rows] != field.count
        rows, counts = rows[counting], counts[counting]
    all_taken = _enough(constraint, field) and len(rows) == len(field.recorded)
    room = constraint.max_skew - constraint.counts_itself + (int(counts.min()) if all_taken else 0)
    if room < 0:
        return RowRule(field.place, DefaultVerdict.DENIED, NO_PODS.rows, SKEWED, MISSING_LABEL)
    return RowRule(field.place, DefaultVerdict.ALLOWED_WHERE_LABELLED, rows[counts > room], SKEWED, MISSING_LABEL)


def rowwise_rule(constraint: Constraint, field: Field, cluster: Cluster) -> RowwiseRule:
    """Make the rule for trials of preemption, with one row changed. A row that the inclusion policies exclude changes no count."""
    counts_in_domain: BoolColumn = field.counting.codes != field.count
    counts = RowwiseCounts(cluster, constraint.counted, field.counting.codes, field.count + 1)
    least_elsewhere = _least_of_others(counts.before, field)
    recorded = np.zeros(field.count, np.bool_)
    recorded[field.recorded] = True

    def allows(rows: Rows) -> BoolColumn:
        codes = field.codes[rows]
        here = counts.before[codes] + np.where(counts_in_domain[rows], counts.change(rows), 0)
        skew = here + constraint.counts_itself
        if _enough(constraint, field):
            skew -= np.minimum(least_elsewhere[codes], np.where(recorded[codes], here, _UNLIMITED))
        allowed: BoolColumn = (skew <= constraint.max_skew) & (codes != MISSING)
        return allowed

    return RowwiseRule(field.codes, SKEWED, MISSING_LABEL, allows)


def _least_of_others(counts: NDArray[np.int64], field: Field) -> NDArray[np.int64]:
    """Return by code the lowest count of all other recorded domains; shape (field.count,)."""
    recorded = field.recorded
    if len(recorded) == 0:
        return np.full(field.count, _UNLIMITED)
    order = recorded[np.argsort(counts[recorded], kind="stable")]
    least = np.full(field.count, counts[order[0]])
    least[order[0]] = counts[order[1]] if len(order) > 1 else _UNLIMITED
    return least
