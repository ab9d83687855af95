"""Tallies that are kept: made when a selection is first asked for, kept up to date from then on, and dropped when there are too many.

A plugin describes the pods it wants counted (`PodSelection`) and gets a `Tally`. So a selector is matched once per distinct group, and
what a decision costs does not grow with the pods that it does not count.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from placewright.cluster.pairwisegroups import PairwiseGroup, PairwiseGroups
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from placewright.cluster.selectorindex import SelectorIndex
from placewright.cluster.tally import Tally

#: All tallies together; of more, those that nobody asked for the longest time are counted anew when they come back.
_MAX_TALLY_BYTES: Final = 128 * 1024 * 1024
#: Tallies that count one group's pods, at most: each pod that comes or goes is added to all of its group's. Workloads have a handful.
_MOST_OF_A_GROUP: Final = 256
#: Selections that name no label's value, at most: each new group is compared with all of them.
_MOST_BROAD: Final = 1024
#: A selection is in the table and in the index, with a place for each of its values.
_INDEXED: Final = 2
#: Bytes of it that a tally counts as its own.
_USUAL_SELECTION: Final = 2048


class _Charge(NamedTuple):
    """What a tally took when it had this version, with the selection that it is kept under."""

    version: int
    nbytes: int
    selection: int


class Tallies:
    """Tallies by what they count, the one asked for last at the end.

    Invariant: a tally is among `tallies` of exactly those groups that its selection picks, and has the sum of their pods. It can be
    found by each such group: by what the group carries where the selection names carriers, by namespace and labels otherwise. No group has
    more than `_MOST_OF_A_GROUP`, and no more than `_MOST_BROAD` have to be compared with every group.
    """

    def __init__(self, groups: PairwiseGroups) -> None:
        self._groups = groups
        self._kept: OrderedDict[PodSelection, Tally] = OrderedDict()
        self._charged: dict[Tally, _Charge] = {}
        self._bytes = 0
        self._by_carrier: dict[AffinityCarrier, dict[PodSelection, None]] = {}
        self._by_label: SelectorIndex[PodSelection] = SelectorIndex()
        self._selections: dict[Tally, PodSelection] = {}
        self._broad: dict[PodSelection, None] = {}
        self._made = 0

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, selection: PodSelection, size: int) -> Tally:
        """The pods that a selection picks, of a cluster of so many rows."""
        tally = self._kept.get(selection)
        if tally is None:
            return self._start(selection, size)
        self._kept.move_to_end(selection)
        if self._charged[tally].version != tally.version:
            self._charge(tally, size)
        return tally

    def meet(self, group: PairwiseGroup) -> None:
        """Have a new group counted by the tallies whose selections pick it."""
        key = group.key
        met = [*self._by_carrier.get(AffinityCarrier(key.namespace, key.affinity), ()), *self._by_label.meeting(key.namespace, key.labels)]
        picking = [selection for selection in met if selection.selects(key, group.labels)]
        group.tallies = [self._kept[selection].weighing(selection.weight_of(key)) for selection in picking]

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
        """Stop the oldest tallies of groups that have too many now, and the oldest of too many broad ones."""
        for oldest in {group.tallies[0].tally for group in joined if len(group.tallies) > _MOST_OF_A_GROUP}:
            self._stop(self._selections[oldest])
        while len(self._broad) > _MOST_BROAD:
            self._stop(next(iter(self._broad)))

    def _charge(self, tally: Tally, size: int) -> None:
        tally.fit(size)
        before = self._charged[tally]
        charge = _Charge(tally.version, tally.nbytes + before.selection, before.selection)
        self._bytes += charge.nbytes - before.nbytes
        self._charged[tally] = charge
        while self._bytes > _MAX_TALLY_BYTES and len(self._kept) > 1:
            self._stop(next(iter(self._kept)))

    def _stop(self, selection: PodSelection) -> None:
        tally = self._kept.pop(selection)
        del self._selections[tally]
        self._broad.pop(selection, None)
        self._bytes -= self._charged.pop(tally).nbytes
        for group in self._groups.selected(selection):
            group.tallies.remove(tally.weighing(selection.weight_of(group.key)))
        if selection.carriers is None:
            self._by_label.discard(selection)
            return
        for carrier in selection.carriers:
            beside = self._by_carrier[carrier]
            del beside[selection]
            if not beside:
                del self._by_carrier[carrier]
