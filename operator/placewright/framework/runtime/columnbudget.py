"""The memory that the kept columns of a process may take: one amount, shared evenly by the profiles at work.

The shares are even, so that columns of a profile that was busy do not starve a profile that is. A replaced generation, or a shadow that is
gone, has no share once its evaluator is dropped.
"""

from __future__ import annotations

from typing import Final, Protocol
from weakref import WeakSet

#: The default: 1,000 shapes of pods on 100,000 nodes take 600 MB.
KEPT_BYTES: Final = 1 << 30


class KeepsColumns(Protocol):
    """One profile's kept columns."""

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""


class ColumnBudget:
    """The bytes that kept columns may take.

    Attributes:
        limit: bytes for all profiles and shadows together.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self.limit = limit
        # Weak, so that a generation that was replaced gives its share back without anything to call.
        self._keepers: WeakSet[KeepsColumns] = WeakSet()

    def join(self, keeper: KeepsColumns) -> None:
        """Give a keeper its share. It counts until it is dropped, because the set is weak."""
        self._keepers.add(keeper)

    @property
    def share(self) -> int:
        """Bytes that each keeper may take."""
        return self.limit // max(len(self._keepers), 1)

    @property
    def held(self) -> int:
        """Bytes that all keepers take now."""
        return sum(keeper.nbytes for keeper in self._keepers)
