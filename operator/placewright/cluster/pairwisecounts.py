"""Pods counted per group: same namespace, labels, affinity and life stage. Spread and affinity read counts, not pods.

`pairwisegroups` has the groups and finds those that a selection picks, `tallies` keeps the counts that somebody reads; here both hear of
every pod that comes to a row or leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from types import MappingProxyType

from placewright.api.objects import Affinity
from placewright.api.pods import PairwiseKey, PodInfo
from placewright.cluster.journal import Log
from placewright.cluster.pairwisegroups import PairwiseGroups
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from placewright.cluster.tallies import Tallies
from placewright.cluster.tally import Tally


class PairwiseCounts:
    """How many pods of each group stand on each row.

    Attributes:
        version: grows with every change of any count.
    """

    def __init__(self) -> None:
        self.version = 0
        self._groups = PairwiseGroups()
        self._tallies = Tallies(self._groups)

    # --- reading -----------------------------------------------------------------------------------------------------------

    def tally(self, selection: PodSelection, size: int) -> Tally:
        """The pods that a selection picks, counted per row of a cluster of this size."""
        return self._tallies.of(selection, size)

    @property
    def carriers(self) -> KeysView[AffinityCarrier]:
        """The affinities that pods carry (for a while also those that no pod carries any more); false when there is none."""
        return self._groups.affinities.keys()

    @property
    def carriers_version(self) -> int:
        """Grows when an affinity appears among the pods, or vanishes from them."""
        return self._groups.carrier_changes.position

    @property
    def carrier_changes(self) -> Log[AffinityCarrier]:
        """The affinities that appeared or vanished, in order; to be read only."""
        return self._groups.carrier_changes

    def affinity(self, carrier: AffinityCarrier) -> Affinity:
        """What this carrier's pods say; `KeyError` when no pod does."""
        return self._groups.affinities[carrier]

    def rows(self, group: PairwiseKey) -> Mapping[int, int]:
        """Row to count for one group."""
        record = self._groups.get(group)
        return MappingProxyType(record.rows if record else {})

    def __iter__(self) -> Iterator[PairwiseKey]:
        """All groups that have pods."""
        return (group.key for group in self._groups if group.rows)

    # --- writing -----------------------------------------------------------------------------------------------------------

    def add(self, pod: PodInfo, row: int, delta: int) -> None:
        """Count one pod more (`delta` 1) or less (-1) on a row."""
        self.version += 1
        group = self._groups.get(pod.pairwise_key)
        if group is None:
            group = self._groups.open(pod)
            self._tallies.meet(group)
        for tally in group.tallies:
            tally.add(row, delta)
        rows = group.rows
        if not rows:
            self._groups.filled(group)
        count = rows.get(row, 0) + delta
        if count:
            rows[row] = count
            return
        rows.pop(row, None)
        if not rows:
            self._groups.emptied(group)
