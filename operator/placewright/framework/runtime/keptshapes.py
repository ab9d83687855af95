"""Keeps the columns of recent shapes of pods within a budget of bytes. The shape that was asked for longest ago goes first.

Nothing is kept of a pod with a long description: its author chooses how large it is, and how many such pods come and go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import bytes_of
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.columnparts import ColumnParts
from placewright.framework.runtime.podcolumns import LARGEST_TEXT, PodColumns
from placewright.framework.runtime.profileruntime import ProfileRuntime

#: Bytes of a shape besides its columns, its signature and the plugins' answers.
SHAPE_BYTES: Final = 2560
#: One part in so many of the share is for signatures and what plugins said. Columns have the rest: they grow with the cluster alone.
_TEXTS_PART: Final = 2


class KeptShapes:
    """`PodColumns` by signature.

    Invariant: `nbytes` is the memory of all kept columns and their signatures, each shared part counted once. It is brought within the
    budget's share when pods of another shape come. Until then the latest shape may exceed it, and one shape is always kept. No signature
    is larger than `LARGEST_TEXT`. If plugins say more of a shape, it is dropped when another one comes.

    Attributes:
        budget: the bytes that all profiles share.
    """

    def __init__(self, runtime: ProfileRuntime, budget: ColumnBudget) -> None:
        self.budget = budget
        self.budget.join(self)
        forgets_unasked(self)
        self._runtime = runtime
        self._parts = ColumnParts()
        self._shapes: OrderedDict[Hashable, PodColumns] = OrderedDict()
        self._signatures: dict[Hashable, int] = {}
        self._signature_bytes = 0
        self._latest: PodColumns | None = None
        self._latest_signature: Hashable = None

    def __len__(self) -> int:
        return len(self._shapes)

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""
        return self._parts.held + self._signature_bytes + SHAPE_BYTES * len(self._shapes)

    def columns(self, signature: tuple[Hashable, ...] | None) -> PodColumns:
        """Return the columns of pods with a signature.

        Args:
            signature: None, and one that is larger than `LARGEST_TEXT`, have no kept columns.
        """
        if signature is None:
            return PodColumns(self._runtime)
        columns = self._shapes.get(signature) or self._new(signature)
        if columns is None:
            return PodColumns(self._runtime)
        return columns if columns is self._latest else self._recent(signature, columns)

    def _new(self, signature: tuple[Hashable, ...]) -> PodColumns | None:
        nbytes = bytes_of(signature, LARGEST_TEXT)
        if nbytes > LARGEST_TEXT:
            return None
        columns = self._shapes[signature] = PodColumns(self._runtime, self._parts, signature)
        self._signatures[signature] = nbytes
        self._signature_bytes += nbytes
        return columns

    def _recent(self, signature: tuple[Hashable, ...], columns: PodColumns) -> PodColumns:
        """Note that these were asked for, and keep within the limit without the others that were not for longest."""
        self._leave_latest()
        self._latest, self._latest_signature = columns, signature
        columns.asked_since_beat = True
        self._shapes.move_to_end(signature)
        share = self.budget.share
        texts = max(share // _TEXTS_PART, LARGEST_TEXT)
        while (self.nbytes > share or self._text_bytes > texts) and len(self._shapes) > 1:  # the last one is in use
            self._drop(next(iter(self._shapes)))
        return columns

    def forget_unasked(self) -> None:
        """Drop the shapes that no pod asked for since the last call: pods that look like that are gone, or wait for long."""
        self._leave_latest()
        for signature, columns in list(self._shapes.items()):
            if not columns.asked_since_beat:
                self._drop(signature)
            columns.asked_since_beat = False

    def _leave_latest(self) -> None:
        """Drop what is not kept of a shape beyond its turn: all of it if plugins said too much."""
        if self._latest is not None:
            # A run of pods of one shape is the common case; between shapes the rows are cheaper found than kept.
            self._latest.forget_rows()
            if self._latest.count() > LARGEST_TEXT and self._latest_signature in self._shapes:
                self._drop(self._latest_signature)
            self._latest = self._latest_signature = None

    @property
    def _text_bytes(self) -> int:
        return self._parts.said + self._signature_bytes

    def _drop(self, signature: Hashable) -> None:
        columns = self._shapes.pop(signature)
        self._signature_bytes -= self._signatures.pop(signature)
        columns.give_back()
