"""Pods counted per group: same namespace, labels, affinity and life stage. Spread and affinity read counts, not pods.

A plugin describes the pods it wants counted (`PodSelection`) and gets a `Tally`: a count per row that is kept up to date from then on, so
that a selector is matched once per distinct group, and a decision costs no more than one look at an array.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import Affinity
from placewright.api.pods import PairwiseKey, PodInfo
from placewright.api.selectors import Selector
from placewright.cluster.resources import grown

_EVERYTHING: Final = Selector(())
#: Rows of all tallies together, at 4 bytes a row; selections that nobody asked for lately are counted anew when they come back.
_MAX_TALLY_ROWS: Final = 16_000_000
#: Groups without pods are kept for a while: preemption takes the last pod of a group away and puts it back, again and again.
_MAX_EMPTY_GROUPS: Final = 1024


class AffinityCarrier(NamedTuple):
    """Pods that carry the same pod affinity in the same namespace: their terms mean the same to a newcomer."""

    namespace: str
    affinity: bytes


class PodSelection:
    """Which pods to count; a value that hashes once, so that it can be looked up in every cycle.

    Attributes:
        namespaces: where to look; None means everywhere.
        selector: what the labels must satisfy.
        terminating: whether pods that are being deleted count.
        carriers: only pods that carry one of these affinities; None means any pod.
    """

    __slots__ = ("_hash", "carriers", "namespaces", "selector", "terminating")

    def __init__(
        self,
        namespaces: frozenset[str] | None,
        selector: Selector = _EVERYTHING,
        *,
        terminating: bool = True,
        carriers: frozenset[AffinityCarrier] | None = None,
    ) -> None:
        self.namespaces = namespaces
        self.selector = selector
        self.terminating = terminating
        self.carriers = carriers
        self._hash = hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.namespaces, self.selector, self.terminating, self.carriers)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, PodSelection) and self._hash == other._hash and self._key() == other._key()

    def __repr__(self) -> str:
        return f"PodSelection{self._key()}"

    def selects(self, group: PairwiseKey, labels: Mapping[str, str]) -> bool:
        """True when the pods of this group, which have these labels, are to be counted."""
        if self.namespaces is not None and group.namespace not in self.namespaces:
            return False
        if group.terminating and not self.terminating:
            return False
        if self.carriers is not None and AffinityCarrier(group.namespace, group.affinity) not in self.carriers:
            return False
        return self.selector.matches(labels)


class Tally:
    """Pods per row that one selection picks.

    Attributes:
        counts: shape (rows,) int32, at least as long as was asked for. Read only.
        serial, version: equal pairs promise equal counts.
    """

    __slots__ = ("counts", "serial", "used", "version")

    def __init__(self, serial: int, size: int) -> None:
        self.counts: NDArray[np.int32] = np.zeros(size, np.int32)
        self.serial = serial
        self.version = 0
        self.used = 0

    def add(self, row: int, delta: int) -> None:
        """Count `delta` pods more on a row."""
        if row >= len(self.counts):
            self.reserve(row + 1)
        self.counts[row] += delta
        self.version += 1

    def reserve(self, size: int) -> None:
        """Make room for this many rows."""
        if size > len(self.counts):
            self.counts = grown(self.counts, max(size, 2 * len(self.counts)))


@dataclass(slots=True)
class _Group:
    """One group's pods by row, and the tallies that count them."""

    labels: Mapping[str, str]
    rows: dict[int, int] = field(default_factory=dict)
    tallies: list[Tally] = field(default_factory=list)


@dataclass(slots=True)
class _Carried:
    """An affinity that pods carry, and how many groups do."""

    affinity: Affinity
    groups: int = 0


