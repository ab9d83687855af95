"""The domains of a pod's constraints, and the nodes that count in them. They depend on nodes and the pod, not on other pods.

The score of a soft constraint counts matching pods in the domain, weighed by the number of domains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.bytecount import short_key
from placewright.api.pods import PodInfo
from placewright.api.tolerations import TolerationSet
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.framework.memory import NodeMemory
from placewright.framework.topology import MISSING, NO_PODS, Codes, Domains, domains, tally_of
from placewright.plugins.nodeaffinity import demand_of
from placewright.plugins.podtopologyspread.args import HOSTNAME
from placewright.plugins.podtopologyspread.constraints import Constraint
from placewright.plugins.shared.lookups import at

NO_ROW: Final = -1


class Field:
    """The domains of one constraint.

    Attributes:
        place: domains with all rows.
        counting: domains with the rows that count; all other rows share one more domain, the last.
        recorded: codes that at least one counting row has.
        same_as_missing: code of the label value "" if it is one domain with the rows that lack the label, else None.
    """

    def __init__(self, cluster: Cluster, key: str, place: Domains, counts: BoolColumn, require_all: bool) -> None:
        """Lay out domains. `counts` has the rows that count, shape (size,). `require_all` tells a missing label from the value ""."""
        # kube-scheduler reads a missing label as "" if it does not require all labels.
        same_as_missing = None if require_all else cluster.label(key).code("")
        merged = place.codes if same_as_missing is None else np.where(place.codes == same_as_missing, MISSING, place.codes)
        self.place, self.codes, self.count = place, place.codes, place.distinct
        self.counting = Domains(np.where(counts, merged, place.distinct), place.distinct + 1)
        self.recorded: Codes = np.unique(merged[counts])
        self.same_as_missing = same_as_missing
        present = np.flatnonzero(cluster.present & place.labelled if require_all else cluster.present)
        self._expected, first = np.unique(place.codes[present], return_index=True)
        self._witnesses: Rows = present[first]

    def __sizeof__(self) -> int:
        """Include its columns; `place` is kept separately."""
        own = self.recorded.nbytes + self._expected.nbytes + self._witnesses.nbytes
        return object.__sizeof__(self) + self.counting.__sizeof__() + own

    def distinct_among(self, rows: Rows) -> int:
        """Count the domains of these rows, which ascend.

        One row of each domain is kept. If the rows include all of them, the others are not read.
        """
        if not len(rows):
            return 0
        witnesses = self._witnesses
        places = np.minimum(np.searchsorted(rows, witnesses), len(rows) - 1)
        if (rows[places] == witnesses).all():
            seen = self._expected
        else:
            by_code = np.full(self.count, NO_ROW)
            by_code[at(self.codes, rows)] = rows
            seen = np.flatnonzero(by_code != NO_ROW)
            found = by_code[self._expected]
            self._witnesses = np.where(found != NO_ROW, found, witnesses)
        twice = self.same_as_missing is not None and MISSING in seen and self.same_as_missing in seen
        return len(seen) - bool(twice)


@dataclass(frozen=True, slots=True)
class Layout:
    """The domains of all constraints together.

    Attributes:
        complete: rows that have every label, shape (size,); None if every node has.
    """

    fields: tuple[Field, ...]
    complete: BoolColumn | None


def placement_wishes(pod: PodInfo) -> bytes:
    """Encode the part of the pod that decides whether a node counts. The result is a key: text or a digest."""
    spec = pod.pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if not (spec.node_selector or affinity or spec.tolerations):
        return b""
    return short_key(msgspec.json.encode((spec.node_selector, affinity, spec.tolerations)))


class Layouts:
    """Layouts, computed once and kept while no node changes."""

    def __init__(self) -> None:
        self._memory = NodeMemory()

    def of(self, constraints: Sequence[Constraint], require_all: bool, pod: PodInfo, wishes: bytes, cluster: Cluster) -> Layout:
        """Return the domains of each constraint, and the rows that have all labels, None for all rows.

        With `require_all`, nodes that lack any of the labels count nowhere. Pods with equal `wishes` (`placement_wishes`) share a layout.
        """
        policies = tuple([(c.key, c.honor_affinity, c.honor_taints) for c in constraints])
        return self._memory.recall(
            cluster,
            (policies, require_all, wishes),
            lambda: _lay_out(self._memory, constraints, require_all, pod, cluster),
        )


def _lay_out(memory: NodeMemory, constraints: Sequence[Constraint], require_all: bool, pod: PodInfo, cluster: Cluster) -> Layout:
    places = [domains(memory, cluster, c.key) for c in constraints]
    complete = cluster.present.copy()
    for place in places:
        complete &= place.codes != MISSING
    counting = _inclusion(pod, cluster, complete if require_all else cluster.present)
    fields = [
        Field(cluster, c.key, place, counting(c.honor_affinity, c.honor_taints), require_all)
        for c, place in zip(constraints, places, strict=True)
    ]
    return Layout(tuple(fields), None if all(place.complete for place in places) else complete)


def _inclusion(pod: PodInfo, cluster: Cluster, base: BoolColumn) -> Callable[[bool, bool], BoolColumn]:
    """Return a function of a constraint's two inclusion policies, which returns the rows that count; shape (size,), not to be written.

    `base` has the rows that count if no policy excludes them. A pod's node affinity is evaluated once for all its constraints.
    """

    @cache
    def counting(honor_affinity: bool, honor_taints: bool) -> BoolColumn:
        if honor_taints:
            tolerations = TolerationSet(pod.pod.spec.tolerations or ())
            return counting(honor_affinity, False) & cluster.taints.where(cluster.all_rows, tolerations.tolerates_all)
        return base & demand_of(pod).column(cluster, cluster.all_rows) if honor_affinity else base

    return counting


#: Raw score of nodes that lack a required label; normalised to 0.
IGNORED: Final = -1

_Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class DomainPreference:
    """One constraint's part of the score, by domain: `by_code`."""

    field: Field
    by_code: _Floats

    def of(self, rows: Rows) -> _Floats:
        """Return the part of these rows; shape (len(rows),)."""
        return self.by_code[self.field.codes[rows]]


