"""Bases of filters: one with a single reason for every node, and rules about domains as preemption's trials judge them.

In a trial one row alone is different. Its own pods count as they are now; pods of all other rows count as they were before.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework.interface import ArgsT, BoolColumn, CycleState, FilterPlugin, PreFilterResult, Rejection, Rows
from placewright.framework.rowwise import RowVerdict
from placewright.framework.status import SKIP, Status
from placewright.framework.topology import Codes, TopologyRule, counts_by_row, first_broken, obey

#: The answer of a PreFilter that leaves its Filter nothing to check.
NOTHING_TO_CHECK: Final = PreFilterResult(SKIP)


class ConstantReasonFilter(FilterPlugin[ArgsT], ABC):
    """Base for filters whose rejections all carry the same status, `rejection`."""

    rejection: ClassVar[Status]

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Reject all rows with the one reason."""
        return [Rejection(self.rejection, rows)]


class RowwiseCounts:
    """Pods of a selection by domain.

    Attributes:
        before: pods by code, when this was made; shape (distinct,) int64.
    """

    def __init__(self, cluster: Cluster, selection: PodSelection | None, codes: Codes, distinct: int) -> None:
        """`codes` by row, each below `distinct`, shape (size,); no selection: there are no such pods."""
        self._cluster = cluster
        self._selection = selection
        self._codes = codes
        self._rows_before = self._by_row()
        self.before: NDArray[np.int64] = np.bincount(codes, weights=self._rows_before, minlength=distinct).astype(np.int64)

    def _by_row(self) -> NDArray[np.int32]:
        size = self._cluster.size
        return np.zeros(size, np.int32) if self._selection is None else counts_by_row(self._cluster, self._selection)

    def change(self, rows: Rows) -> NDArray[np.int64]:
        """Return how many more pods are on each row now than before.

        Args:
            rows: shape (k,).

        Returns:
            Differences, negative where pods left; shape (k,).
        """
        return self._by_row()[rows].astype(np.int64) - self._rows_before[rows]

    def around(self, rows: Rows) -> NDArray[np.int64]:
        """Return the pods in the domain of each row, the row's own change included.

        Args:
            rows: shape (k,).

        Returns:
            Counts, shape (k,). Changes of other rows in the domain do not count: each row is judged as if it alone were changed.
        """
        return self.before[self._codes[rows]] + self.change(rows)


class RowwiseRule:
    """A `topology.TopologyRule` for trials of preemption, made of a function that judges changed rows."""

    def __init__(self, codes: Codes, denied: Status, missing: Status, allows: Callable[[Rows], BoolColumn]) -> None:
        """Take the domains of all rows, the verdicts of `TopologyRule`, and its method `allows`."""
        self.codes, self.denied, self.missing = codes, denied, missing
        self._allows = allows

    def allows(self, rows: Rows) -> BoolColumn:
        """Ask the function; see `TopologyRule.allows`."""
        return self._allows(rows)


class RuleJudge(RowVerdict):
    """Judges rows by rules, in order."""

    def __init__(self, rules: Sequence[TopologyRule]) -> None:
        self._rules = rules

    def passes(self, rows: Rows) -> BoolColumn:
        """Return True for rows where all rules allow the pod."""
        return obey(self._rules, rows)

    def explain(self, rows: Rows) -> list[Rejection]:
        """Reject each row by the first rule that it breaks."""
        return first_broken(self._rules, rows)
