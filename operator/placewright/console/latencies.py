"""Durations counted in buckets, and the quantiles of the counts. Counts can be added, quantiles cannot.

A bucket ends at 1.41 times its begin, so a quantile is wrong by less than that; within a bucket it is interpolated as Prometheus does.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Counts by bucket, shape (buckets,), int64. They are never changed in place once they are part of a point.
Counts = NDArray[np.int64]
Seconds = NDArray[np.float64]

#: Upper bounds of the buckets, seconds: from 61 µs to 4.5 hours. One more bucket has all longer durations.
BOUNDS: Final[Seconds] = 2.0 ** (np.arange(-28, 29) / 2)


def no_counts() -> Counts:
    """Counts of no durations."""
    return np.zeros(len(BOUNDS) + 1, np.int64)


def counted(durations: Seconds) -> Counts:
    """Count durations.

    Args:
        durations: seconds, shape (durations,).

    Returns:
        The counts.
    """
    return np.bincount(np.searchsorted(BOUNDS, durations, side="left"), minlength=len(BOUNDS) + 1)


def quantile(counts: Counts, share: float) -> float | None:
    """Estimate a quantile.

    Args:
        counts: by bucket.
        share: from 0 to 1, such as 0.99.

    Returns:
        Seconds; None without counts. The last bucket has no upper bound, so its lower one is told.
    """
    whole = int(counts.sum())
    if not whole:
        return None
    upto = np.cumsum(counts)
    bucket = int(np.searchsorted(upto, share * whole, side="left"))
    if bucket >= len(BOUNDS):
        return float(BOUNDS[-1])
    low = float(BOUNDS[bucket - 1]) if bucket else 0.0
    before = int(upto[bucket - 1]) if bucket else 0
    return low + (float(BOUNDS[bucket]) - low) * (share * whole - before) / int(counts[bucket])
