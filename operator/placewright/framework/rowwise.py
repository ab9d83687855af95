"""Filters that read the whole cluster, and yet judge many rows at once, each as if it alone were different.

Preemption takes pods away from hundreds of rows at the same time. Then it asks about each row whether the pod would fit there. Filters
that read a row and its pods answer that with the columns. A filter that reads more would see all these rows changed. It takes part if it
is a `RowwiseFilter`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import ArgsT, BoolColumn, CycleState, FilterPlugin, Rejection, Rows


class RowVerdict(ABC):
    """Judges one pod on single rows.

    Pods of the judged row are read at call time; pods of all other rows as they were when the judge was made. Preemption asks it hundreds
    of times in an attempt, with pods taken off and put back in between.
    """

    @abstractmethod
    def passes(self, rows: Rows) -> BoolColumn:
        """Judge rows as they are now.

        Args:
            rows: shape (k,).

        Returns:
            True for each row that can hold the pod; shape (len(rows),).
        """

    @abstractmethod
    def explain(self, rows: Rows) -> list[Rejection]:
        """Say why rows were rejected.

        Args:
            rows: shape (k,); `passes` said no to each of them.

        Returns:
            Groups of rows with one status each; every row in exactly one group.
        """


class RowwiseFilter(FilterPlugin[ArgsT], ABC):
    """A filter with `Reads.CLUSTER` that lets preemption try many rows in step."""

    @abstractmethod
    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict | None:
        """Return a judge of single rows. Called after `pre_filter`, before any row is changed.

        Args:
            state: the state that PreFilter left.
            pod: the pod that is tried.
            cluster: the cluster as it stands; the judge remembers the facts about other rows that it needs.

        Returns:
            A judge. None if a change of one row changes the verdict on another: then rows are tried one by one.
        """


class PlainRowVerdict(RowVerdict):
    """Asks a filter whose verdict on a row has nothing to do with pods on other rows."""

    def __init__(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        self._plugin = plugin
        self._asked = (state, pod, cluster)

    def passes(self, rows: Rows) -> BoolColumn:
        """Ask the filter about the rows."""
        return self._plugin.filter(*self._asked, rows)

    def explain(self, rows: Rows) -> list[Rejection]:
        """Ask the filter why it rejects the rows."""
        return self._plugin.explain(*self._asked, rows)


class NodeVerdict(PlainRowVerdict):
    """Asks a filter that reads nodes alone about each row once: pods that are taken off and put back change nothing for it."""

    def __init__(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, cluster: Cluster) -> None:
        super().__init__(plugin, state, pod, cluster)
        self._known = np.zeros(cluster.size, np.bool_)
        self._passes = np.zeros(cluster.size, np.bool_)

    def passes(self, rows: Rows) -> BoolColumn:
        """Ask the filter about each row once."""
        new = rows[~self._known[rows]]
        if len(new):
            self._passes[new] = super().passes(new)
            self._known[new] = True
        return self._passes[rows]
