"""Metric families: name, kind, help and labels, as the tables in `upstream` and `own` declare them."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class MetricKind(enum.StrEnum):
    """The kinds of metrics by Prometheus' names. An INFO is a gauge that is always 1, with its content in the labels."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric.

    Attributes:
        name: name in the export, with `_total` of counters and `_info` of infos.
        kind: kind of its values.
        help: one line for a person.
        labels: their names, in the order in which values are given.
        buckets: upper bounds, ascending, without +Inf; of histograms alone.
    """

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def counter(name: str, help_: str, *labels: str) -> MetricFamily:
    """Declare a counter.

    Args:
        name: ends with `_total`.
        help_: one line for a person.
        labels: names, in order.
    """
    return MetricFamily(name, MetricKind.COUNTER, help_, labels)


def gauge(name: str, help_: str, *labels: str) -> MetricFamily:
    """Declare a gauge.

    Args:
        name: name in the export.
        help_: one line for a person.
        labels: names, in order.
    """
    return MetricFamily(name, MetricKind.GAUGE, help_, labels)


def histogram(name: str, help_: str, buckets: tuple[float, ...], *labels: str) -> MetricFamily:
    """Declare a histogram.

    Args:
        name: name in the export.
        help_: one line for a person.
        buckets: upper bounds, ascending, without +Inf.
        labels: names, in order.
    """
    return MetricFamily(name, MetricKind.HISTOGRAM, help_, labels, buckets)


def info(name: str, help_: str, *labels: str) -> MetricFamily:
    """Declare an info.

    Args:
        name: ends with `_info`.
        help_: one line for a person.
        labels: names, in order.
    """
    return MetricFamily(name, MetricKind.INFO, help_, labels)


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Make upper bounds, each `factor` times the one before.

    They are multiplied in turn, as in the Prometheus library for Go. So the texts of `le` are equal to the last digit.

    Args:
        first: the first bound.
        factor: above 1.
        count: number of bounds.
    """
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)
