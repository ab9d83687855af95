"""Keeps answers about single rows, for pods that look alike, for as long as nothing about the row changes.

A thousand pods that preempt on the same full cluster ask the same about the same nodes. An answer is kept only if it depends on nothing
but the pod's signature and priority, and on one node. The pods on that node, and nominated to it, belong to it. Every change of these is
in one of the logs that are read before answers are handed out. So nothing is kept for pods of groups, and for pods about which a filter
looks at other nodes. Nothing is kept while such a filter would read the terms of nominated pods, either.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, cast

from placewright.api.boundedcache import BoundedCache
from placewright.api.bytecount import bytes_of
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Log
from placewright.framework.interface import CycleState, Reads
from placewright.framework.ports import Nominations
from placewright.framework.runtime.profileruntime import ProfileRuntime

#: Answers kept at most, over all kinds of pods; each is some hundred bytes.
MAX_ANSWERS: Final = 200_000
#: Bytes of the keys that tell kinds of pods apart: of all of them, and of one.
MAX_KEY_BYTES: Final = 8 * 2**20
LARGEST_KEY_BYTES: Final = 64 * 1024


class AnswersOfRows(Protocol):
    """Notes about rows that are dropped when something about the row changed."""

    def forget(self, rows: Iterable[int]) -> None:
        """Drop the notes about rows that changed."""

    def clear(self) -> None:
        """Drop all notes, because anything may have changed."""


A = TypeVar("A", bound=AnswersOfRows)


class AnswerByRow(dict[int, Any]):
    """Notes by row."""

    def forget(self, rows: Iterable[int]) -> None:
        """Drop the notes about rows that changed."""
        for row in rows:
            self.pop(row, None)


@dataclass(slots=True)
class _Kept:
    positions: tuple[int, ...]
    answers: AnswersOfRows


class KeptAnswers:
    """The kept answers of one profile on one cluster."""

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, nominations: Nominations) -> None:
        self._runtime = runtime
        self._cluster = cluster
        self._nominations = nominations
        self._kept: BoundedCache[Hashable, _Kept] = BoundedCache(MAX_KEY_BYTES, largest=LARGEST_KEY_BYTES)

    def of(self, purpose: Hashable, state: CycleState, pod: PodInfo, none_yet: Callable[[], A]) -> A | None:
        """Return the answers that still hold, to be added to. No caller keeps the object over a change of the cluster.

        Add nothing about the row that the pod itself is nominated to, and believe nothing about it: other pods are told otherwise.

        Args:
            purpose: the question that is answered, with everything that the answers depend on besides pod and row.
            state: the state that PreFilter left; it tells whether a filter that looks at other rows has a say.
            pod: the pod that is asked about.
            none_yet: makes an empty object; one purpose is kept by one class.

        Returns:
            The kept object; None if nothing can be kept.
        """
        if pod.pod_group is not None or self._nominations.with_terms or self._cluster.dry_run_rows() or self._looks_around(state):
            return None
        signature = self._runtime.sign(pod)
        if signature is None:
            return None
        # The priority decides which pods may be evicted, and which nominated pods count.
        key = (purpose, signature, pod.priority)
        kept = self._kept.get(key)
        if kept is None:
            kept = _Kept(self._positions(), none_yet())
            if not self._kept.put(key, kept, bytes_of(key, LARGEST_KEY_BYTES)):
                return None
            self._bound()
        else:
            self._forget_changed(kept)
        return cast(A, kept.answers)

    def own_row(self, pod: PodInfo) -> int | None:
        """Return the row that a pod is nominated to.

        Returns:
            None if it is nominated to no node that is there.
        """
        node = self._nominations.node_of(pod.uid)
        return None if node is None else self._cluster.row(node)

    def _looks_around(self, state: CycleState) -> bool:
        return any(plugin.reads is Reads.CLUSTER and plugin.name not in state.skip_filter for plugin in self._runtime.filter)

    def _logs(self) -> Iterator[Log[int]]:
        cluster = self._cluster
        yield from (cluster.node_journal, cluster.pod_journal, cluster.version_journal)

    def _positions(self) -> tuple[int, ...]:
        return (*(log.position for log in self._logs()), self._nominations.changes.position)

    def _forget_changed(self, kept: _Kept) -> None:
        now = self._positions()
        if now == kept.positions:
            return
        changed = [log.since(position) for log, position in zip(self._logs(), kept.positions, strict=False)]
        nodes = self._nominations.changes.since(kept.positions[-1])
        kept.positions = now
        # A log that has forgotten the time since then may have held any row.
        if nodes is None or any(rows is None for rows in changed):
            kept.answers.clear()
            return
        for rows in changed:
            kept.answers.forget(rows or ())
        kept.answers.forget([row for node in nodes if (row := self._cluster.row(node)) is not None])

    def _bound(self) -> None:
        while len(self._kept) > 1 and len(self._kept) * max(self._cluster.size, 1) > MAX_ANSWERS:
            self._kept.drop_oldest()
