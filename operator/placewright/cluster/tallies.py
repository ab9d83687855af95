"""Tallies that are kept: made when a selection is first asked for, kept up to date from then on, and dropped when there are too many.

A plugin describes the pods it wants counted (`PodSelection`) and gets a `Tally`. So a selector is matched once per distinct group, and
what a decision costs does not grow with the pods that it does not count.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from placewright.cluster.pairwisegroups import PairwiseGroup, PairwiseGroups
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from placewright.cluster.selectorindex import SelectorIndex
from placewright.cluster.tally import Tally

#: All tallies together; of more, those that nobody asked for the longest time are counted anew when they come back.
_MAX_TALLY_BYTES: Final = 128 * 1024 * 1024


class _Charge(NamedTuple):
    """What a tally took when it had this version."""

    version: int
    nbytes: int


class Tallies:
    """Tallies by what they count, the one asked for last at the end.

    Invariant: a tally is among `tallies` of exactly those groups that its selection picks, and has the sum of their pods. It can be
    found by each such group: by what the group carries where the selection names carriers, by namespace and labels otherwise.
    """

    def __init__(self, groups: PairwiseGroups) -> None:
        self._groups = groups
        self._kept: OrderedDict[PodSelection, Tally] = OrderedDict()
        self._charged: dict[Tally, _Charge] = {}
        self._bytes = 0
        self._by_carrier: dict[AffinityCarrier, dict[PodSelection, None]] = {}
        self._by_label: SelectorIndex[PodSelection] = SelectorIndex()
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
        group.tallies = [self._kept[selection] for selection in met if selection.selects(key, group.labels)]

    def _start(self, selection: PodSelection, size: int) -> Tally:
        self._made += 1
        tally = Tally(self._made)
        for group in self._groups.selected(selection):
            group.tallies.append(tally)
            for row, count in group.rows.items():
                tally.add(row, count)
        self._kept[selection] = tally
        if selection.carriers is None:
            self._by_label.add(selection, selection.namespaces, selection.selector)
        else:
            for carrier in selection.carriers:
                self._by_carrier.setdefault(carrier, {})[selection] = None
        self._charged[tally] = _Charge(0, 0)
        self._charge(tally, size)
        return tally

    def _charge(self, tally: Tally, size: int) -> None:
        tally.fit(size)
        charge = _Charge(tally.version, tally.nbytes)
        self._bytes += charge.nbytes - self._charged[tally].nbytes
        self._charged[tally] = charge
        while self._bytes > _MAX_TALLY_BYTES and len(self._kept) > 1:
            self._stop(next(iter(self._kept)))

    def _stop(self, selection: PodSelection) -> None:
        tally = self._kept.pop(selection)
        self._bytes -= self._charged.pop(tally).nbytes
        for group in self._groups.selected(selection):
            group.tallies.remove(tally)
        if selection.carriers is None:
            self._by_label.discard(selection)
            return
        for carrier in selection.carriers:
            beside = self._by_carrier[carrier]
            del beside[selection]
            if not beside:
                del self._by_carrier[carrier]
