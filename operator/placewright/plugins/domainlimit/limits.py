"""Limits of a pod, compiled: the limits of the profile that pick it, and its own.

They are compiled once for all pods with equal values of the labels that limits read.

Effects of limits on nodes: rules and remedies of required limits, and scores of preferred ones.

Rules say which domains have room for one more pod, for all rows at once and for one changed row. Scores say by how many pods a node's
domains would exceed the limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.pods import NO_LABELS, PairwiseKey, PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework.filters import RowwiseCounts, RowwiseRule
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.framework.memory import Memory
from placewright.framework.remedies import MOST_PODS, Remedy, RemedyKind, keys, standing_pods
from placewright.framework.status import Status, unresolvable, unschedulable
from placewright.framework.topology import MISSING, DefaultVerdict, DomainRule, Domains, FixedRule, RowRule, tally_of
from placewright.plugins.domainlimit.args import LONGEST_TEXT, PREFERRED, DomainLimitError, ProfileLimit, StatedLimit, read_limits
from placewright.plugins.shared.labelkeys import completed, keys_read
from placewright.plugins.shared.lookups import at

#: Most annotations, and most compiled limits, that are kept. Each takes about 1.5 KB, and the pods of a Deployment share one.
_MAX_KEPT: Final = 16_384


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit, for one pod.

    Attributes:
        key: the node label whose values are the domains.
        most: most pods in a domain, the pod itself included.
        pods: the pods that count. Pods that are being deleted count until they are gone.
        denied, missing: verdicts on nodes of full domains, and on nodes without the label.
    """

    key: str
    most: int
    pods: PodSelection
    denied: Status
    missing: Status

    def counts(self, pod: PodInfo | None) -> bool:
        """Return whether the limit counts a pod; False for None."""
        return pod is not None and self.pods.selects(pod.pairwise_key, pod.labels)


@dataclass(frozen=True, slots=True)
class PodLimits:
    """All limits of one pod.

    Attributes:
        problem: one line about an invalid annotation; then there are no limits, and the pod cannot be placed.
    """

    required: tuple[Limit, ...] = ()
    preferred: tuple[Limit, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Stated:
    """The limits of one annotation.

    Attributes:
        keys: pod labels that these limits and the profile's read, each once.
    """

    limits: tuple[StatedLimit, ...]
    keys: tuple[str, ...]
    problem: str = ""


NO_LIMITS: Final = PodLimits()


class LimitsOfPods:
    """Compiles the limits of pods, and keeps them."""

    def __init__(self, limits: Sequence[ProfileLimit]) -> None:
        """Start with the limits of the profile."""
        self._profile = tuple(limits)
        self._none_stated = _Stated((), _keys(limits))
        self._stated = Memory(_MAX_KEPT)
        self._known = Memory(_MAX_KEPT)
        #: Limits of the last pod, because each step of a decision asks for them.
        self._asked: tuple[PairwiseKey | None, str | None, PodLimits] = (None, None, NO_LIMITS)

    def of(self, pod: PodInfo) -> PodLimits:
        """Return the pod's limits; most pods have none."""
        annotations = pod.pod.metadata.annotations
        text = annotations.get(DOMAIN_LIMITS) if annotations else None
        if text is None and not self._profile:
            return NO_LIMITS
        key, known, limits = self._asked
        if key is not pod.pairwise_key or known != text:
            limits = self._work_out(text, pod)
            self._asked = (pod.pairwise_key, text, limits)
        return limits

    def _work_out(self, text: str | None, pod: PodInfo) -> PodLimits:
        if text is None:
            stated = self._none_stated
        elif len(text) > LONGEST_TEXT:  # not kept: a tenant decides how long it is
            return PodLimits(problem=self._read(text).problem)
        else:
            stated = self._stated.recall(text, lambda: self._read(text))
        key = (text, pod.namespace, *map(pod.labels.get, stated.keys))
        return self._known.recall(key, lambda: self._compile(stated, pod))

    def _read(self, text: str) -> _Stated:
        try:
            limits = read_limits(text)
        except DomainLimitError as problem:
            return _Stated((), self._none_stated.keys, str(problem))
        return _Stated(limits, _keys((*self._profile, *limits)))

    def _compile(self, stated: _Stated, pod: PodInfo) -> PodLimits:
        if stated.problem:
            return PodLimits(problem=stated.problem)
        own = frozenset((pod.namespace,))
        required: list[Limit] = []
        preferred: list[Limit] = []
        for limit in self._profile:
            compiled = _compile(limit, frozenset(limit.namespaces) or own, pod)
            if compiled.counts(pod):
                (preferred if limit.mode == PREFERRED else required).append(compiled)
        for i, each in enumerate(stated.limits):
            compiled = _compile(each, own, pod)
            if not compiled.counts(pod):
                return PodLimits(problem=str(DomainLimitError(f"[{i}]: the selector does not pick the pod itself")))
            (preferred if each.mode == PREFERRED else required).append(compiled)
        return PodLimits(tuple(required), tuple(preferred))


def _keys(limits: Iterable[StatedLimit]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for limit in limits for key in keys_read(limit.selector, limit.match_label_keys)))


