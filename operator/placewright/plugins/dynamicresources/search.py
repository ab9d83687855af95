"""Which nodes can serve what claims ask for: searched once for each row and shape of demand, and again where something changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from placewright.api.devices import ResourceClaim
from placewright.cluster.cluster import Cluster
from placewright.cluster.resources import grown
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.plugins.dynamicresources.devices import Allocated, Devices, Refusal
from placewright.plugins.dynamicresources.subrequests import preference

#: Shapes of demand whose answers are kept.
MAX_KEPT: Final = 64


class _Answers:
    """What was found for one shape: by row with the version of the row's devices that it was found in, and as columns.

    Attributes:
        fits: rows that can serve the claims.
        points: how well; see `preference`.
        ending: rows whose answer ends the attempt.
        position: up to where in the journal of changed rows the columns are right; -1 before they are filled.
        everywhere: as of when.
    """

    def __init__(self) -> None:
        self.found: dict[int, tuple[int, Allocated | Refusal]] = {}
        self.fits: BoolColumn = np.zeros(0, np.bool_)
        self.points: IntColumn = np.zeros(0, np.int64)
        self.ending: set[int] = set()
        self.position = self.everywhere = -1


class Search:
    """Asks the allocator no more than it must."""

    def __init__(self, cluster: Cluster) -> None:
        self.devices = Devices(cluster)
        self._cluster = cluster
        self._kept: OrderedDict[tuple[bytes, ...], _Answers] = OrderedDict()

    def fits(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], rows: Rows) -> BoolColumn:
        """True for each row that can serve all claims; shape (len(rows),). `signature`: their shapes."""
        self.devices.refresh()
        column = self.devices.candidates(claims)
        if column is None:
            column = self._columns(claims, signature).fits
        fits: BoolColumn = column[rows]
        return fits

    def ending(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], rows: Rows) -> Refusal | None:
        """Why the attempt ends, on the first of these rows where something ends it; None where nothing does."""
        self.devices.refresh()
        if self.devices.candidates(claims) is not None:  # then every selector has an answer everywhere
            return None
        ending = self._columns(claims, signature).ending
        row = next((row for row in rows.tolist() if row in ending), None) if ending else None
        answer = None if row is None else self._answer(self._answers(signature), row, claims)
        return answer if isinstance(answer, Refusal) else None

    def points(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], rows: Rows) -> IntColumn:
        """How well each row can serve them; shape (len(rows),)."""
        self.devices.refresh()
        points: IntColumn = self._columns(claims, signature).points[rows]
        return points

    def answer(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], row: int) -> Allocated | Refusal:
        """What these claims get on the node of a row, or why nothing."""
        self.devices.refresh()
        return self._answer(self._answers(signature), row, claims)

    def _answers(self, signature: tuple[bytes, ...]) -> _Answers:
        answers = self._kept.get(signature)
        if answers is None:
            answers = self._kept[signature] = _Answers()
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(signature)
        return answers

    def _columns(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...]) -> _Answers:
        """The answers with columns that are right for every row."""
        answers, size = self._answers(signature), self._cluster.size
        for row in self._stale(answers, size):
            answer = self._answer(answers, row, claims) if self._cluster.present[row] else None
            answers.fits[row] = isinstance(answer, Allocated)
            answers.points[row] = preference(claims, answer)
            if isinstance(answer, Refusal) and answer.ends_attempt:
                answers.ending.add(row)
            else:
                answers.ending.discard(row)
        answers.position, answers.everywhere = self.devices.changed_rows.position, self.devices.everywhere
        return answers

    def _stale(self, answers: _Answers, size: int) -> Iterable[int]:
        """Rows that must be looked at again."""
        journal, everywhere = self.devices.changed_rows, self.devices.everywhere
        changed = journal.since(answers.position) if answers.position >= 0 and answers.everywhere == everywhere else None
        before = len(answers.fits)
        if before < size:
            answers.fits, answers.points = grown(answers.fits, size), grown(answers.points, size)
        if changed is None:
            return range(size)
        return {*(row for row in changed if row < size), *range(before, size)}

    def _answer(self, answers: _Answers, row: int, claims: Sequence[ResourceClaim]) -> Allocated | Refusal:
        version = self.devices.version(row)
        known = answers.found.get(row)
        if known is not None and known[0] == version:
            return known[1]
        answer = self.devices.allocate(row, claims)
        if isinstance(answer, Allocated) or not answer.error:  # errors name a claim, and other claims have this shape too
            answers.found[row] = (version, answer)
        return answer
