"""Topology domains: the nodes that share a label's value, and rules about which of them may hold a pod.

Spread and affinity both count pods per domain and then judge nodes by their domain. Here a domain is a label's code in the cluster's
column. Code 0 stands for nodes without the label. If each domain is a single node, as with hostnames, pods are counted per row: few rows
hold any. Otherwise they are counted per code: the sums are kept, and follow the pods that come and go.
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
#: No row holds any pod.
NO_PODS: Final = TakenRows(np.zeros(0, np.intp), np.zeros(0, np.int64))
#: Bytes of a sum beside its numbers, about.
_SUM_BYTES: Final = 256
#: Bytes of a full row: its entry in a dictionary, and in an array.
_FULL_BYTES: Final = 128


@dataclass(slots=True)
class _Sum:
    """Pods by code, and where the tally's changes stood then. The tally goes when the cluster has no room for it any more."""

    tally: ref[Tally]
    by_code: IntColumn
    position: int


#: Sums by the numbers of domains and tally. All labels of the process share one bound, because pods name labels as they please. A sum that
#: finds no room is added up anew when it is asked for again.
_SUMS: Final[BoundedCache[tuple[int, int], _Sum]] = BoundedCache(32 * 2**20)
_numbers: Final = itertools.count()


@dataclass(slots=True)
class _FullRows:
    """The rows that hold so many pods, and where the tally's changes stood then."""

    tally: ref[Tally]
    rows: dict[int, None]
    position: int
    found: Rows


#: Full rows by the numbers of domains and tally, and the number of pods; all labels share one bound, as with sums.
_FULL: Final[BoundedCache[tuple[int, int, int], _FullRows]] = BoundedCache(16 * 2**20)


class Domains:
    """A label's code by row, and how many codes there are. It holds as long as no node changes.

    Invariant of the sums that are kept: each is the sum over its tally's rows at its position.

    Args:
        codes: codes by row, `MISSING` without the label; shape (size,).
        distinct: number of codes, `MISSING` included.
        present: rows that hold a node, shape (size,); None if all rows do.
    """

    def __init__(self, codes: Codes, distinct: int, present: BoolColumn | None = None) -> None:
        self.codes = codes
        self.distinct = distinct
        #: True when all nodes have the label.
        self.complete = bool((self.labelled if present is None else self.labelled | ~present).all())
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
    def single(self) -> bool:
        """True when no two rows that have the label share a value."""
        return int(np.bincount(self.codes, minlength=2)[1:].max()) <= 1

    def pods(self, tally: Tally) -> IntColumn:
        """Count the pods of a tally by code.

        Returns:
            Counts, shape (distinct,), pods on nodes without the label under `MISSING`; not to be written.
        """
        known = _SUMS.get((self._number, tally.serial))
        if known is not None and known.tally() is tally:
            changes = tally.changes_since(known.position)
            if changes is not None:
                for row, delta in changes:
                    known.by_code[self.codes[row]] += delta
                known.position += len(changes)
                return known.by_code
        return self._add_up(tally)

    def full_rows(self, tally: Tally, most: int) -> Rows:
        """Find the rows that have the label and hold so many of a tally's pods, or more. Asked again, it looks at the rows that changed.

        Args:
            tally: the tally of a selection.
            most: number of pods, at least 1.

        Returns:
            The rows, in no order; not to be written.
        """
        known = _FULL.get((self._number, tally.serial, most))
        changes = tally.changes_since(known.position) if known is not None and known.tally() is tally else None
        if known is None or changes is None:
            rows, counts = self.rows_with(tally)
            found: Rows = rows[counts >= most]
            return self._keep_full(most, _FullRows(ref(tally), dict.fromkeys(found.tolist()), tally.follow(), found), tally)
        known.position += len(changes)
        full, turned = known.rows, False
        for row, _ in changes:
            is_full = tally[row] >= most
            if is_full != (row in full) and self.labelled[row]:
                turned = True
                if is_full:
                    full[row] = None
                else:
                    del full[row]
        if turned:
            known.found = np.fromiter(full, np.intp, len(full))
            self._keep_full(most, known, tally)
        return known.found

    def _keep_full(self, most: int, full: _FullRows, tally: Tally) -> Rows:
        _FULL.put((self._number, tally.serial, most), full, _SUM_BYTES + _FULL_BYTES * len(full.rows))
        return full.found

    def rows_with(self, tally: Tally) -> TakenRows:
        """Find the rows that hold any of a tally's pods and have the label."""
        found = tally.taken()
        if self.complete:
            return found
        there = self.labelled[found.rows]
        return TakenRows(found.rows[there], found.counts[there])

    def add_by_row(self, points: IntColumn, weight: int, tally: Tally) -> bool:
        """Add a weight for each of a tally's pods on rows with the label.

        Args:
            points: shape (size,); changed in place.
            weight: weight of each pod.
            tally: the tally of a selection.
        """
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
    """Return the domains of a label."""
    return memory.recall(cluster, key, lambda: _domains(cluster, key))