class PairwiseCounts:
    """How many pods of each group stand on each row.

    Attributes:
        version: grows with every change of any count.
        carriers_version: grows when an affinity appears among the pods, or vanishes from them.
    """

    def __init__(self) -> None:
        self.version = 0
        self.carriers_version = 0
        self._by_namespace: dict[str, dict[PairwiseKey, _Group]] = {}
        self._empty: dict[PairwiseKey, None] = {}
        self._carried: dict[AffinityCarrier, _Carried] = {}
        self._tallies: dict[PodSelection, Tally] = {}
        self._tallies_at: dict[Hashable, dict[PodSelection, Tally]] = {}
        self._clock = 0

    # --- reading -----------------------------------------------------------------------------------------------------------

    def tally(self, selection: PodSelection, size: int) -> Tally:
        """The pods that a selection picks, counted per row; its `counts` have at least `size` rows."""
        tally = self._tallies.get(selection)
        if tally is None:
            tally = self._start(selection, size)
        elif len(tally.counts) < size:
            tally.reserve(size)
        self._clock = tally.used = self._clock + 1
        return tally

    @property
    def carriers(self) -> KeysView[AffinityCarrier]:
        """The affinities that pods carry (for a while also those that no pod carries any more); false when there is none."""
        return self._carried.keys()

    def affinity(self, carrier: AffinityCarrier) -> Affinity:
        """What this carrier's pods say; `KeyError` when no pod does."""
        return self._carried[carrier].affinity

    def rows(self, group: PairwiseKey) -> Mapping[int, int]:
        """Row to count for one group."""
        record = self._by_namespace.get(group.namespace, {}).get(group)
        return MappingProxyType(record.rows if record else {})

    def __iter__(self) -> Iterator[PairwiseKey]:
        """All groups that have pods."""
        return (group for groups in self._by_namespace.values() for group, record in groups.items() if record.rows)

    # --- writing -----------------------------------------------------------------------------------------------------------

    def add(self, pod: PodInfo, row: int, delta: int) -> None:
        """Count one pod more (`delta` 1) or less (-1) on a row."""
        self.version += 1
        group = pod.pairwise_key
        groups = self._by_namespace.get(group.namespace)
        record = groups.get(group) if groups is not None else None
        if record is None:
            record = self._open(pod)
        for tally in record.tallies:
            tally.add(row, delta)
        rows = record.rows
        if not rows:
            self._empty.pop(group, None)
        count = rows.get(row, 0) + delta
        if count:
            rows[row] = count
            return
        rows.pop(row, None)
        if not rows:
            self._empty[group] = None
            if len(self._empty) > _MAX_EMPTY_GROUPS:
                self._close_empty()

    def _open(self, pod: PodInfo) -> _Group:
        group = pod.pairwise_key
        record = _Group(dict(group.labels))
        for hook in _hooks_of_group(group):
            for selection, tally in self._tallies_at.get(hook, {}).items():
                if selection.selects(group, record.labels):
                    record.tallies.append(tally)
        self._by_namespace.setdefault(group.namespace, {})[group] = record
        if group.affinity and pod.pod.spec.affinity is not None:
            self._carry(AffinityCarrier(group.namespace, group.affinity), pod.pod.spec.affinity)
        return record

    def _carry(self, carrier: AffinityCarrier, affinity: Affinity) -> None:
        carried = self._carried.get(carrier)
        if carried is None:
            carried = self._carried[carrier] = _Carried(affinity)
            self.carriers_version += 1
        carried.groups += 1

    def _close_empty(self) -> None:
        for group in self._empty:
            groups = self._by_namespace[group.namespace]
            del groups[group]
            if not groups:
                del self._by_namespace[group.namespace]
            carried = self._carried.get(AffinityCarrier(group.namespace, group.affinity))
            if carried is not None:
                carried.groups -= 1
                if not carried.groups:
                    del self._carried[AffinityCarrier(group.namespace, group.affinity)]
                    self.carriers_version += 1
        self._empty.clear()

    # --- tallies -----------------------------------------------------------------------------------------------------------

    def _start(self, selection: PodSelection, size: int) -> Tally:
        if (len(self._tallies) + 1) * size > _MAX_TALLY_ROWS:
            self._stop_unused()
        tally = Tally(self._clock, size)
        for group, record in self._groups_in(selection.namespaces):
            if selection.selects(group, record.labels):
                record.tallies.append(tally)
                for row, count in record.rows.items():
                    tally.add(row, count)
        self._tallies[selection] = tally
        for hook in _hooks_of_selection(selection):
            self._tallies_at.setdefault(hook, {})[selection] = tally
        return tally

    def _groups_in(self, namespaces: frozenset[str] | None) -> Iterator[tuple[PairwiseKey, _Group]]:
        places: Iterable[str] = self._by_namespace if namespaces is None else namespaces
        return (pair for place in places for pair in self._by_namespace.get(place, {}).items())

    def _stop_unused(self) -> None:
        """Drop the half of the tallies that was not asked for the longest time."""
        by_age = sorted(self._tallies.items(), key=lambda pair: pair[1].used)
        stale = by_age[: len(by_age) // 2]
        for selection, _ in stale:
            del self._tallies[selection]
            for hook in _hooks_of_selection(selection):
                found = self._tallies_at[hook]
                del found[selection]
                if not found:
                    del self._tallies_at[hook]
        stopped = {id(tally) for _, tally in stale}
        for _, record in self._groups_in(None):
            record.tallies = [tally for tally in record.tallies if id(tally) not in stopped]


# A selection hangs on hooks of one sort, and every group that it selects comes past exactly one of them. So a new group is compared with
# the few selections that name one of its labels, not with all: members of a StatefulSet are each a group of their own.


def _hooks_of_selection(selection: PodSelection) -> Iterable[Hashable]:
    if selection.carriers is not None:
        return selection.carriers
    places: Iterable[str | None] = (None,) if selection.namespaces is None else selection.namespaces
    for expression in selection.selector.expressions:
        if expression.operator == "In" and len(expression.values) == 1:
            [value] = expression.values
            return [(place, (expression.key, value)) for place in places]
    return [(place, None) for place in places]


def _hooks_of_group(group: PairwiseKey) -> Iterator[Hashable]:
    yield AffinityCarrier(group.namespace, group.affinity)
    for place in (group.namespace, None):
        yield (place, None)
        for pair in group.labels:
            yield (place, pair)
