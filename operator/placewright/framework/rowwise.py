"""Filters that read the whole cluster, and yet can say of many rows at once what each would be if it alone were different.

Preemption takes pods away from hundreds of rows at the same time and asks of each whether the pod would fit there now. Filters that read a
row and its pods answer that with the columns. One that reads more would see all these rows changed; it takes part if
it is a `RowwiseFilter`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, CycleState, FilterPlugin, Rejection, Rows


class RowVerdict(ABC):
    """Judges one pod on single rows. Pods of the judged row are read at call time; pods of all other rows as they were when it was made."""

    @abstractmethod
    def passes(self, rows: Rows) -> BoolColumn:
        """True for each row that can hold the pod; shape (len(rows),)."""

    @abstractmethod
    def explain(self, rows: Rows) -> list[Rejection]:
        """Why these rows, none of which passes, were rejected: grouped, every row in exactly one group."""


class RowwiseFilter(FilterPlugin, ABC):
    """A filter with `Reads.CLUSTER` that lets preemption try many rows in step."""

    @abstractmethod
    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict | None:
        """Called after `pre_filter`, before any row is changed; None where this pod's rows can only be tried one by one."""


class PlainRowVerdict(RowVerdict):
    """For a filter whose verdict on a row has nothing to do with pods on other rows: it is simply asked."""

    def __init__(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        self._plugin = plugin
        self._asked = (state, pod, cluster)

    def passes(self, rows: Rows) -> BoolColumn:
        """What the filter says."""
        return self._plugin.filter(*self._asked, rows)

    def explain(self, rows: Rows) -> list[Rejection]:
        """What the filter explains."""
        return self._plugin.explain(*self._asked, rows)


class NodeVerdict(PlainRowVerdict):
    """For a filter that reads nodes alone: whatever pods are taken away and put back, it is asked about each row once."""

    def __init__(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        super().__init__(plugin, state, pod, cluster)
        self._known = np.zeros(cluster.size, np.bool_)
        self._passes = np.zeros(cluster.size, np.bool_)

    def passes(self, rows: Rows) -> BoolColumn:
        """What the filter says, or has said."""
        new = rows[~self._known[rows]]
        if len(new):
            self._passes[new] = super().passes(new)
            self._known[new] = True
        return self._passes[rows]
