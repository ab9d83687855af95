"""The tallies that are kept: made when a selection is first asked for, updated from then on, and dropped when there are too many.

A plugin describes the pods that it wants counted (`PodSelection`) and gets a `Tally`. So a selector is matched once for each
distinct group of pods. The cost of a decision does not grow with pods that it does not count.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from placewright.api.boundedcache import forgets_unasked
from placewright.api.counts import take_out
from placewright.cluster.pairwisegroups import PairwiseGroup, PairwiseGroups
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from placewright.cluster.selectorindex import SelectorIndex
from placewright.cluster.tally import Tally

#: Bytes of all tallies, at most. Beyond it, tallies that no plugin asked for the longest time are dropped, and counted anew when asked for.
_MAX_TALLY_BYTES: Final = 128 * 1024 * 1024
#: Tallies that count one group's pods, at most: each pod that comes or goes updates all of them. Ordinary workloads have a handful.
_MOST_OF_A_GROUP: Final = 256
#: Selections that name no value of a label, at most: each new group is compared with all of them.
_MOST_BROAD: Final = 1024
#: Copies of a selection: in the table, and in the index with a place for each of its values.
_INDEXED: Final = 2
#: Bytes of a selection that a tally's own estimate covers.
_USUAL_SELECTION: Final = 2048
#: Changes of a tally after which its bytes are estimated anew. Each adds an entry at most, so an estimate is short by a KB or so.
_UNCHARGED: Final = 16


class _Charge(NamedTuple):
    """The bytes that a tally was charged for.

    Attributes:
        version: the tally's version then.
        nbytes: bytes of the tally and its selection.
        selection: bytes of the selection alone.
    """

    version: int
    nbytes: int
    selection: int


class Tallies:
    """Tallies by selection, the one that was asked for last at the end.

    Invariant: a tally is among `tallies` of exactly the groups that its selection picks, and holds the sum of their pods. Each
    such group finds it: by carrier if the selection names carriers, otherwise by namespace and labels. No group has more
    than `_MOST_OF_A_GROUP` tallies, and at most `_MOST_BROAD` selections have to be compared with every group.

    Args:
        groups: all groups of pods.

    Attributes:
        nbytes: bytes of all tallies with their selections.
    """

    def __init__(self, groups: PairwiseGroups) -> None:
        self._groups = groups
        self._kept: OrderedDict[PodSelection, Tally] = OrderedDict()
        self._charged: dict[Tally, _Charge] = {}
        self.nbytes = 0
        self._by_carrier: dict[AffinityCarrier, dict[PodSelection, None]] = {}
        self._by_label: SelectorIndex[PodSelection] = SelectorIndex()
        self._selections: dict[Tally, PodSelection] = {}
        self._broad: dict[PodSelection, None] = {}
        self._made = 0
        #: Selections that were there at the last beat and were not asked for since.
        self._unasked: set[PodSelection] = set()
        forgets_unasked(self)

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, selection: PodSelection, size: int) -> Tally:
        """Return the tally of a selection; a new one counts once over the groups that it picks.

        Args:
            selection: which pods to count.
            size: rows of the cluster, which decides how a tally stores its counts.
        """
        tally = self._kept.get(selection)
        if tally is None:
            return self._start(selection, size)
        self._kept.move_to_end(selection)
        self._unasked.discard(selection)
        if tally.version - self._charged[tally].version >= _UNCHARGED:
            self._charge(tally, size)
        return tally

    def meet(self, group: PairwiseGroup) -> None:
        """Add a new group to the tallies whose selections pick it."""
        key = group.key
        met = [*self._by_carrier.get(AffinityCarrier(key.namespace, key.affinity), ()), *self._by_label.meeting(key.namespace, key.labels)]
        picking = [selection for selection in met if selection.selects(key, group.labels)]
        group.tallies = [self._kept[selection].weighing(selection.weight_of(key)) for selection in picking]

    def forget_unasked(self) -> None:
        """Drop the tallies that were not asked for since the last call."""
        for selection in list(self._unasked):
            self._stop(selection)
        self._unasked = set(self._kept)

    def _start(self, selection: PodSelection, size: int) -> Tally:
        self._made += 1
        tally = Tally(self._made)
        selected = self._groups.selected(selection)
        if selection.weights is None:
            tally.begin([group.rows for group in selected])
            for group in selected:
                group.tallies.append(tally)
        else:
            for group in selected:
                counted_in = tally.weighing(selection.weight_of(group.key))
                group.tallies.append(counted_in)
                for row, count in group.rows.items():
                    counted_in.add(row, count)
        self._kept[selection] = tally
        self._selections[tally] = selection
        if selection.carriers is None:
            self._by_label.add(selection, selection.namespaces, selection.selector)
            if self._by_label.is_broad(selection):
                self._broad[selection] = None
        else:
            for carrier in selection.carriers:
                self._by_carrier.setdefault(carrier, {})[selection] = None
        self._charged[tally] = _Charge(0, 0, max(0, _INDEXED * sys.getsizeof(selection) - _USUAL_SELECTION))
        self._charge(tally, size)
        self._make_room(selected)
        return tally

    def _make_room(self, joined: Iterable[PairwiseGroup]) -> None:
        """Drop the oldest tallies of groups that have too many, and the oldest of too many broad selections."""
        for oldest in {group.tallies[0].tally for group in joined if len(group.tallies) > _MOST_OF_A_GROUP}:
            self._stop(self._selections[oldest])
        while len(self._broad) > _MOST_BROAD:
            self._stop(next(iter(self._broad)))

    def _charge(self, tally: Tally, size: int) -> None:
        tally.fit(size)
        before = self._charged[tally]
        charge = _Charge(tally.version, tally.nbytes + before.selection, before.selection)
        self.nbytes += charge.nbytes - before.nbytes
        self._charged[tally] = charge
        # The last tally stays, however large it is: its caller reads it now.
        while self.nbytes > _MAX_TALLY_BYTES and len(self._kept) > 1:
            self._stop(next(iter(self._kept)))

    def _stop(self, selection: PodSelection) -> None:
        tally = self._kept.pop(selection)
        self._unasked.discard(selection)
        del self._selections[tally]
        self._broad.pop(selection, None)
        self.nbytes -= self._charged.pop(tally).nbytes
        # Matched once more: tallies are dropped rarely, and a list of groups for each would cost memory all the time.
        for group in self._groups.selected(selection):
            group.tallies.remove(tally.weighing(selection.weight_of(group.key)))
        if selection.carriers is None:
            self._by_label.discard(selection)
            return
        for carrier in selection.carriers:
            take_out(self._by_carrier, carrier, selection)
