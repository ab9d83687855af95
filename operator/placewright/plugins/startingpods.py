"""Pods that were placed a short while ago and are not Ready yet, counted by row for each schedulerName.

A pod counts from its assumption until it is Ready, is terminating, or has left. It also stops counting `seconds` after its Binding, because
a pod that never becomes Ready must not count for ever. If a pod was bound before this process knew it, its condition `PodScheduled` has the
time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.podstart import bound_at, may_be_starting
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import Moves
from placewright.cluster.journal import Log
from placewright.cluster.podfollowers import PodFollower
from placewright.cluster.resources import grown

_FIRST_ROOM: Final = 64
#: Most changes that are kept. A reader reads them at each attempt, and few pods start or become Ready in between.
_KEPT_CHANGES: Final = 1024
#: Most ends in the heap for each starting pod. Beyond that, ends of pods that stopped counting are removed.
_STALE: Final = 2


class StartingPods(PodFollower):
    """The starting pods of a cluster.

    Invariant: a row counts its pods in `_since` with that schedulerName, and the changes of dry runs.

    Args:
        cluster: cluster to follow from now on.
        seconds: longest time for which a pod counts.
        now: returns the seconds since 1970.

    Attributes:
        changes: (schedulerName, row, 1 or -1) for each change of a count, in order; without nodes that come or go.
    """

    def __init__(self, cluster: Cluster, seconds: float, now: Callable[[], float]) -> None:
        self.changes: Log[tuple[str, int, int]] = Log(_KEPT_CHANGES)
        self._cluster = cluster
        self._seconds = seconds
        self._now = now
        self._counts: dict[str, NDArray[np.int64]] = {}
        #: The time at which each starting pod was bound, by uid.
        self._since: dict[str, float] = {}
        #: (end of the time for which a pod counts, its uid); also of pods that stopped counting before.
        self._ends: list[tuple[float, str]] = []
        cluster.pod_followers.add(self)

    # --- reading -------------------------------------------------------------------------------------------------------------

    def on_rows(self, scheduler_name: str) -> NDArray[np.int64]:
        """Return the starting pods of a schedulerName by row, shape (size,); not to be written.

        The first call counts the pods that stand there already.
        """
        counts = self._counts.get(scheduler_name)
        if counts is None:
            counts = self._counts[scheduler_name] = np.zeros(max(self._cluster.size, _FIRST_ROOM), np.int64)
            for pod, node, _ in tuple(self._cluster.placements()):
                if pod.scheduler_name == scheduler_name and may_be_starting(pod):
                    self._begin(pod, self._cluster.row(node))
        size = self._cluster.size
        if len(counts) < size:
            counts = self._widened(scheduler_name, size)
        return counts[:size]

    def expire(self) -> None:
        """Stop counting pods whose time has passed, and journal their rows. Does nothing in a dry run, which reverts by pod."""
        if not self.may_expire(now := self._now()) or self._cluster.dry_run_rows():
            return
        while self._ends and self._ends[0][0] <= now:
            _, uid = heapq.heappop(self._ends)
            since = self._since.get(uid)
            if since is not None and since + self._seconds <= now:
                self._end_of(uid)

    def may_expire(self, now: float) -> bool:
        """Return whether `expire` may have something to do; cheap, because each attempt asks."""
        return bool(self._ends) and self._ends[0][0] <= now

    def next_end(self) -> float | None:
        """Return when the next pod stops counting unless it is Ready before, in seconds since 1970; None without starting pods."""
        while self._ends and self._since.get(self._ends[0][1], -np.inf) + self._seconds != self._ends[0][0]:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def _end_of(self, uid: str) -> None:
        del self._since[uid]
        standing = self._cluster.placement(uid)
        row = None if standing is None else self._cluster.row(standing.node)
        if standing is not None and row is not None:
            self._add(standing.pod.scheduler_name, row, -1)
            self._cluster.pod_journal.append(row)

    # --- following -----------------------------------------------------------------------------------------------------------

    def pod_enters(self, pod: PodInfo, row: int | None) -> None:
        """Count a pod that may be starting."""
        if pod.scheduler_name in self._counts and may_be_starting(pod):
            self._begin(pod, row)

    def pod_changes(self, old: PodInfo, new: PodInfo, row: int | None) -> None:
        """Count or drop a pod that changed. A pod that is no longer Ready may still be starting."""
        if new.scheduler_name not in self._counts:
            return
        if new.uid not in self._since:
            if may_be_starting(new):
                self._begin(new, row)
        elif not may_be_starting(new):
            self._drop(new, row)

    def pod_leaves(self, pod: PodInfo, row: int | None) -> None:
        """Drop a pod that was counted."""
        if pod.uid in self._since:
            self._drop(pod, row)

    def row_appears(self, row: int, pods: Iterable[PodInfo]) -> None:
        """Count the starting pods of a new row."""
        for pod in pods:
            if pod.uid in self._since:
                self._add(pod.scheduler_name, row, 1)

    def row_ends(self, row: int, node: NodeName) -> None:
        """Set the counts of a deleted row to 0."""
        for counts in self._counts.values():
            if row < len(counts):
                counts[row] = 0

    def dry_run_counts(self, pods: Moves, sign: int) -> None:
        """Change counts in a dry run. A pod that stands nowhere yet would start where it is added."""
        for row, pod in pods:
            if pod.scheduler_name in self._counts and (pod.uid in self._since or self._cluster.placement(pod.uid) is None):
                self._add(pod.scheduler_name, row, sign)

    def _begin(self, pod: PodInfo, row: int | None) -> None:
        now = since = self._now()
        if pod.pod.status.conditions:  # an assumed pod has none
            since = min(now, bound_at(pod) or now)
            if since + self._seconds <= now:
                return
        self._since[pod.uid] = since
        heapq.heappush(self._ends, (since + self._seconds, pod.uid))
        if row is not None:
            self._add(pod.scheduler_name, row, 1)

    def _drop(self, pod: PodInfo, row: int | None) -> None:
        del self._since[pod.uid]
        if row is not None:
            self._add(pod.scheduler_name, row, -1)
        if len(self._ends) > _STALE * len(self._since) + _FIRST_ROOM:
            self._ends = [(since + self._seconds, uid) for uid, since in self._since.items()]
            heapq.heapify(self._ends)

    def _add(self, scheduler_name: str, row: int, delta: int) -> None:
        self.changes.append((scheduler_name, row, delta))
        counts = self._counts[scheduler_name]
        if row >= len(counts):
            counts = self._widened(scheduler_name, row + 1)
        counts[row] += delta

    def _widened(self, scheduler_name: str, rows: int) -> NDArray[np.int64]:
        counts = grown(self._counts[scheduler_name], max(rows, 2 * len(self._counts[scheduler_name])))
        self._counts[scheduler_name] = counts
        return counts
