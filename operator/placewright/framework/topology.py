"""Topology domains: the nodes that share a label's value, and rules about which of them may hold a pod.

Spread and affinity both count pods per domain and then judge nodes by their domain. Here a domain is a label's code in the cluster's
column. Code 0 stands for nodes without the label. Where a domain is a single node, as with its hostname, pods are counted per row, of
which few hold any; otherwise per code, and the sums are kept and follow the pods that come and go.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from placewright.api.boundedcache import BoundedCache
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.cluster.tally import TakenRows, Tally
from placewright.framework.interface import BoolColumn, IntColumn, Rejection, Rows
from placewright.framework.memory import NodeMemory
from placewright.framework.status import Status

#: Codes by row, shape (size,); intp, because numpy indexes fastest with it.
Codes = NDArray[np.intp]
#: Code of rows that lack the label.
MISSING: Final = 0
#: No row has any.
NO_PODS: Final = TakenRows(np.zeros(0, np.intp), np.zeros(0, np.int64))
#: What a sum takes beside its numbers, about.
_SUM_BYTES: Final = 256


@dataclass(slots=True)
class _Sum:
    """Pods by code, and where the tally's changes stood then. The tally goes when the cluster has no room for it any more."""

    tally: ref[Tally]
    by_code: IntColumn
    position: int


#: By the numbers of domains and tally: sums of all labels and layouts of the process together, as pods name both as they please. Those that
#: find no room are added up anew when they are asked for again.
_SUMS: Final[BoundedCache[tuple[int, int], _Sum]] = BoundedCache(32 * 2**20)
_numbers: Final = itertools.count()


class Domains:
    """A label's code by row, and how many codes there are. Holds as long as no node changes.

    Invariant of the sums that are kept: each is what adding up its tally's rows gave at its position.
    """

    def __init__(self, codes: Codes, distinct: int) -> None:
        self.codes = codes
        self.distinct = distinct
        self._number = next(_numbers)

    def __sizeof__(self) -> int:
        """With its columns, and without the sums, which are counted where they are kept."""
        return object.__sizeof__(self) + self.codes.nbytes + len(self.codes)

    @cached_property
    def labelled(self) -> BoolColumn:
        """Rows that have the label; shape (size,), not to be written."""
        has_label: BoolColumn = self.codes != MISSING
        return has_label

    @cached_property
    def complete(self) -> bool:
        """True when all rows have the label."""
        return bool(self.labelled.all())

    @cached_property
    def single(self) -> bool:
        """True when no two rows that have the label share a value."""
        return int(np.bincount(self.codes, minlength=2)[1:].max()) <= 1

    def pods(self, tally: Tally) -> IntColumn:
        """The tally's pods by code, those on nodes without the label under `MISSING`; shape (distinct,), not to be written."""
        known = _SUMS.get((self._number, tally.serial))
        if known is not None and known.tally() is tally:
            changes = tally.changes_since(known.position)
            if changes is not None:
                for row, delta in changes:
                    known.by_code[self.codes[row]] += delta
                known.position += len(changes)
                return known.by_code
        return self._add_up(tally)

    def rows_with(self, tally: Tally) -> TakenRows:
        """The rows that hold any of the tally's pods and have the label."""
        found = tally.taken()
        if self.complete:
            return found
        there = self.labelled[found.rows]
        return TakenRows(found.rows[there], found.counts[there])

    def add_by_row(self, points: IntColumn, weight: int, tally: Tally) -> bool:
        """Add a weight for each of the tally's pods on rows with the label, to `points` of shape (size,); False where there are none."""
        if self.complete:
            return tally.add_to(points, weight)
        rows, counts = self.rows_with(tally)
        points[rows] += weight * counts
        return len(rows) > 0

    def _add_up(self, tally: Tally) -> IntColumn:
        rows, counts = tally.taken()
        by_code = np.bincount(self.codes[rows], weights=counts, minlength=self.distinct).astype(np.int64)
        _SUMS.put((self._number, tally.serial), _Sum(ref(tally), by_code, tally.follow()), _SUM_BYTES + by_code.nbytes)
        return by_code


def domains(memory: NodeMemory, cluster: Cluster, key: str) -> Domains:
    """The domains of a label."""
    return memory.recall(cluster, key, lambda: _domains(cluster, key))


def _domains(cluster: Cluster, key: str) -> Domains:
    column = cluster.label(key)
    return Domains(column.codes(np.arange(cluster.size)).astype(np.intp), len(column.values))


