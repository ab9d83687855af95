"""Rules of required limits: the domains that have room for one more pod, for all rows at once and for one changed row."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from placewright.cluster.cluster import Cluster
from placewright.framework.filters import RowwiseCounts
from placewright.framework.interface import BoolColumn, Rows
from placewright.framework.memory import NodeMemory
from placewright.framework.topology import (
    MISSING,
    Codes,
    DefaultVerdict,
    DomainRule,
    Domains,
    FixedRule,
    RowRule,
    domains,
    tally_of,
)
from placewright.plugins.domainlimit.limits import Limit

#: Labels whose domains are held in addition to the bounded memory of all plugins. Each takes 9 bytes a node.
_AT_HAND: Final = 4


class LimitedPlace(NamedTuple):
    """The domains of a label.

    Attributes:
        everywhere: whether every node has the label.
    """

    domains: Domains
    everywhere: bool


class LimitedPlaces:
    """Computes the domains of labels once until a node changes. It holds the last few: most profiles limit by one or two labels."""

    def __init__(self) -> None:
        self._memory = NodeMemory()
        self._last: dict[str, LimitedPlace] = {}
        self._cluster: Cluster | None = None
        self._position = -1

    def of(self, key: str, cluster: Cluster) -> LimitedPlace:
        """Return the domains of the node label `key`. An event of a node, or another cluster, drops the held ones."""
        now = cluster.node_journal.position
        if now != self._position or cluster is not self._cluster or len(self._last) > _AT_HAND:
            self._last, self._cluster, self._position = {}, cluster, now
        found = self._last.get(key)
        if found is None:
            place = domains(self._memory, cluster, key)
            found = self._last[key] = LimitedPlace(place, bool((place.labelled | ~cluster.present).all()))
        return found


def limit_rule(limit: Limit, place: LimitedPlace, cluster: Cluster) -> FixedRule | None:
    """Allow nodes that have the label, in domains with fewer pods than the limit; None if all nodes are allowed.

    A node without the label is in no domain. It may stand in a full rack, so the rule rejects it, as a spread constraint does. If domains
    are single nodes, the rule lists the full ones, which are few.
    """
    where, tally = place.domains, tally_of(cluster, limit.pods)
    if where.single:
        full = where.full_rows(tally, limit.most)
        if not len(full) and place.everywhere:
            return None
        return RowRule(where, DefaultVerdict.ALLOWED_WHERE_LABELLED, full, limit.denied, limit.missing)
    room: BoolColumn = where.pods(tally) < limit.most
    if place.everywhere and np.count_nonzero(room[MISSING + 1 :]) == len(room) - 1:
        return None
    room[MISSING] = False
    return DomainRule(where.codes, room, limit.denied, limit.missing)


class RowwiseLimit:
    """A required limit as a `topology.TopologyRule` for trials of preemption, with one row changed."""

    def __init__(self, limit: Limit, place: Domains, cluster: Cluster) -> None:
        self.codes: Codes = place.codes
        self.denied = limit.denied
        self.missing = limit.missing
        self._most = limit.most
        self._counts = RowwiseCounts(cluster, limit.pods, place.codes, place.distinct)

    def allows(self, rows: Rows) -> BoolColumn:
        """Allow rows that have the label and whose domain has room."""
        allowed: BoolColumn = (self._counts.around(rows) < self._most) & (self.codes[rows] != MISSING)
        return allowed