def _compile(limit: StatedLimit, namespaces: frozenset[str], pod: PodInfo) -> Limit:
    selector = completed(limit.selector, limit.match_label_keys, pod.labels)
    assert selector is not None  # the field is required
    pods = "pod" if limit.max == 1 else "pods"
    return Limit(
        key=limit.topology_key,
        most=limit.max,
        pods=PodSelection(namespaces, selector),
        denied=unschedulable(f"node(s) would exceed the limit of {limit.max} {pods} per {limit.topology_key}"),
        missing=unresolvable(f"node(s) didn't have the label {limit.topology_key}, by which pods are limited"),
    )


def limit_rule(limit: Limit, where: Domains, cluster: Cluster) -> FixedRule | None:
    """Allow nodes that have the label, in domains with fewer pods than the limit; None if all nodes are allowed.

    A node without the label is in no domain. It may stand in a full rack, so the rule rejects it, as a spread constraint does. If domains
    are single nodes, the rule lists the full ones, which are few.
    """
    tally = tally_of(cluster, limit.pods)
    if where.single:
        full = where.full_rows(tally, limit.most)
        if not len(full) and where.complete:
            return None
        return RowRule(where, DefaultVerdict.ALLOWED_WHERE_LABELLED, full, limit.denied, limit.missing)
    room: BoolColumn = where.pods(tally) < limit.most
    if where.complete and np.count_nonzero(room[MISSING + 1 :]) == len(room) - 1:
        return None
    room[MISSING] = False
    return DomainRule(where.codes, room, limit.denied, limit.missing)


def rowwise_rule(limit: Limit, place: Domains, cluster: Cluster) -> RowwiseRule:
    """Make the rule of a required limit for trials of preemption, with one row changed."""
    counts = RowwiseCounts(cluster, limit.pods, place.codes, place.distinct)

    def allows(rows: Rows) -> BoolColumn:
        allowed: BoolColumn = (counts.around(rows) < limit.most) & (place.codes[rows] != MISSING)
        return allowed

    return RowwiseRule(place.codes, limit.denied, limit.missing, allows)


def fewer_pods(plugin: str, limits: Iterable[tuple[Limit, Domains]], cluster: Cluster, row: int) -> Iterator[Remedy]:
    """Propose for each limit that rejects the row fewer pods in its domain, or the label that the node lacks.

    At most `MOST_PODS` pods are named.
    """
    labels = cluster.node(row).metadata.labels or NO_LABELS
    for limit, place in limits:
        code = int(place.codes[row])
        if code == MISSING:
            yield Remedy(plugin, RemedyKind.TOLD, f"label {limit.key}, by whose values pods are limited")
            continue
        count = int(place.pods(tally_of(cluster, limit.pods))[code])
        surplus = count + 1 - limit.most
        if surplus > 0:
            value = labels.get(limit.key, "")
            named = keys(islice(standing_pods(cluster, limit.pods, limit.key, value), MOST_PODS))
            others = f" and {count - len(named)} more" if count > len(named) else ""
            fewer = f"{surplus} pod{'s' if surplus > 1 else ''} fewer"
            text = f"{fewer} in {limit.key}={value}, which has {count} of at most {limit.most} pods: {', '.join(named)}{others}"
            kind = RemedyKind.REMOVE_PODS if surplus <= len(named) else RemedyKind.TOLD
            yield Remedy(plugin, kind, text, pods=named[:surplus] if kind is RemedyKind.REMOVE_PODS else ())


#: Raw score of nodes that lack the label of a limit; normalised to 0.
IGNORED: Final = -1


class Excess:
    """Pods in excess of all preferred limits, by row.

    Attributes:
        matters: whether any node is better than another.
        lowest: lowest raw score of a node: `IGNORED` if some node lacks a label, else 0.
    """

    def __init__(self, limits: Iterable[tuple[Limit, Domains]], cluster: Cluster) -> None:
        """Count the pods as they are now, with the pod to be placed added."""
        self._by_row: IntColumn | None = None
        self._lacking: BoolColumn | None = None
        for limit, place in limits:
            self._add(limit, place, cluster)
            if not place.complete:
                lacking = ~place.labelled
                self._lacking = lacking if self._lacking is None else self._lacking | lacking
        self.matters = self._by_row is not None or self._lacking is not None
        self.lowest = 0 if self._lacking is None else IGNORED
        self._size = cluster.size

    def of(self, rows: Rows) -> IntColumn:
        """Return the raw score of these rows, which ascend; shape (len(rows),)."""
        raw = np.zeros(self._size, np.int64) if self._by_row is None else self._by_row
        if self._lacking is not None:
            raw = np.where(self._lacking, IGNORED, raw)
        return at(raw, rows)

    def _add(self, limit: Limit, place: Domains, cluster: Cluster) -> None:
        tally = tally_of(cluster, limit.pods)
        room = limit.most - 1
        if place.single:
            if len(place.full_rows(tally, limit.most)):
                rows, counts = place.rows_with(tally)
                self._total(cluster.size)[rows] += np.maximum(counts - room, 0)
            return
        by_code = np.maximum(place.pods(tally) - room, 0)
        if by_code.any():
            self._total(cluster.size)[:] += by_code[place.codes]

    def _total(self, size: int) -> IntColumn:
        if self._by_row is None:
            self._by_row = np.zeros(size, np.int64)
        return self._by_row
