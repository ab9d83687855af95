"""Throughput as upstream's benchmark counts it: bindings in each second, their average and percentiles. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Seconds between two of upstream's samples.
SAMPLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Throughput:
    """Pods a second over all samples of one measurement, with upstream's names."""

    average: float
    perc50: float
    perc90: float
    perc95: float
    perc99: float


def throughput(begin: float, bound: Iterable[float]) -> Throughput | None:
    """Return the throughput of pods bound at these times, sampled every second from `begin`. Without a sample, return None."""
    samples = sorted(_samples(begin, sorted(bound)))
    if not samples:
        return None
    at = [samples[math.ceil(len(samples) * percent / 100) - 1] for percent in (50, 90, 95, 99)]
    return Throughput(sum(samples) / len(samples), *at)


def _samples(begin: float, bound: Sequence[float]) -> list[float]:
    """Compute samples like upstream.

    The first look with a binding only begins. A second without a binding is no sample of 0. It counts with the next second that has
    bindings: each of these seconds is a sample with its share of the bindings.
    """
    if not bound:
        return []
    samples: list[float] = []
    seen = skipped = 0
    looks = math.ceil((bound[-1] - begin) / SAMPLE_SECONDS)
    for look in range(1, looks + 1):
        count = bisect_right(bound, begin + look * SAMPLE_SECONDS)
        if not seen:
            seen = count
        elif count == seen:
            skipped += 1
        else:
            samples += [(count - seen) / (SAMPLE_SECONDS * (skipped + 1))] * (skipped + 1)
            seen, skipped = count, 0
    return samples
