"""Rows that refuse a pod beside the pods nominated there, with a code of the reason each: thousands of rows share a few reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from placewright.framework.interface import BoolColumn, Rejection
from placewright.framework.status import Status, unresolvable

#: If there are more statuses than these and than rows, most are of the past: they may name pods.
_FEW_STATUSES: Final = 256


class RowRejections:
    """Rows that are rejected, with a status each.

    Invariant: a row's code is 0 if it is not rejected. Otherwise it is one more than the place of its status among `_statuses`.
    """

    __slots__ = ("_code_of", "_codes", "_statuses")

    def __init__(self, size: int) -> None:
        """None of so many rows is rejected yet."""
        self._codes: NDArray[np.int32] = np.zeros(size, np.int32)
        self._statuses: list[Status] = []
        self._code_of: dict[Status, int] = {}

    @property
    def statuses(self) -> int:
        """How many different ones it has known."""
        return len(self._statuses)

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self._codes)

    def put(self, verdicts: Iterable[tuple[int, Status | None]]) -> Self:
        """Set the verdicts of rows.

        Args:
            verdicts: rows with their statuses; None for a row that is not rejected, or not any longer.
        """
        for row, status in verdicts:
            self._codes[row] = 0 if status is None else self._code(status)
        return self

    def rejected(self) -> BoolColumn:
        """Return True in the rows that are rejected; shape (size,)."""
        rejected: BoolColumn = self._codes != 0
        return rejected

    def only(self, rows: BoolColumn) -> RowRejections:
        """Copy the verdicts of some rows.

        Args:
            rows: a mask, shape (size,).

        Returns:
            A copy in which no other row is rejected.
        """
        return self._copy(np.where(rows, self._codes, 0))

    def but(self, row: int, status: Status | None) -> RowRejections:
        """Copy with another verdict on one row.

        Args:
            row: the row.
            status: its verdict; None: it is not rejected.
        """
        return self._copy(self._codes.copy()).put([(row, status)])

    def grouped(self) -> Iterator[Rejection]:
        """Yield each status with the rows that it rejects."""
        for code in np.unique(self._codes).tolist():
            if code:
                yield Rejection(self._statuses[code - 1], np.flatnonzero(self._codes == code))

    def _code(self, status: Status) -> int:
        code = self._code_of.get(status)
        if code is None:
            self._statuses.append(status)
            code = self._code_of[status] = len(self._statuses)
        return code

    def _copy(self, codes: NDArray[np.int32]) -> RowRejections:
        """Statuses only ever grow, and are shared."""
        made = RowRejections(0)
        made._codes, made._statuses, made._code_of = codes, self._statuses, self._code_of
        return made


class BesideNominated:
    """The verdicts on the rows to which pods are nominated, for pods that look alike.

    Attributes:
        rejections: verdicts that hold for all rows that are not `stale`.
        stale: rows that have to be looked at again; None for all.
    """

    __slots__ = ("rejections", "stale")

    def __init__(self) -> None:
        self.rejections = RowRejections(0)
        self.stale: set[int] | None = None

    def begin(self, size: int, nominated_rows: Callable[[], Iterable[int]]) -> set[int]:
        """Return the rows that have to be looked at again. The caller takes those out that it looks at.

        Args:
            size: number of the cluster's rows; if it has changed, everything is stale.
            nominated_rows: lists the rows to which pods are nominated; called if everything is stale.
        """
        full = self.rejections.statuses > max(size, _FEW_STATUSES)
        if self.stale is None or self.rejections.size != size or full:
            self.rejections, self.stale = RowRejections(size), set(nominated_rows())
        return self.stale

    def forget(self, rows: Iterable[int]) -> None:
        """Note that something about rows changed."""
        if self.stale is not None:
            self.stale.update(rows)

    def clear(self) -> None:
        """Anything may have changed."""
        self.stale = None


def outside(narrowed_by: Sequence[str]) -> Status:
    """Return UNSCHEDULABLE_AND_UNRESOLVABLE for nodes that are no candidates, in kube-scheduler's words."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}]")


def nothing_left(narrowed_by: Sequence[str]) -> Status:
    """Return UNSCHEDULABLE_AND_UNRESOLVABLE for a pod whose plugins leave no candidate, in kube-scheduler's words.

    Args:
        narrowed_by: the plugins that named candidates, in run order.
    """
    if len(narrowed_by) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {narrowed_by[0]}").by(narrowed_by[0])
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}] simultaneously").by(narrowed_by[0])
