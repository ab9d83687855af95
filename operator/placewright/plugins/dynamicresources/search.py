"""Which nodes can serve what claims ask for: searched once for each row and shape of demand, and again where something changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np

from placewright.api.devices import ResourceClaim
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, Rows
from placewright.plugins.dynamicresources.devices import Allocated, Devices, Refusal

#: Shapes of demand whose answers are kept.
MAX_KEPT: Final = 64


class _Answers:
    """What was found for one shape, by row, with the version of the row's devices that it was found in."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[int, Allocated | Refusal]] = {}


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
        if column is not None:
            fits: BoolColumn = column[rows]
            return fits
        answers = self._answers(signature)
        present = self._cluster.present
        found = [bool(present[row]) and isinstance(self._answer(answers, row, claims), Allocated) for row in rows.tolist()]
        return np.array(found, np.bool_)

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

    def _answer(self, answers: _Answers, row: int, claims: Sequence[ResourceClaim]) -> Allocated | Refusal:
        version = self.devices.version(row)
        known = answers.found.get(row)
        if known is not None and known[0] == version:
            return known[1]
        answer = self.devices.allocate(row, claims)
        answers.found[row] = (version, answer)
        return answer