@dataclass(frozen=True, slots=True)
class HostPreference:
    """One constraint's part of the score by host: `usual`, or `points` on the few `rows`; 0 without the label."""

    field: Field
    usual: float
    rows: Rows
    points: _Floats

    def of(self, rows: Rows) -> _Floats:
        """Return the part of these rows; shape (len(rows),)."""
        by_row = np.full(len(self.field.codes), self.usual)
        by_row[self.rows] = self.points
        if not self.field.place.complete:
            by_row[self.field.codes == MISSING] = 0.0
        return by_row[rows]


Preference = DomainPreference | HostPreference


def preference(constraint: Constraint, field: Field, scored: Rows, cluster: Cluster) -> Preference:
    """Compute one soft constraint's part of the score, by domain; for `kubernetes.io/hostname` by row.

    `scored` has the feasible rows that are not ignored. Their domains decide the weight, ln(domains + 2).
    """
    slack = float(constraint.max_skew - 1)
    tally = None if constraint.counted is None else tally_of(cluster, constraint.counted)
    if constraint.key == HOSTNAME:
        rows, counts = NO_PODS if tally is None else tally.taken()  # inclusion policies do not apply to a host's own pods
        points: _Floats = counts * math.log(len(scored) + 2) + slack
        return HostPreference(field, slack, rows, points)
    if tally is None:
        by_code = np.full(field.count, slack)
    else:
        by_code = field.counting.pods(tally)[: field.count] * math.log(field.distinct_among(scored) + 2) + slack
    if field.same_as_missing is not None:
        by_code[field.same_as_missing] = by_code[MISSING]
    by_code[MISSING] = 0.0
    return DomainPreference(field, by_code)


class Preferences:
    """All soft constraints of a pod.

    Attributes:
        complete: rows that are not ignored, shape (size,); None if no row is ignored.
    """

    def __init__(self, parts: Sequence[Preference], complete: BoolColumn | None) -> None:
        self._parts = parts
        self.complete = complete

    def of(self, rows: Rows) -> IntColumn:
        """Return the raw score of these rows, which ascend; shape (len(rows),)."""
        raw = self._raw(rows)
        if self.complete is not None:
            raw[~self.complete[rows]] = IGNORED
        return raw

    def _raw(self, rows: Rows) -> IntColumn:
        match self._parts:
            case [DomainPreference() as domain]:
                return _rounded(domain.by_code)[at(domain.field.codes, rows)]
            case [DomainPreference() as domain, HostPreference() as host] | [HostPreference() as host, DomainPreference() as domain] if (
                host.field.place.complete
            ):
                return _together(domain, host, rows)
        total = self._parts[0].of(rows)
        for part in self._parts[1:]:
            total = total + part.of(rows)
        return _rounded(total)


def _together(domain: DomainPreference, host: HostPreference, rows: Rows) -> IntColumn:
    """Sum up by domain, then by row for the few rows that hold pods; the floats add up to the same in either order."""
    codes = domain.field.codes
    raw = _rounded(domain.by_code + host.usual)[codes]
    raw[host.rows] = _rounded(domain.by_code[codes[host.rows]] + host.points)
    return at(raw, rows)


def _rounded(score: _Floats) -> IntColumn:
    """Round as Go does: halves up, where numpy rounds to even."""
    rounded: IntColumn = np.floor(score + 0.5).astype(np.int64)
    return rounded
