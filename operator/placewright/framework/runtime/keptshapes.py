"""Keeps the columns of recent shapes of pods within a budget of bytes. The shape that was asked for longest ago goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from placewright.api.bytecount import bytes_of
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.columnparts import ColumnParts, PartsOfShape
from placewright.framework.runtime.podcolumns import PodColumns
from placewright.framework.runtime.profileruntime import ProfileRuntime

#: Bytes of a shape besides its columns, its signature and the plugins' answers.
SHAPE_BYTES: Final = 2560
#: Bytes of a signature; pods with a larger one, of some 100 KB themselves, are looked at afresh each time, and nothing is kept of them.
LARGEST_SIGNATURE: Final = 64 * 1024


class KeptShapes:
    """`PodColumns` by signature.

    Invariant: `nbytes` is what all kept columns take, each shared part counted once, with the signatures that they are kept under. It is
    brought within the budget's share when pods of another shape come, so what one shape adds may be above it until then; one shape is
    always kept. No signature is larger than `LARGEST_SIGNATURE`.

    Attributes:
        budget: how many bytes there are.
    """

    def __init__(self, runtime: ProfileRuntime, budget: ColumnBudget) -> None:
        self.budget = budget
        self.budget.join(self)
        self._runtime = runtime
        self._parts = ColumnParts()
        self._shapes: OrderedDict[Hashable, PodColumns] = OrderedDict()
        self._signatures: dict[Hashable, int] = {}
        self._signature_bytes = 0
        self._latest: PodColumns | None = None

    def __len__(self) -> int:
        return len(self._shapes)

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""
        return self._parts.bytes.held + self._signature_bytes + SHAPE_BYTES * len(self._shapes)

    def columns(self, signature: tuple[Hashable, ...] | None) -> PodColumns:
        """Return the columns of pods with a signature.

        Args:
            signature: None, and one that is larger than `LARGEST_SIGNATURE`, have no kept columns.

        Returns:
            Kept columns, or new ones.
        """
        if signature is None:
            return PodColumns(self._runtime)
        columns = self._shapes.get(signature) or self._new(signature)
        if columns is None:
            return PodColumns(self._runtime)
        return columns if columns is self._latest else self._recent(signature, columns)

    def _new(self, signature: tuple[Hashable, ...]) -> PodColumns | None:
        nbytes = bytes_of(signature, LARGEST_SIGNATURE)
        if nbytes > LARGEST_SIGNATURE:
            return None
        parts = PartsOfShape(self._parts, self._runtime.fragments(signature))
        columns = self._shapes[signature] = PodColumns(self._runtime, parts)
        self._signatures[signature] = nbytes
        self._signature_bytes += nbytes
        return columns

    def _recent(self, signature: tuple[Hashable, ...], columns: PodColumns) -> PodColumns:
        """Note that these were asked for, and keep within the limit without the others that were not for longest."""
        # A run of pods of one shape is the common case; between shapes the rows are cheaper found than kept.
        if self._latest is not None:
            self._latest.forget_rows()
        self._latest = columns
        self._shapes.move_to_end(signature)
        share = self.budget.share
        while self.nbytes > share and len(self._shapes) > 1:  # the last one is in use
            self._drop_oldest()
        return columns

    def _drop_oldest(self) -> None:
        signature, columns = self._shapes.popitem(last=False)
        self._signature_bytes -= self._signatures.pop(signature)
        columns.give_back()
