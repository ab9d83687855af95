"""Pods counted by row and by `PairwiseKey`: namespace, labels, affinity and whether they are being deleted.

Spread and affinity read counts and not pods. `pairwisegroups` finds the groups that a selection picks, and `tallies` keeps the
counts that plugins read; this module passes every pod that comes to a row or leaves it on to both.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from types import MappingProxyType

from placewright.api.pods import PairwiseKey, PodInfo
from placewright.cluster.pairwisegroups import CarriedTerms, PairwiseGroups
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
        """Return the count by row of the pods that a selection picks.

        Example:
            tally = cluster.pairwise_counts.tally(PodSelection(frozenset({"shop"}), selector), cluster.size)
            tally[row]                   # pods of namespace shop with matching labels, on one row
            tally.by_row(cluster.size)   # on every row

        Returns:
            A tally that follows the cluster from now on; the same object for an equal selection, as long as it is kept.
        """
        return self._tallies.of(selection, size)

    @property
    def carriers(self) -> KeysView[AffinityCarrier]:
        """The affinities that pods carry. For a while also affinities that no pod carries any more; empty when there is none."""
        return self._groups.carried.carriers

    @property
    def carriers_version(self) -> int:
        """Grows when an affinity appears among the pods or vanishes from them."""
        return self._groups.carried.changes

    @property
    def carried(self) -> CarriedTerms:
        """The terms of these affinities. Read only."""
        return self._groups.carried

    def rows(self, group: PairwiseKey) -> Mapping[int, int]:
        """Return the pods of one group by row.

        Returns:
            Number of pods by row, above 0; a view.
        """
        record = self._groups.get(group)
        return MappingProxyType(record.rows if record else {})

    def __iter__(self) -> Iterator[PairwiseKey]:
        """Iterate over the keys of all groups that have pods."""
        return (group.key for group in self._groups if group.rows)

    # --- writing -----------------------------------------------------------------------------------------------------------

    def add(self, pod: PodInfo, row: int, delta: int) -> None:
        """Count a pod onto a row or off it.

        Args:
            pod: counts under its `pairwise_key`.
            row: the pod's.
            delta: 1 to add the pod, -1 to remove it.
        """
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
            # The group is not dropped at once: a dry run returns its pod a moment later.
            self._groups.emptied(group)
