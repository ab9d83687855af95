"""Single rows, as the columns stand now: for nodes with nominated pods, and for preemption's trials.

Unlike an evaluation this keeps no column: what is looked at may be hypothetical. What PreFilter says of the pod alone is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Final, Protocol

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState
from placewright.framework.prefiltering import outside, pre_filter
from placewright.framework.rowtrials import TrialsOfRows
from placewright.framework.runtime.podcolumns import PodColumns
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.status import SUCCESS, Status

#: From so many rows on it pays to ask for all of them together.
_WORTH_TRIALS: Final = 4


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
        others = self._in_the_way(pod, name)
        if not others:
            return None
        with self._cluster.hypothetically(add=others, row=row):
            return self._check_as_it_stands(pod, row)

    def _in_the_way(self, pod: PodInfo, node: NodeName) -> list[PodInfo]:
        """Pods nominated to this node, beside which the pod must fit; those that are assumed somewhere by now count there already."""
        standing = self._cluster.placement
        return [
            other
            for other in self.nominations.pods_on(node)
            if other.priority >= pod.priority and other.uid != pod.uid and standing(other.uid) is None
        ]

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

    def trials(self, pod: PodInfo) -> TrialsOfRows:
        """`Handle.trials`; raises `CycleError`."""
        return TrialsOfRows(self._runtime, self._cluster, pod, self._nominated_beside(pod))

    def crowded_out(self, pod: PodInfo, among: Container[NodeName] | None) -> dict[int, Status]:
        """Rows where the pod does not fit beside the pods nominated there, with the verdict; of these nodes, or of all.

        Raises `CycleError`.
        """
        nominated = self._nominated_beside(pod)
        rows = [row for row in nominated if among is None or self._cluster.names[row] in among]
        verdicts: dict[int, Status] = {}
        if len(rows) >= _WORTH_TRIALS:
            together = TrialsOfRows(self._runtime, self._cluster, pod, nominated)
            rejections, unsettled = together.check_beside_nominated(np.array(rows, np.intp))
            verdicts = {row: status for status, rejected in rejections for row in rejected.tolist()}
            rows = unsettled.tolist()
        for row in rows:
            status = self.beside_nominated(pod, row)
            if status is not None and not status.ok:
                verdicts[row] = status
        return verdicts

    def _nominated_beside(self, pod: PodInfo) -> dict[int, list[PodInfo]]:
        rows = {row: name for name in self.nominations.nodes() if (row := self._cluster.row(name)) is not None}
        return {row: others for row, name in rows.items() if (others := self._in_the_way(pod, name))}
