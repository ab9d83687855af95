"""Durations counted in buckets, and the quantiles of the counts. Counts can be added, quantiles cannot.

A bucket ends at 1.41 times its begin, so a quantile is wrong by less than that; within a bucket it is interpolated as Prometheus does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Counts by bucket, shape (buckets,), int64. They are never changed in place once they are part of a point.
Counts = NDArray[np.int64]
Seconds = NDArray[np.float64]

#: Upper bounds of the buckets, seconds: from 61 µs to 4.5 hours. One more bucket has all longer durations.
BOUNDS: Final[Seconds] = 2.0 ** (np.arange(-28, 29) / 2)
_BOUNDS: Final[list[float]] = BOUNDS.tolist()


def no_counts() -> Counts:
    """Return counts of no durations."""
    return np.zeros(len(BOUNDS) + 1, np.int64)


def counted(durations: Seconds) -> Counts:
    """Count durations.

    Args:
        durations: seconds, shape (durations,).
    """
    return np.bincount(np.searchsorted(BOUNDS, durations, side="left"), minlength=len(BOUNDS) + 1)


def quantiles(counts: Counts, shares: Sequence[float]) -> list[float | None]:
    """Estimate quantiles.

    Args:
        counts: counts by bucket.
        shares: shares from 0 to 1, such as 0.5 and 0.99.

    Returns:
        Seconds for each share; None without counts. The last bucket has no upper bound, so its lower one is told.
    """
    upto = counts.cumsum().tolist()
    whole = upto[-1]
    return [_within(upto, share * whole) if whole else None for share in shares]


def _within(upto: list[int], rank: float) -> float:
    """Return the duration of a rank, in its bucket."""
    bucket = bisect_left(upto, rank)
    if bucket >= len(_BOUNDS):
        return _BOUNDS[-1]
    low, before = (_BOUNDS[bucket - 1], upto[bucket - 1]) if bucket else (0.0, 0)
    return low + (_BOUNDS[bucket] - low) * (rank - before) / (upto[bucket] - before)