def tally_of(cluster: Cluster, selection: PodSelection) -> Tally:
    """The pods that the selection picks, counted."""
    return cluster.pairwise_counts.tally(selection, cluster.size)


def counts_by_row(cluster: Cluster, selection: PodSelection) -> NDArray[np.int32]:
    """Pods that the selection picks, by row; shape (size,)."""
    return tally_of(cluster, selection).by_row(cluster.size)


# --- rules -----------------------------------------------------------------------------------------------------------------------


class TopologyRule(Protocol):
    """Where one term or constraint lets a pod go."""

    @property
    def codes(self) -> Codes:
        """The label's code by row, shape (size,)."""

    @property
    def denied(self) -> Status:
        """The verdict on nodes whose domain is not allowed."""

    @property
    def missing(self) -> Status:
        """The verdict on nodes without the label, where that is not allowed."""

    def allows(self, rows: Rows) -> BoolColumn:
        """True where the pod may go; shape (len(rows),)."""


class FixedRule(TopologyRule, Protocol):
    """A rule that was worked out for all rows."""

    @property
    def fingerprint(self) -> Hashable:
        """Equal for rules over the same label that allow the same rows."""

    @property
    def allows_all(self) -> bool:
        """True only where no row is denied."""


@dataclass(frozen=True, slots=True)
class DomainRule:
    """Implements `FixedRule` by domain; `allowed` is by code."""

    codes: Codes
    allowed: BoolColumn
    denied: Status
    missing: Status

    def allows(self, rows: Rows) -> BoolColumn:
        """`TopologyRule.allows`."""
        return self.allowed[self.codes[rows]]

    @property
    def fingerprint(self) -> Hashable:
        """`FixedRule.fingerprint`."""
        return self.allowed.tobytes()

    @property
    def allows_all(self) -> bool:
        """`FixedRule.allows_all`."""
        return bool(self.allowed.all())


class Usually(enum.Enum):
    """What a rule says of rows that are no exception."""

    ALLOWED = enum.auto()
    ALLOWED_WHERE_LABELLED = enum.auto()
    DENIED = enum.auto()


@dataclass(frozen=True, slots=True)
class RowRule:
    """Implements `FixedRule` for labels whose domains are single rows: says the same of all rows but a few.

    Attributes:
        exceptions: rows of which the opposite holds; all of them have the label.
    """

    place: Domains
    usually: Usually
    exceptions: Rows
    denied: Status
    missing: Status

    @property
    def codes(self) -> Codes:
        """`TopologyRule.codes`."""
        return self.place.codes

    def allows(self, rows: Rows) -> BoolColumn:
        """`TopologyRule.allows`."""
        if self.usually is Usually.ALLOWED_WHERE_LABELLED:
            column = self.place.labelled.copy()
        else:
            column = np.full(len(self.codes), self.usually is Usually.ALLOWED)
        column[self.exceptions] = self.usually is Usually.DENIED
        return column[rows]

    @property
    def fingerprint(self) -> Hashable:
        """`FixedRule.fingerprint`."""
        return (self.usually, self.exceptions.tobytes())

    @property
    def allows_all(self) -> bool:
        """`FixedRule.allows_all`."""
        return self.usually is Usually.ALLOWED and not len(self.exceptions)


def obey(rules: Sequence[TopologyRule], rows: Rows) -> BoolColumn:
    """True for each row that all rules allow; shape (len(rows),)."""
    passes = np.ones(len(rows), np.bool_)
    for rule in rules:
        passes &= rule.allows(rows)
    return passes


def first_broken(rules: Sequence[TopologyRule], rows: Rows) -> list[Rejection]:
    """Rows grouped by the verdict of the first rule that each breaks."""
    groups: dict[Status, list[Rows]] = {}
    for rule in rules:
        broken = ~rule.allows(rows)
        missing = broken & (rule.codes[rows] == MISSING)
        for verdict, where in ((rule.missing, missing), (rule.denied, broken & ~missing)):
            if where.any():
                groups.setdefault(verdict, []).append(rows[where])
        rows = rows[~broken]
    return [Rejection(verdict, np.concatenate(parts)) for verdict, parts in groups.items()]


def fingerprint(rules: Sequence[FixedRule], keys: Sequence[str], cluster: Cluster) -> Hashable:
    """Equal for rules that allow the same rows. `keys` are the rules' labels."""
    return (cluster.node_journal.position, tuple(keys), tuple([rule.fingerprint for rule in rules]))
