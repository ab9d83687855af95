"""Rules of required limits: the domains that have room for one more pod; for all rows at once, and for one changed row."""

from __future__ import annotations

from placewright.cluster.cluster import Cluster
from placewright.framework.filters import RowwiseCounts
from placewright.framework.interface import BoolColumn, Rows
from placewright.framework.topology import MISSING, Codes, DomainRule, Domains, FixedRule, RowRule, Usually, tally_of
from placewright.plugins.domainlimit.limits import Limit


def limit_rule(limit: Limit, place: Domains, cluster: Cluster) -> FixedRule:
    """Allow nodes that have the label, in domains with fewer pods than the limit.

    A node without the label is in no domain. It may stand in a full rack, so it is left out, as with a spread constraint.

    Args:
        limit: a required one.
        place: the domains of its label.
        cluster: as it stands.

    Returns:
        A rule for all rows. Where domains are single nodes it lists the full ones, which are few.
    """
    tally = tally_of(cluster, limit.pods)
    if place.single:
        rows, counts = place.rows_with(tally)
        return RowRule(place, Usually.ALLOWED_WHERE_LABELLED, rows[counts >= limit.most], limit.denied, limit.missing)
    room: BoolColumn = place.pods(tally) < limit.most
    room[MISSING] = False
    return DomainRule(place.codes, room, limit.denied, limit.missing)


class RowwiseLimit:
    """Implements `topology.TopologyRule` for trials of preemption, with one row changed."""

    def __init__(self, limit: Limit, place: Domains, cluster: Cluster) -> None:
        self.codes: Codes = place.codes
        self.denied = limit.denied
        self.missing = limit.missing
        self._most = limit.most
        self._counts = RowwiseCounts(cluster, limit.pods, place.codes, place.distinct)

    def allows(self, rows: Rows) -> BoolColumn:
        """True where the row has the label and its domain has room."""
        allowed: BoolColumn = (self._counts.around(rows) < self._most) & (self.codes[rows] != MISSING)
        return allowed