def _domains(cluster: Cluster, key: str) -> Domains:
    column = cluster.label(key)
    return Domains(column.codes(np.arange(cluster.size)).astype(np.intp), len(column.values), cluster.present)


def tally_of(cluster: Cluster, selection: PodSelection) -> Tally:
    """Return the count of the pods that a selection picks."""
    return cluster.pairwise_counts.tally(selection, cluster.size)


def counts_by_row(cluster: Cluster, selection: PodSelection) -> NDArray[np.int32]:
    """Return the pods that a selection picks, by row.

    Returns:
        Counts, shape (size,); not to be written.
    """
    return tally_of(cluster, selection).by_row(cluster.size)


# --- rules -----------------------------------------------------------------------------------------------------------------------


class TopologyRule(Protocol):
    """The rows to which one term or constraint lets a pod go."""

    @property
    def codes(self) -> Codes:
        """The label's code by row, shape (size,)."""

    @property
    def denied(self) -> Status:
        """The verdict on nodes whose domain is not allowed."""

    @property
    def missing(self) -> Status:
        """The verdict on nodes without the label, if that is not allowed."""

    def allows(self, rows: Rows) -> BoolColumn:
        """Judge rows.

        Args:
            rows: shape (k,).

        Returns:
            True if the pod may go; shape (k,).
        """


class FixedRule(TopologyRule, Protocol):
    """A rule that was worked out for all rows."""

    @property
    def fingerprint(self) -> Hashable:
        """Equal for rules over the same label that allow the same rows."""

    @property
    def allows_all(self) -> bool:
        """True only if no row is denied."""


@dataclass(frozen=True, slots=True)
class DomainRule:
    """Implements `FixedRule` by domain; `allowed` is by code."""

    codes: Codes
    allowed: BoolColumn
    denied: Status
    missing: Status

    def allows(self, rows: Rows) -> BoolColumn:
        """Return True for rows whose domain the rule allows."""
        return self.allowed[self.codes[rows]]

    @property
    def fingerprint(self) -> Hashable:
        """Implements `FixedRule.fingerprint`."""
        return self.allowed.tobytes()

    @property
    def allows_all(self) -> bool:
        """Implements `FixedRule.allows_all`."""
        return bool(self.allowed.all())


class DefaultVerdict(enum.Enum):
    """The verdict of a rule on rows that are no exception."""

    ALLOWED = enum.auto()
    ALLOWED_WHERE_LABELLED = enum.auto()
    DENIED = enum.auto()


@dataclass(frozen=True, slots=True)
class RowRule:
    """Implements `FixedRule` for labels whose domains are single rows, with the same verdict on all rows but a few.

    Attributes:
        exceptions: rows with the opposite verdict; all of them have the label.
    """

    place: Domains
    usually: DefaultVerdict
    exceptions: Rows
    denied: Status
    missing: Status

    @property
    def codes(self) -> Codes:
        """Implements `TopologyRule.codes`."""
        return self.place.codes

    def allows(self, rows: Rows) -> BoolColumn:
        """Return True for rows whose domain the rule allows."""
        if self.usually is DefaultVerdict.ALLOWED_WHERE_LABELLED:
            column = self.place.labelled.copy()
        else:
            column = np.full(len(self.codes), self.usually is DefaultVerdict.ALLOWED)
        column[self.exceptions] = self.usually is DefaultVerdict.DENIED
        return column[rows]

    @property
    def fingerprint(self) -> Hashable:
        """Implements `FixedRule.fingerprint`."""
        return (self.usually, self.exceptions.tobytes())

    @property
    def allows_all(self) -> bool:
        """Implements `FixedRule.allows_all`."""
        return self.usually is DefaultVerdict.ALLOWED and not len(self.exceptions)


def obey(rules: Sequence[TopologyRule], rows: Rows) -> BoolColumn:
    """Find the rows that all rules allow.

    Args:
        rules: any number.
        rows: shape (k,).
    """
    passes = np.ones(len(rows), np.bool_)
    for rule in rules:
        passes &= rule.allows(rows)
    return passes


def first_broken(rules: Sequence[TopologyRule], rows: Rows) -> list[Rejection]:
    """Group rows by the verdict of the first rule that each breaks.

    Args:
        rules: the rules, in order.
        rows: each breaks a rule.
    """
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
    """Return a value that is equal for rules that allow the same rows."""
    return (cluster.node_journal.position, tuple(keys), tuple([rule.fingerprint for rule in rules]))
