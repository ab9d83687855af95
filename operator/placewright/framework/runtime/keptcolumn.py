"""A kept column: as narrow as its values allow, and a single value if all rows have the same, as most columns do."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from placewright.framework.interface import Rows

V = TypeVar("V", np.bool_, np.int64)
#: Number of values up to which they are compared one by one: cheaper than two reductions.
_FEW: Final = 16
_WIDTHS: Final = tuple((np.dtype(kind), int(np.iinfo(kind).min), int(np.iinfo(kind).max)) for kind in (np.int8, np.int16, np.int32))


def narrowest(low: int, high: int) -> np.dtype[Any]:
    """Choose the type of a column.

    Returns:
        The narrowest signed integers that hold all values between the two: of int8, int16, int32, int64.
    """
    return next((kind for kind, least, most in _WIDTHS if least <= low and high <= most), np.dtype(np.int64))


class KeptColumn(Generic[V]):
    """One value a row; shape (size,).

    Invariant: `values` is None exactly while `only` is the value of every row; each value lies between `low` and `high`.

    Attributes:
        only: the value of all rows, or None if they differ.
        values: bool or the narrowest integers that hold them, by row; not to be written.
        low, high: bounds of the values.
        kind: type of the plugin's answers.
    """

    __slots__ = ("high", "kind", "low", "only", "size", "values")

    def __init__(self, values: NDArray[V]) -> None:
        """Make a column of these values, shape (size,), which are copied or not written any more."""
        self.size = len(values)
        self.kind: np.dtype[V] = values.dtype
        self.low, self.high = _bounds(values)
        self.only: int | None = self.low if self.low == self.high else None
        kind = self.kind if self.kind == np.bool_ else narrowest(self.low, self.high)
        self.values: NDArray[Any] | None = None if self.only is not None else values.astype(kind, copy=False)

    @property
    def nbytes(self) -> int:
        """Memory that the values take."""
        return 0 if self.values is None else self.values.nbytes

    def put(self, rows: Rows, values: NDArray[V]) -> None:
        """Replace the values of some rows.

        Args:
            rows: shape (k,), at least one.
            values: shape (k,).
        """
        low, high = _bounds(values)
        # Most columns have one value in all rows, and most changes keep it so: then there is no array at all.
        if self.values is None and low == high == self.only:
            return
        self._widened(min(low, self.low), max(high, self.high))[rows] = values

    def _widened(self, low: int, high: int) -> NDArray[Any]:
        """Return the values, as wide as these bounds need."""
        # A width is never narrowed again: values that were seen once are likely to come again.
        if self.values is None or low < self.low or high > self.high:
            self.values = self._copy(low, high)
            self.low, self.high, self.only = low, high, None
        return self.values

    def _copy(self, low: int, high: int) -> NDArray[Any]:
        kind = narrowest(low, high) if self.kind != np.bool_ else self.kind
        return np.full(self.size, self.only, kind) if self.values is None else self.values.astype(kind, copy=False)

    def at(self, rows: Rows | None) -> NDArray[Any] | int:
        """Return values in the width in which they are kept; not to be written.

        Args:
            rows: shape (k,); None: all.

        Returns:
            An array of shape (k,), or one number if all rows have the same value.
        """
        if self.values is None:
            assert self.only is not None  # the invariant
            return self.only
        return self.values if rows is None else self.values[rows]

    def column(self, rows: Rows | None = None) -> NDArray[V]:
        """Return values in the width of plugins.

        Args:
            rows: shape (k,); None: all.

        Returns:
            An array of shape (k,), bool or int64; a new one, or not to be written.
        """
        found = self.at(rows)
        if isinstance(found, int):
            return np.full(self.size if rows is None else len(rows), found, self.kind)
        return found.astype(self.kind, copy=False)


def _bounds(values: NDArray[Any]) -> tuple[int, int]:
    """Return the lowest and the highest value; 0 for no values."""
    if not len(values):
        return 0, 0
    if len(values) <= _FEW:
        few = values.tolist()
        return int(min(few)), int(max(few))
    if values.dtype == np.bool_:
        return int(values.all()), int(values.any())
    return int(values.min()), int(values.max())
