"""Cells and histograms of metrics, which are looked up once and then only added to.

The Prometheus library's own metrics take a lock, check labels and walk all buckets at every call. A decision makes some twenty calls.
All calls here come from one thread, so an addition is enough.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from placewright.observability.metrics.family import MetricFamily, MetricKind

Labels = tuple[str, ...]
Floats = NDArray[np.float64]
One = TypeVar("One")
SomeLabels = TypeVar("SomeLabels", bound=Labels | str)


class Cell:
    """The number of one series."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Histogram:
    """The histogram of one series: `counts` by bucket, the last one for values above all bounds."""

    __slots__ = ("_bounds", "_lines", "counts", "sum")

    def __init__(self, family: MetricFamily, labels: Labels) -> None:
        self._bounds: Final = family.buckets
        self._lines: Final = _beginnings(family, labels)
        self.counts = [0] * (len(family.buckets) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def observe_all(self, values: Floats) -> None:
        """Count many values, shape (values,)."""
        places = np.searchsorted(self._bounds, values, side="left")
        for place, times in enumerate(np.bincount(places, minlength=len(self.counts)).tolist()):
            self.counts[place] += times
        self.sum += float(values.sum())

    def text(self) -> str:
        """Write the text of the export."""
        counts = list(accumulate(self.counts))
        return "".join(f"{line} {value}\n" for line, value in zip(self._lines, [*counts, counts[-1], repr(self.sum)], strict=True))


def _beginnings(family: MetricFamily, labels: Labels) -> list[str]:
    """Write the texts before the numbers of each bucket, of the count and of the sum."""
    named = sorted(f'{name}="{_escaped(value)}"' for name, value in zip(family.labels, labels, strict=True))
    at = "{" + ",".join(named) + "}" if named else ""
    bounds = [*(repr(float(bound)) for bound in family.buckets), "+Inf"]
    buckets = [f"{family.name}_bucket{{" + ",".join([f'le="{bound}"', *named]) + "}" for bound in bounds]
    return [*buckets, f"{family.name}_count{at}", f"{family.name}_sum{at}"]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class _SeriesOf(Generic[One]):
    """The series of one family, by the values of its labels."""

    def __init__(self, family: MetricFamily, make: Callable[[MetricFamily, Labels], One]) -> None:
        self.family: Final = family
        self._make = make
        self._series: dict[Labels, One] = {}

    def at(self, *labels: str) -> One:
        """Return the series of these label values, which a caller may keep."""
        found = self._series.get(labels)
        if found is None:
            found = self._series[labels] = self._make(self.family, labels)
        return found

    def forget(self, unwanted: Callable[[Labels], bool]) -> None:
        """Drop the series of these label values. A series that a caller keeps is no longer exported."""
        for labels in [labels for labels in self._series if unwanted(labels)]:
            del self._series[labels]


class CounterSeries(_SeriesOf[Cell]):
    """The cells of one counter, by the values of its labels."""

    def __init__(self, family: MetricFamily) -> None:
        super().__init__(family, lambda _family, _labels: Cell())

    def metric(self) -> Metric:
        """Make the metric, for export."""
        return counted(self.family, {labels: cell.value for labels, cell in self._series.items()})


class Histograms(_SeriesOf[Histogram]):
    """The histograms of one family, by the values of its labels.

    They write their own text, which is equal in both formats. The library takes 230 ms for the nine thousand lines of a large installation.
    No pod is decided meanwhile. This takes 3 ms.
    """

    def __init__(self, family: MetricFamily) -> None:
        super().__init__(family, Histogram)

    def text(self) -> str:
        """Write the text of the export."""
        name = self.family.name
        return f"# HELP {name} {self.family.help}\n# TYPE {name} histogram\n" + "".join(one.text() for one in self._series.values())


#: A metric that keeps its own values.
Series = CounterSeries | Histograms


class SeriesOfEvents:
    """Series that are counted as events happen: attributes of an object."""

    def series(self) -> Sequence[Series]:
        """List the series, for export."""
        return [each for each in vars(self).values() if isinstance(each, CounterSeries | Histograms)]


def counted(family: MetricFamily, values: Mapping[SomeLabels, float]) -> Metric:
    """Make a counter or a gauge.

    Returns:
        The metric, for export.
    """
    made: CounterMetricFamily | GaugeMetricFamily
    if family.kind is MetricKind.COUNTER:
        made = CounterMetricFamily(family.name.removesuffix("_total"), family.help, labels=family.labels)
    else:
        made = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in values.items():
        made.add_metric((labels,) if isinstance(labels, str) else labels, value)
    return made


def single(family: MetricFamily, value: float) -> Metric:
    """Make a counter or a gauge without labels.

    Returns:
        The metric, for export.
    """
    return counted(family, {(): value})


def told(family: MetricFamily, values: Labels) -> Metric:
    """Make an info.

    Returns:
        The metric, for export.
    """
    made = InfoMetricFamily(family.name.removesuffix("_info"), family.help, labels=family.labels)
    made.add_metric(values, {})
    return made
