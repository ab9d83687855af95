"""Single rows, as the columns stand now: for nodes with nominated pods, and for preemption's trials.

Unlike an evaluation this keeps no column: what is looked at may be hypothetical. What PreFilter says of the pod alone is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from itertools import takewhile
from typing import Protocol

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState, Reads, Rejection, RowChecks, Rows
from placewright.framework.podcolumns import PodColumns
from placewright.framework.prefiltering import outside, pre_filter, rows_named
from placewright.framework.runtime import ProfileRuntime
from placewright.framework.status import SUCCESS, Status


class Nominations(Protocol):
    """Pods that preemption made room for and that are not placed yet; the queue's nominator."""

    def nodes(self) -> Collection[NodeName]:
        """Nodes that have nominated pods."""

    def pods_on(self, node: NodeName) -> Collection[PodInfo]:
        """Pods nominated to this node."""

    @property
    def making_room_for(self) -> Container[str]:
        """Uids of pods whose victims are being evicted."""


class NoNominations:
    """For evaluations outside a running scheduler."""

    def nodes(self) -> Collection[NodeName]:
        """None."""
        return ()

    def pods_on(self, node: NodeName) -> Collection[PodInfo]:
        """None."""
        return ()

    @property
    def making_room_for(self) -> Container[str]:
        """None."""
        return ()


class RowChecker:
    """Runs one profile's PreFilter and Filter on rows."""

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, nominations: Nominations) -> None:
        self.nominations = nominations
        self._runtime = runtime
        self._cluster = cluster
        self._checked: tuple[PodInfo, PodColumns] | None = None

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """`Handle.check_row`: PreFilter and Filter on one row, with and without the pods nominated there."""
        status = self.beside_nominated(pod, row)
        if status is not None and not status.ok:
            return status
        return self._check_as_it_stands(pod, row)

    def beside_nominated(self, pod: PodInfo, row: int) -> Status | None:
        """The verdict with nominated pods of at least this priority added; None when there are none."""
        name = self._cluster.names[row]
        if name is None:
            return None
        others = [p for p in self.nominations.pods_on(name) if p.priority >= pod.priority and p.uid != pod.uid]
        if not others:
            return None
        with self._cluster.hypothetically(add=others, row=row):
            return self._check_as_it_stands(pod, row)

    def _checked_columns(self, pod: PodInfo) -> PodColumns:
        """What local plugins said of the pod that is being checked row after row: preemption asks thousands of times for one pod."""
        if self._checked is None or self._checked[0] is not pod:
            self._checked = (pod, PodColumns(self._runtime))
        return self._checked[1]

    def _check_as_it_stands(self, pod: PodInfo, row: int) -> Status:
        columns = self._checked_columns(pod)
        state = CycleState(dict(columns.data))
        refusal, candidates, narrowed_by = pre_filter(self._runtime, state, pod, self._cluster, columns)
        if refusal is not None:
            return refusal
        if candidates is not None and self._cluster.names[row] not in candidates:
            return outside(narrowed_by)
        rows = np.array([row], np.intp)
        for plugin in self._runtime.filter:
            if plugin.name in state.skip_filter or plugin.filter(state, pod, self._cluster, rows)[0]:
                continue
            return plugin.explain(state, pod, self._cluster, rows)[0].status.by(plugin.name)
        return SUCCESS

    def check_rows(self, pod: PodInfo, rows: Rows) -> RowChecks:
        """`Handle.check_rows`: as `check_row`, for many rows at once, up to the first filter through which rows see each other."""
        columns = self._checked_columns(pod)
        state = CycleState(dict(columns.data))
        refusal, candidates, narrowed_by = pre_filter(self._runtime, state, pod, self._cluster, columns)
        if refusal is not None:
            return RowChecks([], complete=False)
        filters = [plugin for plugin in self._runtime.filter if plugin.name not in state.skip_filter]
        local = list(takewhile(lambda plugin: plugin.reads is not Reads.CLUSTER, filters))
        checks = RowChecks([], complete=len(local) == len(filters))
        remaining = rows
        if candidates is not None:
            inside = rows_named(self._cluster, candidates)[rows]
            checks.rejections.append(Rejection(outside(narrowed_by), rows[~inside]))
            remaining = rows[inside]
        remaining = self._without_crowded(pod, remaining, checks)
        for plugin in local:
            passes = plugin.filter(state, pod, self._cluster, remaining)
            if not passes.all():
                explained = plugin.explain(state, pod, self._cluster, remaining[~passes])
                checks.rejections.extend(Rejection(status.by(plugin.name), rejected) for status, rejected in explained)
                remaining = remaining[passes]
        return checks

    def _without_crowded(self, pod: PodInfo, rows: Rows, checks: RowChecks) -> Rows:
        """The rows whose nominated pods leave room for the pod; the others are added to the rejections, or left for a check alone."""
        nominated = {row for name in self.nominations.nodes() if (row := self._cluster.row(name)) is not None}
        crowded: set[int] = set()
        for row in nominated.intersection(rows.tolist()) if nominated else ():
            status = self.beside_nominated(pod, row) if checks.complete else None
            if status is not None and not status.ok:
                checks.rejections.append(Rejection(status, np.array([row], np.intp)))
            if not checks.complete or (status is not None and not status.ok):
                crowded.add(row)
        return rows[~np.isin(rows, list(crowded))] if crowded else rows
