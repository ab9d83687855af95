"""The columns of recent shapes of pods, within so many bytes: the shape that nobody asked for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.columnparts import ColumnParts, PartsOfShape
from placewright.framework.runtime.podcolumns import PodColumns
from placewright.framework.runtime.profileruntime import ProfileRuntime

#: What a shape takes besides its columns: its signature, and what plugins said of such pods. Measured: 2.5 to 4 KB.
SHAPE_BYTES: Final = 4096


class KeptShapes:
    """`PodColumns` by signature.

    Invariant: `nbytes` is what all kept columns take, each shared part counted once. It is brought within the budget's share when pods of
    another shape come, so what one shape adds may be above it until then; one shape is always kept.

    Attributes:
        budget: how many bytes there are.
    """

    def __init__(self, runtime: ProfileRuntime, budget: ColumnBudget) -> None:
        self.budget = budget
        self.budget.join(self)
        self._runtime = runtime
        self._parts = ColumnParts()
        self._shapes: OrderedDict[Hashable, PodColumns] = OrderedDict()
        self._latest: PodColumns | None = None

    def __len__(self) -> int:
        return len(self._shapes)

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""
        return self._parts.bytes.held + SHAPE_BYTES * len(self._shapes)

    def columns(self, signature: tuple[Hashable, ...] | None) -> PodColumns:
        """The columns of pods with this signature; new ones where none are kept, or where there is no signature."""
        if signature is None:
            return PodColumns(self._runtime)
        columns = self._shapes.get(signature) or self._new(signature)
        return columns if columns is self._latest else self._recent(signature, columns)

    def _new(self, signature: tuple[Hashable, ...]) -> PodColumns:
        parts = PartsOfShape(self._parts, self._runtime.fragments(signature))
        columns = self._shapes[signature] = PodColumns(self._runtime, parts)
        return columns

    def _recent(self, signature: tuple[Hashable, ...], columns: PodColumns) -> PodColumns:
        """Note that these were asked for, and keep within the limit without the others that were not for longest."""
        if self._latest is not None:
            self._latest.forget_rows()
        self._latest = columns
        self._shapes.move_to_end(signature)
        share = self.budget.share
        while self.nbytes > share and len(self._shapes) > 1:
            self._shapes.popitem(last=False)[1].give_back()
        return columns
