"""What a metric is called, of which kind it is and how it is divided: the words of the tables in `upstream` and `own`."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class MetricKind(enum.StrEnum):
    """As Prometheus names them; INFO is a gauge that is always 1 and says all in its labels."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric.

    Attributes:
        name: as it is exported, `_total` of counters and `_info` of infos included.
        help: one line for people.
        labels: their names, in the order in which values are given.
        buckets: upper bounds, ascending, without +Inf; of histograms alone.
    """

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def counter(name: str, help_: str, *labels: str) -> MetricFamily:
    """Counts up."""
    return MetricFamily(name, MetricKind.COUNTER, help_, labels)


def gauge(name: str, help_: str, *labels: str) -> MetricFamily:
    """Goes up and down."""
    return MetricFamily(name, MetricKind.GAUGE, help_, labels)


def histogram(name: str, help_: str, buckets: tuple[float, ...], *labels: str) -> MetricFamily:
    """Counts by size."""
    return MetricFamily(name, MetricKind.HISTOGRAM, help_, labels, buckets)


def info(name: str, help_: str, *labels: str) -> MetricFamily:
    """Says something that is no number."""
    return MetricFamily(name, MetricKind.INFO, help_, labels)


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds, each `factor` times the one before.

    Multiplied one after the other, as the Prometheus library for Go does: so the text of `le` is the same to the last digit.
    """
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)
